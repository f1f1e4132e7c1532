"""Durable Objects that live in another process of this machine: the calls of their stubs, over a socket.

An object lives in one process. Where several serve requests, one of them has the objects and answers here; the others
call it through `RemoteObjects`, which is behind a stub where `Objects` is otherwise. The end that has them
says that a call begins before it runs it. A call that was not begun, since that process was being replaced, is sent
again, so that none is lost and none runs twice.

Both ends run the same program for the same user, and the socket is in a folder of that user alone: values and errors
cross as pickles, which keep their classes.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, cast

from core import http
from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.namespace import EmbeddedDurableObjectNamespace
from core.backends.raised import made_anew
from core.backends.remote.link import Frame, Link, Lost, RemoteWebSocket
from core.bindings.durable_object import DurableObject
from core.errors import DurableObjectError
from core.explain.diagnosis import words_of
from core.http.websocket import WebSocket, WebSocketClosed, close_as, relay
from core.spans import Elsewhere, Running, Tracer, current_traceparent, running

log: logging.Logger = logging.getLogger("core.durable_object")

_IDLE_LINKS: Final = 32
# Seconds for which a call that has not begun is sent again, while the process that has the objects is replaced.
_PATIENCE: Final = 60.0


# The calling end ------------------------------------------------------------------------------------------------------


class RemoteObjects:
    """The objects of the class `cls` under `name`, in the process that answers at the socket `location`."""

    def __init__(self, name: str, cls: type[DurableObject[Any]], location: str) -> None:
        self.name = name
        self.cls = cls
        self.location = location
        self._idle: list[Link] = []

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def begin(self, payload: bytes) -> Link:
        """Send a call, and return its connection once it has begun.

        Raises DurableObjectError when it does not begin.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            link = None
            try:
                link = self._take() or Link(*await asyncio.open_unix_connection(self.location))
                await link.send(Frame.CALL, payload)
                await link.receive()
                return link
            except BaseException as error:
                if link is not None:
                    link.close()
                if not isinstance(error, Lost | OSError):
                    raise
                if time.monotonic() > deadline:
                    raise _away(
                        f"the process that has the Durable Objects {self.name} does not answer. Try again"
                    ) from error
            await asyncio.sleep(0.02)

    def _take(self) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
            link.close()
        return None

    def give_back(self, link: Link) -> None:
        """Keep the connection of a call that has ended for the next one."""
        if link.is_open and len(self._idle) < _IDLE_LINKS:
            self._idle.append(link)
        else:
            link.close()

    async def call(self, id: ObjectId, method: str, args: tuple[Any, ...], options: Mapping[str, object]) -> object:
        """Run a method of an object. Raises its error, and DurableObjectError where its process ends meanwhile."""
        is_fetch = method == "fetch"
        if is_fetch:
            request: http.Request = args[0]
            body = None if request.body is None else await request.bytes()
            args = (request.url, request.method, [*request.headers.items()], body)
        try:
            payload = pickle.dumps((current_traceparent(), self.name, id, method, args, dict(options)))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise DurableObjectError(
                f"{self.cls.__name__}.{method}: an argument cannot go to another process: {error}. Define its class "
                "at the top level of a module"
            ) from error
        link = await self.begin(payload)
        try:
            kind, payload = await link.receive()
        except BaseException as error:
            link.close()
            if isinstance(error, Lost):
                raise self._ended(method) from error
            raise
        result = pickle.loads(payload)
        if kind == Frame.RAISED:
            self.give_back(link)
            raise made_anew(*result)
        if is_fetch:
            status, headers, has_body = result
            if status == 101:
                return http.Response.websocket(RemoteWebSocket(link), headers=headers)
            if has_body:
                return http.Response(self._body(link), status=status, headers=headers)
            result = http.Response(status=status, headers=headers)
        self.give_back(link)
        return result

    async def _body(self, link: Link) -> AsyncIterator[bytes]:
        """The body of a response, from the connection that it goes on."""
        complete = False
        try:
            while True:
                kind, chunk = await link.receive()
                if kind != Frame.CHUNK:
                    complete = True
                    return
                yield chunk
        except Lost as error:
            raise self._ended("fetch") from error
        finally:
            if complete:
                self.give_back(link)
            else:
                link.close()

    def _ended(self, method: str) -> DurableObjectError:
        return _away(
            f"{self.cls.__name__}.{method}: the process that has the object ended during the call, which may "
            "have been carried out or not"
        )


def _away(message: str) -> DurableObjectError:
    """An error of a process that is started again, as workerd gives one for a connection that is lost."""
    error = DurableObjectError(message)
    error.retryable = True
    return error


# Errors keep their class, message and attributes, whatever their `__init__` asks for.


def _dump_error(error: BaseException) -> bytes:
    try:
        dumped = pickle.dumps((type(error), error.args, error.__dict__))
        made_anew(*pickle.loads(dumped))
        return dumped
    except Exception:
        text = f"{type(error).__name__}: {words_of(error)}"
        return pickle.dumps((DurableObjectError, (text,), {}))


# The answering end ----------------------------------------------------------------------------------------------------


class ObjectServer:
    """Answers at `listener`, a Unix socket that listens, for the objects of `namespaces`, by the names of their
    classes.

    `tracer` makes the spans of a call that belongs to a trace.
    """

    def __init__(
        self,
        listener: socket.socket,
        namespaces: Mapping[str, EmbeddedDurableObjectNamespace[Any]],
        tracer: Tracer | None = None,
    ) -> None:
        self._listener = listener
        self._tracer = tracer
        self._objects = {namespace.objects.name: namespace.objects for namespace in namespaces.values()}
        self._server: asyncio.Server | None = None
        # Each connection's task, and whether a call runs on it. One that carries a WebSocket is in the second.
        self._links: dict[asyncio.Task[None], bool] = {}
        self._sessions: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self) -> None:
        # From Python 3.13 on start_unix_server would remove the socket's file at its end: the next process has it too.
        self._server = await asyncio.start_server(self._accepted, sock=self._listener)

    async def close(self) -> None:
        """Begin no more calls, close the WebSockets with 1001, and return when the calls that run are answered."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task, busy in [*self._links.items()]:
            if not busy:
                task.cancel()
        while calls := self._links.keys() - self._sessions:
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for objects in self._objects.values():
            objects.hang_up()
        while self._links:
            await asyncio.wait({*self._links})

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        link = Link(reader, writer)
        self._links[task] = False
        try:
            while not self._closing:
                _, payload = await link.receive()
                self._links[task] = True
                await link.send(Frame.BEGUN)
                traceparent, *call = pickle.loads(payload)
                # The spans of the call belong to the span of its caller, in the task of the connection.
                tracer = self._tracer if traceparent else None
                running.set(None if tracer is None else Running(tracer, Elsewhere(traceparent)))
                socket = await self._answer(link, *call)
                if socket is not None:
                    await self._carry(task, link, socket)
                    return
                self._links[task] = False
        except (Lost, asyncio.CancelledError):
            pass  # the caller is gone, or nothing more is to be begun
        finally:
            del self._links[task]
            self._sessions.discard(task)
            link.close()

    async def _carry(self, task: asyncio.Task[None], link: Link, socket: WebSocket) -> None:
        self._sessions.add(task)
        if self._closing:
            await close_as(socket, WebSocketClosed(1001))
        await relay(RemoteWebSocket(link, (1006, "")), socket)

    async def _answer(
        self, link: Link, name: str, id: ObjectId, method: str, args: tuple[Any, ...], options: dict[str, object]
    ) -> WebSocket | None:
        """Run a call, and send its answer. Returns the WebSocket that it opened, for its messages to follow."""
        response: http.Response | None = None
        try:
            if method == "fetch":
                url, verb, headers, body = args
                args = (http.Request(url, method=verb, headers=headers, body=body),)
            result = await self._objects[name].call(id, method, args, options)
            if method == "fetch":
                response = result
                result = (result.status, [*result.headers.items()], result.body is not None)
            kind, payload = Frame.RESULT, pickle.dumps(result)
        except Exception as error:
            if isinstance(error, DurableObjectError) and error.__cause__ is not None:
                # The caller gets the words of what reset the object; a pickle carries neither its class nor its place.
                log.error("a call of %s.%s failed", name, method, exc_info=error)
            kind, payload, response = Frame.RAISED, _dump_error(error), None
        opened = None if response is None else response.web_socket
        try:
            await link.send(kind, payload)
        except Lost:
            if opened is not None:
                await close_as(opened, WebSocketClosed(1006))
            raise
        if opened is not None:
            return opened
        if response is not None and response.body is not None:
            async for chunk in response.stream():
                await link.send(Frame.CHUNK, chunk)
            await link.send(Frame.END)
        return None
