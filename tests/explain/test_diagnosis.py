"""The fixes for mistakes that Python reports in its own words."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import re
from pathlib import Path

import pytest

import core
from core import (
    App,
    CoreError,
    MessageBatch,
    Next,
    Request,
    Response,
    create_app,
    http,
    request,
    testing,
)
from core.bindings import durable_object
from core.explain import diagnosis, misuse, names
from core.hosts.process import BackgroundContext
from core.middleware import cors, etag
from core.testing import Client, FakeClock, FakeKVNamespace, FakeQueue

TABLES = [*names.NAMES.values(), names.MODULE]
FIXES = sorted({fix for table in TABLES for fix in table.values()})


OWNERS: dict[str, type] = {
    "req": Request,
    "res": Response,
    "app": App,
    "kv": core.KVNamespace,
    "db": core.D1Database,
    "statement": core.D1PreparedStatement,
    "bucket": core.R2Bucket,
    "found": core.R2ObjectBody,
    "queue": core.Queue,
    "batch": core.MessageBatch,
    "message": core.Message,
    "namespace": core.DurableObjectNamespace,
    "storage": core.DurableObjectStorage,
    "sql": durable_object.SqlStorage,
    "cursor": durable_object.SqlStorageCursor,
    "secret": core.Secret,
    "meta": core.D1Meta,
    "client": Client,
    "clock": FakeClock,
    "response": http.Response,
}
"""The classes of the names that fixes are written with."""


def members(kind: type) -> set[str]:
    """The attributes of a class's instances."""
    fields = {
        name for base in kind.__mro__ for name in (*inspect.get_annotations(base), *getattr(base, "__slots__", ()))
    }
    more: set[str] = (
        {"params", "env", "ctx", "method", "path"}
        if kind is Request
        else {"status"}
        if kind is http.Response
        else set()
    )
    return {*dir(kind), *fields, *more, *(("cookies",) if kind is Client else ())}


@pytest.mark.parametrize("fix", FIXES)
def test_a_fix_names_what_exists(fix: str) -> None:
    for owner, name in re.findall(rf"(?<![\w./])({'|'.join(OWNERS)})\.(\w+)", fix):
        if (owner, name) != ("kv", "calls"):  # a fake's alone
            assert name in members(OWNERS[owner]), f"{owner}.{name}"
    for name in re.findall(r"\b(create_app|CoreError|Router|Bindings)\b", fix):
        assert hasattr(core, name)
    for module in re.findall(r"`(core\.[a-z_.]+)`", fix):
        assert importlib.util.find_spec(module) is not None


def test_a_name_of_another_framework_is_not_one_of_ours() -> None:
    public = {
        "Router": App,
        "HeadersView": http.HeadersView,
        "Headers": http.Headers,
        "http.Response": http.Response,
        "http.Request": http.Request,
        "State": request.State,
        "SqlStorage": durable_object.SqlStorage,
        "SqlStorageCursor": durable_object.SqlStorageCursor,
        **{name: getattr(testing, name) for name in names.NAMES if name in testing.__all__},
        **{name: kind for name in names.NAMES if isinstance(kind := getattr(core, name, None), type)},
    }
    for owner, kind in public.items():
        assert [name for name in names.NAMES[owner] if name in members(kind)] == [], owner
    options = {f"({name}=)" for name in inspect.signature(core.create_app).parameters}
    assert options.isdisjoint(names.NAMES["create_app"])
    assert [name for name in names.MODULE if name in core.__all__] == []


def test_what_core_check_writes_behind_in_core_this_is_is_no_sentence() -> None:
    for table in (*map(names.NAMES.__getitem__, ("Request", "Response", "Router")), names.MODULE):
        attributes = [fix for name, fix in table.items() if name.isidentifier()]
        assert [fix for fix in attributes if fix[:1].isupper()] == []


async def test_the_log_has_the_fix_and_the_client_has_not(caplog: pytest.LogCaptureFixture) -> None:
    app = App()

    @app.get("/")
    async def show(req: Request, res: Response) -> None:
        res.json({"id": 1}, 201)  # type: ignore[call-arg]  # the mistake

    with caplog.at_level(logging.ERROR):
        response = await Client(app, None).get("/")

    assert await response.json() == {"error": "Internal Server Error"}
    assert "How to fix: Set the status first: `res.status(201).json(value)`." in caplog.text


async def test_the_log_of_an_error_handler_of_ones_own_has_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    app = App()

    @app.get("/")
    async def show(req: Request, res: Response) -> None:
        res.json({"id": 1}, 201)  # type: ignore[call-arg]  # the mistake

    @app.on_error
    async def answer(err: Exception, req: Request, res: Response, next: Next) -> None:
        logging.getLogger("notes").error("failed", exc_info=err)
        res.status(500).send()

    await Client(app, None).get("/")

    assert caplog.text.count("How to fix: Set the status first: `res.status(201).json(value)`.") == 1


def test_a_module_that_is_called_is_named_and_none_of_the_others(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("kept = print, cors\netag()\n")
    with pytest.raises(TypeError) as caught:
        exec(compile(program.read_text(), str(program), "exec"), {"cors": cors, "etag": etag})
    fix = "`etag` is the module. Write `from core.middleware.etag import etag`."
    assert misuse.fix_for_operation(caught.value) == fix


async def test_an_error_that_is_raised_twice_has_one_note() -> None:
    error = TypeError("'coroutine' object is not subscriptable")
    diagnosis.with_note(error)
    diagnosis.with_note(error)
    assert [note.partition(":")[0] for note in error.__notes__] == ["How to fix", "Page"]


def test_an_app_has_no_names_but_its_own() -> None:
    assert not hasattr(App(), "route")
    assert not hasattr(App(), "_nothing")
    with pytest.raises(AttributeError, match=r"App has no route\. In core this is"):
        _ = App().route  # type: ignore[attr-defined]  # the mistake
    with pytest.raises(AttributeError, match=r"^'App' object has no attribute 'nothing'$"):
        _ = App().nothing  # type: ignore[attr-defined]  # the mistake


async def test_the_chain_that_sent_nothing_names_the_step_whatever_it_is(caplog: pytest.LogCaptureFixture) -> None:
    class Callable:
        async def __call__(self, req: Request, res: Response) -> None:
            return None

    app = App()
    app.get("/object", Callable())

    async def returns(req: Request, res: Response) -> object:
        return http.Response("x")

    app.get("/response", returns)  # type: ignore[arg-type]  # the mistake
    with caplog.at_level(logging.ERROR):
        await Client(app, None).get("/object")
        await Client(app, None).get("/response")

    assert "GET /object: the handler Callable" in caplog.text
    assert (
        "returned an http.Response, which nothing sends. Send its parts: `return res.status(response.status).send(await response.bytes())`"
        in caplog.text
    )


async def test_an_error_for_a_client_has_no_note() -> None:
    error = CoreError(404, "Not Found")
    diagnosis.with_note(error)
    assert not hasattr(error, "__notes__")


async def test_the_log_of_background_work_has_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    async def job() -> None:
        await FakeKVNamespace().set("a", "b")  # type: ignore[attr-defined]  # the mistake

    context = BackgroundContext()
    context.wait_until(job())
    await context.drain()
    assert "How to fix: In core this is `await kv.put(" in caplog.text


async def test_the_errors_of_consumers_and_triggers_have_the_fix() -> None:
    app = create_app()

    @app.queue("jobs")
    async def consume(batch: MessageBatch[object], env: object, ctx: object) -> None:
        for message in batch:  # type: ignore[attr-defined]  # the mistake
            message.ack()

    @app.scheduled("* * * * *")
    async def tick(event: object, env: object, ctx: object) -> None:
        await FakeQueue[str]().put("a")  # type: ignore[attr-defined]  # the mistake

    queue = FakeQueue[str]("jobs")
    await queue.send("a")
    with pytest.raises(TypeError) as consumed:
        await queue.deliver(lambda batch: app.consume(batch, None, BackgroundContext()))
    assert consumed.value.__notes__[0] == "How to fix: In core this is `for message in batch.messages`."
    with pytest.raises(AttributeError) as ticked:
        await app.trigger(core.ScheduledEvent("* * * * *", 0.0), None, BackgroundContext())
    assert ticked.value.__notes__[0] == "How to fix: In core this is `await queue.send(body)`."


async def test_a_log_is_written_where_its_fix_cannot_be_found(caplog: pytest.LogCaptureFixture) -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def job() -> None:
        raise Silent

    context = BackgroundContext()
    context.wait_until(job())
    await context.drain()
    assert "background work given to wait_until failed" in caplog.text


def test_no_class_answers_for_attributes_that_it_has_not() -> None:
    """`hasattr`, copies and protocols see the same as without a hint, which is added to the error alone."""
    for engine in (FakeKVNamespace, testing.FakeD1Database, testing.FakeR2Bucket, FakeQueue, Request, Response):
        assert not hasattr(engine, "__getattr__")
    error = AttributeError("'FakeKVNamespace' object has no attribute 'set'", name="set", obj=FakeKVNamespace())
    diagnosis.with_note(error)
    assert (error.name, str(error)) == ("set", "'FakeKVNamespace' object has no attribute 'set'")
