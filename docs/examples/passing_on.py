"""Responses that come from elsewhere: assets, a service, an application mounted below a prefix."""

from collections.abc import AsyncIterator

import attrs

from core import Bindings, Request, Response, create_app, http
from core.bindings.assets import Assets
from core.bindings.fetcher import Fetcher


@attrs.frozen
class Env(Bindings):
    ASSETS: Assets
    BILLING: Fetcher
    GREETING: str


app = create_app(Env)


# --8<-- [start:lifespan]
class Greeter:
    def __init__(self, word: str) -> None:
        self.word = word
        self.open = True


@app.lifespan
async def greeter(env: Env) -> AsyncIterator[Greeter]:
    opened = Greeter(env.GREETING)
    yield opened
    opened.open = False


@app.get("/greeting")
async def greet(req: Request[Env], res: Response) -> None:
    res.text(req.state[greeter].word)


# --8<-- [end:lifespan]


# --8<-- [start:mount]
async def old_api(request: http.Request) -> http.Response:
    """Any function of a request; an ASGI application would do as well."""
    return http.Response.redirect(f"https://old.example.com{http.URL(request.url).pathname}", 308)


app.mount("/old", old_api)
# --8<-- [end:mount]


# --8<-- [start:pass]
@app.all("/billing/*")
async def billing(req: Request[Env], res: Response) -> None:
    res.send(await req.env.BILLING.fetch(req.to_http()))


@app.get("/*")
async def assets(req: Request[Env], res: Response) -> None:
    res.header("Cache-Control", "public, max-age=60")
    res.send(await req.env.ASSETS.fetch(req.to_http()))


# --8<-- [end:pass]
