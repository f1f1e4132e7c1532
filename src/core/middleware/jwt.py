"""JSON Web Tokens: who brings one that is valid is let in, and new ones are issued under the same rules.

Decided here: that a signature is proven before anything in a token is believed, and that a client learns nothing but
yes or no; that one allow-list never mixes shared secrets with public keys, that a secret is long enough for every
algorithm it may be used for (RFC 7518), and that of several secrets the first signs and each of them proves. The form
of a token and the rules of its claims are in `jwt_token`, the public keys of an issuer in `jwks`. PyJWT
(`core-edge[jwt]`) does the cryptography, in a worker with the runtime's WebCrypto for public keys.
RFC 7515, 7519; RFC 8725 for the known attacks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, cast, overload

import attrs
from typing_extensions import TypedDict, TypeForm, TypeVar, Unpack

from core.errors import DeveloperError, MissingExtraError, OptionError
from core.http.json import dumps
from core.middleware import options
from core.middleware.authentication import Authentication, Refusal, SecretGiver, TokenSource, binding_of, secrets_of
from core.middleware.jwks import FetchedKeySet, JWKSFetch, KeySet, given_keys
from core.middleware.jwt_token import Claims, parse_token, write_part
from core.middleware.key_strength import WeakKeyError, require_bits, rsa_bits
from core.request import AnyRequest, Request

__all__ = ["JWTAuthentication", "JWTUser", "jwt_auth"]

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True, default=Any)
T = TypeVar("T")
A = TypeVar("A", default=Any)

JWKS = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A JSON Web Key Set (RFC 7517), or the list of keys in one."""

_LEAST_BYTES: Final[Mapping[str, int]] = {"HS256": 32, "HS384": 48, "HS512": 64}
_HMAC = tuple(_LEAST_BYTES)
ASYMMETRIC: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms of public keys."""
_KEPT_KEYS = 16


@attrs.frozen
class JWTUser:
    """The user of a token: its subject, and all of its claims."""

    sub: str | None
    claims: Mapping[str, Any]


if TYPE_CHECKING:

    class _Checks(TypedDict, total=False):
        """What the forms of `jwt_auth` have in common."""

        algorithms: Iterable[str]
        issuer: str | Iterable[str] | None
        audience: str | Iterable[str] | None
        required: Iterable[str]
        leeway: float
        scheme: str | None
        header: str
        cookie: str | None
        max_length: int


def _allow_list(algorithms: Iterable[str] | None, *, symmetric: bool) -> tuple[str, ...]:
    """The algorithms of an option, in their order. `symmetric`: whether shared secrets may be used at all.

    Raises OptionError for unknown ones, for none, and for both kinds at once.
    """
    if algorithms is None:
        return ("HS256",) if symmetric else ("RS256",)
    if isinstance(algorithms, str):
        raise options.refuse("jwt_auth", "algorithms", algorithms, f'must be a list, for example ["{algorithms}"]')
    given = tuple(dict.fromkeys(algorithms))
    choices = (*_HMAC, *ASYMMETRIC) if symmetric else ASYMMETRIC
    for name in given:
        if name not in choices:
            raise options.refuse("jwt_auth", "algorithms", name, f"must be among {', '.join(choices)}")
    if not given:
        raise options.refuse("jwt_auth", "algorithms", [], "allows nothing. Name one, for example HS256")
    if {*given} & {*_HMAC} and not {*given} <= {*_HMAC}:
        why = "mixes shared secrets with public keys: with both, whoever knows the public key can sign. Use one kind"
        raise options.refuse("jwt_auth", "algorithms", sorted(given), why)
    return given


def _known_algorithms(allowed: Iterable[str]) -> dict[str, object]:
    """PyJWT's algorithms, in a worker those of WebCrypto too. Raises MissingExtraError where one is missing."""
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
    if not {*allowed} <= known.keys():
        raise MissingExtraError("pip install 'core-edge[jwt]'")
    return known


class SecretKeys:
    """The keys that a function of the request gives: shared secrets, or public keys as PEM."""

    def __init__(self, secret: SecretGiver[Any], allowed: tuple[str, ...], known: Mapping[str, Any]) -> None:
        self._secret = secret
        self._known = known
        # Long enough for each algorithm that is allowed: which of them a token names is up to its sender.
        self._demanding = max(
            (name for name in allowed if name in _LEAST_BYTES), key=_LEAST_BYTES.__getitem__, default=None
        )
        self._prepared: dict[tuple[str, bytes], object] = {}

    async def candidates(self, header: Mapping[str, object], algorithm: str, req: AnyRequest) -> list[object]:
        """The keys that a token may be signed with, the newest first.

        Raises DeveloperError for one that is not a key.
        """
        return [self._prepare(given, algorithm) for given in await self._given(req)]

    async def signing_key(self, algorithm: str, req: AnyRequest) -> object:
        """The key that new tokens are signed with. Raises DeveloperError where it can only prove."""
        if algorithm not in _LEAST_BYTES:
            raise DeveloperError(
                f"jwt_auth(algorithms=[{algorithm!r}]).issue(…): a public key proves tokens and signs none. Whoever "
                "has the private key issues them, or use a shared secret with HS256"
            )
        return self._prepare((await self._given(req))[0], algorithm)

    def weak(self, error: WeakKeyError) -> DeveloperError:
        """The error for a public key that is too short."""
        return DeveloperError(
            f"jwt_auth(secret=…): {binding_of(self._secret)} is too short: {error}. Make one with "
            "`openssl genrsa -out key.pem 2048`, and set it to its public half"
        )

    async def _given(self, req: AnyRequest) -> list[bytes]:
        secrets = secrets_of("jwt_auth", "secret", self._secret, await options.awaited(self._secret(req)))
        demanding = self._demanding
        if demanding is not None and any(len(secret) < _LEAST_BYTES[demanding] for secret in secrets):
            raise DeveloperError(
                f"jwt_auth(secret=…): {binding_of(self._secret)} is too short for {demanding}, which needs at least "
                f"{_LEAST_BYTES[demanding]} bytes (RFC 7518, section 3.2). Set it to what `openssl rand -base64 48` "
                "prints, and sign with the same"
            )
        return secrets

    def _prepare(self, given: bytes, algorithm: str) -> object:
        key = self._prepared.get((algorithm, given))
        if key is None:
            try:
                key = self._known[algorithm].prepare_key(given)
                require_bits(rsa_bits(key, algorithm))
            except WeakKeyError as error:
                raise self.weak(error) from None
            except Exception as error:
                # Public keys given as HMAC secrets end here as well, which is the oldest forgery there is.
                raise DeveloperError(f"jwt_auth(secret=…) is not a key for {algorithm}: {error}") from None
            if len(self._prepared) >= _KEPT_KEYS:
                self._prepared.clear()
            self._prepared[algorithm, given] = key
        return key


class JWTAuthentication(Authentication[E_contra, A], Generic[E_contra, A]):
    """The value of `jwt_auth(secret=…)`: an authenticator and a middleware, and the issuer of the tokens that it
    accepts.

        auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=User)
        signed_in = app.authenticated(auth)

        token = await auth.issue(req, User(sub="7"), expires_in=3600)
    """

    def __init__(
        self,
        authenticate: Callable[[AnyRequest], Any],
        source: TokenSource,
        keys: SecretKeys | KeySet,
        algorithm: str,
        known: Mapping[str, Any],
        claims: Claims,
    ) -> None:
        super().__init__("jwt_auth", authenticate, source=source)
        self.keys: SecretKeys | KeySet = keys
        """The keys that prove them."""
        self._algorithm = algorithm
        self._known = known
        self.demands: Claims = claims
        """What the claims of a token must be."""

    async def issue(
        self, req: Request[E_contra, Any, Any], claims: A | Mapping[str, object], /, *, expires_in: float
    ) -> str:
        """A new token with `claims`, for `expires_in` seconds from now on: `jwt_auth` lets in who brings it.

        It is signed with the newest secret and the first of `algorithms`. `iat` and `exp` are written by the request's
        clock, `iss` and `aud` as `issuer` and `audience` demand (the first of several), unless `claims` has them.

        Raises ValueError for an `expires_in` that is not above 0, TypeError for claims that are no JSON object or whose
        `sub` is no JSON string, DeveloperError where public keys prove tokens, and for a bad secret, as a request does.
        """
        keys = self.keys
        if isinstance(keys, KeySet):
            raise DeveloperError(
                "jwt_auth(…).issue(…): the issuer of the keys issues these tokens. To issue your own, give secret"
            )
        if isinstance(expires_in, bool) or not math.isfinite(expires_in) or expires_in <= 0:
            raise ValueError(f"issue(expires_in={expires_in!r}) must be a finite number above 0, in seconds")
        key = await keys.signing_key(self._algorithm, req)
        now = int(req.clock.time())
        own: dict[str, object] = {"iat": now, "exp": now + math.ceil(expires_in)}
        if self.demands.issuers is not None:
            own["iss"] = self.demands.issuers[0]
        if self.demands.audiences is not None:
            own["aud"] = self.demands.audiences[0]
        header = write_part({"alg": self._algorithm, "typ": "JWT"})
        signed = header + b"." + write_part({**own, **_object_of(claims)})
        signature = self._known[self._algorithm].sign(signed, key)
        return (signed + b"." + write_part(signature)).decode()


def _object_of(claims: object) -> dict[str, object]:
    if isinstance(claims, JWTUser):
        claims = {**claims.claims, **({} if claims.sub is None else {"sub": claims.sub})}
    elif attrs.has(type(claims)):
        claims = attrs.asdict(cast("attrs.AttrsInstance", claims), recurse=False)
    given: Any = claims  # not narrowed by what follows
    if not isinstance(claims, Mapping):
        raise TypeError(f"issue(…) takes the claims as a mapping or an attrs instance, not {type(claims).__name__}")
    found: dict[str, object] = dict(given)
    # A UUID is a string in JSON.
    if not dumps(found.get("sub", "")).startswith('"'):
        raise TypeError("issue(…): sub is a str, as RFC 7519 demands. Write sub=str(user.id)")
    return found


@overload
def jwt_auth(
    env: TypeForm[E] = options.UNNAMED, /, *, secret: SecretGiver[E], claims: None = None, **checks: Unpack[_Checks]
) -> JWTAuthentication[E, JWTUser]: ...
@overload
def jwt_auth(
    env: TypeForm[E] = options.UNNAMED, /, *, secret: SecretGiver[E], claims: TypeForm[T], **checks: Unpack[_Checks]
) -> JWTAuthentication[E, T]: ...
@overload
def jwt_auth(
    *, jwks: str, fetch: JWKSFetch | None = None, claims: None = None, **checks: Unpack[_Checks]
) -> Authentication[object, JWTUser]: ...
@overload
def jwt_auth(
    *, jwks: str, claims: TypeForm[T], fetch: JWKSFetch | None = None, **checks: Unpack[_Checks]
) -> Authentication[object, T]: ...
@overload
def jwt_auth(*, keys: JWKS, claims: None = None, **checks: Unpack[_Checks]) -> Authentication[object, JWTUser]: ...
@overload
def jwt_auth(*, keys: JWKS, claims: TypeForm[T], **checks: Unpack[_Checks]) -> Authentication[object, T]: ...
def jwt_auth(
    env: object = options.UNNAMED,
    /,
    *,
    secret: SecretGiver[Any] | None = None,
    jwks: str | None = None,
    keys: JWKS | None = None,
    claims: object = None,
    algorithms: Iterable[str] | None = None,
    fetch: JWKSFetch | None = None,
    issuer: str | Iterable[str] | None = None,
    audience: str | Iterable[str] | None = None,
    required: Iterable[str] = ("exp",),
    leeway: float = 0,
    scheme: str | None = "Bearer",
    header: str = "Authorization",
    cookie: str | None = None,
    max_length: int = 8192,
) -> Authentication[Any, Any]:
    """Let in who brings a valid JSON Web Token; everyone else gets 401 `{"error": "Unauthorized"}`.

    `secret`: a function of the request that gives the key, for example `lambda req: req.env.JWT_SECRET`: a shared
    secret of at least as many bytes as the algorithm's hash gives (32 for HS256, 48 for HS384, 64 for HS512), or a
    public key as PEM, of RSA with at least 2048 bits. It may be async, and it may give a list while one secret takes
    over from another: the first signs, each of them proves.
    `jwks`: the https URL of the issuer's keys instead, `fetch` the function that gets them (by default the platform's
    own); or `keys`, the issuer's key set (RFC 7517) itself. `algorithms`: an allow-list of one kind, `("HS256",)` by
    default and `("RS256",)` with `jwks` and `keys`. `issuer`, `audience`: the value that `iss` must be and `aud` must
    contain, one or several. A token that names an audience is refused where none is expected. `required`: claims that
    must be there, `exp` by default. `leeway`: seconds by which clocks may differ, at most 60. `max_length`: characters
    of a token. `scheme`, `header`, `cookie`: where the token is, as `Authorization: Bearer …` by default. In another
    `header` it is alone unless `scheme` is given; `cookie` is the name of a cookie, in which it is looked for instead
    (put `csrf()` before it, since browsers send cookies along by themselves). `claims`: the type of `req.user`; without
    it, a `JWTUser`.

    `app.authenticated(jwt_auth(…))` gives handlers a typed `req.user`; `app.use(jwt_auth(…))` works too. With `secret`,
    `await auth.issue(req, {"sub": "7"}, expires_in=3600)` makes a token.
    Needs `pip install 'core-edge[jwt]'`. Raises OptionError and MissingExtraError; an empty secret, or one that is too
    short (RFC 7518, sections 3.2 and 3.3), is a 500, and the log says which binding to set. A key of `jwks` or `keys`
    that is too short is not used.
    """
    options.named_env("jwt_auth", env)
    if [secret, jwks, keys].count(None) != 2:
        raise OptionError(
            "jwt_auth() needs either secret, for example secret=lambda req: req.env.JWT_SECRET, or jwks, the https URL "
            "of the issuer's keys, or keys, these keys themselves"
        )
    options.function_of_request("jwt_auth", "secret", secret, "JWT_SECRET")
    allowed = _allow_list(algorithms, symmetric=secret is not None)
    demanded = Claims(issuer, audience, required, leeway)
    source = TokenSource("jwt_auth", scheme, header, cookie, max_length, least=64)
    known = _known_algorithms(allowed)
    proving: SecretKeys | KeySet
    if secret is not None:
        proving = SecretKeys(secret, allowed, known)
    else:
        proving = FetchedKeySet(jwks, fetch) if jwks is not None else given_keys(keys)

    async def authenticate(req: AnyRequest) -> object:
        token = parse_token(source.read(req))
        algorithm = token.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in allowed:
            raise Refusal("the algorithm is not allowed")

        async def is_signed() -> bool:
            for key in await proving.candidates(token.header, algorithm, req):
                if await _proves(known[algorithm], token.signed, key, token.signature, proving):
                    return True
            return False

        if not await is_signed():
            # A token that names no key may be signed with one that the issuer has newly.
            renewed = isinstance(proving, FetchedKeySet) and await proving.renew(token.header, req)
            if not (renewed and await is_signed()):
                raise Refusal("the signature is wrong")
        found = token.claims()
        demanded.check(found, req.clock.time())
        return _user_of(found, claims)

    return JWTAuthentication(authenticate, source, proving, allowed[0], known, demanded)


async def _proves(algorithm: Any, signed: bytes, key: Any, signature: bytes, keys: SecretKeys | KeySet) -> bool:
    try:
        return await options.awaited(algorithm.verify(signed, key, signature)) is True
    except WeakKeyError as error:
        # In a worker it shows when the runtime has read the key.
        raise keys.weak(error) if isinstance(keys, SecretKeys) else Refusal(str(error)) from None
    except Exception:
        return False


def _user_of(claims: dict[str, Any], type_: Any) -> Any:
    if type_ is None:
        return JWTUser(claims.get("sub"), claims)
    from core.validation.structure import structure

    try:
        return structure(claims, type_)
    except ValueError as error:
        raise Refusal(f"the claims have another shape: {error}") from None
