"""One line per request, written when the response and its status are final.

Decided here: the fields of the line, and that no field can begin another line. Where lines go is the sink's
business; an error that it raises is logged and never harms the response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.handlers import before, info_of
from core.http import json
from core.middleware import options
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware

__all__ = ["LogFormat", "LogFunction", "logger"]


LogFunction: TypeAlias = Callable[[AnyRequest, int, float], str]
"""A format of one's own: `(req, status, duration_ms)` to the line, without a line break."""

LogFormat: TypeAlias = "Literal['short', 'long', 'json'] | LogFunction"
"""`"short"`, `"long"`, `"json"`, or a function that returns the line."""


def logger(
    *,
    format: LogFormat = "short",
    write: Callable[[str], object] | logging.Logger = print,
    include_query: bool = False,
    level: int = logging.INFO,
) -> Middleware[object, object]:
    """Write one line per request, errors and timeouts included.

    `format`: `"short"` is `GET /users 200 12ms [SJC]`; `"long"` is `GET /users 200 12ms ip=… colo=… id=…`; `"json"`
    is an object with `method`, `path`, `status`, `duration_ms`, `ip`, `colo`, `id`; a function
    `(req, status, duration_ms)` returns the line itself. A missing value prints `-`, and null in JSON.
    `write`: takes each line; a `logging.Logger` gets it at `level`.
    `include_query`: whether the query string is on the line. Off, since tokens live there.

    Register `request_id()` first, so that the id is known. A streaming body is logged when its headers leave; the
    duration is in milliseconds since the request was received. Raises OptionError.
    """
    if not callable(format):
        options.one_of("logger", "format", format, ("short", "long", "json"))
    line_of: LogFunction = format if callable(format) else _line_of(format, include_query)
    if isinstance(write, logging.Logger):
        options.integer("logger", "level", level, least=0)
        put: Callable[[str], object] = partial(write.log, level, "%s")
    elif not callable(write):
        raise options.refuse("logger", "write", write, "must be a function that takes a line, or a logging.Logger")
    else:
        put = write

    def write_line(req: AnyRequest, status: int, duration_ms: float) -> None:
        line = line_of(req, status, duration_ms)
        if line.__class__ is not str and not isinstance(line, str):
            raise TypeError(f"logger(format=…) must return a str, not {type(line).__name__}")
        put(line if line.isprintable() else _one_line(line))

    def register(req: AnyRequest, res: Response) -> None:
        # An error of the format or the sink is logged by the dispatcher; the response is final by then.
        if res.hooks is None:
            res.hooks = [write_line]
        else:
            res.hooks.append(write_line)

    if put is print and format in ("short", "long"):
        register.__dict__["is_plain"] = True
    return before(register, name="logger", reads=("req.id",))


def is_plain(middleware: object) -> bool:
    """True for a `logger()` that prints a line of the framework's own: `core dev` has a better one of its own."""
    info = info_of(middleware)
    return info is not None and getattr(info.before, "is_plain", False)


def _one_line(line: str) -> str:
    """A line without line breaks, control characters, and characters that turn the direction of writing."""
    return "".join([char for char in line if char.isprintable() or char == "\t"])


# Of all statuses and nearly all durations, made when the first line is.
_TEXTS: list[str] = []


def _texts() -> list[str]:
    _TEXTS[:] = map(str, range(600))
    return _TEXTS


def _short(req: AnyRequest, status: int, duration_ms: float) -> str:
    edge = req.edge
    # Rounding to an int gives the same as `:.0f`, in a third of the time, and the text of a number that is kept is
    # quicker.
    ms = round(duration_ms)
    texts = _TEXTS or _texts()
    return (
        f"{req.method} {req.path} {texts[status]} {texts[ms] if 0 <= ms < 600 else ms}ms "
        f"[{edge.colo or '-' if edge is not None else '-'}]"
    )


def _line_of(format: Literal["short", "long", "json"], include_query: bool) -> LogFunction:
    if format == "short" and not include_query:
        return _short

    def line(req: AnyRequest, status: int, duration_ms: float) -> str:
        query = req.query_string if include_query else ""
        target = f"{req.path}?{query}" if query else req.path
        colo = req.edge.colo if req.edge is not None else None
        if format != "json":
            known = (
                f"ip={req.ip or '-'} colo={colo or '-'} id={req.id or '-'}" if format == "long" else f"[{colo or '-'}]"
            )
            return f"{req.method} {target} {status} {round(duration_ms)}ms {known}"
        fields = {
            "method": req.method,
            "path": target,
            "status": status,
            "duration_ms": round(duration_ms, 3),
            "ip": req.ip,
            "colo": colo,
            "id": req.id or None,
        }
        # The sink's line is cleaned of control characters, which would take them out of the JSON text as well; they are
        # taken out of the fields before, so that the rest is the same value either way.
        return json.dumps({name: _one_line(v) if isinstance(v, str) else v for name, v in fields.items()})

    return line
