"""The messages of a batch as their consumer's annotation says: `MessageBatch[Job]` gets bodies that are `Job`s.

A body is structured when it is asked for, so that one that is not a `Job` fails by itself and not its whole batch:
`message.body` raises StructureError then, with every mistake and its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar, get_args, get_origin

from typing_extensions import is_typeddict

from core.bindings.queue import Message, MessageBatch, MessageBatchMetadata
from core.errors import RegistrationError
from core.handlers import name_of
from core.validation.structure import hook_of


def payload_of(consumer: Callable[..., object], /) -> object:
    """The `T` of a consumer's `MessageBatch[T]`; `Any` where it says nothing.

    Raises RegistrationError for an annotation that cannot be resolved.
    """
    function = getattr(consumer, "__func__", consumer)
    code = getattr(function, "__code__", None)
    if code is None:
        return Any
    position = 0 if function is consumer else 1
    names = code.co_varnames[: code.co_argcount]
    if len(names) <= position:
        return Any
    annotation: object = None
    try:
        # Reading the annotations evaluates them from Python 3.14 on.
        annotation = function.__annotations__.get(names[position])
        if isinstance(annotation, str):
            # Which batch it is does not matter, and programs may import it for the type checker only.
            known = {"MessageBatch": MessageBatch, **function.__globals__}
            annotation = eval(annotation, known)  # the application's own annotation
    except Exception as error:
        raise RegistrationError(
            f"the annotation of {names[position]} of {name_of(consumer)} cannot be resolved: {error}. "
            "Import what it names outside `if TYPE_CHECKING:`"
        ) from error
    arguments = get_args(annotation)
    if get_origin(annotation) is not MessageBatch or not arguments or isinstance(arguments[0], TypeVar):
        return Any
    return arguments[0]


def typed(batch: MessageBatch[Any], payload: object) -> MessageBatch[Any]:
    """`batch`, whose bodies are of the type `payload`."""
    return batch if payload is Any or payload is object else _Batch(batch, payload)


class _Batch:
    __slots__ = ("_batch", "ack_all", "messages", "queue", "retry_all")

    def __init__(self, batch: MessageBatch[Any], payload: object) -> None:
        self._batch = batch
        self.queue = batch.queue
        self.messages: Sequence[Message[Any]] = [_Message(message, payload) for message in batch.messages]
        self.ack_all, self.retry_all = batch.ack_all, batch.retry_all

    def __repr__(self) -> str:
        return repr(self._batch)

    @property
    def metadata(self) -> MessageBatchMetadata:
        return self._batch.metadata


class _Message:
    __slots__ = ("_body", "_message", "_payload", "ack", "retry")

    def __init__(self, message: Message[Any], payload: object) -> None:
        self._message = message
        self._payload = payload
        self._body: tuple[object] | None = None
        self.ack, self.retry = message.ack, message.retry

    def __repr__(self) -> str:
        return repr(self._message)

    @property
    def id(self) -> str:
        return self._message.id

    @property
    def timestamp(self) -> datetime:
        return self._message.timestamp

    @property
    def attempts(self) -> int:
        return self._message.attempts

    @property
    def body(self) -> object:
        if self._body is None:
            body, payload = self._message.body, self._payload
            made = isinstance(payload, type) and not is_typeddict(payload) and isinstance(body, payload)
            if not made:
                body = hook_of(payload)(body)
            self._body = (body,)
        return self._body[0]
