"""Ids of requests: which incoming ones are taken over, and where an id reaches."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.app import App
from core.errors import CoreError
from core.middleware.logger import logger
from core.middleware.request_id import RequestIdFilter, current_request_id, request_id
from core.middleware.timeout import timeout
from core.request import Request
from core.response import Response
from core.testing import Client

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def client_with(*middleware: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.text(req.id)

    @app.get("/fails")
    async def fail(req: Request[Any], res: Response) -> None:
        raise CoreError(400, "Bad")

    return Client(app, None)


async def test_generated_ids_are_random_uuids() -> None:
    client = client_with(request_id())
    ids = {(await client.get("/")).headers["x-request-id"] for _ in range(200)}
    assert len(ids) == 200
    assert all(UUID4.fullmatch(id) for id in ids)


HARMLESS = [
    "a",
    "A-z0.9_:+=/-",
    "x" * 128,
    "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "Root=1-67891233-abcdef012345678912345678",
]
REPLACED = [
    "",
    "x" * 129,
    "a b",
    "a,b",
    "a;b",
    "a\tb",
    "é",
    '"quoted"',
    "<script>",
    "a\x7f",
    "(a)",
    "a@b",
    "a#b",
    "a%20b",
]
ALSO_REPLACED = ["~a", "Self=1-6789;Root=1-67891233", '{"id":7}', "a\u0080"]


@pytest.mark.parametrize("incoming", HARMLESS)
async def test_a_harmless_incoming_value_is_reused(incoming: str) -> None:
    response = await client_with(request_id()).get("/", headers={"X-Request-Id": incoming})
    assert response.headers["x-request-id"] == incoming == await response.text()


@pytest.mark.parametrize("incoming", [*REPLACED, *ALSO_REPLACED])
async def test_any_other_incoming_value_is_replaced_by_a_generated_one(incoming: str) -> None:
    response = await client_with(request_id()).get("/", headers={"X-Request-Id": incoming})
    assert UUID4.fullmatch(response.headers["x-request-id"])


async def test_two_headers_joined_by_a_comma_are_replaced() -> None:
    from core import http
    from core.testing import FakeExecutionContext

    headers = http.Headers([("X-Request-Id", "one"), ("X-Request-Id", "two")])
    request = http.Request("https://a.test/", headers=headers)
    response = await client_with(request_id()).app.fetch(request, None, FakeExecutionContext())
    assert UUID4.fullmatch(response.headers["x-request-id"])


async def test_max_length_sets_how_long_an_incoming_id_may_be() -> None:
    client = client_with(request_id(max_length=8))
    assert (await client.get("/", headers={"X-Request-Id": "12345678"})).headers["x-request-id"] == "12345678"
    assert (await client.get("/", headers={"X-Request-Id": "123456789"})).headers["x-request-id"] != "123456789"


async def test_accept_incoming_false_turns_reuse_off() -> None:
    response = await client_with(request_id(accept_incoming=False)).get("/", headers={"X-Request-Id": "mine"})
    assert UUID4.fullmatch(response.headers["x-request-id"])


async def test_header_name_names_the_header_read_and_the_header_written() -> None:
    response = await client_with(request_id(header_name="X-Trace")).get("/", headers={"x-trace": "t1"})
    assert response.headers["X-Trace"] == "t1"
    assert "x-request-id" not in response.headers


async def test_the_generator_may_take_the_request_or_nothing() -> None:
    assert (await client_with(request_id(generator=lambda: "fixed")).get("/")).headers["x-request-id"] == "fixed"
    by_request = request_id(generator=lambda req: f"m-{req.method}")
    assert (await client_with(by_request).get("/")).headers["x-request-id"] == "m-GET"


@pytest.mark.parametrize("made", ["", "a\r\nSet-Cookie: x=1", "x" * 129, "ü", None, 7])
async def test_what_the_generator_returns_is_checked_the_same_way(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    response = await client_with(request_id(generator=lambda: made)).get("/")
    assert response.status == 500
    assert "x-request-id" not in response.headers
    assert "request_id(generator=…) gave" in caplog.text


@pytest.mark.parametrize("path", ["/fails", "/nowhere"])
async def test_the_header_is_set_before_the_chain_runs_so_that_errors_carry_it(path: str) -> None:
    response = await client_with(request_id(generator=lambda: "abc")).get(path)
    assert response.headers["x-request-id"] == "abc"


async def test_the_error_handler_reads_the_id() -> None:
    client = client_with(request_id(generator=lambda: "abc"))

    @client.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        res.status(400).json({"error": str(err), "requestId": req.id})

    assert await (await client.get("/fails")).json() == {"error": "Bad", "requestId": "abc"}


async def test_a_context_variable_carries_the_id_also_into_tasks() -> None:
    app: App[Any] = App()
    app.use(request_id(generator=lambda: "abc"))
    seen: list[str] = []

    async def in_a_task() -> None:
        seen.append(current_request_id.get())

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        seen.append(current_request_id.get())
        await asyncio.create_task(in_a_task())
        res.json({})

    await Client(app, None).get("/")
    assert seen == ["abc", "abc"]


async def test_after_the_response_the_context_variable_is_what_it_was_before() -> None:
    inner: App[Any] = App()
    inner.use(request_id(generator=lambda: "inner"))
    inner.get("/", _empty)
    outer: App[Any] = App()
    outer.use(request_id(generator=lambda: "outer"))
    seen: list[str] = []

    @outer.get("/")
    async def call(req: Request[Any], res: Response) -> None:
        await Client(inner, None).get("/")
        seen.append(current_request_id.get())
        res.json({})

    await Client(outer, None).get("/")
    assert (seen, current_request_id.get()) == (["outer"], "")


async def _empty(req: Request[Any], res: Response) -> None:
    res.status(204).send()


async def test_the_context_variable_is_taken_back_inside_a_task_that_a_middleware_made() -> None:
    async def in_a_task(req: Request[Any], res: Response, next: Any) -> None:
        await asyncio.create_task(_run(next))

    response = await client_with(in_a_task, request_id(generator=lambda: "abc")).get("/")
    assert (response.headers["x-request-id"], current_request_id.get()) == ("abc", "")


async def _run(next: Any) -> None:
    await next()


async def test_concurrent_requests_each_log_with_their_own_id(caplog: pytest.LogCaptureFixture) -> None:
    app: App[Any] = App()
    app.use(request_id(), timeout(duration=10_000), logger(write=logging.getLogger("access")))
    mine = logging.getLogger("mine")

    @app.get("/:n")
    async def show(req: Request[Any], res: Response) -> None:
        await asyncio.sleep(0)
        mine.warning("%s", req.params["n"])
        res.json({})

    caplog.handler.addFilter(RequestIdFilter())
    with caplog.at_level(logging.INFO):
        client = Client(app, None)
        await asyncio.gather(*(client.get(f"/{n}", headers={"X-Request-Id": f"id-{n}"}) for n in range(20)))
    said = {(record.name, record.request_id, record.getMessage()) for record in caplog.records}  # type: ignore[attr-defined]  # the filter's
    assert {("mine", f"id-{n}", str(n)) for n in range(20)} <= said
    assert {("access", f"id-{n}", f"GET /{n} 200 0ms [-]") for n in range(20)} <= said


def test_the_filter_writes_a_hyphen_outside_of_requests() -> None:
    record = logging.LogRecord("a", 20, "a.py", 1, "hello", None, None)
    assert RequestIdFilter().filter(record)
    assert record.request_id == "-"  # type: ignore[attr-defined]  # the filter's


@given(st.text(alphabet=st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=200))
async def test_whatever_comes_in_what_goes_out_is_harmless(incoming: str) -> None:
    response = await client_with(request_id()).get("/", headers={"X-Request-Id": incoming})
    assert re.fullmatch(r"[A-Za-z0-9._:+=/-]{1,128}", response.headers["x-request-id"])


def test_importing_draws_no_randomness_and_loads_no_uuid() -> None:
    code = (
        "import os, sys; os.urandom = None; import core.middleware.request_id;"
        "assert not {'uuid', 'secrets', 'random', 'hashlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"], check=True)
