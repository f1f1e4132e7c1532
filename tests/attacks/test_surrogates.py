"""Half a surrogate pair, which a client writes in JSON as `"\\ud800"`: whatever sends it on, an answer leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import http
from core.app import App
from core.errors import CoreError
from core.hosts.asgi import asgi
from core.http.sse import Event
from core.http.streams import encode, well_formed
from core.http.websocket import pair
from core.middleware.cache import MemoryCache, cache
from core.middleware.compress import compress
from core.middleware.etag import etag
from core.request import Request
from core.response import Response
from core.testing import FakeExecutionContext

Sender = Callable[[Response, str], object]


@pytest.fixture(autouse=True)
def log_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the log out of the test's report: pytest-xdist cannot send one that has half a pair in it."""
    monkeypatch.setattr(logging.getLogger("core"), "disabled", True)


async def once(value: Any) -> AsyncIterator[Any]:
    yield value


def fail(res: Response, text: str) -> None:
    raise CoreError(400, text, code=text, headers={"X-Text": text})


SENDERS: dict[str, Sender] = {
    "text": lambda res, text: res.text(text),
    "html": lambda res, text: res.html(text),
    "send": lambda res, text: res.send(text),
    "json": lambda res, text: res.json({text: [text]}),
    "header": lambda res, text: res.header("X-Text", text).send(),
    "append": lambda res, text: res.append("X-Text", text).send(),
    "cookie": lambda res, text: res.cookie("text", text).send(),
    "redirect": lambda res, text: res.redirect(f"/found/{text}"),
    "stream": lambda res, text: res.stream(once(text)),
    "content type of a stream": lambda res, text: res.stream(once(b""), content_type=text),
    "sse text": lambda res, text: res.sse(once(text)),
    "sse value": lambda res, text: res.sse(once([text])),
    "sse event": lambda res, text: res.sse(once(Event(data=text, event=text, id=text, comment=text))),
    "error": fail,
    "replaced body": lambda res, text: res.send().replace_body(text),
    "status of an error": lambda res, text: (_ for _ in ()).throw(ValueError(text)),
}
# No header holds a line break, and most nothing beyond U+00FF either: the handler's mistake, a 500.
HEADERS = {"header", "append", "content type of a stream", "redirect"}


def application(sender: Sender) -> App[Any]:
    app: App[Any] = App()
    app.use(etag())
    app.use(compress())
    app.use("/cached", cache(max_age=60, store=MemoryCache()))

    async def handle(req: Request[Any], res: Response) -> None:
        sender(res, await req.json())

    app.post("/", handle)
    app.get("/cached/:text", lambda_of(sender))
    return app


def lambda_of(sender: Sender) -> Callable[[Request[Any], Response], Awaitable[None]]:
    async def handle(req: Request[Any], res: Response) -> None:
        sender(res, "\ud800")

    return handle


async def over_fetch(app: App[Any], body: bytes) -> tuple[int, bytes]:
    answer = await app.fetch(http.Request("https://a.test/", method="POST", body=body), None, FakeExecutionContext())
    return answer.status, await answer.bytes()


async def over_asgi(app: App[Any], body: bytes, method: str = "POST", path: str = "/") -> tuple[int, bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    received = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(received, None) or await asyncio.Event().wait()

    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [], "scheme": "http"}  # fmt: skip
    await asgi(app)(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("over", [over_fetch, over_asgi])
@pytest.mark.parametrize("name", SENDERS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.one_of(st.characters(), st.characters(categories=["Cs"])), min_size=1))
async def test_every_sender_answers_whatever_text_a_client_sent(name: str, over: Any, text: str) -> None:
    status, body = await over(application(SENDERS[name]), http.json.dumps(text).encode())
    assert status in ((200, 302, 400, 500) if name in HEADERS | {"status of an error"} else (200, 302, 400))
    body.decode()  # it is UTF-8
    if name in ("text", "html", "send", "stream", "replaced body"):
        assert body == encode(text) == well_formed(text).encode()


@pytest.mark.parametrize("name", SENDERS)
@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_every_sender_answers_through_a_cache_and_without_the_body(name: str, method: str) -> None:
    app = application(SENDERS[name])
    for _ in range(2):
        status, _ = await over_asgi(app, b"", method, "/cached/x")
        assert status in (200, 302, 400, 500)


def test_halves_of_a_pair_that_stand_beside_each_other_are_the_character() -> None:
    assert well_formed("a\ud83d\ude00b\ude00\ud83d") == "a😀b��"
    assert http.Response("\ud83d\ude00").body_bytes_or_none() == "😀".encode()


async def test_a_socket_sends_it_as_u_fffd() -> None:
    server, client = pair()
    await server.send("\ud800")
    assert await client.receive() == "�"
    await server.close(1000, "\ud800")
    assert client.closed is not None
    assert client.closed.reason == "�"
