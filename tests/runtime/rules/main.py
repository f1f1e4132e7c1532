"""Judges statements as workerd's D1 does: one request brings them, and none of them changes anything."""

from __future__ import annotations

from typing import Any

from core import Request, Response, create_app
from core.errors import D1Error

app = create_app()

END = "SELECT json('[')"
"""Fails whenever it runs, so that the batch around a statement is always undone."""


@app.post("/judge")
async def judge(req: Request, res: Response) -> None:
    env: Any = req.env
    given = await req.json()
    await env.DB.batch([env.DB.prepare(sql) for sql in given["setup"]])
    found: list[str | None] = []
    for sql in given["statements"]:
        try:
            await env.DB.batch([env.DB.prepare(sql), env.DB.prepare(END)])
        except D1Error as error:
            found.append(None if "malformed JSON" in str(error) else str(error))
    res.json(found)
