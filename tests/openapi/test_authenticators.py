"""The framework's authenticators in an OpenAPI document: the scheme, whether it is required, and the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from core import Request, Response, allow, optional
from core.app import App
from core.middleware.bearer_auth import bearer_auth
from core.middleware.jwt import jwt_auth
from core.openapi.routes import application_facts


def secret(req: Request[Any]) -> str:
    return "s"


TOKEN: dict[str, Any] = {"token": secret}
SECRET: dict[str, Any] = {"secret": secret}


async def own(req: Request[Any]) -> str:
    return "ada"


async def handler(req: Request[Any, Any], res: Response) -> None:
    res.json({})


def step(*authenticators: Any) -> Any:
    app: App[Any] = App()
    router: Any = app
    for authenticator in authenticators:
        router = router.authenticated(authenticator)
    router.get("/", handler)
    return application_facts(app, title="x").routes[0].middleware[-1]


SCHEMES: list[tuple[Any, dict[str, str]]] = [
    (jwt_auth(**SECRET), {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}),
    (jwt_auth(**SECRET, scheme="Token"), {"type": "http", "scheme": "token"}),
    (jwt_auth(**SECRET, cookie="token"), {"type": "apiKey", "in": "cookie", "name": "token"}),
    (bearer_auth(**TOKEN, header="X-API-Key"), {"type": "apiKey", "in": "header", "name": "x-api-key"}),
    (bearer_auth(**TOKEN, scheme=None), {"type": "apiKey", "in": "header", "name": "authorization"}),
]


@pytest.mark.parametrize(("authenticator", "scheme"), SCHEMES)
def test_where_a_token_is_decides_the_scheme(authenticator: Any, scheme: dict[str, str]) -> None:
    found = step(authenticator)
    assert (found.security.scheme, found.optional, found.authenticates) == (scheme, False, True)
    assert step(optional(authenticator)).security.scheme == scheme
    assert step(optional(authenticator)).optional


def test_an_authenticator_of_ones_own_stays_the_function_that_is_followed() -> None:
    found = step(optional(own))
    assert (found.function.name, found.optional) == (f"{__name__}.own", True)


def statuses(found: Any) -> list[int]:
    return [status for answer in found.answers for status in answer.status]


def test_a_guard_answers_403_and_fetched_keys_503() -> None:
    assert statuses(step(own, allow(bool))) == [403]
    assert statuses(step(jwt_auth(jwks="https://a.test/keys"))) == [401, 503]
    assert statuses(step(jwt_auth(keys=[{"kty": "RSA"}]))) == [401]
