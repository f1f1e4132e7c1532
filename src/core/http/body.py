"""Bodies: the types that one may be made of, and that it is read once.

A body is bytes, an async iterable of bytes, or none. Reading marks it as used; none reads as empty any number of
times. https://fetch.spec.whatwg.org/#body-mixin
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from core.http.json import loads
from core.http.streams import close, decode, encode

if TYPE_CHECKING:
    import asyncio

    from core.http.forms import Form, FormLimits
    from core.http.headers import Headers


class EncodedBody(Protocol):
    """An object that encodes itself as a body: a form, or the names and values of a query."""

    def encode_body(self) -> tuple[builtins.bytes, str]:
        """The bytes, and their content type."""
        ...


BodyInit = str | builtins.bytes | bytearray | memoryview | AsyncIterable[builtins.bytes] | EncodedBody | None
"""The types that a body can be made of. A str is sent as UTF-8; a form and a query in their own encodings."""

_USED = "Body has already been used. It can only be used once. Use tee() first if you need to read it twice."


def body_of(init: BodyInit) -> tuple[builtins.bytes | AsyncIterable[builtins.bytes] | None, str | None]:
    """Return `init` as it is kept, bytes or the iterable itself, and the content type that goes with it.

    Raises TypeError for anything else.
    """
    if init is None or type(init) is bytes:
        return init, None
    if isinstance(init, str):
        return encode(init), "text/plain;charset=UTF-8"
    if isinstance(init, (bytes, bytearray, memoryview)):
        return bytes(init), None
    encode_body = getattr(init, "encode_body", None)
    if encode_body is not None:  # it says itself how it is written
        both: tuple[builtins.bytes, str] = encode_body()
        return both
    if isinstance(init, AsyncIterable):
        return init, None
    raise TypeError(
        f"A body cannot be made of {type(init).__name__}: give str, bytes, an async iterable of bytes, or None; json.dumps(value) for JSON"
    )


class Body:
    """The base of requests and responses."""

    __slots__ = ("_body", "_used")

    _body: builtins.bytes | AsyncIterable[builtins.bytes] | None
    _used: bool

    if TYPE_CHECKING:

        @property
        def headers(self) -> Headers:
            """The headers, which describe the body."""
            ...

    @property
    def body_used(self) -> bool:
        """True if the body was read. None is never used up."""
        return self._used

    @property
    def body(self) -> BodyStream | None:
        """The body as something that can be read elsewhere, for example as the body of another response."""
        return None if self._body is None else BodyStream(self)

    def body_bytes_or_none(self) -> builtins.bytes | None:
        """The whole body, read without waiting, or None when it has to be waited for (`await bytes()`)."""
        data = self._body
        if data is None:
            return b""
        if type(data) is not bytes:
            return None
        if self._used:
            raise TypeError(_USED)
        self._used = True
        return data

    async def bytes(self) -> builtins.bytes:
        """The whole body. Raises TypeError when it was read before."""
        data = self.body_bytes_or_none()
        return data if data is not None else await self._read()

    async def text(self) -> str:
        """The whole body as UTF-8, a byte order mark left out, invalid bytes as U+FFFD.

        Raises TypeError when it was read before.
        """
        return decode(await self.bytes())

    async def form_data(self, limits: FormLimits | None = None, /) -> Form:
        """The fields and files of an urlencoded or multipart body, within the limits of forms.

        Raises TypeError for any other content type, a malformed body, and one past a limit or read before.
        """
        from core.errors import CoreError
        from core.http.forms import read_form

        try:
            return await read_form(self.headers.get("content-type"), self.stream(), limits)
        except CoreError as error:
            if error.status != 415:
                raise TypeError(error.message) from None
            raise TypeError(
                "Unrecognized Content-Type header value. FormData can only parse the following MIME types: "
                "multipart/form-data, application/x-www-form-urlencoded."
            ) from None

    async def json(self) -> Any:
        """The value of the JSON in the body. Raises json.JSONDecodeError, and TypeError when it was read before."""
        return loads(await self.bytes())

    def stream(self) -> AsyncGenerator[builtins.bytes, None]:
        """The body in chunks, as they come. Raises TypeError when it was read before."""
        return _checked(self.taken())

    def taken(self) -> AsyncIterable[builtins.bytes]:
        """The body itself, for who sends it on: closing it closes what it comes from, also where nothing was read.

        Raises TypeError when it was read before.
        """
        data = self._take()
        return _chunks(data or b"") if data is None or isinstance(data, bytes) else data

    def _take(self) -> builtins.bytes | AsyncIterable[builtins.bytes] | None:
        """The body, which is used up from now on."""
        if self._body is not None and self._used:
            raise TypeError(_USED)
        self._used = self._body is not None
        return self._body

    async def _read(self) -> builtins.bytes:
        """The body that comes in chunks, whole."""
        data = self._take()
        # A host's body may be had whole with one await, which is cheaper than iterating over it.
        read = getattr(data, "read_body", None)
        if read is not None:
            whole: bytes = await read()
            return whole
        assert data is not None
        assert not isinstance(data, bytes)
        return b"".join([chunk async for chunk in _checked(data)])

    def _tee(self) -> builtins.bytes | AsyncIterable[builtins.bytes] | None:
        """A second body with the same content; this one stays readable."""
        if self._used:
            # In the words of the runtime, comma included.
            raise TypeError("This ReadableStream is currently locked to a reader,")
        data = self._body
        if data is None or isinstance(data, bytes):
            return data
        source = _Source(data)
        first: deque[builtins.bytes] = deque()
        second: deque[builtins.bytes] = deque()
        self._body = _Branch(source, first, second)
        return _Branch(source, second, first)


class BodyStream:
    """The body of a request or a response, readable once; reading it uses the body up where it came from."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Body) -> None:
        self._owner = owner

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._owner.stream()

    async def aclose(self) -> None:
        """Close what it comes from, where it was not read."""
        if not self._owner.body_used:
            await close(self._owner.taken())


async def _chunks(data: bytes) -> AsyncGenerator[bytes, None]:
    if data:
        yield data


async def _checked(source: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    iterator = aiter(source)
    try:
        async for chunk in iterator:
            if not isinstance(chunk, (bytes, bytearray, memoryview)):
                raise TypeError(f"A body's chunks must be bytes, not {type(chunk).__name__}: write text.encode()")
            yield bytes(chunk)  # itself, where it is no other kind
    finally:
        await close(iterator)  # for a reader that stops early


class _Source:
    """The stream that two branches read from, each chunk once."""

    __slots__ = ("failure", "iterator", "lock", "readers")

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self.iterator = _checked(source)
        self.lock: asyncio.Lock | None = None
        self.failure: Exception | None = None
        """Its end, or its error: for each of the readers."""
        self.readers = 2


class _Branch:
    """One of the two readers of a body that was cloned. The pieces it reads first are kept for the other."""

    __slots__ = ("_gone", "_mine", "_other", "_source")

    def __init__(self, source: _Source, mine: deque[bytes], other: deque[bytes]) -> None:
        self._source = source
        self._mine = mine
        self._other = other
        self._gone = False

    def __aiter__(self) -> _Branch:
        return self

    async def __anext__(self) -> bytes:
        source, mine = self._source, self._mine
        if not mine:
            if source.lock is None:
                import asyncio

                source.lock = asyncio.Lock()
            async with source.lock:
                # The other one may have read it while this one waited.
                if not mine:
                    await self._pull()
        return mine.popleft()

    async def _pull(self) -> None:
        source = self._source
        if source.failure is not None:
            raise source.failure
        try:
            chunk = await anext(source.iterator)
        except Exception as failure:
            source.failure = failure
            raise
        except BaseException:
            # This reader was cancelled, and most sources end by that. The other one must not take it for the end.
            source.failure = ConnectionAbortedError("the body's other reader was cancelled while it waited")
            raise
        self._mine.append(chunk)
        if source.readers > 1:
            self._other.append(chunk)

    async def aclose(self) -> None:
        """Let go of the source, which is closed when both readers have."""
        if self._gone:
            return
        self._gone = True
        self._mine.clear()
        self._source.readers -= 1
        if self._source.readers == 0:
            await self._source.iterator.aclose()
