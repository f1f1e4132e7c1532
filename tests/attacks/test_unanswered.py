"""Whatever a handler raises, returns or logs, its request is answered, and nothing of the error reaches the client."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import pytest
from tests.support.fetch import ask

from core import CoreError, Request, Response, Secret, create_app
from core.explain.failure import failure_of
from core.telemetry.logs import JsonFormatter
from core.testing import Client


class Unsayable(Exception):
    """An error of a library: its text is made when it is asked for, and cannot be."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Lazy(Exception):
    """An error whose attributes are looked up somewhere, and are not there."""

    @property
    def status(self) -> int:
        raise RuntimeError("no status")


class Restless(CoreError):
    """An error for clients whose body cannot be made."""

    @property
    def body(self) -> dict[str, Any]:
        raise RuntimeError("no body")


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def unsayable_core_error() -> CoreError:
    return CoreError(400, Hostile())  # type: ignore[arg-type]  # as an untyped program does


FAILURES = [Unsayable(), Lazy(), Restless(400), unsayable_core_error(), SystemExit(3), SystemExit(Unsayable())]


@pytest.mark.parametrize("problem_details", [False, True])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_an_error_whose_own_methods_raise_is_answered(failure: BaseException, problem_details: bool) -> None:
    app = create_app(problem_details=problem_details)

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        raise failure

    response = await ask(app)
    assert (response.status, "no " in await response.text()) in ((500, False), (400, False))


class Unnoted(Exception):
    """An error that takes no note."""

    def add_note(self, note: str, /) -> None:
        raise RuntimeError("no note")


@pytest.mark.parametrize("notes", [None, 3, [3], [Hostile()]], ids=["none", "number", "of numbers", "hostile"])
async def test_an_error_that_takes_no_note_is_answered_where_one_is_added_to_each(notes: object) -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        error: Any = type("Failed", (Unnoted, NameError), {})("private", name="private")
        error.__notes__ = notes
        raise error

    async with Client(app, None) as client:
        assert (await client.get("/")).status == 500


async def test_a_handler_that_returns_what_cannot_be_shown_is_answered() -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> Any:
        return Hostile()

    assert (await ask(app)).status == 500


async def test_a_task_of_the_handler_that_was_cancelled_is_an_error_and_not_the_end_of_the_request() -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    assert (await ask(app)).status == 500


async def test_a_cancelled_request_stays_cancelled() -> None:
    app = create_app()
    began = asyncio.Event()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        began.set()
        await asyncio.Event().wait()

    request = asyncio.ensure_future(ask(app))
    await began.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_the_error_page_of_core_dev_shows_an_error_whose_text_raises(failure: BaseException, tmp_path: Any) -> None:
    try:
        raise failure from Unsayable()
    except BaseException as error:
        shown = failure_of(error, tmp_path).as_text()
    assert type(failure).__name__ in shown


def test_a_record_with_arguments_that_cannot_be_shown_is_kept() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("tests.unanswered")
    log.addHandler(handler)
    log.propagate = False  # pytest's own handler raises
    try:
        log.warning("token %s", Secret("s3cret"))
        log.warning("%s is odd", Hostile())
        log.warning("too %s many", 1, 2)
        log.warning("extra", extra={"one": Hostile(), "two": {Hostile(): 1}, "three": Secret("s3cret")})
        raised: list[Any] = []
        raised.append(raised)
        log.warning("a circle", extra={"circle": raised})
    finally:
        log.removeHandler(handler)
        log.propagate = True
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == [
        "token Secret(hidden)",
        "%s is odd (cannot be formatted with <Hostile that cannot be shown>: RuntimeError)",
        "too %s many (cannot be formatted with 1, 2: TypeError)",
        "extra",
        "a circle",
    ]
    assert "s3cret" not in stream.getvalue()


def test_a_secret_is_the_argument_of_a_record_in_any_format(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("tests.unanswered").warning("token %s", Secret("s3cret"))
    assert caplog.messages == ["token Secret(hidden)"]
    with pytest.raises(TypeError, match="A Secret has no str"):
        str(Secret("s3cret"))
