"""Authentication: optional, guards, places of tokens, several secrets at once, and issuing tokens."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from uuid import UUID

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt import algorithms as pyjwt
from tests.support.tokens import NOW, Env, b64, raw
from typing_extensions import TypeIs

from core import AuthenticationError, CoreError, Request, Response, Secret, allow, create_app, http, optional, public
from core.app import App
from core.errors import HandlerError, OrderError, RegistrationError
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.jwt import JWTUser, jwt_auth
from core.middleware.sessions import session_of, sessions
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace

KEY = "a-newer-secret-of-at-least-thirty-two-bytes"
OLD = "an-older-secret-of-at-least-thirty-two-bytes"
RSA = rsa.generate_private_key(65537, 2048)


@attrs.frozen
class Rotating:
    JWT_SECRET: Any = KEY
    OLD_SECRET: Any = OLD
    SESSIONS: Any = None


def by_env(req: Request[Any]) -> Any:
    return req.env.JWT_SECRET


def both(req: Request[Any]) -> Any:
    return [req.env.JWT_SECRET, req.env.OLD_SECRET]


def by_old(req: Request[Any]) -> Any:
    return OLD


def too_short(req: Request[Any]) -> Any:
    return "short"


def token(key: str = KEY, **claims: Any) -> str:
    return raw('{"alg":"HS256"}', json.dumps({"sub": "ada", "exp": NOW + 60, **claims}), key.encode())


def client_of(auth: Any, env: Any = None, clock: FakeClock | None = None) -> Client[Any]:
    app: App[Any] = App()

    @app.authenticated(auth).get("/")
    async def show(req: Request[Any, Any], res: Response) -> None:
        user: Any = req.user
        res.json({"user": user.sub if isinstance(user, JWTUser) else user})

    return Client(app, env or Env(KEY), FakeExecutionContext(clock=clock or FakeClock(NOW)))


# -- optional


async def test_a_request_without_credentials_goes_on_without_a_user() -> None:
    client = client_of(optional(jwt_auth(secret=by_env)))
    assert await (await client.get("/")).json() == {"user": None}
    known = await client.get("/", headers={"Authorization": f"Bearer {token()}"})
    assert await known.json() == {"user": "ada"}


@pytest.mark.parametrize("authorization", [f"Bearer {token(exp=1)}", "Bearer x", "Basic eDp5", ""])
async def test_wrong_credentials_are_refused_and_not_taken_for_none(authorization: str) -> None:
    response = await client_of(optional(jwt_auth(secret=by_env))).get("/", headers={"Authorization": authorization})
    assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")


async def verified(given: str, req: Request[Any]) -> str | None:
    return None


@pytest.mark.parametrize(
    "auth",
    [
        bearer_auth(token=by_old),
        bearer_auth(verify=verified),
        basic_auth(username="a", password=by_old),
        jwt_auth(keys=[{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]),
    ],
)
async def test_every_authenticator_of_the_framework_tells_missing_from_wrong(auth: Any) -> None:
    client = client_of(optional(auth))
    assert (await client.get("/")).status == 200
    assert (await client.get("/", headers={"Authorization": "Bearer wrong"})).status == 401


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AuthenticationError(missing=True), 200),
        (AuthenticationError("Token"), 401),
        (CoreError(401, "Who are you?"), 200),
        (CoreError(403, "Not you"), 403),
        (CoreError(503, "Later"), 503),
        (ValueError("a mistake"), 500),
    ],
)
async def test_an_authenticator_of_ones_own_says_by_its_error_whether_credentials_are_missing(
    error: Exception, status: int
) -> None:
    async def own(req: Request[Any]) -> str:
        raise error

    response = await client_of(optional(own)).get("/")
    assert response.status == status
    if status == 200:
        assert await response.json() == {"user": None}


async def test_both_kinds_of_a_router_ask_an_authenticator_once() -> None:
    asked: list[str] = []

    async def own(req: Request[Any]) -> str:
        asked.append(req.path)
        return "ada"

    app: App[Any] = App()
    app.authenticated(optional(own)).authenticated(own).get("/", show_user)
    assert await (await Client(app, None).get("/")).json() == {"user": "ada"}
    assert asked == ["/"]


async def show_user(req: Request[Any, Any], res: Response) -> None:
    res.json({"user": req.user})


async def test_the_table_of_routes_and_default_deny_tell_it_from_a_guard() -> None:
    auth = jwt_auth(secret=by_env)
    app: App[Any] = App(default_deny=True)
    app.authenticated(optional(auth)).get("/articles", show_user)
    app.authenticated(auth).get("/me", show_user)
    assert [(route.authenticated, route.optional) for route in app.routes] == [(False, True), (True, False)]
    with pytest.raises(RegistrationError, match=r"neither public nor behind an authenticator: GET /articles\.") as told:
        app.check()
    assert told.value.location == (__file__, show_user.__code__.co_firstlineno)

    open_app: App[Any] = App(default_deny=True)
    open_app.authenticated(optional(auth)).get("/articles", public(), show_user)
    open_app.check()
    (route,) = open_app.routes
    assert (route.public, route.optional, route.middleware) == (True, True, ("optional(jwt_auth)",))


async def own(req: Request[Any]) -> str:
    return "ada"


@pytest.mark.parametrize(
    ("auth", "vary"),
    [
        (optional(jwt_auth(secret=by_env)), "Authorization"),
        (optional(jwt_auth(secret=by_env, cookie="token")), "Cookie"),
        (optional(own), "Authorization, Cookie"),
        (jwt_auth(secret=by_env, cookie="token"), "Cookie"),
        (bearer_auth(token=by_env, header="X-API-Key"), "x-api-key"),
        (jwt_auth(secret=by_env), None),  # caches know of Authorization
    ],
)
async def test_answers_vary_by_what_an_authenticator_reads(auth: Any, vary: str | None) -> None:
    assert (await client_of(auth).get("/")).headers.get("vary") == vary
    app: App[Any] = App()
    app.use(auth)
    app.get("/", show_user)
    assert (await Client(app, Env(KEY)).get("/")).headers.get("vary") == vary


def test_what_is_no_authenticator_is_refused() -> None:
    async def handler(req: Request[Any], res: Response) -> None: ...

    def not_async(req: Request[Any]) -> str:
        return "ada"

    with pytest.raises(HandlerError, match=r"optional\(.*handler\): an authenticator is `async def \(req\)`"):
        optional(handler)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(HandlerError, match="is not async"):
        optional(not_async)  # type: ignore[arg-type]  # likewise


# -- guards


@attrs.frozen
class Member:
    role: str


@attrs.frozen
class Admin(Member):
    role: str = "admin"


def is_editor(user: Member) -> bool:
    return user.role in ("editor", "admin")


def is_admin(user: Member) -> TypeIs[Admin]:
    return isinstance(user, Admin)


async def by_header(req: Request[Any]) -> Member:
    role = req.header("x-role") or "reader"
    return Admin() if role == "admin" else Member(role)


async def test_a_guard_lets_some_users_in_and_answers_403_to_the_others() -> None:
    app: App[Any] = App(default_deny=True)
    signed_in = app.authenticated(by_header)
    signed_in.authenticated(allow(is_editor)).get("/edit", show_user)
    signed_in.authenticated(allow(is_admin, message="Admins only")).get("/admin", show_user)
    client = Client(app, None)
    for path, role, status in (
        ("/edit", "reader", 403),
        ("/edit", "editor", 200),
        ("/admin", "editor", 403),
        ("/admin", "admin", 200),
    ):
        assert (await client.get(path, headers={"X-Role": role})).status == status
    assert await (await client.get("/edit")).json() == {"error": "Forbidden"}
    assert await (await client.get("/admin")).json() == {"error": "Admins only"}
    assert [route.middleware for route in app.routes] == [("by_header", "allow"), ("by_header", "allow")]


async def test_only_true_itself_lets_in_and_not_what_an_async_check_returns() -> None:
    def later(user: Any) -> Any:
        return object()  # true, as a coroutine is

    app: App[Any] = App()
    app.authenticated(by_header).authenticated(allow(later)).get("/", show_user)
    assert (await Client(app, None).get("/")).status == 403


def test_a_guard_without_an_authenticator_before_it_does_not_start() -> None:
    app: App[Any] = App()
    app.authenticated(allow(is_editor)).get("/", show_user)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(OrderError, match=r"allow\(\) on / requires req\.user, which nothing before it provides"):
        app.check()


# -- where tokens are


@pytest.mark.parametrize(
    ("options", "headers", "challenge"),
    [
        ({"scheme": "Token"}, {"Authorization": "token {}"}, "Token"),
        ({"header": "X-API-Key"}, {"X-API-Key": "{}"}, "Bearer"),
        ({"header": "X-API-Key", "scheme": "Key"}, {"X-API-Key": "Key {}"}, "Key"),
        ({"scheme": None}, {"Authorization": "{}"}, "Bearer"),
        ({"cookie": "token"}, {"Cookie": "a=b; token={}"}, "Bearer"),
    ],
)
@pytest.mark.parametrize("kind", ["jwt", "bearer"])
async def test_a_token_is_read_from_where_the_options_say(
    options: dict[str, Any], headers: dict[str, str], challenge: str, kind: str
) -> None:
    auth: Any = jwt_auth(secret=by_env, **options) if kind == "jwt" else bearer_auth(token=by_env, **options)
    client, right = client_of(auth), token() if kind == "jwt" else KEY
    filled = {name: value.format(right) for name, value in headers.items()}
    assert (await client.get("/", headers=filled)).status == 200
    wrong = {name: value.format(right[:-2] + "zz") for name, value in headers.items()}
    twice = {name: f"{value}, {value}" for name, value in filled.items()}
    for refused in (wrong, twice, {"Authorization": f"Bearer {right}"}, {}):
        response = await client.get("/", headers=refused)
        assert (response.status, response.headers["www-authenticate"]) == (401, challenge)


# -- several secrets


@pytest.mark.parametrize("auth", [jwt_auth(secret=both), bearer_auth(token=both)])
async def test_each_of_several_secrets_proves(auth: Any) -> None:
    client = client_of(auth, Rotating())
    right = (token(KEY), token(OLD)) if hasattr(auth, "issue") else (KEY, OLD)
    for given in right:
        assert (await client.get("/", headers={"Authorization": f"Bearer {given}"})).status == 200
    gone = client_of(auth, Rotating(OLD_SECRET=None))
    assert (await gone.get("/", headers={"Authorization": f"Bearer {right[0]}"})).status == 200
    assert (await gone.get("/", headers={"Authorization": f"Bearer {right[1]}"})).status == 401


@pytest.mark.parametrize("env", [Rotating(JWT_SECRET=None), Rotating(OLD_SECRET=""), Rotating(JWT_SECRET=Secret(""))])
async def test_an_empty_one_of_several_is_a_500_that_names_the_bindings(
    env: Rotating, caplog: pytest.LogCaptureFixture
) -> None:
    response = await client_of(jwt_auth(secret=both), env).get("/", headers={"Authorization": f"Bearer {token()}"})
    assert response.status == 500
    assert "one of the bindings JWT_SECRET, OLD_SECRET is empty or missing" in caplog.text


async def test_sessions_of_the_old_secret_go_on_and_new_cookies_have_the_new_one() -> None:
    kv = FakeKVNamespace()

    async def count(req: Request[Any], res: Response) -> None:
        session = await session_of(req)
        session["n"] = session.get("n", 0) + 1
        res.json(session["n"])

    def client(secret: Any) -> Client[Any]:
        app = create_app()
        app.use(sessions(kv_binding="SESSIONS", secret=secret, secure=False, cookie="session"))
        app.get("/", count)
        return Client(app, Rotating(SESSIONS=kv))

    before, during, after = client(by_old), client(both), client(by_env)
    await before.get("/")
    during.cookies.update(before.cookies)
    assert await (await during.get("/")).json() == 2
    after.cookies.update(during.cookies)
    assert await (await after.get("/")).json() == 3
    before.cookies.update(after.cookies)
    assert await (await before.get("/")).json() == 1


# -- keys of an issuer, given as they are


def signed(**header: Any) -> str:
    parts: list[dict[str, Any]] = [{"alg": "RS256", **header}, {"sub": "ada", "exp": NOW + 60}]
    text = ".".join(b64(json.dumps(part).encode()) for part in parts)
    return f"{text}.{b64(pyjwt.get_default_algorithms()['RS256'].sign(text.encode(), RSA))}"


async def test_the_keys_of_an_issuer_may_be_given() -> None:
    public_key = {**json.loads(pyjwt.get_default_algorithms()["RS256"].to_jwk(RSA.public_key())), "kid": "one"}
    given: tuple[Any, ...] = ([public_key], (public_key,), {"keys": [public_key]})
    for keys in given:
        client = client_of(jwt_auth(keys=keys))
        for text, status in ((signed(kid="one"), 200), (signed(), 200), (signed(kid="two"), 401), (token(), 401)):
            assert (await client.get("/", headers={"Authorization": f"Bearer {text}"})).status == status


# -- issuing


@attrs.frozen
class User:
    sub: str
    tags: list[str] = attrs.field(factory=list[str])


def issuing(auth: Any, claims: Any, clock: FakeClock, expires_in: float = 60, env: Any = None) -> Client[Any]:
    client = client_of(auth, env, clock)

    @client.app.post("/sign-in")
    async def sign_in(req: Request[Any], res: Response) -> None:
        res.text(await auth.issue(req, claims, expires_in=expires_in))

    return client


async def sent(client: Client[Any], text: str) -> http.Response:
    return await client.get("/", headers={"Authorization": f"Bearer {text}"})


@attrs.frozen
class Account:
    sub: UUID


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "ada", "scope": ["a"]},
        JWTUser("ada", {"scope": ["a"]}),
        JWTUser(None, {"sub": "ada", "scope": ["a"]}),
    ],
)
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_what_it_issues_it_accepts_until_it_expires(claims: Any, algorithm: str) -> None:
    clock = FakeClock(NOW)
    key = KEY * 3
    auth = jwt_auth(secret=by_env, algorithms=[algorithm], issuer=["us", "them"], audience="here")
    client = issuing(auth, claims, clock, env=Env(key))
    text = await (await client.post("/sign-in")).text()
    header, payload, _ = text.split(".")
    assert decoded(header) == json.dumps({"alg": algorithm, "typ": "JWT"}, separators=(",", ":")).encode()
    assert json.loads(decoded(payload)) == {
        "iat": int(NOW), "exp": int(NOW) + 60, "iss": "us", "aud": "here", "sub": "ada", "scope": ["a"],
    }  # fmt: skip
    assert await (await sent(client, text)).json() == {"user": "ada"}
    clock.advance(60)
    assert (await sent(client, text)).status == 401


async def test_a_typed_user_goes_in_and_comes_out() -> None:
    client = issuing(jwt_auth(secret=by_env, claims=User), User("ada", ["x"]), FakeClock(NOW))
    text = await (await client.post("/sign-in")).text()
    assert await (await sent(client, text)).json() == {"user": {"sub": "ada", "tags": ["x"]}}


async def test_a_subject_that_json_writes_as_text_is_one() -> None:
    client = issuing(jwt_auth(secret=by_env, claims=Account), Account(UUID(int=7)), FakeClock(NOW))
    text = await (await client.post("/sign-in")).text()
    assert await (await sent(client, text)).json() == {"user": {"sub": str(UUID(int=7))}}


async def test_the_newest_secret_signs() -> None:
    client = issuing(jwt_auth(secret=both), {"sub": "ada"}, FakeClock(NOW), env=Rotating())
    text = await (await client.post("/sign-in")).text()
    assert (await sent(client_of(jwt_auth(secret=by_env)), text)).status == 200
    assert (await sent(client_of(jwt_auth(secret=by_old)), text)).status == 401


@pytest.mark.parametrize(
    ("auth", "claims", "expires_in", "said"),
    [
        (jwt_auth(secret=by_env), {"sub": 7}, 60, "sub is a str"),
        (jwt_auth(secret=by_env), ["ada"], 60, "as a mapping or an attrs instance, not list"),
        (jwt_auth(secret=by_env), {"sub": "ada"}, 0, r"expires_in=0\) must be"),
        (jwt_auth(secret=by_env), {"sub": "ada"}, float("inf"), r"expires_in=inf\) must be"),
        (jwt_auth(secret=by_env), {"sub": "ada"}, True, r"expires_in=True\) must be"),
        (jwt_auth(secret=too_short), {"sub": "ada"}, 60, "too short for HS256"),
        (jwt_auth(secret=by_env, algorithms=["RS256"]), {"sub": "ada"}, 60, "a public key proves tokens and signs none"),
        (jwt_auth(keys=[{"kty": "RSA"}]), {"sub": "ada"}, 60, "To issue your own, give secret"),
    ],
)  # fmt: skip
async def test_what_cannot_be_issued(
    auth: Any, claims: Any, expires_in: float, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await issuing(auth, claims, FakeClock(NOW), expires_in).post("/sign-in")).status == 500
    assert re.search(said, caplog.text), caplog.text
