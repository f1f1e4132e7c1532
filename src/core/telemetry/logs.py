"""Log records as one line of JSON each, or as text with the record of a failure in place of its traceback.

A line has `time` (RFC 3339), `level`, `logger` and `message`; `request_id` inside a request that has one, `trace_id`
and `span_id` inside a trace; `exception`, the traceback in one text, and `failure`, the record of it: what happened,
the line of the program, its frames, how to fix it, the page; and the values given as `extra`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

__all__ = ["JsonFormatter", "LogFormat", "TextFormatter", "json_line"]

LogFormat: TypeAlias = Literal["text", "json"]

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_NAMES: Final = frozenset(
    {"time", "level", "logger", "message", "request_id", "trace_id", "span_id", "exception", "failure"}
)


def json_line(
    level: str,
    logger: str,
    message: str,
    *,
    at: float | None = None,
    exception: str | None = None,
    failure: Mapping[str, object] | None = None,
    extra: Mapping[str, object] | None = None,
) -> str:
    """One record as one line, without the line break."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    fields: dict[str, object] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level,
        "logger": logger,
        "message": message,
    }
    fields |= _current()
    if exception is not None:
        fields["exception"] = exception
    if failure is not None:
        fields["failure"] = failure
    if extra:
        fields |= {name: value for name, value in extra.items() if name not in _NAMES}
    try:
        return json.dumps(fields, default=_shown, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a circle, NaN
        return json.dumps({name: value if name in _NAMES else _shown(value) for name, value in fields.items()})


def _shown(value: object) -> str:
    """A value as text. Its methods are the program's, and may raise: a record is not lost for that."""
    for text_of in (str, repr):
        try:
            return text_of(value)
        except Exception:
            continue
    return f"<{type(value).__name__} that cannot be shown>"


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:
        given = record.args.items() if isinstance(record.args, Mapping) else enumerate(record.args or ())
        shown = ", ".join(_shown(value) for _, value in given)
        return f"{_shown(record.msg)} (cannot be formatted with {shown}: {type(error).__name__})"


def _current() -> dict[str, str]:
    """The ids of the request and the trace that this task works for. Looked up only where something sets them."""
    ids: dict[str, str] = {}
    requests = sys.modules.get("core.middleware.request_id")
    request_id = requests.current_request_id.get() if requests is not None else ""
    if request_id:
        ids["request_id"] = request_id
    spans = sys.modules.get("core.spans")
    parts: list[str] = spans.current_traceparent().split("-") if spans is not None else []
    if len(parts) >= 3:
        ids["trace_id"], ids["span_id"] = parts[1], parts[2]
    return ids


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: `handler.setFormatter(JsonFormatter())`. `mark` begins every line."""

    def __init__(self, *, mark: str = "") -> None:
        super().__init__()
        self._mark = mark

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        exception = failure = None
        if record.exc_info is not None and record.exc_info[1] is not None:
            from core.explain.failure import failure_of

            exception, failure = self.formatException(record.exc_info), failure_of(record.exc_info[1]).as_json()
        if record.stack_info:
            exception = f"{exception or ''}{record.stack_info}"
        return self._mark + json_line(
            record.levelname,
            record.name,
            _message_of(record),
            at=record.created,
            exception=exception,
            failure=failure,
            extra={name: value for name, value in vars(record).items() if name not in _OWN},
        )


class TextFormatter(logging.Formatter):
    """Formats a record for people: `ERROR core: GET / failed`, and below it the failure as everywhere else."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatException(self, ei: Any) -> str:
        """Return the failure: what happened, the line of the program, its frames, how to fix it, the page."""
        from textwrap import indent

        from core.explain.failure import failure_of

        return indent(failure_of(ei[1]).as_text(), "  ") if ei[1] is not None else super().formatException(ei)
