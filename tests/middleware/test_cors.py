"""`cors`: who may read, what a preflight is told, and that caches keep origins apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from core import http
from core.app import App
from core.errors import CoreError, OptionError, OrderError
from core.middleware.basic_auth import basic_auth
from core.middleware.cors import cors
from core.middleware.jwt import jwt_auth
from core.middleware.optional import optional
from core.middleware.secure_headers import secure_hdrs
from core.request import Request
from core.response import Response
from core.testing import Client
from core.types import Next

A = "https://a.test"


@attrs.frozen
class Env:
    ALLOWED_ORIGINS: str = "https://a.test,https://b.test"


def client_with(*middleware: Any, env: Env | None = None) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.json({})

    @app.get("/vary")
    async def vary(req: Request[Any], res: Response) -> None:
        res.header("Vary", "Accept").json({})

    @app.get("/star")
    async def star(req: Request[Any], res: Response) -> None:
        res.header("Vary", "*").json({})

    @app.get("/fails")
    async def fail(req: Request[Any], res: Response) -> None:
        raise CoreError(400, "Bad")

    @app.options("/")
    async def options(req: Request[Any], res: Response) -> None:
        res.text("the route's own")

    return Client(app, env or Env())


TOKEN: Any = jwt_auth(secret=lambda req: "of no account")
TOO_LATE = (
    r"jwt_auth\(\) is registered before cors\(\) on / and refuses the preflights that cors\(\) answers, which bring no token. "
    r"Register cors\(\) first"
)


def test_cors_behind_an_authenticator_of_tokens_would_never_see_a_preflight() -> None:
    for share in (cors(origins=[A]), cors(origins=lambda req: [A])):
        with pytest.raises(OrderError, match=TOO_LATE):
            App[Any]().use(TOKEN, share)
        with pytest.raises(OrderError, match=TOO_LATE):
            App[Any]().authenticated(TOKEN).use(share)


@pytest.mark.parametrize(
    "steps",
    [
        [cors(origins=[A]), TOKEN, cors(origins=["https://b.test"])],
        # A request that brings a cookie, or a password that the browser knows, may come without a preflight.
        [jwt_auth(secret=lambda req: "of no account", cookie="session"), cors(origins=[A])],
        [basic_auth(username="ada", password=lambda req: "of no account"), cors(origins=[A])],
        [optional(TOKEN), cors(origins=[A])],
    ],
)
def test_and_behind_others_it_may_stand(steps: list[Any]) -> None:
    App[Any]().use(*steps)


async def get(client: Client[Any], origin: str | None, path: str = "/") -> http.Response:
    return await client.get(path, headers={} if origin is None else {"Origin": origin})


async def preflight(
    client: Client[Any], origin: str | None = A, method: str = "PUT", headers: Mapping[str, str] | None = None
) -> http.Response:
    sent = {"Access-Control-Request-Method": method, **(headers or {})}
    if origin is not None:
        sent["Origin"] = origin
    return await client.options("/", headers=sent)


def told(response: http.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def by_function(req: Request[Env]) -> list[str]:
    return req.env.ALLOWED_ORIGINS.split(",")


async def by_async_function(req: Request[Env]) -> list[str]:
    return req.env.ALLOWED_ORIGINS.split(",")


def by_predicate(origin: str, req: Request[Env]) -> bool:
    return origin in req.env.ALLOWED_ORIGINS.split(",")


async def by_async_predicate(origin: str, req: Request[Env]) -> bool:
    return origin in req.env.ALLOWED_ORIGINS.split(",")


def by_origin(origin: str) -> bool:
    return origin in (A, "https://b.test")


def by_answer(req: Request[Env]) -> bool:
    return req.header("origin") in (A, "https://b.test")


EVERY_WAY: list[Any] = [
    by_function,
    by_async_function,
    by_predicate,
    by_async_predicate,
    by_origin,
    by_answer,
    [A, "https://b.test"],
    (A, "https://b.test"),
]


@pytest.mark.parametrize("origins", EVERY_WAY)
async def test_origins_is_a_function_of_the_request_or_a_list_or_a_predicate_sync_or_async(origins: Any) -> None:
    client = client_with(cors(origins=origins))
    for origin in (A, "https://b.test"):
        response = await get(client, origin)
        assert told(response) == {"access-control-allow-origin": origin}
        assert response.headers["vary"] == "Origin"
    refused = await get(client, "https://c.test")
    assert (refused.status, told(refused), refused.headers["vary"]) == (200, {}, "Origin")


async def test_a_star_allows_everyone_and_depends_on_nobody() -> None:
    client = client_with(cors(origins="*"))
    for origin in (A, "null", None):
        response = await get(client, origin)
        assert told(response) == {"access-control-allow-origin": "*"}
        assert "vary" not in response.headers


@pytest.mark.parametrize("origins", ["*", ["*"], [A, "*"]])
def test_a_star_with_credentials_is_an_error_at_registration(origins: Any) -> None:
    with pytest.raises(OptionError, match="credentials"):
        cors(origins=origins, credentials=True)


async def test_a_function_that_gives_a_star_with_credentials_is_a_500_that_the_log_explains(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = client_with(cors(origins=lambda req: "*", credentials=True))
    response = await get(client, A)
    assert (response.status, told(response)) == (500, {})
    assert "would let every site act as its visitor" in caplog.text


@pytest.mark.parametrize("path", ["/", "/fails", "/nowhere"])
@pytest.mark.parametrize("origin", [None, A, "https://c.test"])
async def test_vary_origin_is_on_every_response_whose_answer_depends_on_the_origin(origin: Any, path: str) -> None:
    assert (await get(client_with(cors(origins=[A])), origin, path)).headers["vary"] == "Origin"


async def test_vary_is_appended_once_and_never_overwrites() -> None:
    client = client_with(cors(origins=[A]), cors(origins=[A]))
    assert (await get(client, A)).headers["vary"] == "Origin"
    assert (await get(client, A, "/vary")).headers["vary"] == "Accept, Origin"
    assert (await get(client, A, "/star")).headers["vary"] == "*"


async def test_vary_survives_an_error_handler_that_sets_its_own() -> None:
    client = client_with(cors(origins=[A]))

    @client.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        res.status(400).header("Vary", "Accept-Language").json({})

    assert (await get(client, A, "/fails")).headers["vary"] == "Accept-Language, Origin"


async def test_an_error_carries_the_headers_too() -> None:
    assert told(await get(client_with(cors(origins=[A])), A, "/fails")) == {"access-control-allow-origin": A}


async def test_a_refused_origin_gets_no_access_control_header_at_all() -> None:
    refuse = cors(origins=[A], credentials=True, expose_headers=["X-A"], max_age=5, allow_private_network=True)
    client = client_with(refuse)
    assert told(await get(client, "https://c.test")) == {}
    response = await preflight(client, "https://c.test", headers={"Access-Control-Request-Private-Network": "true"})
    assert (response.status, told(response)) == (204, {})


async def test_a_refusal_takes_back_what_an_outer_one_allowed() -> None:
    client = client_with(cors(origins="*"), cors(origins=[A]))
    assert told(await get(client, "https://c.test")) == {}


def yes_to_the_request(req: Request[Any]) -> bool:
    return True


def yes_to_both(origin: str, req: Request[Any]) -> bool:
    return True


def yes_to_the_origin(origin: str) -> bool:
    return True


YES: list[Any] = [yes_to_the_request, yes_to_both, yes_to_the_origin]
OUTER: list[dict[str, Any]] = [
    {"origins": [A], "credentials": True, "expose_headers": ["X-Outer"]},
    {"origins": by_predicate, "credentials": True, "expose_headers": ["X-Outer"]},
    {"origins": "*", "expose_headers": ["X-Outer"]},
]
INNER: list[Any] = [[A], "*", by_function, by_async_function, by_predicate]


async def stage(req: Request[Any], res: Response, next: Next, /) -> None:
    res.header("X-Own", "1").header("Content-Type", "application/json")
    await next()


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("between", [(), (stage,), (secure_hdrs(),), (stage, secure_hdrs(), stage)])
@pytest.mark.parametrize("exposed", [[], ["X-Inner"]])
async def test_of_two_the_inner_one_grants_nothing_that_only_the_outer_one_did(
    outer: dict[str, Any], inner: Any, between: Any, exposed: list[str]
) -> None:
    client = client_with(*between, cors(**outer), *between, cors(origins=inner, expose_headers=exposed), *between)
    granted = told(await get(client, A))
    assert granted.pop("access-control-allow-origin") == ("*" if inner == "*" else A)
    assert granted == ({"access-control-expose-headers": "X-Inner"} if exposed else {})


@pytest.mark.parametrize("inner", INNER)
async def test_and_what_the_inner_one_grants_it_grants_also_where_the_outer_one_does_not(inner: Any) -> None:
    if inner == "*":
        return
    client = client_with(cors(origins=["https://c.test"]), cors(origins=inner, credentials=True))
    assert told(await get(client, A)) == {
        "access-control-allow-origin": A,
        "access-control-allow-credentials": "true",
    }


@pytest.mark.parametrize("credentials", [True, False])
@pytest.mark.parametrize("yes", YES)
async def test_a_yes_to_whoever_asks_never_means_null(yes: Any, credentials: bool) -> None:
    # Every site can have this origin: a sandboxed frame is enough.
    client = client_with(cors(origins=yes, credentials=credentials))
    assert told(await get(client, "null")) == {}
    assert told(await preflight(client, "null")) == {}
    assert told(await get(client, A))["access-control-allow-origin"] == A


async def test_a_preflight_is_answered_with_all_it_asks_for() -> None:
    client = client_with(cors(origins=[A]))
    response = await preflight(client, headers={"Access-Control-Request-Headers": "x-a, Content-Type"})
    assert (response.status, await response.text()) == (204, "")
    assert told(response) == {
        "access-control-allow-origin": A,
        "access-control-allow-methods": "GET, HEAD, PUT, PATCH, POST, DELETE",
        "access-control-allow-headers": "x-a, Content-Type",
    }
    assert response.headers["vary"] == "Origin, Access-Control-Request-Headers"


async def test_methods_headers_expose_headers_credentials_and_max_age() -> None:
    client = client_with(
        cors(
            origins=[A],
            methods=["get", "PURGE"],
            headers=["X-A", "X-B"],
            expose_headers=["X-C", "X-D"],
            credentials=True,
            max_age=600,
        )
    )
    assert told(await preflight(client, headers={"Access-Control-Request-Headers": "x-z"})) == {
        "access-control-allow-origin": A,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, PURGE",
        "access-control-allow-headers": "X-A, X-B",
        "access-control-max-age": "600",
    }
    assert told(await get(client, A)) == {
        "access-control-allow-origin": A,
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": "X-C, X-D",
    }


@pytest.mark.parametrize(
    ("allowed", "asked", "answer"), [(True, True, "true"), (True, False, None), (False, True, None)]
)
async def test_allow_private_network(allowed: bool, asked: bool, answer: str | None) -> None:
    client = client_with(cors(origins=[A], allow_private_network=allowed))
    response = await preflight(client, headers={"Access-Control-Request-Private-Network": "true"} if asked else {})
    assert told(response).get("access-control-allow-private-network") == answer
    assert ("Access-Control-Request-Private-Network" in response.headers["vary"]) is allowed


async def test_a_preflight_is_an_options_with_a_request_method_and_other_options_reach_the_routes() -> None:
    client = client_with(cors(origins=[A]))
    response = await client.options("/", headers={"Origin": A})
    assert (await response.text(), told(response)) == ("the route's own", {"access-control-allow-origin": A})
    response = await client.get("/", headers={"Origin": A, "Access-Control-Request-Method": "PUT"})
    assert await response.json() == {}


async def test_a_preflight_to_a_path_without_a_route_is_answered_too() -> None:
    client = client_with(cors(origins="*"))
    response = await client.options("/nowhere", headers={"Origin": A, "Access-Control-Request-Method": "PUT"})
    assert (response.status, told(response)["access-control-allow-origin"]) == (204, "*")


async def test_a_preflight_without_an_origin_is_told_nothing() -> None:
    for origins in ("*", [A]):
        assert told(await preflight(client_with(cors(origins=origins)), None)) == {}


@pytest.mark.parametrize(("origins", "answer"), [([A], None), ([A, "null"], "null")])
async def test_origin_null_matches_only_when_listed(origins: list[str], answer: str | None) -> None:
    assert told(await get(client_with(cors(origins=origins)), "null")).get("access-control-allow-origin") == answer


@pytest.mark.parametrize(
    "origin",
    [
        "https://a.test.evil.test",
        "https://evil-a.test",
        "https://evila.test",
        "https://xa.test",
        "http://a.test",
        "https://a.test:8443",
        "https://a.test/",
        "https://A.test",
        "https://sub.a.test",
        "https://a.tes",
        "https://a.test, https://b.test",
        "https://a.test https://b.test",
        "a.test",
        "*",
        "",
    ],
)
async def test_origins_are_compared_whole_never_by_suffix(origin: str) -> None:
    assert told(await get(client_with(cors(origins=[A])), origin)) == {}


async def test_configured_origins_are_written_as_browsers_write_them() -> None:
    client = client_with(cors(origins=[" https://A.Test:443 ", "http://b.test:8080", "capacitor://localhost"]))
    for origin in (A, "http://b.test:8080", "capacitor://localhost"):
        assert told(await get(client, origin)) == {"access-control-allow-origin": origin}


@pytest.mark.parametrize(
    "origin",
    [
        "https://a.test/",
        "https://a.test/path",
        "a.test",
        "https://",
        "https://a.test?x",
        "https://u@a.test",
        "https://a.test#",
        "x",
    ],
)
def test_a_configured_origin_with_a_path_or_trailing_slash_is_an_error(origin: str) -> None:
    with pytest.raises(OptionError, match=r"^cors\(origins=.*is not an origin.*without a path or a slash"):
        cors(origins=[origin])


async def test_the_same_out_of_a_variable_is_a_500_that_the_log_explains(caplog: pytest.LogCaptureFixture) -> None:
    client = client_with(cors(origins=by_function), env=Env("https://a.test/"))
    assert (await get(client, A)).status == 500
    assert "is not an origin" in caplog.text


async def test_request_headers_are_split_linearly_and_capped() -> None:
    client = client_with(cors(origins=[A]))
    for asked in (",".join(["x"] * 65), "x" * 4097, "x-a, bad name", 'x"', ",,,"):
        response = await preflight(client, headers={"Access-Control-Request-Headers": asked})
        assert "access-control-allow-headers" not in told(response)
    response = await preflight(client, headers={"Access-Control-Request-Headers": ",".join(["x"] * 64)})
    assert told(response)["access-control-allow-headers"] == ", ".join(["x"] * 64)


async def test_an_empty_variable_means_none() -> None:
    for value in ("", " ", ","):
        client = client_with(cors(origins=by_function), env=Env(value))
        response = await get(client, "")
        assert (response.status, told(response)) == (200, {})
        assert told(await get(client, A)) == {}


@pytest.mark.parametrize("options", [{"methods": ["*"]}, {"headers": ["*"]}])
def test_stars_for_methods_and_headers_mean_nothing_with_credentials_and_are_refused(options: Any) -> None:
    with pytest.raises(OptionError, match="credentials"):
        cors(origins=[A], credentials=True, **options)
