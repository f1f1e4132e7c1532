"""The files that a request passes are those of the page about it, in the same order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import core
from core import Next, Request, Response, create_app
from core.hosts.asgi import asgi

SOURCES = str(Path(core.__file__).parent) + "/"
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "life-of-a-request.md"
MOST = 9


async def test_a_request_passes_the_files_of_the_page() -> None:
    app = create_app()

    async def timing(req: Request, res: Response, next: Next) -> None:
        await next()
        res.header("Server-Timing", "app").on_send(lambda status, duration: None)

    app.use(timing)

    @app.get("/users/:id")
    async def show(req: Request, res: Response) -> None:
        res.json({"id": req.params["id"], "agent": req.header("user-agent"), "page": req.query.get("page")})

    server = asgi(app)
    passed: dict[str, None] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        pass

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            passed.setdefault(frame.f_code.co_filename.removeprefix(SOURCES))

    def scope() -> dict[str, Any]:
        return {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": "/users/7",
            "raw_path": b"/users/7",
            "root_path": "",
            "query_string": b"page=1",
            "headers": [(b"user-agent", b"test")],
            "client": ("203.0.113.7", 1),
            "server": ("example.test", 80),
        }

    await server(scope(), receive, send)  # builds the chain
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await server(scope(), receive, send)
    finally:
        sys.setprofile(before)
    assert [*passed] == re.findall(r"^\| `([\w/]+\.py)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(passed) <= MOST
