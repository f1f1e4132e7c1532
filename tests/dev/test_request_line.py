"""The line of a request in `core dev`: there is one, and it is the one that says most."""

from __future__ import annotations

import logging
import re
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.support.asgi import scope_of

from core import Bindings, KVNamespace, Middleware, Request, Response, create_app
from core.bindings.calls import add_hook
from core.dev.application import DevApplication
from core.dev.record import Recorder
from core.dev.terminal import Style
from core.hosts.process import BackgroundContext
from core.middleware.logger import logger
from core.testing import FakeKVNamespace

OURS = r"\d\d:\d\d:\d\d GET    /notes/1\?q=x 200 [\d.]+ ms NOTES×1\n"


@attrs.frozen
class Env(Bindings):
    NOTES: KVNamespace


@pytest.mark.parametrize(
    ("middleware", "line"),
    [
        (None, OURS),
        (logger(), OURS),  # as `core new` writes it
        (logger(format="long"), OURS),
        (logger(format=lambda req, status, ms: f"{status} for {req.path}"), r"200 for /notes/1\n"),
        (logger(write=lambda line: print(f"> {line}")), r"> GET /notes/1 200 \d+ms \[-\]\n"),
        (logger(write=logging.getLogger("access")), ""),  # wherever that writes to
    ],
)
async def test_a_request_has_one_line(
    middleware: Middleware[object, object] | None, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(Env)
    if middleware is not None:
        app.use(middleware)

    @app.get("/notes/:id")
    async def note(req: Request[Env], res: Response) -> None:
        res.json({"text": await req.env.NOTES.get(req.params["id"])})

    recorder, notes = Recorder(), FakeKVNamespace()
    add_hook(notes, recorder.hook, name="NOTES", kind="kv")
    application = DevApplication(
        app,
        Env(NOTES=notes),
        root=Path(),
        recorder=recorder,
        context=BackgroundContext(),
        style=Style(StringIO()),
    )

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    await application(scope_of("/notes/1", query_string=b"q=x"), receive, send)

    assert re.fullmatch(line, capsys.readouterr().out)
