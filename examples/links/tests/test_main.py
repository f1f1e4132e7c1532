"""The application as a whole: files, headers, and what visitors are told of a failure."""

import attrs

from core.testing import Client, FakeD1Database
from links.env import Env
from links.main import app


async def test_files_are_served_to_everyone(visitor: Client[Env]) -> None:
    response = await visitor.get("/static/links.css")

    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/css")


async def test_a_page_loads_nothing_of_other_sites_and_is_in_no_frame(visitor: Client[Env]) -> None:
    response = await visitor.get("/")

    assert response.headers["Content-Security-Policy"] == "default-src 'self'"
    assert response.headers["X-Frame-Options"] == "DENY"


async def test_who_is_not_signed_in_gets_the_form(visitor: Client[Env]) -> None:
    response = await visitor.get("/links/tea")

    assert response.status == 401
    assert "Sign in" in await response.text()


async def test_a_failure_tells_a_visitor_nothing(env: Env) -> None:
    client = Client(app, attrs.evolve(env, DB=FakeD1Database()))  # without migrations: there is no table

    response = await client.get("/tea")

    assert response.status == 500
    assert "<h1>Something went wrong</h1>" in await response.text()
