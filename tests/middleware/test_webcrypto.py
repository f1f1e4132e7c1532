"""Calls to a worker's WebCrypto, as far as no runtime is needed; tests/runtime/test_jwks.py asks a real one."""

from __future__ import annotations

import asyncio
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from core.middleware.jwks import FetchedKeySet
from core.middleware.jwt import ASYMMETRIC
from core.middleware.webcrypto import algorithms
from core.testing import FakeClock

KEY = ec.generate_private_key(ec.SECP256R1())


def test_every_algorithm_with_public_keys_is_there() -> None:
    assert sorted(algorithms()) == sorted(ASYMMETRIC)


def test_a_key_of_a_set_is_taken_for_its_own_kind_and_without_what_is_private() -> None:
    jwk = {**json.loads(ECAlgorithm.to_jwk(KEY)), "kid": "one", "use": "sig", "key_ops": ["sign"]}
    assert "d" in jwk
    key = algorithms()["ES256"].from_jwk(jwk)
    assert key.form == "jwk"
    assert key.data == {name: jwk[name] for name in ("kty", "crv", "x", "y")}
    for other in ("RS256", "PS512", "EdDSA"):
        with pytest.raises(ValueError, match="its kty is not"):
            algorithms()[other].from_jwk(jwk)


def test_a_key_as_pem_is_read_and_anything_else_refused() -> None:
    public = KEY.public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    key = algorithms()["ES256"].prepare_key(public.public_bytes(serialization.Encoding.PEM, form))
    assert key.form == "spki"
    assert key.data == public.public_bytes(serialization.Encoding.DER, form)
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for wrong in (
        private,
        b"",
        b"a shared secret",
        b"-----BEGIN PUBLIC KEY-----\n*\n-----END PUBLIC KEY-----",
        b"\xff",
    ):
        with pytest.raises(ValueError, match=r"must be PEM|base64|ascii"):
            algorithms()["ES256"].prepare_key(wrong)


async def test_in_a_worker_every_request_asks_for_itself_until_there_are_keys() -> None:
    clock = FakeClock()
    asked: list[asyncio.Future[str]] = []

    async def fetch(url: str) -> str:
        asked.append(asyncio.get_running_loop().create_future())
        return await asked[-1]

    keys = FetchedKeySet("https://issuer.test/keys", fetch)
    keys._may_wait = False
    first = asyncio.ensure_future(keys._refresh(clock))
    second = asyncio.ensure_future(keys._refresh(clock))
    await clock.advance(0)
    assert len(asked) == 2
    asked[0].set_result('{"keys": []}')
    await first
    await keys._refresh(clock)  # there are keys, if none that fits
    assert len(asked) == 2
    asked[1].set_result('{"keys": []}')
    await second
    clock.advance(31)
    third = asyncio.ensure_future(keys._refresh(clock))
    await clock.advance(0)
    assert len(asked) == 3
    await keys._refresh(clock)  # the old keys do until the new ones are there
    asked[2].set_result("no keys")
    await third
    assert len(asked) == 3


async def test_a_request_that_was_ended_while_it_asked_does_not_open_the_door_for_all_that_follow() -> None:
    clock = FakeClock()
    asked = 0

    async def fetch(url: str) -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.Event().wait()
        raise OSError("the issuer is away")

    keys = FetchedKeySet("https://issuer.test/keys", fetch)
    keys._may_wait = False
    ended = asyncio.ensure_future(keys._refresh(clock))
    await clock.advance(0)
    clock.advance(6)
    await keys._refresh(clock)
    assert asked == 1
    clock.advance(25)
    await keys._refresh(clock)
    assert asked == 2
    await keys._refresh(clock)
    assert asked == 2
    ended.cancel()
