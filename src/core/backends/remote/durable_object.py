"""Durable Objects that live in another process of this machine: the calls of their stubs, over a socket.

An object lives in one process. Where several serve requests, one of them has the objects and answers here; the others
call it through `RemoteObjects`, which stands behind a stub where `Objects` stands otherwise. The end that has them
says that a call begins before it runs it. A call that was not begun, since that process was being replaced, is sent
again, so that none is lost and none runs twice.

Both ends run the same program for the same user, and the socket is in a folder of that user alone: values and errors
cross as pickles, which keep their classes.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from core import http
from core.backends.embedded.durable_object.ids import ObjectId
from core.errors import DurableObjectError

if TYPE_CHECKING:
    from core.backends.embedded.durable_object.namespace import EmbeddedDurableObjectNamespace
    from core.bindings.durable_object import DurableObject

__all__ = ["ObjectServer", "RemoteObjects"]

_CALL, _BEGUN, _RESULT, _RAISED, _CHUNK, _END = range(6)
_HEAD: Final = struct.Struct(">BQ")
_IDLE_LINKS: Final = 32
# Seconds for which a call that has not begun is sent again, while the process that has the objects is replaced.
_PATIENCE: Final = 60.0


class _Lost(Exception):
    """The other end has closed the connection."""


class _Link:
    """One connection, for one call after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, kind: int, payload: bytes = b"") -> None:
        try:
            self._writer.write(_HEAD.pack(kind, len(payload)) + payload)
            await self._writer.drain()
        except OSError as error:
            raise _Lost from error

    async def receive(self) -> tuple[int, bytes]:
        try:
            kind, size = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            return kind, await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise _Lost from error

    @property
    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        self._writer.close()


# The calling end ------------------------------------------------------------------------------------------------------


class RemoteObjects:
    """The objects of the class `cls` under `name`, in the process that answers at the socket `location`."""

    def __init__(self, name: str, cls: type[DurableObject[Any]], location: str) -> None:
        self.name = name
        self.cls = cls
        self.location = location
        self._idle: list[_Link] = []

    def object(self, id: ObjectId) -> RemoteObject:
        """The one object of an id."""
        return RemoteObject(self, id)

    async def begin(self, payload: bytes) -> _Link:
        """Send a call, and return its connection once it has begun. Raises DurableObjectError when it does not begin."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            link = None
            try:
                link = self._take() or _Link(*await asyncio.open_unix_connection(self.location))
                await link.send(_CALL, payload)
                await link.receive()
                return link
            except (_Lost, OSError) as error:
                if link is not None:
                    link.close()
                if time.monotonic() > deadline:
                    raise DurableObjectError(
                        f"the process that has the Durable Objects {self.name} does not answer. Try again"
                    ) from error
                await asyncio.sleep(0.02)
            except BaseException:
                if link is not None:
                    link.close()
                raise

    async def answer(self, link: _Link) -> Any:
        """The result of a call that has begun; raises what the object raised."""
        try:
            kind, payload = await link.receive()
        except BaseException:
            link.close()
            raise
        if kind == _RAISED:
            self.give_back(link)
            cls, args, attributes = pickle.loads(payload)
            raise _exception(cls, args, attributes)
        return pickle.loads(payload)

    def _take(self) -> _Link | None:
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
            link.close()
        return None

    def give_back(self, link: _Link) -> None:
        """Keep the connection of a call that has ended for the next one."""
        if link.is_open and len(self._idle) < _IDLE_LINKS:
            self._idle.append(link)
        else:
            link.close()


class RemoteObject:
    """An object from afar: what a stub calls."""

    def __init__(self, objects: RemoteObjects, id: ObjectId) -> None:
        self._objects = objects
        self._id = id

    async def call(self, method: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Run a method of the object. Raises what it raised, and DurableObjectError where its process ends meanwhile."""
        objects = self._objects
        is_fetch = method == "fetch"
        sent = (await _dumped(args[0]),) if is_fetch else args
        try:
            payload = pickle.dumps((objects.name, self._id, method, sent, dict(options)))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise DurableObjectError(
                f"{objects.cls.__name__}.{method}: an argument cannot go to another process: {error}. Define its class "
                "at the top level of a module"
            ) from error
        link = await objects.begin(payload)
        try:
            result = await objects.answer(link)
        except _Lost as error:
            raise self._ended(method) from error
        if is_fetch:
            status, headers, has_body = result
            if has_body:
                return http.Response(self._body(link), status=status, headers=headers)
            result = http.Response(status=status, headers=headers)
        objects.give_back(link)
        return result

    async def _body(self, link: _Link) -> AsyncIterator[bytes]:
        """The body of a response, from the connection that it goes on."""
        complete = False
        try:
            while True:
                kind, chunk = await link.receive()
                if kind != _CHUNK:
                    complete = True
                    return
                yield chunk
        except _Lost as error:
            raise self._ended("fetch") from error
        finally:
            if complete:
                self._objects.give_back(link)
            else:
                link.close()

    def _ended(self, method: str) -> DurableObjectError:
        return DurableObjectError(
            f"{self._objects.cls.__name__}.{method}: the process that has the object ended during the call, which may "
            "have been carried out or not"
        )


async def _dumped(request: http.Request) -> tuple[Any, ...]:
    body = None if request.body is None else await request.bytes()
    return request.url, request.method, [*request.headers.items()], body


def _loaded(url: str, method: str, headers: list[tuple[str, str]], body: bytes | None) -> http.Request:
    return http.Request(url, method=method, headers=headers, body=body)


# Errors keep their class, message and attributes, whatever their `__init__` asks for.


def _dump_error(error: BaseException) -> bytes:
    try:
        dumped = pickle.dumps((type(error), error.args, error.__dict__))
        _exception(*pickle.loads(dumped))
        return dumped
    except Exception:
        text = f"{type(error).__name__}: {error}"
        return pickle.dumps((DurableObjectError, (text,), {}))


def _exception(cls: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


# The answering end ----------------------------------------------------------------------------------------------------


class ObjectServer:
    """Answers at `listener`, a Unix socket that listens, for the objects of `namespaces`, by the names of their classes."""

    def __init__(self, listener: socket.socket, namespaces: Mapping[str, EmbeddedDurableObjectNamespace[Any]]) -> None:
        self._listener = listener
        self._objects = {namespace.objects.name: namespace.objects for namespace in namespaces.values()}
        self._server: asyncio.Server | None = None
        # Each connection's task, and whether a call runs on it.
        self._links: dict[asyncio.Task[None], bool] = {}
        self._closing = False

    async def start(self) -> None:
        """Begin to answer."""
        self._server = await asyncio.start_unix_server(self._accepted, sock=self._listener)

    async def close(self) -> None:
        """Begin no more calls, and return when those that run have been answered."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task, busy in [*self._links.items()]:
            if not busy:
                task.cancel()
        while self._links:
            await asyncio.wait({*self._links})

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        link = _Link(reader, writer)
        self._links[task] = False
        try:
            while not self._closing:
                _, payload = await link.receive()
                self._links[task] = True
                await link.send(_BEGUN)
                await self._answer(link, *pickle.loads(payload))
                self._links[task] = False
        except (_Lost, asyncio.CancelledError):
            pass  # the caller is gone, or nothing more is to be begun
        finally:
            del self._links[task]
            link.close()

    async def _answer(
        self, link: _Link, name: str, id: ObjectId, method: str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        response: http.Response | None = None
        try:
            if method == "fetch":
                args = (_loaded(*args[0]),)
            result = await self._objects[name].object(id).call(method, args, options)
            if method == "fetch":
                response = cast("http.Response", result)
                result = (response.status, [*response.headers.items()], response.body is not None)
            kind, payload = _RESULT, pickle.dumps(result)
        except Exception as error:
            kind, payload, response = _RAISED, _dump_error(error), None
        await link.send(kind, payload)
        if response is not None and response.body is not None:
            async for chunk in response.stream():
                await link.send(_CHUNK, chunk)
            await link.send(_END)
