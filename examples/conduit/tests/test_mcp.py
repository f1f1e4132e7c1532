"""`/mcp`: the routes as tools for models, with the rights of whoever calls."""

import json
from collections.abc import Awaitable, Callable

import pytest

from conduit.env import Env
from core.mcp import ToolError
from core.testing import Client

Join = Callable[[str], Awaitable[dict[str, str]]]
ARTICLE = {"title": "A title", "description": "What it is about", "body": "All of it"}


async def test_a_model_writes_an_article_and_comments_on_it(client: Client[Env], join: Join) -> None:
    client.headers.update(await join("ada"))
    tools = client.mcp()

    answered = await tools.call_by_name("create_article", ARTICLE)
    slug = json.loads(answered["content"][0]["text"])["article"]["slug"]
    await tools.call_by_name("create_comment", {"slug": slug, "body": "First"})
    found = await tools.call_by_name("list_comments", {"slug": slug})

    assert [one["body"] for one in json.loads(found["content"][0]["text"])["comments"]] == ["First"]
    with pytest.raises(ToolError, match=r'{"errors":{"title":\["can.t be blank"\]}}'):
        await tools.call_by_name("create_article", {**ARTICLE, "title": " "})


async def test_who_is_not_signed_in_sees_what_everyone_may(client: Client[Env]) -> None:
    assert list(await client.mcp().tools()) == [
        "list_articles",
        "get_profile",
        "get_article",
        "list_comments",
        "list_tags",
    ]
