"""An id for every request: taken over from the client where it is harmless, else made here.

Decided here: which incoming ids are harmless, and how an id reaches the response, error answers and
the application's own log lines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeForm, TypeVar

from core.errors import DeveloperError
from core.handlers import arguments_of, before
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware

    E = TypeVar("E", default=Any)

__all__ = ["RequestIdFilter", "current_request_id", "request_id"]


current_request_id: ContextVar[str] = ContextVar("core_request_id", default="")
"""The id of the request that this task works for, also in tasks it started. Empty outside of requests."""

# Nothing that a log line, a header or a shell could take for more than a word.
_HARMLESS = frozenset("._:+=/-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class RequestIdFilter(logging.Filter):
    """Puts the id of the current request on log records, as `request_id`; `-` outside of requests.

    Give it to a handler of `logging`:

        handler.addFilter(RequestIdFilter())
        handler.setFormatter(logging.Formatter("%(request_id)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Set `record.request_id`. Every record passes."""
        record.request_id = current_request_id.get() or "-"
        return True


def request_id(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    header_name: str = "X-Request-Id",
    generator: Callable[[], str] | Callable[[Request[E, Any, Any]], str] | None = None,
    accept_incoming: bool = True,
    max_length: int = 128,
) -> Middleware[E, object]:
    """Give every request an id: on `req.id`, on the response, on errors too, and in `current_request_id`.

    `header_name`: the request's header of this name is taken over, and the response gets it.
    `generator`: makes ids, from nothing or from the request; a random UUID by default.
    `accept_incoming`: whether an incoming id is taken over at all. It then is only when it is 1 to `max_length`
    characters of `A-Z a-z 0-9 . _ : + = / -`; anything else is replaced by one made here.

    Register it before `logger()`. Raises OptionError; an id from `generator` that fails the same check raises
    DeveloperError, which is a 500.
    """
    options.named_env("request_id", env)
    name = options.header_name("request_id", "header_name", header_name)
    key = name.lower()
    options.integer("request_id", "max_length", max_length, least=1, most=4096)
    make = _random_uuid if generator is None else _checked(generator, max_length)
    if key == "set-cookie":
        raise options.refuse("request_id", "header_name", header_name, "cannot carry an id. Use a header of its own")
    # An incoming id is read by the name in lower case, which needs no work to be looked up.
    var = current_request_id

    def identify(req: AnyRequest, res: Response) -> None:
        id = req.header(key) if accept_incoming else None
        if id is None or not 0 < len(id) <= max_length or not _HARMLESS.issuperset(id):
            if generator is None:
                try:
                    id = _uuids.pop()  # as `_random_uuid` has it, without the call
                except IndexError:
                    id = make(req)
            else:
                id = make(req)
        req.id = id
        if res.staged is None:
            res.staged = {key: id}
        else:
            res.staged[key] = id
        # All hooks still log with the id; then an application that this one was called from finds its own again.
        res.tokens = (var, var.set(id), res.tokens)
        if res.hooks is None:
            res.hooks = []

    return before(identify, name="request_id", provides=("req.id",))


def _checked(generator: Callable[..., object], max_length: int) -> Callable[[AnyRequest], str]:
    """A generator of the request or of nothing, whose ids pass the same check as incoming ones."""
    takes = arguments_of(generator)
    if takes not in (0, 1):
        raise options.refuse("request_id", "generator", generator, "must be a function of the request or of nothing")

    def make(req: AnyRequest) -> str:
        id = generator(req) if takes else generator()
        if not isinstance(id, str) or not 0 < len(id) <= max_length or not _HARMLESS.issuperset(id):
            raise DeveloperError(
                f"request_id(generator=…) gave {id!r}. An id is a str of 1 to {max_length} characters of "
                "A-Z a-z 0-9 . _ : + = / -"
            )
        return id

    return make


# Made some at a time, since most of the cost of one is the call to the operating system.
_uuids: list[str] = []
_UUIDS_AT_ONCE = 64


def forget_ids() -> None:
    """Give out no id that was made ahead: a process that is forked, or a simulated run, has ids of its own."""
    _uuids.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_ids)


def _random_uuid(req: object) -> str:
    """A random UUID, version 4, without `uuid`, whose import costs a worker more than all ids it makes."""
    try:
        return _uuids.pop()
    except IndexError:
        made = _made_uuids(_UUIDS_AT_ONCE)
        # Not all of them: another thread may take the last one between here and there.
        _uuids.extend(made[1:])
        return made[0]


def _made_uuids(count: int) -> list[str]:
    # All in one row of digits, 37 for each: the digits that are the same in every id are written over every 37th at
    # once.
    digits = bytearray(os.urandom((37 * count + 1) // 2).hex(), "ascii")[: 37 * count]
    for dash in (8, 13, 18, 23):
        digits[dash::37] = b"-" * count
    digits[14::37] = b"4" * count  # the version
    digits[19::37] = digits[19::37].translate(_VARIANT)
    digits[36::37] = b" " * count
    return digits.decode().split()


_VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)
