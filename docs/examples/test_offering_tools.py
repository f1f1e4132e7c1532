"""The example of `docs/how-to/mcp.md`."""

import pytest

from core.mcp import ToolError
from core.testing import Client, env
from offering_tools import Env, Note, app, count, delete_note, import_notes, mcp, note, private


# --8<-- [start:test]
async def test_a_model_is_told_which_note_is_missing() -> None:
    tools = Client(app, env(Env)).mcp(mcp)
    assert await tools.call(import_notes, ["milk", "bread"]) == 2
    assert await tools.call(note, id=2) == Note(2, "bread")
    with pytest.raises(ToolError, match="There is no note 9"):
        await tools.call(note, id=9)


async def test_a_note_is_deleted_once_a_person_agrees() -> None:
    client = Client(app, env(Env))
    await client.env.NOTES.put_json("1", Note(1, "milk"))
    assert await client.mcp(mcp, answer=lambda message, schema: None).call(delete_note, id=1) == "Nothing was deleted"
    assert (
        await client.mcp(mcp, answer=lambda message, schema: {"sure": True}).call(delete_note, id=1)
        == "Note 1 is deleted"
    )


# --8<-- [end:test]


async def test_a_route_is_a_tool_and_a_resource_is_read() -> None:
    client = Client(app, env(Env))
    tools = client.mcp(mcp)
    await tools.call(import_notes, ["milk"])
    assert (await tools.call_by_name("list_notes", {}))["content"][0]["text"] == '{"ids":[1]}'
    assert (await tools.read("notes://1"))["text"] == '{"id":1,"title":"milk"}'
    assert (await tools.prompt("summarise", style="short"))[0]["content"]["text"].startswith("Write a short")
    response = await client.put("/notes/7", json={"id": 7, "title": "butter"})
    assert response.status == 200


async def test_only_an_admin_counts() -> None:
    client = Client(app, env(Env))
    assert await client.mcp(private, user="ada").call(count) == 0
    response = await client.post("/admin/mcp", json={})
    assert response.status == 401
    assert 'resource_metadata="https://example.test/.well-known/oauth-protected-resource/admin/mcp"' in str(
        response.headers["WWW-Authenticate"]
    )
    metadata = await (await client.get("/.well-known/oauth-protected-resource/admin/mcp")).json()
    assert metadata["resource"] == "https://example.test/admin/mcp"
