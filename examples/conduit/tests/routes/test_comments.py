"""`/articles/:slug/comments`: writing, reading and deleting them."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conduit.env import Env
from core.testing import Client

Join = Callable[[str], Awaitable[dict[str, str]]]
Write = Callable[..., Awaitable[dict[str, Any]]]


async def test_comments_are_read_in_the_order_they_were_written(client: Client[Env], join: Join, write: Write) -> None:
    ada, grace = await join("ada"), await join("grace")
    path = f"/api/articles/{(await write(ada))['slug']}/comments"
    written = [
        await client.post(path, json={"comment": {"body": body}}, headers=headers)
        for body, headers in (("First", ada), ("Second", grace))
    ]
    await client.post("/api/profiles/grace/follow", headers=ada)

    comments = (await (await client.get(path, headers=ada)).json())["comments"]

    assert [response.status for response in written] == [201, 201]
    assert comments[0] == (await written[0].json())["comment"]
    assert [comment["author"]["following"] for comment in comments] == [False, True]
    assert [comment["author"]["following"] for comment in (await (await client.get(path)).json())["comments"]] == [
        False,
        False,
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", comments[1].pop("createdAt"))
    assert comments[1].pop("updatedAt")
    assert comments[1] == {
        "id": 2,
        "body": "Second",
        "author": {"username": "grace", "bio": None, "image": None, "following": True},
    }


async def test_only_who_wrote_a_comment_deletes_it(client: Client[Env], join: Join, write: Write) -> None:
    ada, grace = await join("ada"), await join("grace")
    path = f"/api/articles/{(await write(ada))['slug']}/comments"
    other = f"/api/articles/{(await write(grace))['slug']}/comments"
    for body in ("First", "Second"):
        await client.post(path, json={"comment": {"body": body}}, headers=grace)

    refused = await client.delete(f"{path}/1", headers=ada)
    elsewhere = await client.delete(f"{other}/1", headers=grace)
    deleted = await client.delete(f"{path}/1", headers=grace)

    assert (refused.status, await refused.json()) == (403, {"errors": {"comment": ["forbidden"]}})
    assert elsewhere.status == 404
    assert (deleted.status, await deleted.text()) == (204, "")
    assert [comment["id"] for comment in (await (await client.get(path)).json())["comments"]] == [2]


@pytest.mark.parametrize("number", ["99999", "first", "1.5"])
async def test_an_unknown_comment_is_a_404(client: Client[Env], join: Join, write: Write, number: str) -> None:
    ada = await join("ada")

    response = await client.delete(f"/api/articles/{(await write(ada))['slug']}/comments/{number}", headers=ada)

    assert (response.status, await response.json()) == (404, {"errors": {"comment": ["not found"]}})


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("DELETE", "/1")])
async def test_comments_of_an_unknown_article_are_a_404(
    client: Client[Env], join: Join, method: str, path: str
) -> None:
    body = None if method == "GET" else '{"comment": {"body": "B"}}'

    response = await client.request(
        method, f"/api/articles/unknown/comments{path}", body=body, headers=await join("ada")
    )

    assert (response.status, await response.json()) == (404, {"errors": {"article": ["not found"]}})


async def test_a_comment_says_something(client: Client[Env], join: Join, write: Write) -> None:
    ada = await join("ada")
    path = f"/api/articles/{(await write(ada))['slug']}/comments"

    response = await client.post(path, json={"comment": {"body": ""}}, headers=ada)

    assert (response.status, await response.json()) == (422, {"errors": {"body": ["can't be blank"]}})
