"""A call that reaches a Durable Object: which of its methods, with which arguments, and its answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from core.backends.workerd.conversion import bytes_of, constructor_name, from_js, js_error, js_value, none_of, unwrap
from core.backends.workerd.fetch import request_of
from core.backends.workerd.rpc import KEYWORDS, WHOLE
from core.backends.workerd.spans import PARENT, follow
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.errors import BindingTypeError, CoreError, DurableObjectError, DurableObjectTypeError
from core.hosts.workers.response import js_response_of

if TYPE_CHECKING:
    from core.dispatch.instruments import Instrument, Work

log: logging.Logger = logging.getLogger("core")

WEB_SOCKET_EVENTS: Final = {
    "webSocketMessage": "web_socket_message",
    "webSocketClose": "web_socket_close",
    "webSocketError": "web_socket_error",
}
"""The methods that the runtime calls for an accepted WebSocket, and their names on a `DurableObject`."""


def method_names(cls: type[object]) -> list[str]:
    """The methods of a class that a stub or the runtime may call: its public `async` ones."""
    import inspect

    base = {name for name in vars(DurableObject) if getattr(DurableObject, name, None) is getattr(cls, name, None)}
    return sorted(
        name
        for name, value in inspect.getmembers(cls)
        if not name.startswith("_") and name not in base and inspect.iscoroutinefunction(value)
    )


async def call_method(
    instance: Any, method: str, args: Sequence[Any], instruments: Sequence[Instrument] = ()
) -> object:
    """Call `method` of a Durable Object with JavaScript's arguments, for JavaScript. `instruments` see alarms."""
    match method:
        case "fetch":
            request = request_of(unwrap(args[0]))
            follow(request.headers.get("traceparent"))
            return js_response_of(await instance.fetch(request))
        case "alarm":
            given = args[0] if args else None
            info = AlarmInvocationInfo(
                retry_count=int(none_of(getattr(given, "retryCount", None)) or 0),
                is_retry=bool(none_of(getattr(given, "isRetry", None))),
                scheduled_time=int(none_of(getattr(given, "scheduledTime", None)) or 0),
            )
            run: Work = partial(instance.alarm, info)
            for instrument in instruments:
                run = instrument.alarm(type(instance).__name__, run)
            await run()
            return None
        case "web_socket_message" | "web_socket_close" | "web_socket_error":
            await _web_socket_event(instance, method, args)
            return None
        case _:
            incoming = [from_js(unwrap(value), classes=True) for value in args]
            keywords: dict[str, object] = {}
            if incoming and isinstance(incoming[-1], dict) and KEYWORDS in incoming[-1]:
                last: Any = incoming.pop()
                keywords = last[KEYWORDS]
                follow(last.get(PARENT))
            result = await getattr(instance, method)(*incoming, **keywords)
            try:
                return js_value(result, classes=True)
            except BindingTypeError as error:
                name = f"{type(instance).__name__}.{method}"
                raise DurableObjectTypeError(f"{name}: the result cannot be copied: {error}") from None


async def _web_socket_event(instance: Any, method: str, args: Sequence[Any]) -> None:
    """Hand an event of an accepted WebSocket to a Durable Object. An error is logged: the socket stays as it is."""
    from core.backends.workerd.object_socket import forget_without_sockets, socket_of
    from core.backends.workerd.web_socket import say_close

    given = unwrap(args[0])
    socket = socket_of(given)
    try:
        match method:
            case "web_socket_message":
                message = unwrap(args[1])
                if not isinstance(message, str):
                    # Compatibility dates decide whether it is an ArrayBuffer or a Blob.
                    is_blob = constructor_name(message) == "Blob"
                    message = bytes_of(await message.arrayBuffer() if is_blob else message)
                await instance.web_socket_message(socket, message)
            case "web_socket_close":
                code, reason, clean = int(args[1]), str(args[2]), bool(args[3])
                try:
                    await instance.web_socket_close(socket, code, reason, clean)
                finally:
                    # Our half of closing, where the object has left it to us.
                    say_close(given, code, "")
                    forget_without_sockets(instance.ctx)
            case _:
                await instance.web_socket_error(socket, DurableObjectError(str(args[1])))
    except Exception:
        log.exception("%s of %s failed; the WebSocket stays as it is", method, type(instance).__name__)


async def call_method_or_tell(
    instance: object, method: str, args: Sequence[object], instruments: Sequence[Instrument] = ()
) -> object:
    """As `call_method`; its error is given back as an Error for JavaScript to throw.

    A Python exception that crosses by itself arrives as a whole traceback in one message. This way the caller gets the
    class's name and the message, and the traceback stays in the log here.
    """
    try:
        return await call_method(instance, method, args, instruments)
    except Exception as error:
        if not isinstance(error, CoreError):  # which is an answer to the client, and no failure
            from core.explain.diagnosis import log_failure

            log_failure(error, "a call of %s.%s failed", type(instance).__name__, method)
        cls = type(error)
        name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        return _js_error(error, name)


def _js_error(error: Exception, name: str | None = None) -> object:
    made = js_error(error)
    made.thrown_by_core = True
    if name is not None:
        made.name = name
        with suppress(Exception):  # what cannot cross stays here, and the class and the message go
            setattr(made, WHOLE, js_value([[*error.args], vars(error)], classes=True))
    return made


def not_made(name: str, error: Exception) -> object:
    """The Error to throw where an object of the class `name` could not be made; the traceback stays in the log here.

    It has no name: the runtime would write that into the words that the caller gets for a reset.
    """
    from core.explain.diagnosis import log_failure

    log_failure(error, "no object of %s could be made", name)
    return _js_error(error)
