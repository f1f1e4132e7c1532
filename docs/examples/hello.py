"""The smallest application: one binding, one route."""

import attrs

from core import Bindings, CoreError, KVNamespace, Request, Response, create_app


@attrs.frozen
class Env(Bindings):
    GREETINGS: KVNamespace


app = create_app(Env)


@app.get("/hello/:name")
async def hello(req: Request[Env], res: Response) -> None:
    greeting = await req.env.GREETINGS.get(req.params["name"])
    if greeting is None:
        raise CoreError(404, "Nobody of that name")
    res.json({"hello": greeting})
