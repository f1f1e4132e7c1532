"""Deep values at the doors of an application inside workerd, where following one of them would end the interpreter."""

from __future__ import annotations

import base64
import hmac
import random
import time
from collections.abc import Iterator
from textwrap import dedent

import pytest
from tests.runtime.conftest import Background, Make, Running, start_running

from core.http.json import MAX_DEPTH
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

KEY = "correct horse battery staple, thirty-two bytes"
PLAN = Plan(name="deep", kv={"KV": "kv"}, queues={"JOBS": "jobs"})
MAIN = dedent("""
    from typing import Any

    import attrs
    import jwt

    from core import Bindings, KVNamespace, Queue, Request, Response, create_app, http
    from core.http.sse import Event, encode_event
    from core.middleware.jwt import jwt_auth
    from core.middleware.sessions import session_of, sessions

    KEY = "correct horse battery staple, thirty-two bytes"

    @attrs.frozen
    class Env(Bindings):
        KV: KVNamespace
        JOBS: Queue[Any]

    app = create_app(Env)
    app.use("/session", sessions(kv_binding="KV", secret=lambda req: KEY))
    users = app.authenticated(jwt_auth(secret=lambda req: KEY, max_length=65_536))

    @app.get("/")
    async def hello(req: Request[Env], res: Response) -> None:
        res.text("hello")

    @users.get("/token")
    async def token(req: Request[Env, Any], res: Response) -> None:
        res.text(req.user.sub)

    @attrs.frozen
    class Node:
        child: Any

    def nested(levels: int, kind: str) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value] if kind == "list" else {"a": value} if kind == "dict" else Node(value)
        return value

    async def body(req, text): await req.json()
    async def request(req, text): await http.Request("https://x.test", method="POST", body=text).json()
    async def response(req, text): await http.Response(text).json()

    async def kv(req, text):
        await req.env.KV.put("key", text)
        await req.env.KV.get("key", type="json")

    async def from_javascript(req, text):
        import js
        from core.backends.workerd.conversion import from_js
        from_js(js.JSON.parse(text))

    async def rows(req, text):
        import js
        from core.backends.workerd.conversion import structured
        structured(js.JSON.parse(text))

    READERS = {f.__name__: f for f in (body, request, response, kv, from_javascript, rows)}

    @app.post("/read/:door")
    async def read(req: Request[Env], res: Response) -> None:
        try:
            await READERS[req.params["door"]](req, await req.text())
        except Exception as error:
            res.status(400).text(f"{type(error).__name__}: {error}"[:200])
        else:
            res.text("taken")

    async def answer(req, value): http.Response.from_json(value)
    async def sent(req, value): http.Request("https://x.test", method="POST", json=value)
    async def event(req, value): encode_event(Event(data=value))
    async def metadata(req, value): await req.env.KV.put("key", "text", metadata=value)
    async def job(req, value): await req.env.JOBS.send(value)
    async def clone(req, value): await req.env.JOBS.send(value, content_type="v8")
    async def session(req, value): (await session_of(req))["deep"] = value

    async def to_javascript(req, value):
        from core.backends.workerd.conversion import js_value
        js_value(value)

    WRITERS = {f.__name__: f for f in (answer, sent, event, metadata, job, clone, session, to_javascript)}

    @app.post("/write/:door/:kind/:levels")
    @app.post("/session/:door/:kind/:levels")
    async def write(req: Request[Env], res: Response) -> None:
        value = nested(int(req.params["levels"]), req.params["kind"])
        try:
            await WRITERS[req.params["door"]](req, value)
        except Exception as error:
            res.status(400).text(f"{type(error).__name__}: {error}"[:400])
        else:
            res.text("taken")
""")


@pytest.fixture(scope="module")
def deep(
    tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """An application with a door of each kind."""
    running = start_running(
        tools, make(MAIN, PLAN, snapshot=False), background, tmp_path_factory.mktemp("deep"), plan=PLAN
    )
    yield running
    running.stop()


def bearer(claims: str) -> dict[str, str]:
    parts = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"HS256"}', claims)]
    signature = hmac.digest(KEY.encode(), ".".join(parts).encode(), "sha256")
    parts.append(base64.urlsafe_b64encode(signature).decode().rstrip("="))
    return {"Authorization": f"Bearer {'.'.join(parts)}"}


def test_a_body_and_a_token_of_6000_levels_are_refused_and_later_requests_are_answered(deep: Running) -> None:
    expires = int(time.time()) + 300
    assert deep.request("POST", "/read/body", "[" * 6000).text == "CoreError: Invalid JSON"
    denied = deep.get("/token", headers=bearer(f'{{"exp":{expires},"a":{"[" * 6000}'))
    assert denied.status == 401, "\n".join(deep.lines[-30:])
    assert deep.get("/token", headers=bearer(f'{{"exp":{expires},"sub":"ada"}}')).text == "ada"
    assert deep.get("/").text == "hello"


READERS = ["body", "request", "response", "kv", "from_javascript", "rows"]
WRITERS = ["answer", "sent", "event", "metadata", "job", "clone", "session", "to_javascript"]


@pytest.mark.parametrize("door", READERS)
def test_no_text_ends_the_isolate(deep: Running, door: str) -> None:
    draw = random.Random(door)
    depths = [MAX_DEPTH, MAX_DEPTH + 2, 3000, 6000, 50_000, *(draw.randrange(1, 8000) for _ in range(4))]
    for levels in depths:
        pairs = [draw.choice([("[", "]"), ('{"a":', "}"), ('["]",', "]"), ('{"\\"[":', "}")]) for _ in range(levels)]
        text = "".join(opening for opening, _ in pairs) + "1" + "".join(closing for _, closing in reversed(pairs))
        answer = deep.request("POST", f"/read/{door}", text)
        assert answer.status == (200 if levels <= MAX_DEPTH else 400), (levels, answer)
        assert deep.get("/").text == "hello", levels


@pytest.mark.parametrize("door", WRITERS)
@pytest.mark.parametrize("kind", ["list", "dict", "object"])
def test_no_value_ends_the_isolate(deep: Running, door: str, kind: str) -> None:
    draw = random.Random(door + kind)
    if (door, kind) == ("metadata", "object"):
        return  # metadata has none
    # Some way further, letting go of the value is fatal by itself: no door is needed for that.
    for levels in (150, MAX_DEPTH + 2, 3100, *(draw.randrange(1, 3100) for _ in range(3))):
        answer = deep.request("POST", f"/{'session' if door == 'session' else 'write'}/{door}/{kind}/{levels}")
        if door == "session":
            # What a session cannot keep is found out after the handler.
            assert answer.status == (200 if levels <= MAX_DEPTH else 500), (levels, answer)
        else:
            assert answer.status == (200 if levels <= MAX_DEPTH else 400), (levels, answer)
        assert deep.get("/").text == "hello", levels
