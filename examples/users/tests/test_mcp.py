"""`/mcp`: the routes as tools for models, with the rights of whoever calls."""

from collections.abc import Callable

import pytest

from core.mcp import ToolError
from core.testing import Client, FakeExecutionContext
from users_api.env import Env

Token = Callable[..., dict[str, str]]
ADA = {"name": "Ada", "email": "ada@example.com"}


async def test_a_model_signs_a_user_up_and_finds_her(client: Client[Env], ctx: FakeExecutionContext) -> None:
    tools = client.mcp()

    await tools.call_by_name("create_user", ADA)

    assert (await tools.call_by_name("get_user", {"id": "1"}))["structuredContent"] == {"id": 1, **ADA}
    with pytest.raises(ToolError, match="User not found"):
        await tools.call_by_name("get_user", {"id": "2"})
    await ctx.drain()


async def test_each_caller_sees_the_tools_that_the_routes_allow(client: Client[Env], token: Token) -> None:
    everyone = ["list_users", "get_user", "create_user"]
    assert list(await client.mcp().tools()) == everyone

    client.headers.update(token())
    assert list(await client.mcp().tools()) == [*everyone, "update_user"]

    client.headers.update(token(is_admin=True))
    assert list(await client.mcp().tools()) == [*everyone, "update_user", "delete_user"]
