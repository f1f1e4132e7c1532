"""Passwords: what a hash is made of, which ones are right, and when one is to be made anew."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys

import pytest

from core import passwords

# The third vector of RFC 7914, section 12, as a PHC string: N = 16384, r = 8, p = 1.
RFC_7914 = (
    "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU"
    "$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw"
)


@pytest.mark.slow
async def test_a_hash_is_proven_by_its_own_password_alone() -> None:
    kept = await passwords.hash("correct horse")

    assert await passwords.verify("correct horse", kept)
    assert not await passwords.verify("correct horsf", kept)
    assert not await passwords.verify("", kept)


@pytest.mark.slow
async def test_a_hash_says_its_parameters_and_has_a_salt_of_its_own() -> None:
    one, other = await asyncio.gather(passwords.hash("same"), passwords.hash("same"))

    assert one != other
    assert one.startswith("$scrypt$ln=14,r=8,p=5$")
    assert (len(one), one.isascii()) == (88, True)
    assert not await passwords.needs_rehash(one)


async def test_a_hash_of_the_standard_is_proven_and_asks_to_be_made_anew() -> None:
    assert await passwords.verify("pleaseletmein", RFC_7914)
    assert await passwords.needs_rehash(RFC_7914)


@pytest.mark.slow
@pytest.mark.parametrize("password", ["", "pleaseletmein", "é" * 31])
async def test_a_password_with_nulls_at_its_end_is_another_one(password: str) -> None:
    kept = await passwords.hash(password)
    with_null = await passwords.hash(f"{password}\0")

    assert not await passwords.verify(f"{password}\0", kept)
    assert not await passwords.verify(f"{password}\0\0", with_null)
    assert await passwords.verify(f"{password}\0", with_null)
    assert not await passwords.verify("pleaseletmein\0", RFC_7914)


@pytest.mark.slow
async def test_a_user_who_does_not_exist_costs_as_much_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = await passwords.hash("right")
    costs: list[tuple[object, ...]] = []

    def counted(secret: bytes, *, salt: bytes, n: int, r: int, p: int, maxmem: int, dklen: int) -> bytes:
        costs.append((len(salt), n, r, p, dklen))
        return bytes(dklen)

    monkeypatch.setattr(hashlib, "scrypt", counted)

    assert not await passwords.verify("wrong", kept)
    assert not await passwords.verify("wrong", None)
    assert costs[0] == costs[1]


@pytest.mark.slow
async def test_one_character_is_one_however_the_keyboard_sends_it() -> None:
    assert await passwords.verify("cafe\N{COMBINING ACUTE ACCENT}", await passwords.hash("café"))


@pytest.mark.slow
@pytest.mark.parametrize("password", ["", "\0", "\ud800", "x" * 100_000], ids=["empty", "NUL", "surrogate", "long"])
async def test_any_text_is_a_password(password: str) -> None:
    kept = await passwords.hash(password)

    assert await passwords.verify(password, kept)
    assert not await passwords.verify(password + "x", kept)


@pytest.mark.parametrize(
    "spoiled",
    [
        "",
        "plain text",
        "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        RFC_7914.replace("ln=14", "ln=63"),
        RFC_7914.replace("ln=14,r=8", "ln=20,r=32"),
        RFC_7914.replace("ln=14", "ln=0"),
        RFC_7914.replace("p=1", "p=99"),
        RFC_7914.replace("p=1", "p=1,x=2"),
        RFC_7914 + "\n",
        RFC_7914.replace("$U29kaXVtQ2hsb3JpZGU", "$U29kaXVtQ2hsb3JpZGUxx"),
        RFC_7914.replace("$U29kaXVtQ2hsb3JpZGU", "$"),
    ],
)
async def test_what_is_no_hash_is_refused_before_any_work(spoiled: str) -> None:
    with pytest.raises(ValueError, match=r"not a hash of core\.passwords"):
        await passwords.verify("pleaseletmein", spoiled)
    with pytest.raises(ValueError, match=r"not a hash of core\.passwords"):
        await passwords.needs_rehash(spoiled)


async def test_other_requests_go_on_while_one_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    went_on = asyncio.Event()

    def slow(secret: bytes, **options: int) -> bytes:
        # It ends only when the loop has done something else meanwhile.
        asyncio.run_coroutine_threadsafe(went_on.wait(), loop).result(120)
        return bytes(options["dklen"])

    monkeypatch.setattr(hashlib, "scrypt", slow)
    hashing = asyncio.ensure_future(passwords.hash("x"))
    await asyncio.sleep(0)
    went_on.set()

    assert (await hashing).startswith("$scrypt$")


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import re, sys, core.errors; before = set(sys.modules); import core.passwords; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['core.passwords']\n"
