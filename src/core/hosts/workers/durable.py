"""A call that reaches a Durable Object: which of its methods, with which arguments, and what goes back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

from core.backends.workerd.conversion import bridge, from_js, js_value, none_of, unwrap
from core.backends.workerd.fetch import request_of
from core.backends.workerd.rpc import KEYWORDS
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.hosts.workers.response import js_response_of

log: logging.Logger = logging.getLogger("core")

__all__ = ["call_method", "call_method_or_tell", "method_names"]


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
            return js_response_of(await instance.fetch(request_of(unwrap(args[0]))))
        case "alarm":
            info = args[0] if args else None
            await instance.alarm(
                AlarmInvocationInfo(
                    retry_count=int(none_of(getattr(info, "retryCount", None)) or 0),
                    is_retry=bool(none_of(getattr(info, "isRetry", None))),
                    scheduled_time=int(none_of(getattr(info, "scheduledTime", None)) or 0),
                )
            )
            return None
        case _:
            pass
    incoming = [from_js(unwrap(value)) for value in args]
    keywords: dict[str, Any] = {}
    if incoming and isinstance(incoming[-1], dict) and set(cast("dict[str, Any]", incoming[-1])) == {KEYWORDS}:
        keywords = incoming.pop()[KEYWORDS]
    result = await getattr(instance, method)(*incoming, **keywords)
    return bridge().jsnull if result is None else js_value(result)


async def call_method_or_tell(instance: Any, method: str, args: Sequence[Any]) -> Any:
    """As `call_method`; what it raises is given back as an Error for JavaScript to throw.

    A Python exception that crosses by itself arrives as a whole traceback in one message. This way the caller gets the
    class's name and the message, and the traceback stays in the log here.
    """
    try:
        return await call_method(instance, method, args)
    except Exception as error:
        log.error("a call of %s.%s failed", type(instance).__name__, method, exc_info=error)
        return _js_error(error)


def _js_error(error: Exception) -> Any:
    cls = type(error)
    made = bridge().js.Error.new(str(error))
    made.thrown_by_core = True
    made.name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return made
