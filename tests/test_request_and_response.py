"""Values that `req` and `res` take and refuse: statuses of the standard library, callbacks, streams,
and what cannot be changed.
"""

# What no type checker would take is tried here, and lambdas over it have no types to know.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import copy
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.context import EdgeMetadata
from core.errors import CoreError, HandlerError, RegistrationError
from core.hosts.asgi import AsgiRequest, BackgroundContext
from core.middleware.logger import logger
from core.middleware.timeout import timeout
from core.request import Query, Request
from core.response import Response
from core.testing import Client, FakeExecutionContext


def answering(handle: Callable[[Request[Any], Response], object]) -> Client[Any]:
    app: App[Any] = App()

    async def run(req: Request[Any], res: Response) -> None:
        handle(req, res)

    app.get("/", run)
    return Client(app, None)


# -- the query is a mapping


def test_a_query_is_a_mapping_of_names_to_first_values() -> None:
    query = Query("a=1&b=2&a=3&c")
    assert isinstance(query, Mapping)
    assert dict(query) == {"a": "1", "b": "2", "c": ""} == {**query}
    assert list(query.items()) == [("a", "1"), ("b", "2"), ("c", "")]
    assert (list(query), len(query), query.get_all("a"), query.get("d"), query.get("d", "x")) == (
        ["a", "b", "c"], 3, ["1", "3"], None, "x",
    )  # fmt: skip
    assert query == {"a": "1", "b": "2", "c": ""}
    assert query == Query("a=1&b=2&a=%33&c=")
    assert query != Query("a=1&b=2&c=")  # what came more than once counts
    match query:
        case {"a": first, **rest}:
            assert (first, rest) == ("1", {"b": "2", "c": ""})
        case _:
            raise AssertionError("a mapping matches a mapping's pattern")


# -- the headers of a request stay


def over_fetch() -> Request[Any]:
    message = http.Request("https://a.test/", headers={"x-a": "1", "authorization": "Bearer t"})
    return Request(message, None, FakeExecutionContext())


def over_asgi() -> Any:
    req: Any = AsgiRequest.bound(None, BackgroundContext())()
    req._index = req._headers = None
    req._scope = {"headers": [(b"x-a", b"1"), (b"authorization", b"Bearer t")]}
    return req


CHANGES: list[Callable[[Any], object]] = [
    lambda headers: headers.__setitem__("x-a", "2"), lambda headers: headers.__delitem__("x-a"),
    lambda headers: headers.set("x-a", "2"), lambda headers: headers.append("x-a", "2"),
    lambda headers: headers.delete("x-a"), lambda headers: headers.clear(), lambda headers: headers.pop("x-a"),
    lambda headers: headers.popitem(), lambda headers: headers.update({"x-a": "2"}),
    lambda headers: headers.setdefault("x-b", "2"),
]  # fmt: skip


@pytest.mark.parametrize("over", [over_fetch, over_asgi])
@pytest.mark.parametrize("change", CHANGES)
def test_the_headers_of_a_request_cannot_be_changed(over: Any, change: Callable[[Any], object]) -> None:
    req = over()
    with pytest.raises(TypeError, match=r"req\.state.*req\.headers\.copy\(\)"):
        change(req.headers)
    assert (req.headers["x-a"], req.header("X-A"), "x-b" in req.headers) == ("1", "1", False)


@given(
    st.lists(
        st.tuples(st.sampled_from([b"x-a", b"cookie", b"set-cookie", b"edge-connecting-ip"]), st.binary(max_size=3))
    )
)
def test_a_header_over_asgi_is_the_same_alone_and_among_all(pairs: list[tuple[bytes, bytes]]) -> None:
    req = over_asgi()
    req._scope = {"headers": pairs, "client": ("192.0.2.1", 5)}
    names = ("X-A", "Cookie", "set-cookie", "Edge-Connecting-IP", "X-B")
    alone = {name.lower(): value for name in names if (value := req.headers.get(name)) is not None}
    assert alone == dict(req.headers) == {name: req.header(name) for name in req.headers}
    with pytest.raises(TypeError, match="Invalid header name"):
        req.headers.get("x a")


@pytest.mark.parametrize("over", [over_fetch, over_asgi])
def test_a_copy_of_them_can_be_changed(over: Any) -> None:
    req = over()
    for mine in (req.headers.copy(), copy.copy(req.headers), http.Headers(req.headers)):
        assert mine == req.headers
        mine["x-a"] = "2"
        assert http.Request("https://b.test/", headers=mine).headers["x-a"] == "2"
    assert req.header("x-a") == "1"


def test_headers_show_no_tokens_and_no_cookies() -> None:
    names = ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "X-Csrf-Token", "Cf-Access-Jwt-Assertion"]  # fmt: skip
    headers = http.Headers([*((name, "s3cret") for name in names), ("Set-Cookie", "s3cret"), ("Accept", "text/html")])
    for shown in (repr(headers), str(headers), repr(Request(http.Request("https://a.test/", headers=headers), None, FakeExecutionContext()).headers)):  # fmt: skip
        assert "s3cret" not in shown
        assert "('accept', 'text/html')" in shown
        assert "authorization" in shown


# -- statuses


async def test_a_status_of_the_standard_library_is_one() -> None:
    client = answering(lambda req, res: res.status(HTTPStatus.CREATED).json(1))
    assert (await client.get("/")).status == 201
    answer = await answering(lambda req, res: res.redirect("/a", HTTPStatus.SEE_OTHER)).get("/")
    assert (answer.status, type(answer.status)) == (303, int)
    error = CoreError(HTTPStatus.CONFLICT, "Taken")
    assert (error.status, type(error.status)) == (409, int)
    timeout(duration=1, status=HTTPStatus.GATEWAY_TIMEOUT)
    for wrong in (True, HTTPStatus.OK, 200.0, "404", None):
        with pytest.raises(ValueError, match="400 to 599"):
            CoreError(wrong, "")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="from 200 to 599"):
        Response().status(True)


class Foreign(Exception):
    def __init__(self, text: str, status: object, message: object = None) -> None:
        super().__init__(text)
        self.status = status
        if message is not None:
            self.message = message


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (Foreign("password=hunter2", 404), 404, "Not Found"),
        (Foreign("password=hunter2", HTTPStatus.CONFLICT), 409, "Conflict"),
        (Foreign("password=hunter2", 498), 498, "Bad Request"),
        (Foreign("password=hunter2", 404, "No such thing"), 404, "No such thing"),
        (Foreign("password=hunter2", 404, b"bytes"), 404, "Not Found"),
        (Foreign("password=hunter2", 503, "password=hunter2"), 503, "Internal Server Error"),
        (Foreign("password=hunter2", True), 500, "Internal Server Error"),
        (Foreign("password=hunter2", "404"), 500, "Internal Server Error"),
    ],
)
async def test_of_a_foreign_exception_only_its_message_leaves(error: Exception, status: int, told: str) -> None:
    def handle(req: Request[Any], res: Response) -> None:
        raise error

    answer = await answering(handle).get("/")
    assert (answer.status, await answer.json()) == (status, {"error": told})


def test_an_error_carries_metadata_of_any_name() -> None:
    error = CoreError(409, "Taken", status="suspended", message="why", code=1)
    assert error.body == {"error": "Taken", "status": "suspended", "message": "why", "code": 1}
    assert (error.status, error.message) == (409, "Taken")
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.body) == (409, error.body)


# -- callbacks


async def notify(status: int, duration: float) -> None: ...


async def stream_notify(status: int, duration: float) -> AsyncIterator[int]:
    yield status


def generate(status: int, duration: float) -> Iterator[int]:
    yield status


class Asking:
    async def __call__(self, status: int, duration: float) -> None: ...

    def method(self, status: int, duration: float) -> None: ...

    async def coroutine(self, status: int, duration: float) -> None: ...


@pytest.mark.parametrize("callback", [notify, stream_notify, generate, partial(notify), Asking(), Asking().coroutine])
def test_a_callback_that_nothing_would_run_is_refused(callback: Any) -> None:
    with pytest.raises(HandlerError, match=r"plain function of \(status, duration_ms\).*wait_until"):
        Response().on_send(callback)


@pytest.mark.parametrize(
    "callback", [lambda: None, lambda status: None, lambda a, b, c: None, lambda *, a: None, None, 7]
)
def test_a_callback_of_another_shape_is_refused(callback: Any) -> None:
    with pytest.raises(HandlerError, match=r"\(status, duration_ms\)"):
        Response().on_send(callback)


@pytest.mark.parametrize(
    "callback",
    [
        lambda a, b: None,
        lambda *a: None,
        lambda a, b=1, c=2: None,
        print,
        partial(max, 1),
        Asking().method,
    ],
)
def test_a_callback_that_takes_both_is_taken(callback: Any) -> None:
    Response().on_send(callback)


async def test_a_callback_that_gives_a_coroutine_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    later: Any = lambda status, ms: notify(status, ms)  # noqa: E731 - of a type that checkers would refuse
    answer = await answering(lambda req, res: res.on_send(later).send()).get("/")
    assert answer.status == 200
    assert "nothing awaits it" in caplog.text


def test_a_second_handler_of_errors_names_the_first() -> None:
    app: App[Any] = App()

    @app.on_error
    async def first(err: Exception, req: Request[Any], res: Response, next: Any) -> None: ...

    @app.not_found
    async def nowhere(req: Request[Any], res: Response) -> None: ...

    with pytest.raises(RegistrationError, match="first is registered already"):
        app.on_error(first)
    with pytest.raises(RegistrationError, match="nowhere is registered already"):
        app.not_found(nowhere)


# -- streams and what frames them


@pytest.mark.parametrize("given", [iter([b"a"]), [b"a"], (piece for piece in (b"a",)), b"a", "a", None])
async def test_a_stream_that_is_not_async_is_refused_before_anything_left(given: Any) -> None:
    for send in (lambda res: res.stream(given), lambda res: res.sse(given)):

        def handle(req: Request[Any], res: Response, send: Any = send) -> None:
            with pytest.raises(TypeError, match=r"async iterable.*async def"):
                send(res)
            res.status(422).send()

        assert (await answering(handle).get("/")).status == 422


@pytest.mark.parametrize(
    "stage",
    [
        lambda res: res.header("Transfer-Encoding", "chunked"),
        lambda res: res.append("transfer-encoding", "chunked"),
        lambda res: res.headers.__setitem__("TRANSFER-ENCODING", "chunked"),
        lambda res: res.headers.append("transfer-encoding", "chunked"),
        lambda res: res.headers.update({"transfer-encoding": "chunked"}),
        lambda res: res.headers.set("transfer-encoding", "chunked"),
    ],
)
async def test_how_a_body_is_framed_is_not_the_applications_to_say(stage: Any) -> None:
    answer = await answering(lambda req, res: (stage(res), res.text("whole"))).get("/")
    assert "transfer-encoding" not in answer.headers
    assert await answer.text() == "whole"


async def test_an_error_says_nothing_of_framing_either() -> None:
    def handle(req: Request[Any], res: Response) -> None:
        raise CoreError(400, "no", headers={"Transfer-Encoding": "chunked", "X-A": "1"})

    answer = await answering(handle).get("/")
    assert ("transfer-encoding" in answer.headers, answer.headers["x-a"]) == (False, "1")


@pytest.mark.parametrize("body", [b"\x00", bytearray(b"\x00"), memoryview(b"\x00")])
async def test_bytes_are_an_octet_stream_unless_another_type_is_staged(body: bytes | bytearray | memoryview) -> None:
    sent = await answering(lambda req, res: res.send(body)).get("/")
    assert (sent.headers["content-type"], await sent.bytes()) == ("application/octet-stream", b"\x00")
    named = await answering(lambda req, res: res.header("Content-Type", "image/png").send(body)).get("/")
    assert named.headers["content-type"] == "image/png"
    assert "content-type" not in (await answering(lambda req, res: res.send()).get("/")).headers


# -- metadata of the edge


async def test_edge_metadata_may_be_a_dict() -> None:
    lines: list[str] = []
    app: App[Any] = App()
    app.use(logger(write=lines.append))

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        assert req.edge == EdgeMetadata("AMS", "NL")
        res.send()

    message = http.Request("https://a.test/", edge={"colo": "AMS", "country": "NL", "asn": 1})
    assert (await app.fetch(message, None, FakeExecutionContext())).status == 200
    assert lines[0].endswith("[AMS]")
    with pytest.raises(TypeError, match="edge="):
        http.Request("https://a.test/", edge="AMS")  # type: ignore[arg-type]  # what is refused
