"""The queue: what is sent, and what becomes of it."""

import pytest
from core import D1Error, ExecutionContext
from core.testing import Client, FakeD1Database, FakeQueue
from core.testing.queue import message_batch

from my_notes.env import Env
from my_notes.events import NoteWritten
from my_notes.main import app


async def test_a_new_note_is_sent_to_the_queue(ada: Client[Env]) -> None:
    await ada.post("/notes", json={"text": "Remember the milk"})

    written = ada.env.WRITTEN
    assert isinstance(written, FakeQueue)
    assert written.sent == [NoteWritten(note_id=1)]


async def test_its_words_are_counted(ada: Client[Env], ctx: ExecutionContext) -> None:
    await ada.post("/notes", json={"text": "Remember the milk"})

    await app.consume(message_batch("my-notes-written", [NoteWritten(note_id=1)]), ada.env, ctx)

    (note,) = (await (await ada.get("/notes")).json())["notes"]
    assert note == {"id": 1, "text": "Remember the milk", "words": 3}


async def test_a_message_comes_again_when_the_database_fails(env: Env, ctx: ExecutionContext) -> None:
    assert isinstance(env.DB, FakeD1Database)
    env.DB.fail_next(D1Error("D1_ERROR: Network connection lost."))
    batch = message_batch("my-notes-written", [NoteWritten(note_id=1)])

    with pytest.raises(D1Error):
        await app.consume(batch, env, ctx)

    assert not batch.acked
