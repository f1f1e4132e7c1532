"""The OpenAPI document in the explorer: first the committed one, then that of the code now.

`core openapi` runs in a process of its own, once for each time the application is loaded, and not before the page
asks: it takes mypy, whose memory a server that serves requests should not keep.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import attrs

from core.dev.explorer.places import Panel
from core.request import AnyRequest
from core.response import Response
from core.router import Router


@attrs.frozen
class _Gathered:
    """The document of the code, or why there is none; and the lines of its problems."""

    document: object = None
    problem: str | None = None
    findings: tuple[str, ...] = ()


class ApiPages(Panel):
    """The handlers of the panel "API"."""

    _gathering: asyncio.Task[_Gathered] | None = None

    def add_to(self, api: Router[Any, Any]) -> None:
        """Add the routes."""
        api.get("/openapi", self._committed)
        api.get("/openapi/fresh", self._fresh)

    async def _committed(self, req: AnyRequest, res: Response) -> None:
        """Answer at once with the committed document, or null; the fresh one is under way from here on."""
        self._started()
        file = self._options.root / "openapi.json"
        try:
            document: Any = json.loads(await asyncio.to_thread(file.read_text, "utf-8"))
        except (OSError, ValueError):
            document = None
        res.json({"document": document})

    async def _fresh(self, req: AnyRequest, res: Response) -> None:
        """Answer with the document of the code, when that is known."""
        # Shielded: a page that goes away does not stop the work that the next one waits for.
        gathered = await asyncio.shield(self._started())
        res.json(attrs.asdict(gathered))

    def _started(self) -> asyncio.Task[_Gathered]:
        if self._gathering is None:
            self._gathering = asyncio.ensure_future(self._gather())
        return self._gathering

    async def _gather(self) -> _Gathered:
        ended = await self._command("openapi", "--format", "json")
        lines = tuple(line for line in ended.errors.splitlines() if line.strip())
        try:
            # A finding that is an error ends with 1, with the document written all the same.
            return _Gathered(json.loads(ended.out), None, lines)
        except ValueError:
            return _Gathered(None, "\n".join(lines) or f"core openapi ended with {ended.code}")
