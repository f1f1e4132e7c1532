"""The messages of a batch as their consumer's annotation says: `MessageBatch[Job]` gets bodies that are `Job`s.

A body is structured when it is asked for, so that one that is not a `Job` fails by itself and not its whole batch:
`message.body` raises StructureError then, with every mistake and its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast, get_args, get_origin

from typing_extensions import is_typeddict

from core.bindings.queue import Message, MessageBatch
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
    return batch if payload is Any or payload is object else cast("MessageBatch[Any]", _Batch(batch, payload))


class _Around:
    """Everything of another object, but for what a class over this one has itself."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    def __getattr__(self, name: str) -> object:
        if name == "_inner":  # while it is copied
            raise AttributeError(name)
        return getattr(self._inner, name)


class _Batch(_Around):
    def __init__(self, batch: MessageBatch[Any], payload: object) -> None:
        super().__init__(batch)
        self.messages: Sequence[_Message] = [_Message(message, payload) for message in batch.messages]


class _Message(_Around):
    def __init__(self, message: Message[Any], payload: object) -> None:
        super().__init__(message)
        self._payload = payload

    @cached_property
    def body(self) -> object:
        body, payload = self._inner.body, self._payload
        made = isinstance(payload, type) and not is_typeddict(payload) and isinstance(body, payload)
        return body if made else hook_of(payload)(body)
