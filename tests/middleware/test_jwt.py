"""`jwt_auth`: what lets in, and that everything else is the one answer."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt import algorithms as pyjwt
from tests.support.bench import Bench
from tests.support.tokens import KEY, NOW, Env, b64, raw

from core import http
from core.app import App
from core.bindings.secret import Secret
from core.errors import OptionError
from core.middleware.jwt import jwt_auth
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext

RSA = rsa.generate_private_key(65537, 2048)
RSA_PEM = (
    RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
)
EC = ec.generate_private_key(ec.SECP256R1())


def token(claims: dict[str, Any] | None = None, *, header: dict[str, Any] | None = None, key: str = KEY) -> str:
    full = {"sub": "ada", "exp": NOW + 60, **(claims or {})}
    return raw(json.dumps({"alg": "HS256", "typ": "JWT", **(header or {})}), json.dumps(full), key.encode())


def signed(algorithm: str, private: Any, claims: dict[str, Any] | None = None, **header: Any) -> str:
    parts: list[dict[str, Any]] = [{"alg": algorithm, **header}, {"sub": "ada", "exp": NOW + 60, **(claims or {})}]
    text = ".".join(b64(json.dumps(part).encode()) for part in parts)
    return f"{text}.{b64(pyjwt.get_default_algorithms()[algorithm].sign(text.encode(), private))}"


def by_env(req: Request[Any]) -> Any:
    return req.env.JWT_SECRET


class Guarded(Bench):
    def __init__(self, auth: Any = None, env: Env | None = None) -> None:
        super().__init__(env=lambda kv: env or Env(), start=NOW)
        auth = auth or jwt_auth(secret=by_env)

        @self.app.authenticated(auth).get("/me")
        async def me(req: Request[Any, Any], res: Response) -> None:
            user = req.user
            res.json(user)

    async def ask(self, authorization: str | None) -> http.Response:
        return await self.get("/me", **({} if authorization is None else {"Authorization": authorization}))


async def accepted(bench: Guarded, text: str) -> bool:
    response = await bench.ask(f"Bearer {text}")
    if response.status == 200:
        return True
    assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
    assert response.headers["www-authenticate"] == "Bearer"
    return False


async def test_a_valid_token_lets_in_and_sets_the_user_with_sub_and_claims() -> None:
    response = await Guarded().ask(f"Bearer {token({'email': 'ada@a.test'})}")
    assert (response.status, await response.json()) == (
        200,
        {"sub": "ada", "claims": {"sub": "ada", "exp": NOW + 60, "email": "ada@a.test"}},
    )


async def test_it_may_be_used_as_plain_middleware() -> None:
    app: App[Any] = App()
    app.use("/api", jwt_auth(secret=by_env))

    @app.get("/api/me")
    async def me(req: Request[Any, Any], res: Response) -> None:
        res.json({"sub": req.user.sub})

    app.get("/open", me_open)
    client = Client(app, Env(), FakeExecutionContext(clock=FakeClock(NOW)))
    assert (await client.get("/api/me")).status == 401
    assert (await client.get("/open")).status == 200
    response = await client.get("/api/me", headers={"Authorization": f"Bearer {token()}"})
    assert await response.json() == {"sub": "ada"}


async def me_open(req: Request[Any], res: Response) -> None:
    res.json({})


async def test_it_asks_once_per_request_on_however_many_levels_it_stands() -> None:
    asked: list[int] = []

    def secret(req: Request[Any]) -> str:
        asked.append(1)
        return KEY

    auth = jwt_auth(secret=secret)
    app: App[Any] = App()
    app.use(auth)
    app.use(auth)
    app.authenticated(auth).get("/me", me_open)
    client = Client(app, Env(), FakeExecutionContext(clock=FakeClock(NOW)))
    assert (await client.get("/me", headers={"Authorization": f"Bearer {token()}"})).status == 200
    # The guard of authenticated() and the middleware share what the first one found.
    assert len(asked) == 1


async def test_a_route_behind_it_shows_as_authenticated() -> None:
    bench = Guarded()
    (route,) = bench.app.routes
    assert (route.authenticated, route.middleware) == (True, ("jwt_auth",))


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer a.b",
        "Bearer a.b.c.d",
        "Bearer ..",
        "Bearer not-a-token",
        f"Bearer {token()} extra",
        f"Token {token()}",
        token(),
        f"Bearer\t{token()}",
        f"Bearer {token()}, Bearer {token()}",
    ],
)
async def test_any_failure_is_the_one_body_with_www_authenticate_bearer(authorization: str | None) -> None:
    response = await Guarded().ask(authorization)
    assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
    assert response.headers["www-authenticate"] == "Bearer"


async def test_the_challenge_survives_an_error_handler_of_ones_own() -> None:
    bench = Guarded()

    @bench.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        res.status(401).json({"mine": True})

    response = await bench.ask(None)
    assert (await response.json(), response.headers["www-authenticate"]) == ({"mine": True}, "Bearer")


async def test_the_reason_goes_to_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert not await accepted(Guarded(), token({"exp": NOW - 1}))
    assert "jwt_auth() refused GET /me: the token has expired" in caplog.text
    assert token({"exp": NOW - 1}) not in caplog.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "])
async def test_the_scheme_is_bearer_in_any_case(scheme: str) -> None:
    assert (await Guarded().ask(f"{scheme} {token()}")).status == 200


async def test_two_authorization_headers_are_refused() -> None:
    bench = Guarded()
    headers = http.Headers([("Authorization", f"Bearer {token()}"), ("Authorization", f"Bearer {token()}")])
    request = http.Request("https://a.test/me", headers=headers)
    assert (await bench.app.fetch(request, Env(), FakeExecutionContext(clock=bench.clock))).status == 401


async def test_the_token_length_is_capped() -> None:
    assert await accepted(Guarded(), token({"x": "y" * 4000}))
    assert not await accepted(Guarded(), token({"x": "y" * 9000}))
    assert await accepted(Guarded(jwt_auth(secret=by_env, max_length=20_000)), token({"x": "y" * 9000}))


# -- algorithms and keys


async def test_algorithms_is_an_allow_list_hs256_by_default() -> None:
    body = json.dumps({"exp": NOW + 60})
    other = raw('{"alg":"HS512"}', body, digest="sha512")
    assert not await accepted(Guarded(), other)
    assert await accepted(Guarded(jwt_auth(secret=by_env, algorithms=["HS512"])), other)
    assert not await accepted(Guarded(jwt_auth(secret=by_env, algorithms=["HS512"])), token())


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, 7, ["HS256"], {"a": 1}, True])
async def test_none_is_impossible(alg: Any) -> None:
    header, body = json.dumps({"alg": alg}), json.dumps({"sub": "ada", "exp": NOW + 60})
    unsigned = f"{b64(header.encode())}.{b64(body.encode())}."
    assert not await accepted(Guarded(), unsigned)
    assert not await accepted(Guarded(), unsigned + "AAAA")
    assert not await accepted(Guarded(), raw(header, body))
    assert not await accepted(Guarded(), raw("{}", body))


@pytest.mark.parametrize("name", ["none", "HS1", "RS256 ", "", 7])
def test_an_algorithm_that_is_none_cannot_be_allowed(name: Any) -> None:
    with pytest.raises(OptionError, match=r"jwt_auth\(algorithms="):
        jwt_auth(secret=by_env, algorithms=[name])


@pytest.mark.parametrize("kind", ["pem", "der"])
async def test_no_hmac_with_a_public_key(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    der = RSA.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    key = RSA_PEM.encode() if kind == "pem" else der
    forged = raw('{"alg":"HS256"}', json.dumps({"exp": NOW + 60}), key)
    assert (await Guarded(env=Env(key)).ask(f"Bearer {forged}")).status == 500
    assert "is not a key for HS256" in caplog.text


async def test_a_public_key_verifies_and_the_same_key_as_an_hmac_secret_does_not() -> None:
    bench = Guarded(jwt_auth(secret=by_env, algorithms=["RS256"]), Env(RSA_PEM))
    assert await accepted(bench, signed("RS256", RSA))
    assert not await accepted(bench, raw('{"alg":"HS256"}', json.dumps({"exp": NOW + 60}), RSA_PEM.encode()))
    assert not await accepted(bench, raw('{"alg":"RS256"}', json.dumps({"exp": NOW + 60}), RSA_PEM.encode()))


async def test_the_key_type_must_fit_the_algorithm(caplog: pytest.LogCaptureFixture) -> None:
    bench = Guarded(jwt_auth(secret=by_env, algorithms=["ES256"]), Env(RSA_PEM))
    assert (await bench.ask(f"Bearer {signed('ES256', EC)}")).status == 500
    assert "is not a key for ES256" in caplog.text


def test_shared_secrets_and_public_keys_cannot_be_allowed_together() -> None:
    with pytest.raises(OptionError, match="mixes shared secrets with public keys"):
        jwt_auth(secret=by_env, algorithms=["HS256", "RS256"])


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_changed_character_anywhere_is_refused(part: int) -> None:
    parts = token().split(".")
    parts[part] = ("A" if parts[part][0] != "A" else "B") + parts[part][1:]
    assert not await accepted(Guarded(), ".".join(parts))


async def test_the_signature_is_verified_before_claims_are_read(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert not await accepted(Guarded(), token({"exp": NOW - 1}, key="another key, which is long enough for it"))
    assert "the signature is wrong" in caplog.text
    assert "expired" not in caplog.text


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"crit": []}, {"b64": False}, {"b64": "x"}])
async def test_a_header_that_demands_what_is_not_understood_is_refused(header: dict[str, Any]) -> None:
    assert not await accepted(Guarded(), token(header=header))


@pytest.mark.parametrize(
    "header",
    [{"jwk": {"kty": "oct", "k": "AAAA"}}, {"jku": "https://evil.test"}, {"x5u": "x"}, {"kid": "../../dev/null"}],
)
async def test_keys_that_a_token_brings_itself_are_never_used(header: dict[str, Any]) -> None:
    assert await accepted(Guarded(), token(header=header))
    assert not await accepted(Guarded(), token(header=header, key="\0\0\0"))


# -- claims


async def test_exp_is_required_by_default() -> None:
    without = raw('{"alg":"HS256"}', '{"sub":"ada"}')
    assert not await accepted(Guarded(), without)
    assert await accepted(Guarded(jwt_auth(secret=by_env, required=[])), without)


@pytest.mark.parametrize(
    ("claims", "ok"),
    [
        ({"exp": NOW}, False),
        ({"exp": NOW + 1}, True),
        ({"nbf": NOW + 1}, False),
        ({"nbf": NOW}, True),
        ({"iat": NOW + 1}, False),
        ({"iat": NOW}, True),
        ({"exp": NOW + 0.5}, True),
    ],
)
async def test_the_dates_hold(claims: dict[str, Any], ok: bool) -> None:
    assert await accepted(Guarded(), token(claims)) is ok


async def test_leeway_is_up_to_60_seconds() -> None:
    bench = Guarded(jwt_auth(secret=by_env, leeway=60))
    for claims in ({"exp": NOW - 59}, {"nbf": NOW + 60}, {"iat": NOW + 60}):
        assert await accepted(bench, token(claims))
    assert not await accepted(bench, token({"exp": NOW - 60}))
    for leeway in (-1, 61, True, float("nan"), "5"):
        with pytest.raises(OptionError, match="leeway"):
            jwt_auth(secret=by_env, leeway=leeway)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value", ["true", "false", f'"{NOW + 60}"', "null", "[]", "{}", "1e400", "-1e400", "9" * 400, "NaN", "Infinity"]
)
async def test_booleans_infinities_and_strings_are_not_dates(name: str, value: str) -> None:
    exp = "" if name == "exp" else f', "exp": {NOW + 60}'
    assert not await accepted(Guarded(), raw('{"alg":"HS256"}', f'{{"{name}": {value}{exp}}}'))


@pytest.mark.parametrize(
    ("claims", "ok"),
    [
        ({"iss": "a"}, True),
        ({"iss": "b"}, True),
        ({"iss": "c"}, False),
        ({}, False),
        ({"iss": ["a"]}, False),
        ({"iss": None}, False),
    ],
)
async def test_issuer(claims: dict[str, Any], ok: bool) -> None:
    assert await accepted(Guarded(jwt_auth(secret=by_env, issuer=["a", "b"])), token(claims)) is ok


@pytest.mark.parametrize(
    ("claims", "ok"),
    [
        ({"aud": "a"}, True),
        ({"aud": ["x", "a"]}, True),
        ({"aud": "b"}, False),
        ({"aud": []}, False),
        ({}, False),
        ({"aud": {"a": 1}}, False),
        ({"aud": ["a", 1]}, False),
    ],
)
async def test_audience(claims: dict[str, Any], ok: bool) -> None:
    assert await accepted(Guarded(jwt_auth(secret=by_env, audience="a")), token(claims)) is ok


async def test_a_token_for_an_audience_is_refused_where_none_is_expected() -> None:
    assert not await accepted(Guarded(), token({"aud": "someone else"}))


async def test_required_claims() -> None:
    bench = Guarded(jwt_auth(secret=by_env, required=["exp", "scope"]))
    assert not await accepted(bench, token())
    assert not await accepted(bench, token({"scope": None}))
    assert await accepted(bench, token({"scope": ""}))


@pytest.mark.parametrize("sub", [7, True, ["ada"], {"a": 1}])
async def test_a_subject_is_text(sub: Any) -> None:
    assert not await accepted(Guarded(), token({"sub": sub}))


@attrs.frozen
class User:
    sub: str
    admin: bool = False


async def test_claims_gives_the_user_its_type() -> None:
    bench = Guarded(jwt_auth(secret=by_env, claims=User))
    response = await bench.ask(f"Bearer {token({'admin': True})}")
    assert await response.json() == {"sub": "ada", "admin": True}
    assert not await accepted(bench, token({"admin": "yes"}))
    assert not await accepted(bench, raw('{"alg":"HS256"}', json.dumps({"exp": NOW + 60})))


# -- spellings


@pytest.mark.parametrize("foreign", ["\n", " ", "=", "+", "/", "%", "é", "\u212a", "!"])
@pytest.mark.parametrize("part", [0, 1, 2])
async def test_foreign_base64_characters_are_refused(part: int, foreign: str) -> None:
    parts = token().split(".")
    parts[part] = parts[part][:4] + foreign + parts[part][4:]
    try:
        assert not await accepted(Guarded(), ".".join(parts))
    except TypeError:
        assert foreign in "\n\u212a"  # no header can carry it in the first place


async def test_bits_left_over_at_the_end_do_not_make_two_tokens_of_one() -> None:
    text = token()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(text[-1])
    assert last % 4 == 0
    assert not await accepted(Guarded(), text[:-1] + alphabet[last + 1])


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        ('{"alg":"none","alg":"HS256"}', f'{{"exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', f'{{"exp":1,"exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', f'{{"sub":"eve","sub":"ada","exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', f'{{"a":{{"b":1,"b":2}},"exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', f'{{"a":NaN,"exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', f"[{NOW}]"),
        ('{"alg":"HS256"}', "null"),
        ('["HS256"]', f'{{"exp":{NOW + 60}}}'),
        ('{"alg":"HS256"}', "[" * 100_0 + "]" * 100_0),
        ('{"alg":"HS256"}', b'{"exp":\xff}'),
    ],
)
async def test_duplicated_keys_and_what_is_no_json_object_are_refused(header: str, payload: str | bytes) -> None:
    assert not await accepted(Guarded(), raw(header, payload))


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=200))
async def test_no_made_up_text_is_ever_let_in(text: str) -> None:
    assert not await accepted(Guarded(), text or "x")


# -- secrets


@pytest.mark.parametrize("secret", ["", None, "   ", Secret(""), b""])
async def test_an_empty_or_missing_secret_is_a_500_that_names_the_binding_never_a_pass(
    secret: Any, caplog: pytest.LogCaptureFixture
) -> None:
    forged = raw('{"alg":"HS256"}', json.dumps({"exp": NOW + 60}), b"")
    response = await Guarded(env=Env(secret)).ask(f"Bearer {forged}")
    assert (response.status, await response.json()) == (500, {"error": "Internal Server Error"})
    assert "the binding JWT_SECRET is empty or missing" in caplog.text


@pytest.mark.parametrize(
    ("algorithms", "least"),
    [(["HS256"], 32), (["HS384"], 48), (["HS512"], 64), (["HS256", "HS512"], 64)],
)
@pytest.mark.parametrize("form", [str, str.encode, Secret])
async def test_a_secret_shorter_than_the_hash_is_a_500_that_names_the_binding_never_a_pass(
    algorithms: list[str], least: int, form: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for length, status in ((1, 500), (least - 1, 500), (least, 200)):
        key = "s3cr3t" * 20
        forged = raw(
            json.dumps({"alg": algorithms[0]}),
            json.dumps({"sub": "ada", "exp": NOW + 60}),
            key[:length].encode(),
            f"sha{algorithms[0][2:]}",
        )
        bench = Guarded(jwt_auth(secret=by_env, algorithms=algorithms), Env(form(key[:length])))
        assert (await bench.ask(f"Bearer {forged}")).status == status
    assert (
        f"the binding JWT_SECRET is too short for {algorithms[-1]}, which needs at least {least} bytes" in caplog.text
    )
    assert "s3cr3t" not in caplog.text


async def test_the_bytes_of_a_secret_count_and_not_its_characters() -> None:
    assert await accepted(Guarded(env=Env("é" * 16)), token(key="é" * 16))


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
async def test_a_public_key_of_rsa_below_2048_bits_is_a_500_that_names_the_binding(
    algorithm: str, caplog: pytest.LogCaptureFixture
) -> None:
    short = rsa.generate_private_key(65537, 1024)
    pem = short.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    bench = Guarded(jwt_auth(secret=by_env, algorithms=[algorithm]), Env(pem))
    assert (await bench.ask(f"Bearer {signed(algorithm, short)}")).status == 500
    assert "the binding JWT_SECRET is too short: an RSA key has at least 2048 bits" in caplog.text


async def test_a_short_key_of_an_issuer_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    short = rsa.generate_private_key(65537, 1024)
    bench = Issuer(jwk(short, kid="1"), jwk(RSA, kid="2")).bench()
    assert not await accepted(bench, signed("RS256", short, kid="1"))
    assert await accepted(bench, signed("RS256", RSA, kid="2"))
    assert "has a key that cannot be used: an RSA key has at least 2048 bits" in caplog.text


async def test_a_secret_may_be_text_bytes_a_secret_or_come_later() -> None:
    for secret in (KEY, KEY.encode(), Secret(KEY)):
        assert await accepted(Guarded(env=Env(secret)), token())

    async def later(req: Request[Any]) -> str:
        await asyncio.sleep(0)
        return KEY

    assert await accepted(Guarded(jwt_auth(secret=later)), token())


# -- keys of an issuer


class Issuer:
    """A key set under a URL, which counts how often it is asked."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.failing = False
        self.held: asyncio.Event | None = None

    async def fetch(self, url: str) -> bytes:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        if self.failing:
            raise OSError("away")
        return json.dumps({"keys": self.keys}).encode()

    def bench(self, **options: Any) -> Guarded:
        return Guarded(jwt_auth(jwks="https://issuer.test/keys", fetch=self.fetch, **options))


def jwk(private: Any, **members: Any) -> dict[str, Any]:
    algorithm: Any = pyjwt.RSAAlgorithm if isinstance(private, rsa.RSAPrivateKey) else pyjwt.ECAlgorithm
    return {**algorithm.to_jwk(private.public_key(), as_dict=True), **members}


async def test_the_keys_are_fetched_once_and_cached() -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    bench = issuer.bench()
    for _ in range(5):
        assert await accepted(bench, signed("RS256", RSA, kid="1"))
    assert issuer.asked == 1
    await bench.clock.advance(600)
    assert await accepted(bench, signed("RS256", RSA, {"exp": NOW + 6000}, kid="1"))
    assert issuer.asked == 2


async def test_single_flight() -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    issuer.held = asyncio.Event()
    bench = issuer.bench()
    waiting = [asyncio.create_task(accepted(bench, signed("RS256", RSA, kid="1"))) for _ in range(10)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()  # the first one's client goes away, and the others get their keys all the same
    await asyncio.sleep(0)
    issuer.held.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[1:] == [True] * 9
    assert issuer.asked == 1


async def test_kid_misses_are_remembered() -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    bench = issuer.bench()
    assert await accepted(bench, signed("RS256", RSA, kid="1"))
    await bench.clock.advance(30)
    for _ in range(5):
        assert not await accepted(bench, signed("RS256", RSA, kid="made up"))
    assert issuer.asked == 2
    for n in range(20):
        assert not await accepted(bench, signed("RS256", RSA, kid=f"made up {n}"))
    assert issuer.asked == 2


async def test_a_new_key_of_the_issuer_is_found_within_half_a_minute() -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    bench = issuer.bench(algorithms=["RS256", "ES256"])
    assert await accepted(bench, signed("RS256", RSA, kid="1"))
    issuer.keys.append(jwk(EC, kid="2"))
    assert not await accepted(bench, signed("ES256", EC, kid="2"))
    await bench.clock.advance(30)
    assert await accepted(bench, signed("ES256", EC, kid="2"))


@pytest.mark.parametrize("replacing", [rsa.generate_private_key(65537, 2048), EC], ids=["RS256", "ES256"])
async def test_the_only_key_is_replaced_for_tokens_without_a_kid_within_half_a_minute(replacing: Any) -> None:
    issuer = Issuer(jwk(RSA))
    bench = issuer.bench(algorithms=["RS256", "ES256"])
    assert await accepted(bench, signed("RS256", RSA))
    issuer.keys = [jwk(replacing)]
    newer = signed("ES256" if replacing is EC else "RS256", replacing)
    assert not await accepted(bench, newer)
    await bench.clock.advance(30)
    for _ in range(3):
        assert await accepted(bench, newer)
        assert not await accepted(bench, signed("RS256", RSA))
    assert issuer.asked == 2


async def test_a_new_key_is_found_after_an_issuer_was_away_or_late_with_it() -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    bench = issuer.bench(algorithms=["RS256", "ES256"])
    newer = signed("ES256", EC, {"exp": NOW + 600}, kid="2")
    assert await accepted(bench, signed("RS256", RSA, kid="1"))
    await bench.clock.advance(30)
    assert not await accepted(bench, newer)  # the issuer signs with it, and does not show it yet
    issuer.keys.append(jwk(EC, kid="2"))
    issuer.failing = True
    await bench.clock.advance(30)
    assert not await accepted(bench, newer)
    issuer.failing = False
    await bench.clock.advance(30)
    assert await accepted(bench, newer)


async def test_old_keys_are_better_than_none_while_the_issuer_is_away(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(jwk(RSA, kid="1"))
    bench = issuer.bench()
    long = {"exp": NOW + 6000}
    assert await accepted(bench, signed("RS256", RSA, long, kid="1"))
    issuer.failing = True
    await bench.clock.advance(700)
    assert await accepted(bench, signed("RS256", RSA, long, kid="1"))
    assert "could not be fetched: OSError: away" in caplog.text


@pytest.mark.parametrize("text", ["", "[]", '{"keys": 7}', "x" * (1 << 20) + "x", '{"keys": [' + "{}," * 100 + "{}]}"])
async def test_without_any_keys_it_is_a_503_and_never_a_pass(text: str) -> None:
    async def fetch(url: str) -> str:
        return text

    bench = Guarded(jwt_auth(jwks="https://issuer.test/keys", fetch=fetch))
    assert (await bench.ask(f"Bearer {signed('RS256', RSA, kid='1')}")).status == 503


@pytest.mark.parametrize(
    "members",
    [
        {"use": "enc"},
        {"key_ops": ["wrapKey"]},
        {"key_ops": 7},
        {"alg": "RS512"},
        {"kty": "oct", "k": "AAAA"},
        {"n": "AAAA"},
        {"kid": 7},
    ],
)
async def test_a_key_that_does_not_fit_is_not_used(members: dict[str, Any]) -> None:
    bench = Issuer({**jwk(RSA, kid="1"), **members}).bench()
    assert not await accepted(bench, signed("RS256", RSA, kid="1"))


async def test_without_a_kid_a_single_key_is_meant_and_of_two_none() -> None:
    assert await accepted(Issuer(jwk(RSA, kid="1")).bench(), signed("RS256", RSA))
    other = rsa.generate_private_key(65537, 2048)
    assert not await accepted(Issuer(jwk(RSA, kid="1"), jwk(other, kid="2")).bench(), signed("RS256", RSA))


@pytest.mark.parametrize("kid", [7, ["1"], {"a": 1}, True])
async def test_a_kid_is_text(kid: Any) -> None:
    assert not await accepted(Issuer(jwk(RSA, kid="1")).bench(), signed("RS256", RSA, kid=kid))


async def test_a_secret_of_the_issuer_is_no_key_for_hmac() -> None:
    oct_key = {"kty": "oct", "kid": "1", "k": b64(b"k" * 32)}
    forged = raw('{"alg":"HS256","kid":"1"}', json.dumps({"exp": NOW + 60}), b"k" * 32)
    assert not await accepted(Issuer(oct_key).bench(), forged)
