"""Conversion of values between JavaScript and Python.

JavaScript has two nothings (`null` arrives as `jsnull`, `undefined` as None), its own bytes, dates, streams and
errors, and numbers that are whole only up to 2**53. Everything a binding takes or gives goes through this file, and
no proxy is left behind. A value that the platform's SDK has wrapped is taken out of its wrapper first, and one that
it has already turned into Python's is left as it is.

`js` and `pyodide` exist only inside a worker and only once a request has come, so they are imported on first use:
a module that held a JavaScript object would be in the memory snapshot.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from core.bindings.numbers import MAX_SAFE_INTEGER
from core.errors import BindingError, BindingTypeError
from core.http.json import MAX_DEPTH, check_nesting, loads
from core.http.streams import close

if TYPE_CHECKING:
    from js import ReadableStream

T = TypeVar("T")
A = TypeVar("A", bound=attrs.AttrsInstance)

# The key under which an attrs instance says its class on its way to another worker or object.
CLASS = "__core_class__"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Bridge:
    """The JavaScript functions that are needed again and again, fetched across once in an isolate."""

    def __init__(self) -> None:
        import js
        from pyodide import ffi

        self.js: Any = js
        self.JsProxy: type[Any] = ffi.JsProxy
        self.JsException: type[Exception] = ffi.JsException
        # Before pyodide 0.29 there is no jsnull: null arrives as None there.
        self.jsnull: Any = getattr(ffi, "jsnull", None)
        self.to_js: Callable[..., object] = ffi.to_js
        self.create_proxy: Callable[[object], Any] = ffi.create_proxy
        self.from_entries: Any = js.Object.fromEntries
        self.parse: Any = js.JSON.parse
        self.stringify: Any = js.JSON.stringify
        self.encode: Any = js.TextEncoder.prototype.encode.bind(js.TextEncoder.new())
        self.new_response: Any = js.Response.new


@lru_cache(maxsize=1)
def bridge() -> Bridge:
    """The bridge. Call it while a request, a message or an event is handled, never at import time."""
    return Bridge()


# Wrappers and nothings ------------------------------------------------------------------------------------------------

# The attributes under which the platform's SDK keeps the JavaScript object that it wraps.
_WRAPPED = ("_binding", "_env", "_ctx", "_js_request", "_js_response")


def unwrap(value: object) -> Any:
    """The JavaScript object inside one of the SDK's wrappers, and any other value as it is."""
    if isinstance(value, bridge().JsProxy):
        return value
    # Only the instance's own attributes are looked at: a wrapper answers for every name.
    own = getattr(value, "__dict__", None)
    if own:
        for name in _WRAPPED:
            if name in own:
                return unwrap(own[name])
    return value


def is_null(value: object) -> bool:
    """Return True if a value is JavaScript's null or undefined."""
    return value is None or value is bridge().jsnull


def none_of(value: T) -> T | None:
    """`value`, with both of JavaScript's nothings as None."""
    return None if value is None or value is bridge().jsnull else value


def attribute(value: object, name: str) -> Any:
    """An attribute of a JavaScript object; None where it has none of that name, or a nothing."""
    return none_of(getattr(value, name, None))


def constructor_name(value: object) -> str:
    """The name of the JavaScript class of an object: `KvNamespace`, `Date`, ...; empty for a value that has none."""
    value = unwrap(value)
    if not isinstance(value, bridge().JsProxy):
        return ""
    constructor = getattr(value, "constructor", None)
    # A plain object may have an item of that name.
    return str(getattr(constructor, "name", "")) if getattr(constructor, "typeof", None) == "function" else ""


# Into Python ----------------------------------------------------------------------------------------------------------


def from_js(value: Any, *, classes: bool = False) -> Any:
    """A value as plain Python: dicts, lists, str, numbers, bool, bytes, datetimes, sets, None; to any depth.

    With `classes` an attrs instance that was sent with its class is one again. JavaScript objects that none of these
    can hold (functions, streams, stubs) stay as they are. Raises BindingTypeError for a value nested deeper than
    `core.http.json.MAX_DEPTH`.
    """
    across = bridge()
    if value is None or value is across.jsnull:
        return None
    if not isinstance(value, across.JsProxy):
        return _plain(value, classes)
    # A value further down stays a proxy, which `_checked` takes for one more level.
    depth = MAX_DEPTH + 1
    try:
        converted = value.to_py(depth=depth, default_converter=_convert)
    except across.JsException:
        converted = _by_level(value, depth)
    return _plain(_checked(converted), classes)


def _by_level(value: Any, depth: int) -> Any:
    """`to_py` of a value, for one that has an item `constructor` that is null: pyodide asks that for its name."""
    across = bridge()
    if depth == 0 or not isinstance(value, across.JsProxy):
        return value
    match constructor_name(value):
        case "Array":
            return [_by_level(item, depth - 1) for item in value]
        case "Set":
            return {_by_level(item, depth - 1) for item in value}
        case "Map":
            return {_by_level(key, depth - 1): _by_level(item, depth - 1) for key, item in value.entries()}
        case "Object" | "":
            return {name: _by_level(item, depth - 1) for name, item in across.js.Object.entries(value)}
        case _:
            return value.to_py(depth=1, default_converter=_convert)


def _checked(value: T) -> T:
    """`value`, unless it is nested so deeply that pyodide, which recurses over it, ends the interpreter."""
    try:
        check_nesting(value)
    except ValueError:
        raise BindingTypeError(
            f"a value is nested deeper than {MAX_DEPTH} levels: hand over less of it at once"
        ) from None
    return value


def structured(value: object) -> Any:
    """A JSON-like JavaScript value as plain Python, in two crossings however large it is.

    For values that are known to be JSON (rows, metadata): numbers, texts, booleans, null, arrays and plain objects.
    """
    if not isinstance(value, bridge().JsProxy):
        return from_js(value)
    return loads(bridge().stringify(value))


_LONG = 32
"""The number of rows from which their document crosses as bytes: a string is copied character by character, 1.5 to 7
times slower at 100 kB, and below this number the calls that make bytes of it cost more."""


def rows_of(value: object) -> Any:
    """As `structured`, for results of SQLite: a value, a row, a result, or an array of them."""
    value = unwrap(value)
    across = bridge()
    rows = getattr(value, "results", value)
    if not isinstance(rows, across.JsProxy) or (getattr(rows, "length", None) or 0) < _LONG:
        return structured(value)
    # Mapped over an array of one, the document is never a string on this side.
    [document] = across.js.Array.of(value).map(across.stringify).map(across.encode)
    return loads(document.to_bytes())


def _convert(value: Any, convert: Callable[[object], object], cache: Callable[[object, object], None]) -> object:
    match constructor_name(value):
        case "Date":
            return date_of(value)
        case "ArrayBuffer" | "Uint8Array" | "DataView":
            return bytes_of(value)
        case "Number" | "String" | "Boolean":
            return value.valueOf()
        case "":
            # A plain object for which pyodide found an item of the name `constructor`, and no class.
            return {name: convert(item) for name, item in bridge().js.Object.entries(value)}
        case _:
            return value


def _plain(value: Any, classes: bool) -> Any:
    """`value` without jsnull, views of memory and other traces of the other side."""
    given = value  # not narrowed by what follows
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return int(value)  # a BigInt comes as a class of its own
        case Mapping():
            plain = {_plain(key, classes): _plain(item, classes) for key, item in given.items()}
            return _instance(plain) if classes and CLASS in plain else plain
        case set() | frozenset():
            return {_plain(item, classes) for item in given}
        case list() | tuple():
            return [_plain(item, classes) for item in given]
        case memoryview():
            return value.tobytes()
        case _:
            return None if value is bridge().jsnull else value


def _instance(plain: dict[str, Any]) -> object:
    """The attrs instance that was sent, where its class is loaded here; else its fields as a dict."""
    name = plain.pop(CLASS)
    module, _, qualname = str(name).partition(":")
    cls: Any = sys.modules.get(module)
    for part in qualname.split("."):
        cls = getattr(cls, part, None)
    if not isinstance(cls, type) or not attrs.has(cls):
        return plain
    given: dict[str, object] = {}
    for field in attrs.fields(cls):
        if field.init and field.name in plain:
            value = plain[field.name]
            # JavaScript has one kind of sequence.
            is_tuple = type(value) is list and str(field.type).removeprefix("typing.").lower().startswith("tuple")
            given[field.alias or field.name] = tuple(plain[field.name]) if is_tuple else value
    try:
        return cls(**given)
    except TypeError:
        return plain


def bytes_of(value: Any) -> bytes:
    """The bytes of an ArrayBuffer, a view of one, or the SDK's form of it."""
    given = value  # not narrowed by what follows
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(given)
    if constructor_name(value) == "DataView":
        return bytes(bridge().js.Uint8Array.new(value.buffer, value.byteOffset, value.byteLength).to_bytes())
    return bytes(value.to_bytes())


def date_of(value: Any) -> datetime:
    """A JavaScript Date (or the SDK's form of it) as a datetime in UTC, with its milliseconds."""
    if isinstance(value, datetime):
        # The SDK gives the machine's local time without saying so; workers run in UTC.
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    milliseconds = value.getTime() if not isinstance(value, (int, float)) else value
    seconds, rest = divmod(int(milliseconds), 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)


# The buffers that a stream is read into, in bytes: the first, and the largest for one that fills those before.
_BUFFER = 16 * 1024
_LARGEST_BUFFER = 256 * 1024


async def chunks_of(stream: ReadableStream) -> AsyncIterator[bytes]:
    """The chunks of a ReadableStream. Leaving early cancels it, so that its source stops.

    One of bytes is read into a buffer, as much as is there: by itself the runtime gives 4 kB at a time.
    """
    across = bridge()
    try:
        reader = stream.getReader(mode="byob")
        buffer = across.js.ArrayBuffer.new(_BUFFER)
    except across.JsException:  # a stream of other values, which JavaScript makes
        reader, buffer = stream.getReader(), None
    ended = False
    try:
        while True:
            step = await (reader.read() if buffer is None else reader.read(across.js.Uint8Array.new(buffer)))
            if step.done:
                ended = True
                return
            chunk = step.value
            yield chunk.encode() if isinstance(chunk, str) else bytes_of(chunk)
            if buffer is not None:
                buffer = step.value.buffer  # it was handed over with the question, and comes back
                if step.value.byteLength == buffer.byteLength < _LARGEST_BUFFER:
                    buffer = across.js.ArrayBuffer.new(4 * buffer.byteLength)
    except across.JsException:
        ended = True
        raise
    finally:
        if not ended:
            await reader.cancel()
        reader.releaseLock()


# Into JavaScript ------------------------------------------------------------------------------------------------------


# The types of values that hold no others.
_SINGLE: Final = (str, int, float, NoneType, bytes, bytearray, memoryview)


def js_value(value: object, *, classes: bool = False) -> object:
    """A Python value as JavaScript's own: objects, arrays, Uint8Array, Date, null; to any depth.

    An attrs instance is an object of its fields, with the name of its class if `classes`: what is kept has none. Whole
    numbers beyond 2**53 become BigInt, and a dict with keys that are not strings a Map. Raises BindingTypeError for a
    value that has no counterpart, and for one nested deeper than `core.http.json.MAX_DEPTH`.
    """
    across, given = bridge(), unwrap(value)
    if isinstance(given, across.JsProxy) or given is across.jsnull:
        return given
    if isinstance(given, _SINGLE):
        return _outgoing(given, classes)
    return across.to_js(_outgoing(_checked(given), classes), dict_converter=across.from_entries)


def _outgoing(value: Any, classes: bool) -> object:
    """`value` with null for None, Date for datetime and Uint8Array for bytes, ready for `to_js`."""
    given = value  # not narrowed by what follows
    match value:
        case None:
            return bridge().jsnull
        case bool() | float() | str():
            return value
        case int():
            return js_number(value)
        case bytes() | bytearray() | memoryview():
            return js_bytes(given)
        case datetime():
            return js_date(value)
        case Mapping():
            if all(isinstance(key, str) for key in given):
                return {key: _outgoing(item, classes) for key, item in given.items()}
            # An object would make texts of its keys; a Map keeps them, and comes back as a dict.
            pairs = [[_plain_key(key), _outgoing(item, classes)] for key, item in given.items()]
            across = bridge()
            return across.js.Map.new(across.to_js(pairs, dict_converter=across.from_entries))
        case list() | tuple():
            return [_outgoing(item, classes) for item in given]
        case set() | frozenset():
            return {_plain_key(item) for item in given}
        case _:
            value = unwrap(value)
            if isinstance(value, bridge().JsProxy) or value is bridge().jsnull:
                return value
            cls: type[object] = value.__class__
            if attrs.has(cls):
                from core.validation.unset import UNSET

                fields = {field.name: getattr(value, field.name) for field in attrs.fields(cls)}
                given = {name: part for name, part in fields.items() if part is not UNSET}
                named = {CLASS: f"{cls.__module__}:{cls.__qualname__}"} if classes else {}
                return _outgoing({**named, **given}, classes)
            raise BindingTypeError(
                f"a {cls.__name__} cannot be handed to JavaScript. Values are None, bool, int, float, str, bytes, "
                "datetime, and lists, dicts and sets of them"
            )


def _plain_key(value: object) -> object:
    """A key of a dict or an item of a set, which JavaScript's Map and Set find again by its value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return _outgoing(value, False)
    raise BindingTypeError(
        f"a {type(value).__name__} is a key of a dict or an item of a set. Use None, bool, int, float or str there"
    )


def js_number(value: int) -> int | float:
    """A whole number as JavaScript's Number where that is exact: pyodide would make a BigInt of a large one."""
    return float(value) if 2**31 <= abs(value) <= MAX_SAFE_INTEGER else value


def js_json(text: str) -> object:
    """The value of a JSON document as JavaScript's own. Its integers are those that a Number can hold."""
    value = bridge().parse(text)
    # A number alone has come back as Python's, and would go as a BigInt.
    return js_number(value) if type(value) is int else value


def js_bytes(value: bytes | bytearray | memoryview) -> Any:
    """A Uint8Array with a copy of the bytes."""
    return bridge().to_js(value if isinstance(value, bytes) else bytes(value))


def js_date(value: datetime) -> object:
    """A Date, which has milliseconds and no smaller part. Raises BindingTypeError for a datetime without a zone."""
    if value.tzinfo is None:
        raise BindingTypeError(f"{value!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
    return bridge().js.Date.new((value - _EPOCH) // timedelta(milliseconds=1))


def options(**given: object) -> dict[str, object]:
    """The keyword arguments of a JavaScript call, of options by their names in Python, without those that are None.

    Pyodide gives the keywords of a call as one options object, which the platform's methods take.
    """
    return {js_name(name): js_value(js_fields(value)) for name, value in given.items() if value is not None}


def js_fields(value: object) -> Any:
    """An attrs instance as the fields of it that are not None, by the names that JavaScript has for them; to any depth,
    in sequences too. Other values as they are.
    """
    given: Any = value  # not narrowed by what follows
    if isinstance(value, Sequence) and not isinstance(value, (*_SINGLE, bridge().JsProxy)):
        return [js_fields(item) for item in given]
    if not attrs.has(given.__class__):
        return given
    fields = {js_name(field.name): getattr(given, field.name) for field in attrs.fields(given.__class__)}
    return {name: js_fields(item) for name, item in fields.items() if item is not None}


def of_fields(cls: type[A], found: Mapping[str, object]) -> A:
    """An attrs instance of an object that came as `from_js` gives it: the way back of `js_fields`.

    What the object does not have, or has as null, keeps its default.
    """
    names = {field.name: js_name(field.name) for field in attrs.fields(cls)}
    return cls(**{name: found[given] for name, given in names.items() if found.get(given) is not None})


def js_name(name: str) -> str:
    """The name that JavaScript has for `name`: `request_timeout_ms` is `requestTimeoutMs`."""
    head, *words = name.split("_")
    return head + "".join(word.capitalize() for word in words)


def js_stream(
    chunks: AsyncIterable[bytes], *, on_end: Callable[[], None] | None = None, failed: list[Exception] | None = None
) -> ReadableStream:
    """A ReadableStream that asks `chunks` for the next one when its reader wants more.

    When the reader goes away, the iterator is closed, so that its `finally` runs. `on_end` is called once, at the end.
    `failed` gets an error of the iterator.
    """
    across = bridge()
    iterator = aiter(chunks)
    proxies: list[Any] = []

    def release() -> None:
        for proxy in proxies:
            proxy.destroy()
        proxies.clear()
        if on_end is not None:
            on_end()

    pulling: list[asyncio.Task[object]] = []

    async def pull(controller: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        pulling.append(task)
        try:
            # An empty chunk would end a byte stream for some readers, and tells nobody anything.
            while not (chunk := await anext(iterator)):
                pass
        except StopAsyncIteration:
            controller.close()
            release()
        except asyncio.CancelledError:
            return  # by `cancel`, which does the rest
        except Exception as error:
            if failed is not None:
                failed.append(error)
            controller.error(js_error(error))
            release()
        else:
            controller.enqueue(js_bytes(chunk))
        finally:
            pulling.clear()

    async def cancel(reason: object = None) -> None:
        # The iterator may be in the middle of making a chunk that nobody wants any more.
        for task in pulling:
            task.cancel()
        await asyncio.gather(*pulling, return_exceptions=True)
        try:
            await close(iterator)
        finally:
            release()

    proxies += [across.create_proxy(pull), across.create_proxy(cancel)]
    source = across.to_js({"pull": proxies[0], "cancel": proxies[1]}, dict_converter=across.from_entries)
    # Nothing is made before it is asked for.
    stream: ReadableStream = across.js.ReadableStream.new(source, highWaterMark=0)
    return stream


async def fixed_length(chunks: AsyncIterable[bytes], length: int, use: Callable[[object], Awaitable[T]]) -> T:
    """Give `use` a stream of `chunks` that says beforehand how long it is."""
    js, failed = bridge().js, list[Exception]()
    stream: Any = js_stream(chunks, failed=failed)
    given_up = js.AbortController.new()
    try:
        return await use(stream.pipeThrough(js.FixedLengthStream.new(length), signal=given_up.signal))
    except BaseException as error:
        given_up.abort()
        if failed:
            # The cause is the source's own error, not that its reader then saw a broken stream.
            raise failed[0] from error
        raise


# Errors ---------------------------------------------------------------------------------------------------------------


def error_parts(error: BaseException) -> tuple[str, str, str | None]:
    """A JavaScript error's name, message and cause's message; also of one that the SDK has made its own."""
    name = str(getattr(error, "name", "") or "Error")
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        text = str(error)
        head, colon, rest = text.partition(": ")
        if colon and head.endswith("Error") and head.isidentifier():
            name, message = head, rest
        else:
            message = text
    cause = getattr(error, "cause", None)
    cause_message = getattr(cause, "message", None) if cause is not None else None
    return name, message, cause_message if isinstance(cause_message, str) else None


def js_error(error: BaseException) -> Any:
    """An error of Python's as JavaScript's, in its words."""
    from core.explain.diagnosis import words_of

    return bridge().js.Error.new(words_of(error))


def error_class(errors: type[BindingError], name: str) -> type[BindingError]:
    """The class among a binding's `errors` for those that JavaScript has under a name."""
    return next((cls for cls in errors.__subclasses__() if cls.js_name == name != BindingError.js_name), errors)


def translated(error: BaseException, errors: type[BindingError]) -> BindingError:
    """The binding's own error for one of JavaScript's."""
    name, message, cause = error_parts(error)
    made = error_class(errors, name)(message)
    if name != made.js_name:
        made.js_name = name
    made.cause_message = cause
    retryable = getattr(error, "retryable", None)
    if isinstance(retryable, bool):
        # An overloaded object says so too, and grows no lighter by being asked again.
        made.retryable = retryable and getattr(error, "overloaded", None) is not True
    return made
