"""`/users`, `/users/login`, `/user`: signing up and in, and what may be changed."""

from collections.abc import Awaitable, Callable

import pytest

from conduit.env import Env
from core import passwords
from core.testing import Client

Join = Callable[[str], Awaitable[dict[str, str]]]
ADA = {"username": "ada", "email": "ada@example.com", "password": "analytical"}


async def test_who_signs_up_is_signed_in_and_may_sign_in_again(client: Client[Env], env: Env) -> None:
    created = await client.post("/api/users", json={"user": ADA})
    again = await client.post("/api/users/login", json={"user": {**ADA, "username": "not asked for"}})

    assert (created.status, again.status) == (201, 200)
    for response in (created, again):
        user = (await response.json())["user"]
        token = {"Authorization": f"Token {user.pop('token')}"}
        assert user == {"email": "ada@example.com", "username": "ada", "bio": None, "image": None}
        assert (await (await client.get("/api/user", headers=token)).json())["user"]["username"] == "ada"
    assert await passwords.verify("analytical", await env.DB.prepare("SELECT password FROM users").first("password"))


@pytest.mark.parametrize("wrong", [{"password": "differential"}, {"email": "grace@example.com"}])
async def test_wrong_credentials_are_one_answer(client: Client[Env], wrong: dict[str, str]) -> None:
    await client.post("/api/users", json={"user": ADA})

    response = await client.post("/api/users/login", json={"user": ADA | wrong})

    assert (response.status, await response.json()) == (401, {"errors": {"credentials": ["invalid"]}})


@pytest.mark.parametrize("field", ["username", "email"])
async def test_names_and_addresses_are_used_once(client: Client[Env], join: Join, field: str) -> None:
    await join("ada")
    other = {"username": "eve", "email": "eve@example.com", "password": "evaluated", field: ADA[field]}

    response = await client.post("/api/users", json={"user": other})
    changed = await client.put("/api/user", json={"user": {field: ADA[field]}}, headers=await join("grace"))

    taken = {"errors": {field: ["has already been taken"]}}
    assert (response.status, await response.json()) == (409, taken)
    assert (changed.status, await changed.json()) == (409, taken)


@pytest.mark.parametrize("path", ["/api/users", "/api/users/login"])
@pytest.mark.parametrize("field", ["username", "email", "password"])
async def test_nothing_may_be_blank(client: Client[Env], path: str, field: str) -> None:
    if path.endswith("login") and field == "username":
        return
    response = await client.post(path, json={"user": {**ADA, field: ""}})

    assert response.status == 422
    errors = (await response.json())["errors"]
    assert errors[field][0] == "can't be blank"
    assert list(errors) == [field]


async def test_every_mistake_is_told(client: Client[Env]) -> None:
    response = await client.post("/api/users", json={"user": {"username": 7, "password": "short"}})

    assert response.status == 422
    assert await response.json() == {
        "errors": {
            "username": ["must be a string"],
            "email": ["is required"],
            "password": ["is too short (minimum is 8 characters)"],
        }
    }


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"bio": "Counts."}, {"bio": "Counts."}),
        ({"bio": ""}, {"bio": None}),
        ({"bio": None}, {"bio": None}),
        ({"image": "https://example.com/ada.png"}, {"image": "https://example.com/ada.png"}),
        ({"image": ""}, {"image": None}),
        ({"image": None}, {"image": None}),
        ({"username": "lovelace", "email": "a@example.com"}, {"username": "lovelace", "email": "a@example.com"}),
        ({}, {}),
    ],
)
async def test_a_change_is_of_what_is_given_and_nothing_else(
    client: Client[Env], env: Env, join: Join, change: dict[str, object], shown: dict[str, object]
) -> None:
    headers = await join("ada")
    await env.DB.exec("UPDATE users SET bio = 'Before', image = 'before.png'")

    changed = await client.put("/api/user", json={"user": change}, headers=headers)
    kept = await client.get("/api/user", headers=headers)

    before = {"username": "ada", "email": "ada@example.com", "bio": "Before", "image": "before.png"}
    for response in (changed, kept):
        assert response.status == 200
        user = (await response.json())["user"]
        assert {name: user[name] for name in before} == before | shown


@pytest.mark.parametrize("field", ["username", "email", "password"])
@pytest.mark.parametrize("value", ["", None])
async def test_what_everyone_has_cannot_be_emptied(
    client: Client[Env], join: Join, field: str, value: str | None
) -> None:
    response = await client.put("/api/user", json={"user": {field: value}}, headers=await join("ada"))

    assert response.status == 422
    assert list((await response.json())["errors"]) == [field]


async def test_a_new_password_has_eight_characters_at_least_and_replaces_the_old(client: Client[Env]) -> None:
    created = await (await client.post("/api/users", json={"user": ADA})).json()
    headers = {"Authorization": f"Token {created['user']['token']}"}

    short = await client.put("/api/user", json={"user": {"password": "short7c"}}, headers=headers)
    changed = await client.put("/api/user", json={"user": {"password": "a" * 64}}, headers=headers)

    assert (short.status, changed.status) == (422, 200)
    assert (await client.post("/api/users/login", json={"user": ADA})).status == 401
    assert (await client.post("/api/users/login", json={"user": {**ADA, "password": "a" * 64}})).status == 200
