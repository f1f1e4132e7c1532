"""`/articles`: writing, finding, changing, favouriting, and the feed."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conduit.env import Env
from core.testing import Client

Join = Callable[[str], Awaitable[dict[str, str]]]
Write = Callable[..., Awaitable[dict[str, Any]]]
NOT_FOUND = {"errors": {"article": ["not found"]}}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_an_article_is_read_as_it_was_written(client: Client[Env], join: Join, write: Write) -> None:
    written = await write(await join("ada"), "How to Count, in 7 Steps!", tagList=["steps", "counting", "steps"])

    read = await client.get(f"/api/articles/{written['slug']}")

    assert await read.json() == {"article": written}
    assert re.fullmatch(r"how-to-count-in-7-steps-[0-9a-f]{8}", written.pop("slug"))
    assert TIME.fullmatch(written.pop("createdAt"))
    assert TIME.fullmatch(written.pop("updatedAt"))
    assert written == {
        "title": "How to Count, in 7 Steps!",
        "description": "What it is about",
        "body": "All of it",
        "tagList": ["counting", "steps"],
        "favorited": False,
        "favoritesCount": 0,
        "author": {"username": "ada", "bio": None, "image": None, "following": False},
    }


@pytest.mark.parametrize("title", ["The same", "feed", "!!!", "日本語"])
async def test_every_article_has_a_slug_of_its_own(client: Client[Env], join: Join, write: Write, title: str) -> None:
    headers = await join("ada")

    one, other = await write(headers, title), await write(headers, title)

    assert one["slug"] != other["slug"]
    for article in (one, other):
        assert (await (await client.get(f"/api/articles/{article['slug']}")).json())["article"] == article


@pytest.mark.parametrize("field", ["title", "description", "body"])
@pytest.mark.parametrize("value", ["", " ", None, 7])
async def test_an_article_has_all_its_parts(client: Client[Env], join: Join, field: str, value: object) -> None:
    article = {"title": "A", "description": "B", "body": "C", field: value}

    response = await client.post("/api/articles", json={"article": article}, headers=await join("ada"))

    assert response.status == 422
    expected = "can't be blank" if isinstance(value, str) else "must be a string"
    assert await response.json() == {"errors": {field: [expected]}}


async def test_tags_are_texts(client: Client[Env], join: Join) -> None:
    article = {"title": "A", "description": "B", "body": "C", "tagList": ["a", 1]}

    response = await client.post("/api/articles", json={"article": article}, headers=await join("ada"))

    assert (response.status, await response.json()) == (422, {"errors": {"tagList": ["must be a string"]}})


async def test_lists_are_filtered_newest_first_and_without_bodies(
    client: Client[Env], join: Join, write: Write
) -> None:
    ada, grace = await join("ada"), await join("grace")
    one = await write(ada, "One", tagList=["odd", "first"])
    two = await write(grace, "Two", tagList=["even"])
    three = await write(ada, "Three", tagList=["odd"])
    await client.post(f"/api/articles/{two['slug']}/favorite", headers=ada)

    async def found(query: str, headers: dict[str, str] | None = None) -> tuple[list[str], int]:
        response = await client.get(f"/api/articles?{query}", headers=headers)
        assert response.status == 200
        answer = await response.json()
        for article in answer["articles"]:
            assert set(article) == set(one) - {"body"}
            assert article["favorited"] is (headers is ada and article["slug"] == two["slug"])
        return [article["title"] for article in answer["articles"]], answer["articlesCount"]

    assert await found("") == (["Three", "Two", "One"], 3)
    assert await found("", ada) == (["Three", "Two", "One"], 3)
    assert await found("limit=1") == (["Three"], 3)
    assert await found("limit=1&offset=1") == (["Two"], 3)
    assert await found("offset=9&limit=1000") == ([], 3)
    assert await found("author=ada") == (["Three", "One"], 2)
    assert await found("tag=odd") == (["Three", "One"], 2)
    assert await found("tag=odd&author=ada&limit=1&offset=1") == (["One"], 2)
    assert await found("favorited=ada", ada) == (["Two"], 1)
    assert await found("favorited=ada&author=ada") == ([], 0)
    assert await found("author=nobody") == ([], 0)
    assert await found("tag=first%25") == ([], 0)
    assert three["slug"] != one["slug"]


async def test_the_feed_is_of_those_who_are_followed(client: Client[Env], join: Join, write: Write) -> None:
    ada, grace, eve = await join("ada"), await join("grace"), await join("eve")
    for number in range(3):
        await write(grace, f"Grace {number}")
    await write(eve)
    await client.post("/api/profiles/grace/follow", headers=ada)

    async def fed(headers: dict[str, str], query: str = "") -> tuple[list[str], int]:
        answer = await (await client.get(f"/api/articles/feed{query}", headers=headers)).json()
        assert all(article["author"]["following"] is True for article in answer["articles"])
        assert all("body" not in article for article in answer["articles"])
        return [article["title"] for article in answer["articles"]], answer["articlesCount"]

    assert await fed(ada) == (["Grace 2", "Grace 1", "Grace 0"], 3)
    assert await fed(ada, "?limit=1&offset=1") == (["Grace 1"], 3)
    assert await fed(eve) == ([], 0)


async def test_favourites_count_each_reader_once(client: Client[Env], join: Join, write: Write) -> None:
    ada, grace = await join("ada"), await join("grace")
    path = f"/api/articles/{(await write(ada))['slug']}/favorite"

    async def answered(method: str, headers: dict[str, str]) -> tuple[bool, int]:
        response = await client.request(method, path, headers=headers)
        assert response.status == 200
        article = (await response.json())["article"]
        return article["favorited"], article["favoritesCount"]

    assert await answered("POST", ada) == (True, 1)
    assert await answered("POST", ada) == (True, 1)
    assert await answered("POST", grace) == (True, 2)
    assert await answered("DELETE", ada) == (False, 1)
    assert await answered("DELETE", ada) == (False, 1)


async def test_a_change_keeps_what_it_does_not_name(client: Client[Env], join: Join, write: Write) -> None:
    ada = await join("ada")
    written = await write(ada, tagList=["kept"])
    path = f"/api/articles/{written['slug']}"

    async def changed(**fields: object) -> dict[str, Any]:
        response = await client.put(path, json={"article": fields}, headers=ada)
        assert response.status == 200
        article: dict[str, Any] = (await response.json())["article"]
        assert article.pop("updatedAt") >= written["updatedAt"]
        return article

    before = {name: value for name, value in written.items() if name != "updatedAt"}
    assert await changed(body="New") == {**before, "body": "New"}
    assert await changed(title=written["title"]) == {**before, "body": "New"}
    assert await changed(tagList=[]) == {**before, "body": "New", "tagList": []}
    renamed = await changed(title="Another title")
    assert renamed["slug"].startswith("another-title-")
    assert (await client.get(path)).status == 404
    assert (await client.get(f"/api/articles/{renamed['slug']}")).status == 200


@pytest.mark.parametrize("field", ["title", "description", "body", "tagList"])
async def test_a_change_to_null_is_refused(client: Client[Env], join: Join, write: Write, field: str) -> None:
    ada = await join("ada")
    path = f"/api/articles/{(await write(ada, tagList=['a']))['slug']}"

    response = await client.put(path, json={"article": {field: None}}, headers=ada)

    assert response.status == 422
    assert list((await response.json())["errors"]) == [field]


async def test_only_its_author_changes_or_deletes_an_article(client: Client[Env], join: Join, write: Write) -> None:
    ada, grace = await join("ada"), await join("grace")
    path = f"/api/articles/{(await write(ada))['slug']}"
    await client.post(f"{path}/favorite", headers=grace)
    await client.post(f"{path}/comments", json={"comment": {"body": "Goes with it"}}, headers=grace)

    for method in ("PUT", "DELETE"):
        refused = await client.request(method, path, json={"article": {"body": "Hijacked"}}, headers=grace)
        assert (refused.status, await refused.json()) == (403, {"errors": {"article": ["forbidden"]}})
    deleted = await client.delete(path, headers=ada)

    assert (deleted.status, await deleted.text()) == (204, "")
    assert await (await client.get(path)).json() == NOT_FOUND


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/favorite"), ("DELETE", "/favorite")]
)
async def test_an_unknown_article_is_a_404(client: Client[Env], join: Join, method: str, path: str) -> None:
    body = None if method == "GET" else '{"article": {"body": "B"}}'

    response = await client.request(method, f"/api/articles/unknown{path}", body=body, headers=await join("ada"))

    assert (response.status, await response.json()) == (404, NOT_FOUND)


async def test_tags_come_by_how_many_articles_have_them(client: Client[Env], join: Join, write: Write) -> None:
    assert await (await client.get("/api/tags")).json() == {"tags": []}
    ada = await join("ada")
    await write(ada, tagList=["b", "common"])
    await write(ada, tagList=["common", "a"])

    assert await (await client.get("/api/tags")).json() == {"tags": ["common", "a", "b"]}
