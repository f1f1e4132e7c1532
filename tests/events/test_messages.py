"""A consumer's annotation decides what the bodies of its batch become."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest
from typing_extensions import TypedDict

from core import create_app
from core.backends.embedded.queue import Delivery
from core.bindings.queue import MessageBatch
from core.errors import RegistrationError
from core.testing import FakeExecutionContext
from core.validation.mistakes import StructureError

if TYPE_CHECKING:
    from datetime import date as only_for_checkers


@attrs.frozen
class Job:
    text: str


class Note(TypedDict):
    text: str


def batch_of(*bodies: Any) -> Delivery[Any]:
    batch = Delivery[Any]("jobs")
    for number, body in enumerate(bodies):
        batch.add(str(number), datetime(2026, 1, 1, tzinfo=UTC), body)
    return batch


async def test_a_consumer_of_jobs_gets_jobs_and_everything_else_as_it_is() -> None:
    app = create_app()
    seen: list[Any] = []

    @app.queue("jobs")
    async def work(batch: MessageBatch[Job], env: object, ctx: object) -> None:
        for message in batch.messages:
            seen.append((message.id, message.body, message.attempts))
            message.ack()
        batch.retry_all()

    batch = batch_of({"text": "one"}, Job("two"))
    await app.consume(batch, None, FakeExecutionContext())

    assert seen == [("0", Job("one"), 1), ("1", Job("two"), 1)]
    assert batch.acked == {"0", "1"}
    assert batch.all_retried


async def test_a_body_of_another_shape_fails_by_itself() -> None:
    app = create_app()
    seen: list[str] = []

    @app.queue("jobs")
    async def work(batch: MessageBatch[Job], env: object, ctx: object) -> None:
        for message in batch.messages:
            try:
                seen.append(message.body.text)
            except StructureError as error:
                seen.append(str(error.issues[0]["path"]))

    await app.consume(batch_of({"text": 5}, {"text": "fine"}), None, FakeExecutionContext())

    assert seen == ["text", "fine"]


async def test_a_consumer_that_says_nothing_gets_what_was_sent() -> None:
    app = create_app()
    seen: list[Any] = []

    @app.queue("jobs")
    async def work(batch, env, ctx) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  # that is the point
        seen.extend(message.body for message in cast("MessageBatch[Any]", batch).messages)

    await app.consume(batch_of({"text": 5}, "text", None), None, FakeExecutionContext())

    assert seen == [{"text": 5}, "text", None]


async def test_a_typed_dict_is_read_as_one() -> None:
    app = create_app()
    seen: list[Any] = []

    @app.queue("jobs")
    async def work(batch: MessageBatch[Note], env: object, ctx: object) -> None:
        for message in batch.messages:
            try:
                seen.append(message.body["text"])
            except StructureError as error:
                seen.append(error.issues[0]["path"])

    await app.consume(batch_of({"text": "one"}, {"text": 5}), None, FakeExecutionContext())

    assert seen == ["one", "text"]


async def test_a_method_and_a_union_work_too() -> None:
    app = create_app()
    seen: list[Any] = []

    class Worker:
        async def work(self, batch: MessageBatch[Job | str], env: object, ctx: object) -> None:
            seen.extend(message.body for message in batch.messages)

    app.queue("jobs")(Worker().work)
    await app.consume(batch_of({"text": "one"}, "two"), None, FakeExecutionContext())

    assert seen == [Job("one"), "two"]


async def test_an_annotation_that_only_a_checker_knows_is_told_with_the_way_out() -> None:
    app = create_app()

    @app.queue("jobs")
    async def work(batch: MessageBatch[only_for_checkers], env: object, ctx: object) -> None: ...

    with pytest.raises(RegistrationError, match="outside `if TYPE_CHECKING:`"):
        await app.consume(batch_of(1), None, FakeExecutionContext())
