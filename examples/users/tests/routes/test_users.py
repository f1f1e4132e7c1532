"""`/users`: what each route answers, to whom, and what it leaves behind."""

from collections.abc import Callable

import pytest

from core.testing import Client, FakeExecutionContext
from users_api.env import Env

Token = Callable[..., dict[str, str]]
ADA = {"name": "Ada", "email": "ada@example.com"}


async def test_the_list_begins_empty_with_page_one(client: Client[Env]) -> None:
    response = await client.get("/users")

    assert response.status == 200
    assert await response.json() == {"page": 1, "results": []}


async def test_the_list_is_paged(client: Client[Env], ctx: FakeExecutionContext) -> None:
    for number in range(5):
        await client.post("/users", json={"name": f"User {number}", "email": f"{number}@example.com"})

    page = await (await client.get("/users?page=2&limit=2")).json()

    assert page["page"] == 2
    assert [user["name"] for user in page["results"]] == ["User 2", "User 3"]
    await ctx.drain()


async def test_a_page_beyond_the_last_one_is_the_last_one(client: Client[Env]) -> None:
    response = await client.get(f"/users?page={2**53 - 1}")

    assert response.status == 200
    assert await response.json() == {"page": 1_000_000, "results": []}


async def test_a_page_that_no_client_can_count_to_is_told_where(client: Client[Env]) -> None:
    response = await client.get("/users?page=195484964315301899700556267500")

    assert response.status == 422
    assert (await response.json())["issues"][0]["path"] == "page"


async def test_a_page_that_is_no_number_is_told_where(client: Client[Env]) -> None:
    response = await client.get("/users?page=two")

    assert response.status == 422
    assert (await response.json())["issues"][0]["path"] == "page"


async def test_a_created_user_can_be_read(client: Client[Env], ctx: FakeExecutionContext) -> None:
    created = await client.post("/users", json=ADA)

    assert created.status == 201
    assert await created.json() == {"id": 1}
    assert await (await client.get("/users/1")).json() == {"id": 1, **ADA}
    await ctx.drain()


async def test_creating_a_user_leaves_an_event_in_the_background(
    client: Client[Env], env: Env, ctx: FakeExecutionContext
) -> None:
    await client.post("/users", json=ADA, headers={"X-Request-Id": "test-1"})
    await ctx.drain()

    event = await env.DB.prepare("SELECT kind, user_id, request_id FROM events").first()

    assert event == {"kind": "created", "user_id": 1, "request_id": "test-1"}


async def test_an_address_is_used_once(client: Client[Env], ctx: FakeExecutionContext) -> None:
    await client.post("/users", json=ADA)

    response = await client.post("/users", json=ADA)

    assert response.status == 409
    assert (await response.json())["issues"] == [{"path": "email", "message": "is already taken"}]
    await ctx.drain()


async def test_every_mistake_of_a_body_is_told(client: Client[Env], ctx: FakeExecutionContext) -> None:
    response = await client.post("/users", json={"name": 1})

    assert response.status == 422
    assert [issue["path"] for issue in (await response.json())["issues"]] == ["name", "email"]
    await ctx.drain()


async def test_the_eleventh_sign_up_in_a_minute_is_told_when_to_return(
    client: Client[Env], ctx: FakeExecutionContext
) -> None:
    for number in range(10):
        await client.post("/users", json={"name": "Many", "email": f"many-{number}@example.com"})
        await ctx.drain()

    response = await client.post("/users", json=ADA)

    assert response.status == 429
    assert int(response.headers["Retry-After"]) >= 1
    assert (await response.json())["error"] == "Too Many Requests"


async def test_an_unknown_user_is_a_404_with_the_requests_id(client: Client[Env]) -> None:
    response = await client.get("/users/99", headers={"X-Request-Id": "test-2"})

    assert response.status == 404
    assert await response.json() == {"error": "User not found", "requestId": "test-2"}


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_changing_needs_a_token(client: Client[Env], method: str) -> None:
    response = await client.request(method, "/users/1", json={}, headers={"X-Request-Id": "t"})

    assert response.status == 401
    assert await response.json() == {"error": "Unauthorized", "requestId": "t"}
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "spoiled", [{"secret": "another-secret-that-is-long-enough-too"}, {"hours": -1}], ids=["wrong secret", "expired"]
)
async def test_a_bad_token_is_as_good_as_none(client: Client[Env], token: Token, spoiled: dict[str, object]) -> None:
    response = await client.put("/users/1", json={}, headers=token(**spoiled))

    assert response.status == 401
    assert (await response.json())["error"] == "Unauthorized"


async def test_a_malformed_token_is_as_good_as_none(client: Client[Env]) -> None:
    response = await client.put("/users/1", json={}, headers={"Authorization": "Bearer not-a-token"})

    assert response.status == 401


async def test_a_signed_in_user_changes_what_was_given_and_nothing_else(
    client: Client[Env], ctx: FakeExecutionContext, token: Token
) -> None:
    await client.post("/users", json=ADA)

    response = await client.put("/users/1", json={"name": "Countess Ada"}, headers=token())

    assert await response.json() == {"ok": True}
    assert await (await client.get("/users/1")).json() == {"id": 1, "name": "Countess Ada", "email": ADA["email"]}
    await ctx.drain()


async def test_an_address_that_somebody_else_has_is_refused_in_a_change_too(
    client: Client[Env], ctx: FakeExecutionContext, token: Token
) -> None:
    await client.post("/users", json=ADA)
    await client.post("/users", json={"name": "Grace", "email": "grace@example.com"})

    response = await client.put("/users/2", json={"email": ADA["email"]}, headers=token())

    assert response.status == 409
    await ctx.drain()


async def test_only_administrators_delete(client: Client[Env], ctx: FakeExecutionContext, token: Token) -> None:
    await client.post("/users", json=ADA)

    refused = await client.delete("/users/1", headers={**token(), "X-Request-Id": "t"})
    deleted = await client.delete("/users/1", headers=token(is_admin=True))

    assert refused.status == 403
    assert await refused.json() == {"error": "Forbidden", "code": "INSUFFICIENT_PERMISSIONS", "requestId": "t"}
    assert deleted.status == 204
    assert await deleted.text() == ""
    assert (await client.get("/users/1")).status == 404
    await ctx.drain()
