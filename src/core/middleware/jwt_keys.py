"""The keys that JSON Web Tokens are proven with, and the algorithms that they may be used for (RFC 7518).

Decided here: that one allow-list never mixes shared secrets with public keys, that a secret is long enough for every
algorithm it may be used for, and that of several secrets the first signs and each of them proves. PyJWT
(`core-edge[jwt]`) does the cryptography, in a worker with the runtime's WebCrypto for public keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from core.errors import DeveloperError, MissingExtraError
from core.middleware import options
from core.middleware.authentication import SecretGiver, binding_of, secrets_of
from core.middleware.key_strength import WeakKeyError, require_bits, rsa_bits
from core.request import AnyRequest

_LEAST_BYTES: Final[Mapping[str, int]] = {"HS256": 32, "HS384": 48, "HS512": 64}
_HMAC = tuple(_LEAST_BYTES)
ASYMMETRIC: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms of public keys."""
_KEPT_KEYS = 16


def allow_list(algorithms: Iterable[str] | None, *, symmetric: bool) -> tuple[str, ...]:
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
        raise options.refuse(
            "jwt_auth",
            "algorithms",
            sorted(given),
            "mixes shared secrets with public keys: with both, whoever knows the public key can sign. Use one kind",
        )
    return given


def known_algorithms(allowed: Iterable[str]) -> dict[str, Any]:
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
        self._prepared: dict[tuple[str, bytes], Any] = {}

    async def candidates(self, header: Mapping[str, Any], algorithm: str, req: AnyRequest) -> list[Any]:
        """The keys that a token may be signed with, the newest first.

        Raises DeveloperError for one that is not a key.
        """
        return [self._prepare(given, algorithm) for given in await self._given(req)]

    async def signing_key(self, algorithm: str, req: AnyRequest) -> Any:
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

    def _prepare(self, given: bytes, algorithm: str) -> Any:
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
