"""The state of one object: its id, its storage, and control over its own life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn, TypeVar

from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.life import LiveObject
from core.backends.embedded.durable_object.storage import ObjectStorage
from core.bindings.durable_object import DurableObjectState
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
from core.context import require_awaitable
from core.errors import DurableObjectError

T = TypeVar("T")
MAX_AUTO_RESPONSE: Final = 2048
_log = logging.getLogger("core.durable_object")


class ObjectState(DurableObjectState):
    """The state of one object. See `DurableObjectState`."""

    def __init__(self, living: LiveObject) -> None:
        self._object = living

    @property
    def storage(self) -> ObjectStorage:
        return self._object.storage

    @property
    def id(self) -> ObjectId:
        return self._object.id

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        self._object.background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._object.background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the object %s failed", self.id.name or self.id, exc_info=error)

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        return self._object.block(callback)

    def accept_web_socket(self, socket: DurableObjectWebSocket, tags: Sequence[str] = ()) -> None:
        self._object.sockets.accept(socket, tags)

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        return self._object.sockets.tagged(tag)

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        return self._object.sockets.tags(socket)

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        for text in () if pair is None else (pair.request, pair.response):
            if len(text) > MAX_AUTO_RESPONSE:
                raise DurableObjectError(
                    f"an automatic answer and its message are at most {MAX_AUTO_RESPONSE} characters, not {len(text)}"
                )
        self._object.sockets.auto_response = pair

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        return self._object.sockets.auto_response

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        return self._object.sockets.answered(socket)

    def abort(self, reason: str | None = None) -> NoReturn:
        error = DurableObjectError(reason or "Application called abort() to reset Durable Object.")
        self._object.reset(error)
        # Every call has its answer. No Exception, so that error handling does not go on as if nothing were.
        raise asyncio.CancelledError(str(error))
