"""A call that reaches a Durable Object: which of its methods, with which arguments, and what goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.backends.workerd.crossing import bare, bridge, from_js, js_value
from core.backends.workerd.durable_object import KEYWORDS
from core.backends.workerd.fetch import request_of
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.hosts.workers.response import js_response_of

__all__ = ["call_method", "method_names"]


def method_names(cls: type[Any]) -> list[str]:
    """The methods of a class that a stub or the runtime may call: its public `async` ones."""
    import inspect

    base = {name for name in vars(DurableObject) if getattr(DurableObject, name, None) is getattr(cls, name, None)}
    return sorted(
        name
        for name, value in inspect.getmembers(cls)
        if not name.startswith("_") and name not in base and inspect.iscoroutinefunction(value)
    )


async def call_method(instance: Any, method: str, args: Sequence[Any]) -> Any:
    """Call `method` of a Durable Object with arguments of JavaScript's, and give its answer as JavaScript's."""
    match method:
        case "fetch":
            return js_response_of(await instance.fetch(request_of(args[0])))
        case "alarm":
            info = from_js(args[0]) if args else {}
            await instance.alarm(
                AlarmInvocationInfo(
                    retry_count=info.get("retryCount", 0),
                    is_retry=info.get("isRetry", False),
                    scheduled_time=int(info.get("scheduledTime", 0)),
                )
            )
            return None
    incoming = [from_js(bare(value)) for value in args]
    keywords: dict[str, Any] = {}
    if incoming and isinstance(incoming[-1], dict) and set(incoming[-1]) == {KEYWORDS}:
        keywords = incoming.pop()[KEYWORDS]
    result = await getattr(instance, method)(*incoming, **keywords)
    return bridge().jsnull if result is None else js_value(result)
