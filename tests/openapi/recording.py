"""A plugin of pytest that writes down what an application answers: `pytest -p tests.openapi.recording`,
into `RECORDED`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from core import http, passwords
from core.app import App
from core.context import ExecutionContext

_fetch = App.fetch


async def fetch(self: App[Any], req: http.Request, env: Any, ctx: ExecutionContext) -> http.Response:
    """`App.fetch`, recorded."""
    response = await _fetch(self, req, env, ctx)
    body = await response.bytes()
    line = [
        req.method,
        req.path,
        response.status,
        response.headers.get("content-type"),
        body.decode("utf-8", "replace"),
    ]
    _keep(json.dumps(line))
    return http.Response(body, status=response.status, headers=response.headers)


def _keep(line: str) -> None:
    with Path(os.environ["RECORDED"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


# A sign-up hashes a password, a quarter of a second at the cost that is advised.
passwords._COST = (1, 1, 1)
App.fetch = fetch  # type: ignore[method-assign]  # as said above
