"""Signed cookies: what comes back is what was set, under its own name, by one of the secrets; and deleting them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import App, Request, Response, Secret, http
from core.signing import sign, unsign
from core.testing import Client

NEW, OLD = "a new secret", "an old secret"


def cookie_of(name: str, value: str, **attributes: Any) -> str:
    response = Response().cookie(name, value, **attributes).send()
    (text,) = response.to_http().headers.get_set_cookie()
    return text.partition(";")[0]


def read(cookie: str, name: str, secret: Any) -> str | None:
    message = http.Request("https://example.test/", headers={"Cookie": cookie})
    return Request(message, None, None).signed_cookie(name, secret)  # type: ignore[arg-type]  # no context is touched


@given(st.text(max_size=200))
def test_any_value_comes_back(value: str) -> None:
    assert read(cookie_of("cart", value, secret=NEW), "cart", Secret(NEW)) == value.encode("utf-8", "replace").decode()


def test_each_of_several_secrets_reads_and_the_first_signs() -> None:
    old, new = (cookie_of("cart", "7", secret=secret) for secret in (OLD, [NEW, OLD]))
    assert [read(cookie, "cart", [NEW, OLD]) for cookie in (old, new)] == ["7", "7"]
    assert [read(cookie, "cart", [NEW, None]) for cookie in (old, new)] == [None, "7"]


@pytest.mark.parametrize("value", ["7", "7.", ".7", "8.{}", "7.{}x", "7.é", "", "7.." + "A" * 43])
def test_a_value_that_was_not_signed_here_is_none(value: str) -> None:
    right = cookie_of("cart", "7", secret=NEW).partition("=")[2].rpartition(".")[2]
    assert read(f"cart={value.format(right)}", "cart", NEW) is None
    assert read("", "cart", NEW) is None


def test_a_signed_value_is_good_for_its_own_name_alone() -> None:
    value = cookie_of("role", "admin", secret=NEW).partition("=")[2]
    assert read(f"user={value}", "user", NEW) is None
    assert unsign("session", sign("cookie role", "admin", [b"x"]), [b"x"]) is None


@pytest.mark.parametrize("secret", ["", " ", Secret(""), [], [None, OLD], [NEW, ""]])
def test_an_empty_secret_is_refused_before_anything_is_signed_or_read(secret: Any) -> None:
    with pytest.raises(ValueError, match="a secret is empty or missing"):
        cookie_of("cart", "7", secret=secret)
    with pytest.raises(ValueError, match="a secret is empty or missing"):
        read("", "cart", secret)
    with pytest.raises(TypeError, match="a secret is a str, bytes or Secret, or a list of them, not int"):
        cookie_of("cart", "7", secret=7)


async def test_a_cookie_is_deleted_with_the_attributes_it_was_set_with() -> None:
    attributes: dict[str, Any] = {"secure": True, "http_only": True, "same_site": "None", "partitioned": True}
    app = App()

    @app.get("/")
    async def leave(req: Request, res: Response) -> None:
        res.delete_cookie("__Host-a", **attributes).delete_cookie("b", path="/x", domain="example.test").send()

    headers = (await Client(app, None).get("/")).headers
    assert headers.get_set_cookie() == [
        "__Host-a=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=None; Partitioned",
        "b=; Max-Age=0; Domain=example.test; Path=/x",
    ]
