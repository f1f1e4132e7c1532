"""`/notes`: what each route answers, and to whom."""

from core.testing import Client, FakeExecutionContext
from my_notes.env import Env


async def test_a_note_that_was_written_can_be_read(ada: Client[Env], ctx: FakeExecutionContext) -> None:
    created = await ada.post("/notes", json={"text": "Remember the milk"})

    assert created.status == 201
    assert await created.json() == {"id": 1}
    assert (await (await ada.get("/notes/1")).json())["text"] == "Remember the milk"
    assert [note["id"] for note in (await (await ada.get("/notes")).json())["notes"]] == [1]
    await ctx.drain()


async def test_reading_is_counted(ada: Client[Env], ctx: FakeExecutionContext) -> None:
    await ada.post("/notes", json={"text": "Remember the milk"})

    for reads in (1, 2):
        note = await (await ada.get("/notes/1")).json()
        await ctx.drain()
        assert note["reads"] == reads


async def test_notes_are_their_owner_s_alone(client: Client[Env], ada: Client[Env], bob: Client[Env]) -> None:
    await ada.post("/notes", json={"text": "A secret"})

    assert (await client.get("/notes")).status == 401
    assert (await bob.get("/notes/1")).status == 404
    assert await (await bob.get("/notes")).json() == {"notes": []}


async def test_an_unknown_note_is_a_404(ada: Client[Env]) -> None:
    response = await ada.get("/notes/99", headers={"X-Request-Id": "test"})

    assert response.status == 404
    assert await response.json() == {"error": "Note not found", "requestId": "test"}


async def test_a_note_without_a_text_and_one_that_is_too_long_are_refused(ada: Client[Env]) -> None:
    response = await ada.post("/notes", json={})

    assert response.status == 422
    assert (await response.json())["issues"] == [{"path": "text", "message": "is required"}]
    assert (await ada.post("/notes", json={"text": "x" * 10_001})).status == 422
