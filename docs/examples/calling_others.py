"""Somebody else's API, called by the runtime's `fetch` in a worker and by httpx everywhere else."""

from __future__ import annotations

import sys
from typing import Any

import attrs

from core import Bindings, CoreError, Request, Response, create_app, http


@attrs.frozen
class Env(Bindings):
    RATES: str  # the address of the API: another one in tests


app = create_app(Env)


# --8<-- [start:call]
async def get_json(url: str) -> Any:
    """The JSON under a URL. Raises CoreError 502 for an answer that is none of 200 to 299."""
    if sys.platform == "emscripten":
        from js import AbortSignal, fetch

        answer = await fetch(url, signal=AbortSignal.timeout(5000))
        status, text = answer.status, await answer.text()
    else:
        import httpx

        async with httpx.AsyncClient(timeout=5) as client:
            reply = await client.get(url)
        status, text = reply.status_code, reply.text
    if not 200 <= status <= 299:
        raise CoreError(502, "The other service did not answer as it should")
    return http.json.loads(text)


@app.get("/rates/:currency")
async def rate(req: Request[Env], res: Response) -> None:
    rates = await get_json(f"{req.env.RATES}/latest.json")
    if req.params["currency"] not in rates:
        raise CoreError(404, "No such currency")
    res.json({"rate": rates[req.params["currency"]]})
    # --8<-- [end:call]
