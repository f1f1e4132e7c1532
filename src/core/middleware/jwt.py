"""JSON Web Tokens as `Authorization: Bearer`, checked before anything in them is believed.

Decided here: what a token must look like, which algorithms and claims are accepted, and that a client
learns nothing but yes or no. PyJWT (`core-edge[jwt]`) does the cryptography, in a worker with the runtime's
WebCrypto for public keys. Parsing is stricter than PyJWT's own: no foreign characters in base64, no
duplicate names and no `NaN` in the JSON.
RFC 7515, 7519; RFC 8725 for what to be afraid of.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast, overload

import attrs
from typing_extensions import TypeForm, TypeVar

from core.bindings.secret import Secret
from core.errors import DeveloperError, MissingExtraError, OptionError
from core.http.json import check_depth, parse_float
from core.middleware import options
from core.middleware.authentication import Authentication, binding_of, refused, secret_bytes
from core.middleware.jwks import JWKSFetch, KeySet
from core.middleware.key_strength import WeakKeyError, require_bits, rsa_bits
from core.request import AnyRequest, Request

__all__ = ["JWTUser", "jwt_auth"]

E = TypeVar("E")
T = TypeVar("T")

_LEAST_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
_HMAC = tuple(_LEAST_BYTES)
_ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_MOST_LEEWAY = 60
_KEPT_KEYS = 16

_is_token = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)").fullmatch
_bearer = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([^ ]+)").fullmatch
_CHALLENGE = "Bearer"

SecretGiver = Callable[[Request[E, Any, Any]], "str | bytes | Secret | Awaitable[str | bytes | Secret]"]


@attrs.frozen
class JWTUser:
    """The subject of a token, and all of its claims."""

    sub: str | None
    claims: Mapping[str, Any]


@overload
def jwt_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    secret: SecretGiver[E],
    algorithms: Iterable[str] = ("HS256",),
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    max_length: int = 8192,
) -> Authentication[E, JWTUser]: ...
@overload
def jwt_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    secret: SecretGiver[E],
    claims: TypeForm[T],
    algorithms: Iterable[str] = ("HS256",),
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    max_length: int = 8192,
) -> Authentication[E, T]: ...
@overload
def jwt_auth(
    *,
    jwks: str,
    algorithms: Iterable[str] = ("RS256",),
    fetch: JWKSFetch | None = None,
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    max_length: int = 8192,
) -> Authentication[object, JWTUser]: ...
@overload
def jwt_auth(
    *,
    jwks: str,
    claims: TypeForm[T],
    algorithms: Iterable[str] = ("RS256",),
    fetch: JWKSFetch | None = None,
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    max_length: int = 8192,
) -> Authentication[object, T]: ...
def jwt_auth(
    env: object = options.UNNAMED,
    /,
    *,
    secret: SecretGiver[Any] | None = None,
    jwks: str | None = None,
    claims: Any = None,
    algorithms: Iterable[str] | None = None,
    fetch: JWKSFetch | None = None,
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    max_length: int = 8192,
) -> Authentication[Any, Any]:
    """Let in who brings a valid JSON Web Token; everyone else gets 401 `{"error": "Unauthorized"}`.

    `secret`: a function of the request that gives the key, for example `lambda req: req.env.JWT_SECRET`: a shared
    secret of at least as many bytes as the algorithm's hash gives (32 for HS256, 48 for HS384, 64 for HS512), or a
    public key as PEM, of RSA with at least 2048 bits. It may be async. `jwks`: the https URL of the issuer's keys instead, `fetch` what
    gets it (by default the platform's own).
    `algorithms`: an allow-list of one kind, `("HS256",)` by default and `("RS256",)` with `jwks`.
    `issuer`, `audience`: what `iss` must be and `aud` must contain, one or several. A token that names an audience is
    refused where none is expected. `required`: claims that must be there, `exp` by default.
    `leeway`: seconds by which clocks may differ, at most 60. `max_length`: characters of a token.
    `claims`: the type of `req.user`; without it, a `JWTUser`.

    `app.authenticated(jwt_auth(…))` gives handlers a typed `req.user`; `app.use(jwt_auth(…))` works too.
    Needs `pip install 'core-edge[jwt]'`. Raises OptionError and MissingExtraError; an empty secret, or one that is too
    short (RFC 7518, sections 3.2 and 3.3), is a 500, and the log says which binding to set. A key of `jwks` that is too
    short is not used.
    """
    options.named_env("jwt_auth", env)
    if (secret is None) == (jwks is None):
        raise OptionError(
            "jwt_auth() needs either secret, for example secret=lambda req: req.env.JWT_SECRET, or jwks, the https URL "
            "of the issuer's keys"
        )
    if secret is not None and not callable(secret):
        # A text here is a key in the source code, or the name of a binding: neither does what it seems to.
        raise OptionError(
            "jwt_auth(secret=…) must be a function of the request. Write secret=lambda req: req.env.JWT_SECRET"
        )
    allowed = _allow_list(algorithms, symmetric=jwks is None)
    issuers, audiences = _names("issuer", issuer), _names("audience", audience)
    needed = _names("required", required) or frozenset()
    if leeway.__class__ not in (int, float) or not 0 <= leeway <= _MOST_LEEWAY:
        raise options.refuse("jwt_auth", "leeway", leeway, f"must be a number from 0 to {_MOST_LEEWAY}, in seconds")
    options.integer("jwt_auth", "max_length", max_length, least=64, most=65_536, unit="characters")
    known = _algorithms()
    for name in sorted(allowed):
        if name not in known:
            raise MissingExtraError("pip install 'core-edge[jwt]'")
    keys = KeySet(jwks, fetch) if jwks is not None else None
    # Long enough for each algorithm that is allowed: which of them a token names is up to its sender.
    demanding = max(allowed & _LEAST_BYTES.keys(), key=_LEAST_BYTES.__getitem__, default=None)
    prepared: dict[tuple[str, bytes], Any] = {}

    async def key_for(header: Mapping[str, Any], algorithm: str, req: AnyRequest) -> Any:
        if keys is not None:
            kid = header.get("kid")
            if kid is not None and not isinstance(kid, str):
                raise _Refusal("kid is no text")
            found = await keys.find(kid, algorithm, req.clock)
            if found is None:
                raise _Refusal("no key of the issuer has this kid and algorithm")
            return found
        given = secret_bytes("jwt_auth", "secret", secret, await options.awaited(cast("Any", secret)(req)))
        if demanding is not None and len(given) < _LEAST_BYTES[demanding]:
            raise DeveloperError(
                f"jwt_auth(secret=…): {binding_of(secret)} is too short for {demanding}, which needs at least "
                f"{_LEAST_BYTES[demanding]} bytes (RFC 7518, section 3.2). Set it to what `openssl rand -base64 48` "
                "prints, and sign with the same"
            )
        key = prepared.get((algorithm, given))
        if key is None:
            try:
                key = known[algorithm].prepare_key(given)
                require_bits(rsa_bits(key, algorithm))
            except WeakKeyError as error:
                raise weak(error) from None
            except Exception as error:
                # Public keys given as HMAC secrets end here as well, which is the oldest forgery there is.
                raise DeveloperError(f"jwt_auth(secret=…) is no key for {algorithm}: {error}") from None
            if len(prepared) >= _KEPT_KEYS:
                prepared.clear()
            prepared[algorithm, given] = key
        return key

    def weak(error: WeakKeyError) -> DeveloperError:
        return DeveloperError(
            f"jwt_auth(secret=…): {binding_of(secret)} is too short: {error}. Make one with "
            "`openssl genrsa -out key.pem 2048`, and set it to its public half"
        )

    async def check(req: AnyRequest) -> Any:
        token = _token_of(req.header("authorization"), max_length)
        header = _json_of(token[1])
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in allowed:
            raise _Refusal("the algorithm is not allowed")
        if "crit" in header or header.get("b64", True) is not True:
            raise _Refusal("the header demands what is not understood")
        signature = _bytes_of(token[3])
        payload = _bytes_of(token[2])
        key = await key_for(header, algorithm, req)
        signed = f"{token[1]}.{token[2]}".encode()
        try:
            valid = await options.awaited(known[algorithm].verify(signed, key, signature))
        except WeakKeyError as error:
            # In a worker it shows when the runtime has read the key.
            raise weak(error) if keys is None else _Refusal(str(error)) from None
        except Exception:
            valid = False
        if valid is not True:
            raise _Refusal("the signature is wrong")
        found = _object_of(payload)
        _check_claims(found, req.clock.time(), leeway, needed, issuers, audiences)
        if claims is None:
            return JWTUser(found.get("sub"), found)
        from core.structure import StructureError, structure

        try:
            return structure(found, claims)
        except StructureError as error:
            raise _Refusal(f"the claims have another shape: {error}") from None

    async def authenticate(req: AnyRequest) -> Any:
        try:
            return await check(req)
        except _Refusal as refusal:
            raise refused("jwt_auth", _CHALLENGE, str(refusal), req) from None

    return Authentication("jwt_auth", authenticate)


class _Refusal(Exception):
    """The reason why a token is refused. Only the log has it."""


def _allow_list(algorithms: Iterable[str] | None, *, symmetric: bool) -> frozenset[str]:
    if algorithms is None:
        return frozenset(("HS256",) if symmetric else ("RS256",))
    if isinstance(algorithms, str):
        raise options.refuse("jwt_auth", "algorithms", algorithms, f'must be a list, for example ["{algorithms}"]')
    given = frozenset(algorithms)
    choices = (*_HMAC, *_ASYMMETRIC) if symmetric else _ASYMMETRIC
    for name in given:
        if name not in choices:
            raise options.refuse("jwt_auth", "algorithms", name, f"must be among {', '.join(choices)}")
    if not given:
        raise options.refuse("jwt_auth", "algorithms", [], "allows nothing. Name one, for example HS256")
    if given & set(_HMAC) and not given <= set(_HMAC):
        raise options.refuse(
            "jwt_auth",
            "algorithms",
            sorted(given),
            "mixes shared secrets with public keys: with both, whoever knows the public key can sign. Use one kind",
        )
    return given


def _names(option: str, value: object) -> frozenset[str] | None:
    if value is None:
        return None
    given: Iterable[object] = (value,) if isinstance(value, str) else cast("Iterable[object]", value)
    names = frozenset(options.text("jwt_auth", option, name) for name in given)
    if not names and option != "required":
        raise options.refuse("jwt_auth", option, value, "allows nobody. Leave it out to accept any")
    return names


def _algorithms() -> dict[str, Any]:
    try:
        from jwt.algorithms import get_default_algorithms
    except ImportError:
        raise MissingExtraError("pip install 'core-edge[jwt]'") from None
    known: dict[str, Any] = get_default_algorithms()
    known.pop("none", None)
    if sys.platform == "emscripten":
        # PyJWT proves shared secrets there, and has no cryptography for anything else.
        from core.middleware.webcrypto import algorithms

        known.update(algorithms())
    return known


# -- reading


def _token_of(header: str | None, max_length: int) -> re.Match[str]:
    """The three parts of the token in an Authorization header. Two headers come joined by a comma, and match nothing."""
    if header is None:
        raise _Refusal("there is no Authorization header")
    if len(header) > max_length + 16:
        raise _Refusal("the token is too long")
    bearer = _bearer(header)
    if bearer is None:
        raise _Refusal("the Authorization header is not one Bearer token")
    token = _is_token(bearer[1])
    if token is None or len(bearer[1]) > max_length:
        raise _Refusal("the token has not three parts of base64url")
    return token


def _bytes_of(part: str) -> bytes:
    from base64 import urlsafe_b64decode, urlsafe_b64encode

    try:
        data = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise _Refusal("a part is no base64url") from None
    # One value, one spelling: bits left over at the end would make two tokens of one.
    if urlsafe_b64encode(data).rstrip(b"=") != part.encode():
        raise _Refusal("a part is no canonical base64url")
    return data


def _json_of(part: str) -> dict[str, Any]:
    return _object_of(_bytes_of(part))


def _object_of(data: bytes) -> dict[str, Any]:
    """A JSON object, without NaN, infinities, duplicate names and what is nested deeply."""
    from json import JSONDecoder

    decoder = JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=parse_float)
    try:
        text = data.decode()
        check_depth(text)
        value = decoder.decode(text)
    except (ValueError, RecursionError):
        raise _Refusal("a part is no JSON") from None
    if not isinstance(value, dict):
        raise _Refusal("a part is no JSON object")
    return cast("dict[str, Any]", value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name comes twice")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# -- claims


def _check_claims(
    claims: Mapping[str, Any],
    now: float,
    leeway: float,
    required: frozenset[str],
    issuers: frozenset[str] | None,
    audiences: frozenset[str] | None,
) -> None:
    for name in sorted(required):
        if claims.get(name) is None:
            raise _Refusal(f"the claim {name} is missing")
    expires, begins, issued = (_date(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is not None and expires <= now - leeway:
        raise _Refusal("the token has expired")
    if begins is not None and begins > now + leeway:
        raise _Refusal("the token is not valid yet")
    if issued is not None and issued > now + leeway:
        raise _Refusal("the token was issued in the future")
    subject = claims.get("sub")
    if subject is not None and not isinstance(subject, str):
        raise _Refusal("sub is no text")
    if issuers is not None:
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in issuers:
            raise _Refusal("the issuer is another")
    audience = claims.get("aud")
    if audiences is None:
        if audience is not None:
            raise _Refusal("the token is for an audience, and none is expected here")
        return
    listed: list[Any] = [audience] if isinstance(audience, str) else audience if options.is_list(audience) else []
    if not all(isinstance(name, str) for name in listed) or not audiences.intersection(listed):
        raise _Refusal("the token is for another audience")


def _date(claims: Mapping[str, Any], name: str) -> float | None:
    """A date of a token, in seconds since 1970. Booleans, infinities and texts are none."""
    if name not in claims:
        return None
    value = claims[name]
    if value.__class__ is int and abs(value) < 1 << 53:
        return float(value)
    if value.__class__ is float and math.isfinite(value):
        return float(value)
    raise _Refusal(f"{name} is no date")
