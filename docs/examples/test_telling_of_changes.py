"""The example of `docs/how-to/mcp.md`."""

from core.testing import Client, FakeDurableObjectNamespace, env
from telling_of_changes import Env, app, mcp


# --8<-- [start:test]
async def test_a_write_is_told_of() -> None:
    client = Client(app, env(Env))
    assert (await client.put("/notes/1", body="milk")).status == 204
    assert isinstance(client.env.LISTEN, FakeDurableObjectNamespace)
    assert [call.args for call in client.env.LISTEN.calls] == [("/mcp", ["notes://1"], False)]


# --8<-- [end:test]


async def test_it_is_read_anew() -> None:
    client = Client(app, env(Env))
    await client.put("/notes/1", body="bread")
    assert (await client.mcp(mcp).read("notes://1"))["text"] == "bread"
