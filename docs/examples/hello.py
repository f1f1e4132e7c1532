"""The smallest application: one route, one Env, and what a handler may do with them."""

from __future__ import annotations

import attrs

from core import Bindings, CoreError, KVNamespace, Request, Response, create_app


@attrs.frozen
class Env(Bindings):
    """One attribute per binding of wrangler.toml."""

    GREETINGS: KVNamespace


app = create_app(Env)


@app.get("/hello/:name")
async def hello(req: Request[Env], res: Response) -> None:
    """Greet by name, in the words that are kept for it."""
    greeting = await req.env.GREETINGS.get(req.params["name"])
    if greeting is None:
        raise CoreError(404, "Nobody of that name")
    res.json({"greeting": greeting})
