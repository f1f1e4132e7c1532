"""`Server-Timing`: where the time of a request went, shown by browsers (W3C Server Timing)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from typing_extensions import TypeForm, TypeVar

from core.handlers import declare
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next

__all__ = ["server_timing", "timing"]

E = TypeVar("E", default=Any)

_KEY = "server_timing"
_MOST_ENTRIES = 100


class _Times:
    """The timings of one request, shared by every `server_timing()` before its route."""

    __slots__ = ("entries", "total")

    def __init__(self, total: bool) -> None:
        self.entries: list[str] = []
        self.total = total


@contextmanager
def timing(req: AnyRequest, name: str, description: str = "") -> Generator[None]:
    """Measure the time of the block, under `name`.

        with timing(req, "db", "Find the user"):
            user = await …

    Does nothing where `server_timing()` is not registered. Raises ValueError for a name that is not a token.
    """
    if not options.word(name):
        raise ValueError(f"timing(name={name!r}) must be a token: letters, digits and hyphens")
    times: _Times | None = req.state.get(_KEY)
    begun = req.clock.monotonic()
    try:
        yield
    finally:
        if times is not None and len(times.entries) < _MOST_ENTRIES:
            times.entries.append(_entry(name, (req.clock.monotonic() - begun) * 1000, description))


def server_timing(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    total: bool = True,
    enabled: Callable[[Request[E, Any, Any]], bool] | None = None,
) -> Middleware[E, object]:
    """Send in `Server-Timing` the time of a request (`total`), and the times that `timing(…)` measured, in
    milliseconds.

    `enabled`: for which requests. Times tell an attacker things too: in production, show them to yourself only.
    Where a route has it twice, everything is sent once. Raises OptionError.
    """
    options.named_env("server_timing", env)
    if enabled is not None and not callable(enabled):
        raise options.refuse("server_timing", "enabled", enabled, "must be a function of the request")

    async def measure(req: AnyRequest, res: Response, next: Next, /) -> None:
        if enabled is None or await options.awaited(enabled(req)):
            shared: _Times | None = req.state.get(_KEY)
            if shared is not None:
                shared.total = shared.total or total
            else:
                times = req.state[_KEY] = _Times(total)
                res.on_send(lambda status, duration_ms: _tell(times, res, status, duration_ms))
        await next()

    return declare(measure, name="server_timing")


def _tell(times: _Times, res: Response, status: int, duration_ms: float) -> None:
    # The hooks run before the host reads the headers, and only now the time is known.
    shown = [_entry("total", duration_ms, ""), *times.entries] if times.total else times.entries
    if shown and status != 101:
        staged = res.staged if res.staged is not None else {}
        before = staged.get("server-timing")
        staged["server-timing"] = ", ".join([before, *shown] if before else shown)
        res.staged = staged


def _entry(name: str, milliseconds: float, description: str) -> str:
    text = f"{name};dur={milliseconds:.1f}"
    if description:
        # A quoted string of ASCII: whatever could end it is left out.
        safe = "".join(char for char in description if " " <= char <= "~" and char not in '"\\')
        text += f';desc="{safe}"'
    return text
