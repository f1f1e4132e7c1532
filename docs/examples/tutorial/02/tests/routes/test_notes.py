"""`/notes`: what each route answers, and what it leaves behind."""

from core.testing import Client, FakeExecutionContext

from my_notes.env import Env


async def test_a_note_that_was_written_can_be_read(client: Client[Env], ctx: FakeExecutionContext) -> None:
    created = await client.post("/notes", json={"text": "Remember the milk"})

    assert created.status == 201
    assert await created.json() == {"id": 1}
    assert (await (await client.get("/notes/1")).json())["text"] == "Remember the milk"
    assert await (await client.get("/notes")).json() == {"notes": [{"id": 1, "text": "Remember the milk"}]}
    await ctx.drain()


async def test_reading_is_counted(client: Client[Env], ctx: FakeExecutionContext) -> None:
    await client.post("/notes", json={"text": "Remember the milk"})

    for reads in (1, 2):
        note = await (await client.get("/notes/1")).json()
        await ctx.drain()
        assert note["reads"] == reads


async def test_an_unknown_note_is_a_404(client: Client[Env]) -> None:
    response = await client.get("/notes/99", headers={"X-Request-Id": "test"})

    assert response.status == 404
    assert await response.json() == {"error": "Note not found", "requestId": "test"}


async def test_a_note_without_a_text_and_one_that_is_too_long_are_refused(client: Client[Env]) -> None:
    response = await client.post("/notes", json={})

    assert response.status == 422
    assert (await response.json())["issues"] == [{"path": "text", "message": "is required"}]
    assert (await client.post("/notes", json={"text": "x" * 10_001})).status == 422
