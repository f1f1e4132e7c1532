"""`Server-Timing`: where the time of a request went, shown by browsers (W3C Server Timing)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from typing_extensions import TypeVar

from core.handlers import Middleware, Next, declare
from core.middleware import options
from core.request import Request
from core.response import Response

__all__ = ["server_timing", "timing"]

E = TypeVar("E", default=Any)

_KEY = "server_timing"
_MOST_ENTRIES = 100


@contextmanager
def timing(req: Request[Any, Any, Any], name: str, description: str = "") -> Generator[None]:
    """Measure what happens inside, under `name`.

        with timing(req, "db", "Find the user"):
            user = await …

    Does nothing where `server_timing()` is not registered. Raises ValueError for a name that is no token.
    """
    if not options.word(name):
        raise ValueError(f"timing(name={name!r}) must be a token: letters, digits and hyphens")
    entries: list[str] | None = req.state.get(_KEY)
    begun = req.clock.monotonic()
    try:
        yield
    finally:
        if entries is not None and len(entries) < _MOST_ENTRIES:
            entries.append(_entry(name, (req.clock.monotonic() - begun) * 1000, description))


def server_timing(
    *, total: bool = True, enabled: Callable[[Request[E, Any, Any]], bool] | None = None
) -> Middleware[E, Any]:
    """Tell in `Server-Timing` how long a request took (`total`), and what `timing(…)` measured, in milliseconds.

    `enabled`: for which requests. Times tell an attacker things too: in production, show them to yourself only.
    Raises OptionError.
    """
    if enabled is not None and not callable(enabled):
        raise options.refuse("server_timing", "enabled", enabled, "must be a function of the request")

    async def measure(req: Request[Any, Any, Any], res: Response, next: Next, /) -> None:
        if enabled is None or await options.awaited(enabled(req)):
            entries: list[str] = []
            req.state[_KEY] = entries

            def tell(status: int, duration_ms: float) -> None:
                # The hooks run before the host reads the headers, and only now the time is known.
                told = [_entry("total", duration_ms, ""), *entries] if total else entries
                if told and status != 101:
                    staged = res.staged if res.staged is not None else {}
                    before = staged.get("server-timing")
                    staged["server-timing"] = ", ".join([before, *told] if before else told)
                    res.staged = staged

            res.on_send(tell)
        await next()

    return declare(measure, name="server_timing")


def _entry(name: str, milliseconds: float, description: str) -> str:
    text = f"{name};dur={milliseconds:.1f}"
    if description:
        # A quoted string of ASCII: whatever could end it is left out.
        safe = "".join(char for char in description if " " <= char <= "~" and char not in '"\\')
        text += f';desc="{safe}"'
    return text
