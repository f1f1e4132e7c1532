"""The public keys of an issuer (JSON Web Key Set, RFC 7517): given as they are, or fetched when first needed and kept.

Decided here: how often the issuer is asked. Once for everyone who waits at the same time; again when
the keys are old, or when a token names a key that is not there or names none and is signed with another, but then at
most every half minute, so that made-up tokens cannot turn this server against the issuer. In a worker no request may
wait for what another one began: those that come while there are no keys yet ask each for themselves.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from core.context import Clock
from core.errors import CoreError, OptionError
from core.http import json
from core.middleware.authentication import Refusal
from core.middleware.key_strength import require_bits, rsa_bits
from core.request import AnyRequest
from core.values import is_array, is_object

__all__ = ["FetchedKeySet", "JWKSFetch", "KeySet", "fetch_text", "given_keys"]

log: logging.Logger = logging.getLogger("core")

JWKSFetch = Callable[[str], Awaitable[bytes | str]]
"""Gets the text under an https URL; raises for anything but a 200."""

_KEPT_SECONDS = 600.0
_PAUSE_SECONDS = 30.0
_MOST_BYTES = 1 << 20
_MOST_KEYS = 100
_TIMEOUT_SECONDS = 5.0

_FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


class KeySet:
    """Public keys by `kid`: those that are given once and for all."""

    def __init__(self, keys: list[dict[str, object]], name: str) -> None:
        self._keys = keys
        self._name = name
        self._prepared: dict[tuple[int, str], object] = {}

    async def candidates(self, header: Mapping[str, object], algorithm: str, req: AnyRequest) -> list[object]:
        """The key for a token with that header, prepared for `algorithm`. Raises Refusal where there is none."""
        kid = header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise Refusal("kid is not a string")
        found = await self.find(kid, algorithm, req.clock)
        if found is None:
            raise Refusal("no key of the issuer has this kid and algorithm")
        return [found]

    async def find(self, kid: str | None, algorithm: str, clock: Clock) -> object:
        """The key of that name, or the only one for `algorithm` where a token names none; None where there is none."""
        return self._key(kid, algorithm)

    def _key(self, kid: str | None, algorithm: str) -> object:
        kty = _FAMILIES[algorithm[:2]]
        fitting = [
            (number, key)
            for number, key in enumerate(self._keys)
            if key.get("kty") == kty
            and key.get("use", "sig") == "sig"
            and _may_verify(key.get("key_ops"))
            and key.get("alg", algorithm) == algorithm
            and (kid is None or key.get("kid") == kid)
        ]
        # Without a kid only a single candidate can be meant.
        if len(fitting) != 1:
            return None
        number, key = fitting[0]
        prepared = self._prepared.get((number, algorithm))
        if prepared is None:
            try:
                prepared = _prepare(key, algorithm)
            except Exception as error:
                log.warning("%s has a key that cannot be used: %s", self._name, error)
                return None
            self._prepared[number, algorithm] = prepared
        return prepared


def _may_verify(operations: object) -> bool:
    """True if the operations that a key is for, where it names them, have that of proving signatures."""
    return operations is None or (is_array(operations) and "verify" in operations)


def given_keys(keys: object) -> KeySet:
    """The keys of the option `keys`: a set (RFC 7517), or the list in one.

    Raises OptionError for anything else, for a key of another kind, and for a private one: nobody needs it to prove.
    """
    listed: Any = keys.get("keys") if is_object(keys) else keys
    given = listed  # not narrowed by what follows
    if not isinstance(listed, list | tuple) or not listed:
        raise OptionError('jwt_auth(keys=…) must be a JSON Web Key Set, {"keys": [{"kty": …}]}, or the list in it')
    for key in given:
        if not is_object(key) or key.get("kty") not in _FAMILIES.values():
            raise OptionError("jwt_auth(keys=…): each key is public, an object whose kty is RSA, EC or OKP")
        if "d" in key:
            raise OptionError(
                "jwt_auth(keys=…) has a private key, which signs tokens. Give its public half, without the member d"
            )
    return KeySet([*given], "jwt_auth(keys=…)")


class FetchedKeySet(KeySet):
    """The keys under one URL, by `kid`."""

    def __init__(self, url: str, fetch: JWKSFetch | None = None) -> None:
        if not str(url).startswith("https://"):
            raise OptionError(
                f"jwt_auth(jwks={url!r}) must begin with https://: keys that anyone on the way can change prove nothing"
            )
        super().__init__([], url)
        self.url = url
        self._fetch = fetch if fetch is not None else fetch_text
        self._fetched: float | None = None
        self._tried: float | None = None
        self._under_way: asyncio.Task[None] | None = None
        self._may_wait: bool = sys.platform != "emscripten"

    async def find(self, kid: str | None, algorithm: str, clock: Clock) -> object:
        """As of a `KeySet`. Raises CoreError(503) while there are no keys at all."""
        now = clock.monotonic()
        if self._fetched is None or now - self._fetched >= _KEPT_SECONDS:
            await self._refresh(clock)
        key = self._key(kid, algorithm)
        if key is None:
            await self._refresh(clock)
            key = self._key(kid, algorithm)
        if self._fetched is None:
            raise CoreError(503, "Service Unavailable")
        return key

    async def renew(self, header: Mapping[str, object], req: AnyRequest) -> bool:
        """Return True where there are newer keys now, for a token that names none and that ours do not prove."""
        if header.get("kid") is not None:
            return False
        before = self._fetched
        await self._refresh(req.clock)
        return self._fetched != before

    async def _refresh(self, clock: Clock) -> None:
        """Fetch the keys, or wait for who does already; nothing within the pause after the last try."""
        now, under_way = clock.monotonic(), self._under_way
        since = math.inf if self._tried is None else now - self._tried
        pause = _PAUSE_SECONDS
        if under_way is not None and not self._may_wait:
            # The runtime ends a request that waits for another one's work. Who asks may have been ended meanwhile, and
            # will not say so; the time that an answer may take tells.
            under_way = None
            if self._fetched is None and since < _TIMEOUT_SECONDS:
                pause = 0.0
        if under_way is None:
            if since < pause:
                return
            self._tried = now
            under_way = self._under_way = asyncio.ensure_future(self._load(now))
            under_way.add_done_callback(self._landed)
        # Whoever started it may go away; the others still wait for it.
        await asyncio.shield(under_way)

    def _landed(self, task: asyncio.Task[None]) -> None:
        if self._under_way is task:
            self._under_way = None

    async def _load(self, now: float) -> None:
        try:
            text = await self._fetch(self.url)
            if len(text) > _MOST_BYTES:
                raise ValueError(f"it is longer than {_MOST_BYTES} bytes")
            document = json.loads(text)
            keys: Any = document["keys"]
            if not is_array(keys) or len(keys) > _MOST_KEYS:
                raise ValueError(f"`keys` is not a list of at most {_MOST_KEYS}")
            listed = [key for key in keys if is_object(key)]
        except Exception as error:
            # Old keys are better than none: an issuer that is away for a while locks nobody out.
            log.warning("the keys under %s could not be fetched: %s: %s", self.url, type(error).__name__, error)
            return
        self._keys = listed
        self._prepared.clear()
        self._fetched = now


def _prepare(key: dict[str, object], algorithm: str) -> object:
    """A key of the set as `jwt_auth` wants it for `algorithm`. Raises for one that is not usable."""
    if sys.platform == "emscripten":
        from core.middleware.webcrypto import algorithms

        return algorithms()[algorithm].from_jwk(key)
    from jwt import PyJWK

    prepared: Any = PyJWK(key, algorithm).key
    require_bits(rsa_bits(prepared, algorithm))
    return prepared


async def fetch_text(url: str) -> bytes:
    """The text under an https URL, by the runtime's `fetch` in a worker and by the standard library elsewhere.

    Redirects are not followed, an answer takes at most five seconds and one MiB. Raises for all but a 200.
    """
    if sys.platform == "emscripten":
        import js

        runtime: Any = js
        response: Any = await runtime.fetch(
            url, redirect="manual", signal=runtime.AbortSignal.timeout(int(_TIMEOUT_SECONDS * 1000))
        )
        if int(response.status) != 200:
            raise OSError(f"it answered with the status {response.status}")
        return str(await response.text()).encode()
    return await asyncio.to_thread(_fetch_blocking, url)


def _fetch_blocking(url: str) -> bytes:
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            return None

    opener = build_opener(Stay)
    with opener.open(Request(url, headers={"Accept": "application/json"}), timeout=_TIMEOUT_SECONDS) as response:
        data: bytes = response.read(_MOST_BYTES + 1)
        return data
