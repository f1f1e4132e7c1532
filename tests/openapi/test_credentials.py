"""Credentials that an authenticator of one's own reads: which are alternatives, which are needed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.openapi.document import Described

PROGRAM = """
import base64
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from core import AuthenticationError, CoreError, Next, Request, Response, Router, create_app
from core.middleware.jwt import jwt_auth

app = create_app(None)
jwt = jwt_auth(secret=lambda req: "s" * 32)
PARTNERS = {"a": "A"}
USERS = {"t": "T"}

def user_of(token: str) -> str | None:
    return USERS.get(token)

def token_in(header: str | None) -> str | None:
    if header is None or not header.startswith("Bearer "):
        return None
    return header.removeprefix("Bearer ")

# -- alternatives that are read first

async def first_read(req: Request) -> str:
    key, token = req.header("X-Key"), req.header("Authorization")
    if key is not None:
        return PARTNERS[key]
    if token is not None:
        return USERS[token.removeprefix("Bearer ")]
    raise AuthenticationError()

async def by_value(req: Request) -> str:
    key = req.header("X-Key") or ""
    token = token_in(req.header("Authorization"))
    partner = PARTNERS.get(key)
    if partner:
        return partner
    if token and (user := user_of(token)) is not None:
        return user
    raise AuthenticationError()

async def matched(req: Request) -> str:
    match (req.header("X-Key"), req.header("Authorization")):
        case (str() as key, _):
            return key
        case (None, str() as token):
            return token
        case _:
            raise AuthenticationError()

async def the_other_way(req: Request) -> str:
    key, header = req.header("X-Key"), req.header("Authorization")
    if not key and not header:
        raise AuthenticationError()
    if not key:
        return str(header)
    return key

async def in_middleware(req: Request, res: Response, next: Next) -> None:
    key, token = req.header("X-Key"), token_in(req.header("Authorization"))
    if key != "secret" and (token is None or user_of(token) is None):
        raise AuthenticationError()
    await next()

async def by_key(req: Request) -> str | None:
    key = req.headers.get("X-Key")
    return None if key is None else PARTNERS.get(key)

async def by_cookie(req: Request) -> str | None:
    sid = req.cookies.get("sid")
    return USERS.get(sid) if sid else None

STRATEGIES: tuple[Callable[[Request], Awaitable[str | None]], ...] = (by_key, by_cookie)

async def by_strategies(req: Request) -> str:
    for strategy in STRATEGIES:
        user = await strategy(req)
        if user is not None:
            return user
    raise AuthenticationError()

async def one_or_the_other(req: Request) -> str:
    user = await by_key(req) or await by_cookie(req)
    if user is None:
        raise AuthenticationError()
    return user

class KeyIn:
    def __init__(self, header: str) -> None:
        self.header = header

    async def __call__(self, req: Request) -> str:
        key = req.header(self.header)
        if not key or not hmac.compare_digest(key, "secret"):
            raise AuthenticationError()
        return key

by_own_key = KeyIn("X-Own")

async def at_home(req: Request) -> str:
    if req.header("CF-Connecting-IP") in ("127.0.0.1", "::1"):
        return "home"
    return await KeyIn("X-Key")(req)

async def calls_another(req: Request, res: Response, next: Next) -> None:
    await one_or_the_other(req)
    await next()

async def answers_itself(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") is None and req.cookies.get("sid") is None:
        res.status(401).json({"error": "Who?"})
        return
    await next()

# -- together

async def together(req: Request) -> str:
    key, token = req.header("X-Key"), req.header("Authorization")
    if key is None or token is None:
        raise AuthenticationError()
    return key + token

async def one_after_the_other(req: Request) -> str:
    token = token_in(req.header("Authorization"))
    partner = PARTNERS.get(req.header("X-Key", ) or "")
    if partner is None:
        raise AuthenticationError()
    if token is None:
        raise AuthenticationError()
    return partner

async def a_key_with_an_id(req: Request) -> str:
    name, key = req.header("X-Client"), req.header("X-Key")
    if not name or not key or not hmac.compare_digest(key, PARTNERS.get(name, "")):
        raise AuthenticationError(missing=name is None)
    print(req.header("User-Agent"))
    return name

async def both_in_middleware(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") != "secret" or token_in(req.header("Authorization")) is None:
        raise AuthenticationError()
    await next()

async def token_or_pair(req: Request) -> str:
    token, name, key = req.header("Authorization"), req.header("X-Client"), req.header("X-Key")
    if token is not None:
        return token
    if name is None or key is None:
        raise AuthenticationError()
    return name + key

def demand(first: str | None, second: str | None) -> None:
    if first is None or second is None:
        raise AuthenticationError()

async def demanded_elsewhere(req: Request) -> str:
    key, token = req.header("X-Key"), req.header("Authorization")
    demand(key, token)
    return f"{key} {token}"

async def key_and_jwt(req: Request) -> str:
    if req.header("X-Key") != "secret":
        raise AuthenticationError()
    return str(await jwt(req))

# -- in a loop over what is known

class OneOf:
    def __init__(self, *headers: str) -> None:
        self.headers = headers

    async def __call__(self, req: Request) -> str:
        for header in self.headers:
            if (key := req.header(header)) is not None:
                return key
        raise AuthenticationError()

class EachOf(OneOf):
    async def __call__(self, req: Request) -> str:
        keys: list[str] = []
        for header in self.headers:
            key = req.header(header)
            if not key:
                raise AuthenticationError()
            keys.append(key)
        return "".join(keys)

# -- the scheme

async def basic(req: Request) -> str:
    scheme, _, value = (req.header("Authorization") or "").partition(" ")
    if scheme.lower() != "basic":
        raise AuthenticationError()
    name, _, password = base64.b64decode(value).decode().partition(":")
    if USERS.get(name) != password:
        raise AuthenticationError()
    return name

async def basic_or_bearer(req: Request) -> str:
    header = req.header("Authorization") or ""
    if header.startswith("Basic "):
        return header.removeprefix("Basic ")
    if header.startswith("Bearer "):
        return header.removeprefix("Bearer ")
    raise AuthenticationError()

async def own_word(req: Request) -> str:
    header = req.header("Authorization")
    if header is None or not header.startswith("ApiKey "):
        raise AuthenticationError("ApiKey")
    return header

async def in_a_pattern(req: Request) -> str:
    match (req.header("Authorization") or "").split(" ", 1):
        case ["Bearer", token]:
            return token
        case _:
            raise AuthenticationError()

# -- what is not compared

async def decoded(req: Request) -> str:
    try:
        return base64.b64decode(req.cookies["sid"]).decode()
    except (KeyError, ValueError):
        token = req.header("Authorization")
        if token is None:
            raise AuthenticationError() from None
        return token

async def key_with_a_default_challenge(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") != "secret":
        raise AuthenticationError()
    await next()

async def tried(req: Request, res: Response, next: Next) -> None:
    try:
        token_of(req.header("Authorization") or "")
    except ValueError:
        raise AuthenticationError() from None
    await next()

def token_of(header: str) -> str:
    return header[header.index(" ") + 1:]

async def inside_or_jwt(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Inside") == "secret":
        await next()
        return
    await jwt(req)
    await next()

async def device_first(req: Request, res: Response, next: Next) -> None:
    device = req.header("X-Device")
    if req.path == "/health":
        await next()
        return
    if req.header("X-Key") != "secret":
        raise CoreError(401, f"No {device}")
    await next()

# -- nobody too

async def or_nobody(req: Request) -> str:
    key, token = req.header("X-Key"), req.header("Authorization")
    if key is None:
        return "nobody"
    if token is None:
        raise AuthenticationError()
    return key + token

async def key_alone(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") != "secret":
        raise CoreError(401, "Who?")
    await next()

# -- what cannot be known

async def unclear(req: Request) -> str:
    return await asked(req.header("X-Key"), req.header("Authorization"))

async def asked(*given: Any) -> str:
    if not given:
        raise AuthenticationError()
    return ",".join(map(str, given))

@app.post("/sign-in")
async def sign_in(req: Request, res: Response) -> None:
    given = await req.json(dict[str, str])
    if given != {"password": "SELECT "}:
        raise AuthenticationError()
    res.json({})

@app.post("/sessions")
async def sign_in_with_a_plan(req: Request, res: Response) -> None:
    plan = "basic" if req.query.get("plan") == "basic" else "pro"
    if await req.text() != "password":
        raise AuthenticationError()
    res.json({"plan": plan})

@app.post("/basic-sessions")
async def sign_in_with_a_challenge(req: Request, res: Response) -> None:
    if req.query.get("password") != "password":
        raise AuthenticationError("Basic")
    res.json({})

@app.get("/plans")
async def plans(req: Request, res: Response) -> None:
    res.json({"plan": "basic", "tenant": req.header("X-Tenant"), "language": req.header("Accept-Language")})

@app.get("/welcome")
async def welcome(req: Request, res: Response) -> None:
    res.json({"user": token_in(req.header("Authorization"))})

async def in_maintenance(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Plan") == "basic":
        raise CoreError(503, "Down")
    await next()

app.get("/maintained", in_maintenance, plans)

async def by_hmac(req: Request) -> str:
    scheme, _, rest = (req.header("Authorization") or "").partition(" ")
    if scheme != "HMAC" or not rest:
        raise AuthenticationError()
    return rest

OWN = (
    first_read, by_value, matched, the_other_way, together, one_after_the_other, a_key_with_an_id, token_or_pair,
    demanded_elsewhere, key_and_jwt, basic, basic_or_bearer, own_word, or_nobody, unclear,
    by_strategies, one_or_the_other, at_home, by_hmac, in_a_pattern, decoded,
)
MIDDLEWARE = (
    in_middleware, both_in_middleware, key_alone, calls_another, answers_itself, key_with_a_default_challenge, tried,
    inside_or_jwt, device_first,
)

async def show(req: Request[None, str], res: Response) -> None:
    res.json({"user": req.user})

async def plain(req: Request, res: Response) -> None:
    res.json({"page": req.header("X-Page"), "key": req.header("X-Key")})

for each in OWN:
    router: Router[None] = Router()
    router.authenticated(each).get(f"/{each.__name__}", show)
    app.use(router)
app.authenticated(by_own_key).get("/by_own_key", show)
app.authenticated(OneOf("X-Key", "X-Old")).get("/one_of", show)
app.authenticated(EachOf("X-Key", "X-Old")).get("/each_of", show)
for middleware in MIDDLEWARE:
    app.use(f"/{middleware.__name__}", middleware)
    app.get(f"/{middleware.__name__}", plain)
"""

SECURITY = {
    "first_read": ["x-key", "bearer"],
    "by_value": ["x-key", "bearer"],
    "matched": ["x-key", "bearer"],
    "the_other_way": ["x-key", "bearer"],
    "in_middleware": ["x-key", "bearer"],
    "by_strategies": ["x-key", "sid"],
    "one_or_the_other": ["x-key", "sid"],
    "by_own_key": ["x-own"],
    "at_home": ["", "x-key"],
    "calls_another": ["x-key", "sid"],
    "answers_itself": ["x-key", "sid"],
    "one_of": ["x-key", "x-old"],
    "each_of": ["x-key+x-old"],
    "together": ["x-key+bearer"],
    "one_after_the_other": ["x-key+bearer"],
    "a_key_with_an_id": ["x-client+x-key"],
    "both_in_middleware": ["x-key+bearer"],
    "token_or_pair": ["bearer", "x-client+x-key"],
    "demanded_elsewhere": ["x-key+bearer"],
    "key_and_jwt": ["x-key+jwt"],
    "basic": ["basic"],
    "basic_or_bearer": ["basic", "bearer"],
    "own_word": ["apikey"],
    "by_hmac": ["hmac"],
    "or_nobody": ["", "x-key+bearer"],
    "key_alone": ["x-key"],
    "in_a_pattern": ["bearer"],
    "decoded": ["sid", "bearer"],
    "key_with_a_default_challenge": ["x-key"],
    "tried": ["bearer"],
    "inside_or_jwt": ["x-inside", "jwt"],
    "device_first": ["", "x-key"],
    "unclear": ["x-key", "bearer"],
}


@pytest.fixture(scope="module")
def described(describing: Callable[..., Described]) -> Described:
    return describing("credentials", PROGRAM)


def operation(described: Described, name: str) -> Any:
    return described.document["paths"][f"/{name}"]["get"]


@pytest.mark.parametrize("name", SECURITY)
def test_credentials_are_alternatives_or_needed_together(described: Described, name: str) -> None:
    assert ["+".join(way) for way in operation(described, name)["security"]] == SECURITY[name]


def test_what_cannot_be_known_is_told(described: Described) -> None:
    lines = PROGRAM.splitlines()
    other = "the challenge is Bearer, and what is read is {}: clients send what the challenge names. Write {}"
    message = (
        "whether Authorization and X-Key are needed together is not known, so the document takes each alone. Compare "
        "each of them with None before they are used"
    )
    line = 'return await asked(req.header("X-Key"), req.header("Authorization"))'
    past = (
        "this condition lets requests in without the credentials that others need, so the document demands none. Put the "
        "guard before the routes that need it"
    )
    found = [(lines[each.line - 1].strip(), each.message) for each in described.problems]
    assert [each for each in found if each[0] != "raise AuthenticationError()"] == [
        ("async def at_home(req: Request) -> str:", past),
        ('if req.path == "/health":', past),
        (line, message),
    ]
    assert [each[1] for each in found if each[0] == "raise AuthenticationError()"] == [
        *[other.format("Basic", "AuthenticationError('Basic realm=\"…\"')")] * 2,
        other.format("Hmac", "AuthenticationError('Hmac')"),
    ]


def test_a_key_that_is_a_security_scheme_is_no_parameter_too(described: Described) -> None:
    names = {
        name: [each["name"] for each in operation(described, name).get("parameters", ())]
        for name in ("first_read", "together", "a_key_with_an_id", "key_alone", "in_middleware")
    }
    assert names == {
        "first_read": [],
        "together": [],
        "a_key_with_an_id": ["User-Agent"],
        "key_alone": ["X-Page"],
        "in_middleware": ["X-Page"],
    }


@pytest.mark.parametrize("path", ["/sign-in", "/sessions", "/basic-sessions", "/plans", "/maintained"])
def test_who_signs_in_or_says_something_else_brings_no_credentials(described: Described, path: str) -> None:
    [operation] = described.document["paths"][path].values()
    assert "security" not in operation


def test_a_handler_that_refuses_nobody_makes_credentials_optional(described: Described) -> None:
    assert operation(described, "welcome")["security"] == [{}, {"bearer": []}]
