"""`/accounts`: who gets a token, and who does not."""

from core.testing import Client
from my_notes.env import Env

ADA = {"email": "ada@example.com", "password": "analytical"}


async def test_who_has_signed_up_can_sign_in(client: Client[Env]) -> None:
    assert (await client.post("/accounts", json=ADA)).status == 201

    response = await client.post("/accounts/sign-in", json=ADA)

    assert response.status == 200
    token = (await response.json())["token"]
    assert (await client.get("/notes", headers={"Authorization": f"Bearer {token}"})).status == 200


async def test_one_account_for_each_address(client: Client[Env]) -> None:
    await client.post("/accounts", json=ADA)

    again = await client.post("/accounts", json=ADA)

    assert again.status == 409
    assert (await again.json())["issues"] == [{"path": "email", "message": "has an account"}]


async def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(client: Client[Env]) -> None:
    await client.post("/accounts", json=ADA)

    for wrong in (ADA | {"password": "something else"}, ADA | {"email": "eve@example.com"}):
        response = await client.post("/accounts/sign-in", json=wrong)
        assert (response.status, (await response.json())["error"]) == (401, "Wrong address or password")
