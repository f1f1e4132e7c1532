"""Server-sent events as bytes (WHATWG HTML, section 9.2).

Nothing in a field can begin another: data is split into one line each, line breaks and NUL in `event`
and `id` are taken out. Silence is filled with comments, so that proxies keep the connection.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import attrs

from core.http import json
from core.http.driven import Driven
from core.http.streams import encode

__all__ = ["Event", "encode_event", "encode_events"]

# The breaks of the format are these three. `str.splitlines` knows more, which stay data.
_break = re.compile(r"\r\n|\r|\n")
_not_in_field = re.compile(r"[\r\n\0]")
_KEEP_ALIVE = b": keep-alive\n\n"


@attrs.frozen(kw_only=True)
class Event:
    """One event: what alone gives an event a type, an id or a time to reconnect.
    `data` is a string, or a value that is sent as JSON; None sends no data, which browsers do not dispatch.

    `event` is its type (`message` to browsers where it is None), `id` the text that a browser sends back as
    `Last-Event-ID`, `retry` the milliseconds after which it reconnects, `comment` text that browsers ignore.
    """

    data: Any = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None


def encode_event(event: object) -> bytes:
    """One event as bytes: an `Event`, a string as data, or any other value as JSON data, a mapping and None included.

    Raises TypeError and ValueError for data that has no JSON form, and for a `retry` that is not an int of 0 or more.
    """
    if isinstance(event, str) or not isinstance(event, Event):
        event = Event(data="null" if event is None else event)
    lines: list[str] = []
    if event.comment is not None:
        lines += [f": {line}" for line in _break.split(event.comment)]
    if event.event is not None:
        lines.append(f"event: {_not_in_field.sub('', event.event)}")
    if event.id is not None:
        lines.append(f"id: {_not_in_field.sub('', event.id)}")
    if event.retry is not None:
        if type(event.retry) is not int or event.retry < 0:
            raise ValueError(f"Event(retry={event.retry!r}) must be an int of 0 or more, in milliseconds")
        lines.append(f"retry: {event.retry}")
    if event.data is not None:
        text = event.data if isinstance(event.data, str) else json.dumps(event.data)
        lines += [f"data: {line}" for line in _break.split(text)]
    return encode("\n".join(lines) + "\n\n")


def encode_events(events: AsyncIterable[object], keep_alive: float | None) -> AsyncIterator[bytes]:
    """Events as bytes, as they come; after each `keep_alive` seconds of silence a comment, None for none.

    `events` is closed when this ends, however it ends: a client that goes away ends the generator behind it. See
    `core.http.driven.Driven` for the task and the context that it runs in.
    """
    return _Events(events, keep_alive)


class _Events(Driven):
    __slots__ = ("_keep_alive",)

    def __init__(self, events: AsyncIterable[object], keep_alive: float | None) -> None:
        super().__init__(events)
        self._keep_alive = keep_alive

    async def _next(self) -> bytes:
        return encode_event(self.take()) if await self.ready(self._keep_alive) else _KEEP_ALIVE
