"""Poisoned caches: a shared cache that honours `Vary` never gives one origin's answer to another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.middleware.cache import cache
from core.middleware.compress import compress
from core.middleware.cors import cors
from core.middleware.sessions import session_of, sessions
from core.request import Request
from core.response import Response
from core.testing import Client, FakeExecutionContext, FakeKVNamespace

ALLOWED = "https://a.test"


class SharedCache:
    """A cache in front of an application, as RFC 9111 has it: answers are kept apart by what `Vary` names."""

    def __init__(self, app: App[Any]) -> None:
        self.client = Client(app, None)
        self.kept: list[tuple[tuple[str, ...], dict[str, str], http.Response]] = []

    async def get(self, **sent: str) -> http.Response:
        headers = {name.replace("_", "-").lower(): value for name, value in sent.items()}
        for names, values, response in self.kept:
            if "*" not in names and all(headers.get(name) == values.get(name) for name in names):
                return response
        response = await self.client.get("/", headers=headers)
        names = tuple(name.strip().lower() for name in response.headers.get("vary", "").split(",") if name.strip())
        self.kept.append((names, headers, response))
        return response


def shared(*middleware: Any, vary: str | None = None) -> SharedCache:
    app: App[Any] = App()
    for step in middleware:
        app.use(step)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        if vary is not None:
            res.header("Vary", vary)
        res.text("hello " * 500)

    return SharedCache(app)


@given(
    st.permutations([None, ALLOWED, "https://evil.test", "null", "https://b.test"]),
    st.sampled_from([None, "Accept", "Origin", "accept-language, origin"]),
)
async def test_no_order_of_visitors_gives_one_the_answer_for_another(order: list[str | None], vary: str | None) -> None:
    origins = [ALLOWED, "https://b.test"]
    for given_origins in (origins, lambda origin, req: origin in origins):
        front = shared(cors(origins=given_origins), vary=vary)
        for origin in order:
            response = await front.get(**({} if origin is None else {"Origin": origin}))
            allowed = response.headers.get("access-control-allow-origin")
            assert allowed == (origin if origin in origins else None)


@pytest.mark.parametrize("first", ["gzip", "identity"])
async def test_nor_a_compressed_body_to_who_cannot_read_it(first: str) -> None:
    front = shared(compress())
    for encoding in (first, "gzip", "identity", "br"):
        response = await front.get(Accept_Encoding=encoding)
        assert (response.headers.get("content-encoding") == "gzip") is (encoding == "gzip")


async def test_our_own_cache_inside_and_outside_of_cors_keeps_origins_apart() -> None:
    for steps in ((cors(origins=[ALLOWED]), cache(max_age=60)), (cache(max_age=60), cors(origins=[ALLOWED]))):
        app: App[Any] = App()
        for step in steps:
            app.use(step)
        app.get("/", _hello)
        ctx = FakeExecutionContext()
        client = Client(app, None, ctx)
        for origin in ("https://evil.test", ALLOWED, "https://evil.test", ALLOWED, None):
            response = await client.get("/", headers={} if origin is None else {"Origin": origin})
            await ctx.drain()
            expected = ALLOWED if origin == ALLOWED else None
            assert response.headers.get("access-control-allow-origin") == expected


async def _hello(req: Request[Any], res: Response) -> None:
    res.text("hello")


async def test_one_visitors_answer_is_never_kept_for_another() -> None:
    app: App[Any] = App()
    app.use(cache(max_age=60))

    @app.get("/")
    async def mine(req: Request[Any], res: Response) -> None:
        res.text(req.header("authorization") or req.cookies.get("session") or "nobody")

    ctx = FakeExecutionContext()
    client = Client(app, None, ctx)
    for headers, body in (
        ({"Authorization": "Bearer ada"}, "Bearer ada"),
        ({"Cookie": "session=eve"}, "eve"),
        ({}, "nobody"),
        ({"Authorization": "Bearer bob"}, "Bearer bob"),
    ):
        response = await client.get("/", headers=headers)
        await ctx.drain()
        assert await response.text() == body


@given(st.permutations([ALLOWED, "https://b.test", None, "https://evil.test"]), st.booleans())
async def test_an_answer_made_for_one_origin_never_reaches_another(order: list[str | None], outside: bool) -> None:
    app: App[Any] = App()
    share, keep = cors(origins=[ALLOWED, "https://b.test"]), cache(max_age=60)
    for step in (share, keep) if outside else (keep, share):
        app.use(step)

    @app.get("/")
    async def partner(req: Request[Any], res: Response) -> None:
        res.text(req.header("origin") or "nobody")

    ctx = FakeExecutionContext()
    client = Client(app, None, ctx)
    for origin in [*order, *order]:
        response = await client.get("/", headers={} if origin is None else {"Origin": origin})
        await ctx.drain()
        assert await response.text() == (origin or "nobody")


@pytest.mark.parametrize("said", [None, "public", "public, max-age=60"])
@pytest.mark.parametrize("outside", [True, False])
async def test_a_visitors_session_never_reaches_another_through_our_cache(said: str | None, outside: bool) -> None:
    app: App[Any] = App()
    kv = FakeKVNamespace()
    remember = sessions(kv_binding=lambda req: kv, secret=lambda req: "a secret that nobody can guess")
    keep = cache(max_age=60)
    for step in (remember, keep) if outside else (keep, remember):
        app.use(step)

    @app.get("/")
    async def greet(req: Request[Any], res: Response) -> None:
        session = await session_of(req)
        visits = session["visits"] = session.get("visits", 0) + 1
        if said is not None:
            res.header("Cache-Control", said)
        res.text(f"{session.setdefault('name', req.header('x-name'))} {visits}")

    @app.get("/read")
    async def read(req: Request[Any], res: Response) -> None:
        if said is not None:
            res.header("Cache-Control", said)
        res.text(str((await session_of(req)).get("name")))

    ctx = FakeExecutionContext()
    ada, bob, nobody = (Client(app, None, ctx) for _ in range(3))
    for visits in (1, 2):
        for client, name in ((ada, "ada"), (bob, "bob")):
            response = await client.get("/", headers={"X-Name": name})
            await ctx.drain()
            assert await response.text() == f"{name} {visits}"
    for client, name in ((nobody, "None"), (ada, "ada"), (bob, "bob"), (nobody, "None"), (ada, "ada")):
        response = await client.get("/read")
        await ctx.drain()
        assert await response.text() == name
