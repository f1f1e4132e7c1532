"""Deep values at every door of JSON: each refuses them in its own words, and none follows them into the C stack."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.support.tokens import NOW, raw
from tests.support.tokens import Env as JWTEnv

from core import http
from core.app import App
from core.backends.embedded.clone import CloneError, copy_value, dump, load
from core.bindings.ai import AiStream
from core.errors import KVSyntaxError, KVTypeError, QueueTypeError, R2Error
from core.http.json import MAX_DEPTH
from core.http.sse import Event, encode_event
from core.middleware.jwks import FetchedKeySet
from core.middleware.jwt import jwt_auth
from core.middleware.sessions import session_of, sessions
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace, FakeQueue, FakeR2Bucket

TEXTS = {
    "arrays": "[" * 6000,
    "objects": '{"a":' * 6000 + "1" + "}" * 6000,
    "just": "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
}


def nested(levels: int = MAX_DEPTH + 1) -> Any:
    value: Any = []
    for level in range(1, levels):
        value = {"a": value} if level % 2 else [value]
    return value


async def request_json(text: str) -> Any:
    return await http.Request("https://x.test", method="POST", body=text).json()


async def response_json(text: str) -> Any:
    return await http.Response(text).json()


async def kv_json(text: str) -> Any:
    kv = FakeKVNamespace()
    await kv.put("key", text)
    return await kv.get("key", type="json")


async def kv_typed(text: str) -> Any:
    kv = FakeKVNamespace()
    await kv.put("key", text)
    return await kv.get_json("key", list[Any])


async def r2_json(text: str) -> Any:
    bucket = FakeR2Bucket()
    await bucket.put("key", text)
    found = await bucket.get("key")
    assert found is not None
    return await found.json()


async def ai_events(text: str) -> Any:
    async def source() -> AsyncIterator[bytes]:
        yield f"data: {text}\n\n".encode()

    return [event async for event in AiStream(source()).events()]


READERS: list[Callable[[str], Awaitable[Any]]] = [request_json, response_json, kv_json, kv_typed, r2_json, ai_events]


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
async def test_a_reader_refuses_what_is_too_deep(read: Callable[[str], Awaitable[Any]], text: str) -> None:
    with pytest.raises((ValueError, KVSyntaxError, R2Error), match=re.compile("deeper|not JSON", re.IGNORECASE)):
        await read(text)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
async def test_a_reader_takes_the_deepest_that_is_allowed(read: Callable[[str], Awaitable[Any]]) -> None:
    assert await read("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
async def test_a_deep_token_is_401_and_the_next_good_one_is_let_in(text: str) -> None:
    app: App[Any] = App()
    app.use(jwt_auth(secret=lambda req: req.env.JWT_SECRET, max_length=65_536))

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.send()

    client = Client(app, JWTEnv(), ctx=FakeExecutionContext(clock=FakeClock(NOW)))
    header = '{"alg":"HS256"}'
    for token in (raw(header, f'{{"exp":{NOW + 60},"a":{text}}}'), raw(f'{{"alg":"HS256","a":{text}}}', "{}")):
        assert (await client.get("/", headers={"authorization": f"Bearer {token}"})).status == 401
    good = raw(header, f'{{"sub":"ada","exp":{NOW + 60}}}')
    assert (await client.get("/", headers={"authorization": f"Bearer {good}"})).status != 401


async def test_a_deep_key_set_is_no_key_set(caplog: pytest.LogCaptureFixture) -> None:
    async def fetch(url: str) -> bytes:
        return b'{"keys":' + b"[" * 6000

    keys = FetchedKeySet("https://issuer.test/jwks", fetch)
    await keys._load(0.0)
    assert keys._keys == []
    assert "Nested deeper than 200 levels" in caplog.text


async def kv_metadata(value: Any) -> None:
    await FakeKVNamespace().put("key", "text", metadata=value)


async def queue_json(value: Any) -> None:
    await FakeQueue[Any]().send(value)


async def queue_v8(value: Any) -> None:
    await FakeQueue[Any]().send(value, content_type="v8")


async def stored(value: Any) -> None:
    load(dump(value))


async def passed(value: Any) -> None:
    copy_value(value)


async def event(value: Any) -> None:
    encode_event(Event(data=value))


async def response(value: Any) -> None:
    http.Response.from_json(value)


async def request(value: Any) -> None:
    http.Request("https://x.test", method="POST", json=value)


WRITERS: list[Callable[[Any], Awaitable[None]]] = [
    kv_metadata, queue_json, queue_v8, stored, passed, event, response, request,
]  # fmt: skip


@pytest.mark.parametrize("levels", [MAX_DEPTH + 2, 3000])
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
async def test_a_writer_says_what_is_wrong_with_a_deep_value(
    write: Callable[[Any], Awaitable[None]], levels: int
) -> None:
    with pytest.raises((ValueError, KVTypeError, QueueTypeError, CloneError), match="nested too deeply"):
        await write(nested(levels))


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
async def test_a_writer_takes_the_deepest_that_is_allowed(write: Callable[[Any], Awaitable[None]]) -> None:
    await write(nested(MAX_DEPTH))


async def test_a_deep_value_in_a_session_is_a_mistake_of_the_program_and_nothing_is_kept() -> None:
    app: App[Any] = App()
    app.use(sessions(kv_binding="JWT_SECRET", secret=lambda req: "s" * 32))

    @app.get("/:levels")
    async def keep(req: Request[Any], res: Response) -> None:
        session = await session_of(req)
        session["deep"] = nested(int(req.params["levels"]))
        res.send()

    kv = FakeKVNamespace()
    client = Client(app, JWTEnv(kv))
    assert (await client.get("/100")).status == 200
    assert (await client.get("/3000")).status == 500
    assert (await client.get("/100")).status == 200
