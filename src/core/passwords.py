"""Passwords, kept as hashes that are slow to guess: scrypt (RFC 7914) with a salt of its own for each.

Decided here: the cost, the one format, and that a hash made on one host is proven on every other. `hashlib` does the
work on CPython, in a thread; in a worker, whose Python has no scrypt, the runtime's own `node:crypto`. WebCrypto has no
scrypt, and its PBKDF2 stops at 100,000 rounds on the hosted platform, a sixth of the advised number.

The format is the PHC string `$scrypt$ln=14,r=8,p=5$salt$hash`, both in base64 without padding.
https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md
"""

from __future__ import annotations

import re
import sys
from typing import Any

from core.errors import DeveloperError

__all__ = ["hash", "needs_rehash", "verify"]

# As OWASP advises for 16 MiB at a time, since all of a worker has 128: N = 2^14, r = 8, p = 5.
_COST = (14, 8, 5)
_SALT_BYTES = 16
_HASH_BYTES = 32
# A hash is read from a database. What it may demand has a bound, so that a spoiled one cannot take all memory.
_MOST_COST = (20, 32, 16)
_MOST_MEMORY = 256 << 20

_read = re.compile(
    r"\$scrypt\$ln=([0-9]{1,2}),r=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})"
).fullmatch


async def hash(password: str) -> str:
    """Return the hash of `password` to keep, with a new random salt: 88 ASCII characters, the parameters among them.

    It takes about a third of a second of CPU time and 16 MiB, on purpose. Limit how often a client may ask for it, and
    how long a body may be (`rate_limit`, `body_limit`).
    Raises DeveloperError in a worker without the compatibility flag `nodejs_compat`.
    """
    from os import urandom

    salt = urandom(_SALT_BYTES)
    ln, r, p = _COST
    return f"$scrypt$ln={ln},r={r},p={p}${_encode(salt)}${_encode(await _scrypt(password, salt, _COST, _HASH_BYTES))}"


async def verify(password: str, hash: str | None) -> bool:
    """Return True if `password` is the one that `hash` was made of, compared in constant time.

    None stands for a user who does not exist: it takes as long as a wrong password and is False, so that nobody learns
    from the time which names are taken.
    Raises ValueError for a string that is not a hash of this format, and DeveloperError as `hash` does.
    """
    from hmac import compare_digest

    if hash is None:
        await _scrypt(password, bytes(_SALT_BYTES), _COST, _HASH_BYTES)
        return False
    cost, salt, expected = _parse(hash)
    return compare_digest(await _scrypt(password, salt, cost, len(expected)), expected)


async def needs_rehash(hash: str) -> bool:
    """Return True if `hash` was made at another cost than `hash()` has today.
    Ask when a sign-in has succeeded, and keep a new one.

    Raises ValueError for a string that is not a hash of this format.
    """
    cost, salt, expected = _parse(hash)
    return (cost, len(salt), len(expected)) != (_COST, _SALT_BYTES, _HASH_BYTES)


async def _scrypt(password: str, salt: bytes, cost: tuple[int, int, int], length: int) -> bytes:
    from unicodedata import normalize

    # One keyboard sends "é" as one character and another as two (RFC 8265, section 4.2). JSON may hold half a
    # surrogate.
    secret = normalize("NFC", password).encode("utf-8", "surrogatepass")
    # scrypt takes the password as a key of HMAC, which fills one of less than 64 bytes up with zeros (RFC 2104): "a"
    # and "a\0" would be one. 0xff stands in no text, so nothing else becomes equal, and no other hash changes.
    if secret.endswith(b"\0") and len(secret) <= 64:
        secret += b"\xff"
    ln, r, p = cost
    if sys.platform == "emscripten":
        return _in_worker(secret, salt, cost, length)
    from asyncio import to_thread
    from hashlib import scrypt

    return await to_thread(
        scrypt, secret, salt=salt, n=1 << ln, r=r, p=p, maxmem=_MOST_MEMORY + (1 << 20), dklen=length
    )


def _in_worker(secret: bytes, salt: bytes, cost: tuple[int, int, int], length: int) -> bytes:
    import js
    from pyodide import ffi

    runtime: Any = js
    to_js: Any = ffi.to_js
    process: Any = getattr(runtime, "process", None)
    if not hasattr(process, "getBuiltinModule"):
        raise DeveloperError(
            "core.passwords needs the runtime's node:crypto, since Python in a worker has no scrypt. Add "
            '"nodejs_compat" to compatibility_flags in wrangler.toml'
        )
    ln, r, p = cost
    options = to_js(
        {"N": 1 << ln, "r": r, "p": p, "maxmem": _MOST_MEMORY + (1 << 20)}, dict_converter=runtime.Object.fromEntries
    )
    scrypt = process.getBuiltinModule("node:crypto").scryptSync
    derive = scrypt.bind(None, to_js(secret), to_js(salt), length, options)
    # A Node Buffer, which scrypt returns, cannot cross to Pyodide. It stays in JavaScript; its numbers come across.
    return bytes(to_js([0]).map(derive).flatMap(runtime.Object.values).to_py())


def _parse(hash: str) -> tuple[tuple[int, int, int], bytes, bytes]:
    from binascii import Error

    found = _read(hash)
    if found is not None:
        ln, r, p = cost = (int(found[1]), int(found[2]), int(found[3]))
        fits = all(1 <= given <= most for given, most in zip(cost, _MOST_COST, strict=True))
        if fits and (128 * r << ln) + 128 * r * p <= _MOST_MEMORY:
            try:
                return cost, _decode(found[4]), _decode(found[5])
            except Error:
                pass
    raise ValueError(
        "this is not a hash of core.passwords, which begins with $scrypt$. Hashes of another kind need their own library"
    )


def _decode(text: str) -> bytes:
    from binascii import a2b_base64

    return a2b_base64(text + "=" * (-len(text) % 4))


def _encode(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).rstrip(b"=").decode()
