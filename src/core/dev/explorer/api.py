"""The OpenAPI document in the explorer: first the committed one, then that of the code now.

`core openapi` runs in a process of its own, once for each time the application is loaded, and not before the page
asks: it takes mypy, whose memory a server that serves requests should not keep.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from core.dev.explorer.places import Places, run_core
from core.dev.options import Options
from core.http.json import JsonObject
from core.request import Request
from core.response import Response
from core.router import Router

api: Router[Places] = Router()


@api.get("/openapi")
async def _committed(req: Request[Places], res: Response) -> None:
    """Answer at once with the committed document, or null; the fresh one is under way from here on."""
    _started(req.env)
    file = req.env.options.root / "openapi.json"
    try:
        document: Any = json.loads(await asyncio.to_thread(file.read_text, "utf-8"))
    except (OSError, ValueError):
        document = None
    res.json({"document": document})


@api.get("/openapi/fresh")
async def _fresh(req: Request[Places], res: Response) -> None:
    """Answer with the document of the code, when that is known."""
    # Shielded: a page that goes away does not stop the work that the next one waits for.
    res.json(await asyncio.shield(_started(req.env)))


def _started(places: Places) -> asyncio.Task[JsonObject]:
    if places.gathering is None:
        places.gathering = asyncio.create_task(_gather(places.options))
    return places.gathering


async def _gather(options: Options) -> JsonObject:
    """The document of the code, or why there is none; and the lines of its problems."""
    code, out, errors = await run_core(options, "openapi", "--format", "json")
    lines = [line for line in errors.splitlines() if line.strip()]
    try:
        # A finding that is an error ends with 1, with the document written all the same.
        return {"document": json.loads(out), "problem": None, "findings": lines}
    except ValueError:
        problem = "\n".join(lines) or f"core openapi ended with {code}"
        return {"document": None, "problem": problem, "findings": []}
