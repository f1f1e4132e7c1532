"""Sign up, sign in, sign out, and what a cookie opens."""

import pytest

from core import http
from core.testing import Client, FakeClock
from links.env import Env

ADA = {"email": "ada@example.com", "password": "analytical"}


def form(**fields: str) -> http.URLSearchParams:
    return http.URLSearchParams(fields)


async def test_who_signs_up_is_signed_in_and_may_come_back(visitor: Client[Env]) -> None:
    signed_up = await visitor.post("/accounts/sign-up", body=form(**ADA))
    assert (signed_up.status, signed_up.headers["Location"]) == (303, "/")
    assert "Your links" in await (await visitor.get("/")).text()
    assert (await visitor.post("/accounts/sign-up", body=form(**ADA))).status == 409

    assert (await visitor.post("/accounts/sign-out")).status == 303
    assert "Sign in" in await (await visitor.get("/")).text()

    assert (await visitor.post("/accounts/sign-in", body=form(**{**ADA, "password": "differential"}))).status == 403
    assert (await visitor.post("/accounts/sign-in", body=form(**ADA))).status == 303
    assert "Your links" in await (await visitor.get("/")).text()


async def test_the_cookie_is_out_of_reach_of_scripts_other_sites_and_eavesdroppers(visitor: Client[Env]) -> None:
    response = await visitor.post("/accounts/sign-up", body=form(**ADA))

    (cookie,) = response.headers.get_set_cookie()
    assert {"HttpOnly", "Secure", "SameSite=Lax"} < set(cookie.split("; "))


@pytest.mark.parametrize("wrong", [{"email": "ada"}, {"password": "short"}])
async def test_what_cannot_be_an_account_is_told(visitor: Client[Env], wrong: dict[str, str]) -> None:
    response = await visitor.post("/accounts/sign-up", body=form(**{**ADA, **wrong}))

    assert response.status == 422
    assert f"<li>{next(iter(wrong))}: " in await response.text()


async def test_an_expired_token_leads_to_the_form_and_is_forgotten(ada: Client[Env], clock: FakeClock) -> None:
    await clock.advance(3601)

    response = await ada.get("/")

    assert response.status == 401
    assert "Sign in" in await response.text()
    assert ada.cookies == {}
    assert (await ada.get("/")).status == 200


async def test_a_form_of_another_site_does_nothing(ada: Client[Env]) -> None:
    from_elsewhere = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.test"}

    response = await ada.post("/links", body=form(url="https://evil.test", slug="tea"), headers=from_elsewhere)

    assert response.status == 403
    assert (await ada.get("/links/tea")).status == 404
