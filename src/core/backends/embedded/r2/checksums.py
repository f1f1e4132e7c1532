"""Checksums that a `put` is given, and the customer's key of SSE-C, of which R2 keeps the MD5."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from core.backends.embedded.r2.errors import refuse
from core.bindings.r2 import R2Hash
from core.errors import R2Error, R2TypeError

_ALGORITHMS: Final = {
    "md5": ("MD5", 16),
    "sha1": ("SHA-1", 20),
    "sha256": ("SHA-256", 32),
    "sha384": ("SHA-384", 48),
    "sha512": ("SHA-512", 64),
}


def given_checksum(hashes: Mapping[str, R2Hash | None]) -> tuple[str, bytes] | None:
    """The one checksum that was given, as its algorithm and its bytes; None without one.

    Raises R2TypeError for several, and for one of the wrong length or type.
    """
    found: tuple[str, bytes] | None = None
    for algorithm, value in hashes.items():
        if value is None:
            continue
        if found is not None:
            raise R2TypeError("You cannot specify multiple hashing algorithms.")
        found = (algorithm, _read_digest(algorithm, value))
    return found


def _read_digest(algorithm: str, value: R2Hash) -> bytes:
    name, size = _ALGORITHMS[algorithm]
    if isinstance(value, (bytes, bytearray, memoryview)):
        if len(value) != size:
            raise R2TypeError(f"{name} is {size} bytes, not {len(value)}")
        return bytes(value)
    if not isinstance(value, str):
        raise R2TypeError(f"{algorithm} must be hex digits or bytes, not {type(value).__name__}")
    if len(value) != 2 * size:
        raise R2TypeError(f"{name} is {2 * size} hex characters, not {len(value)}")
    if not re.fullmatch("[0-9a-fA-F]+", value):
        raise R2TypeError(f"Provided {name} wasn't a valid hex string")
    return bytes.fromhex(value)


def check_digest(algorithm: str, given: bytes, actual: bytes) -> None:
    """Refuse a value whose digest is another than the one that was given."""
    if given != actual:
        name = _ALGORITHMS[algorithm][0]
        refuse(
            "put",
            10037,
            f"The {name} checksum you specified did not match what we received.\n"
            f"You provided a {name} checksum with value: {given.hex()}\nActual {name} was: {actual.hex()}",
        )


def ssec_key_md5(key: R2Hash | None) -> str | None:
    """The MD5 of a customer's key, in hex. The embedded bucket keeps it, and encrypts nothing."""
    if key is None:
        return None
    if isinstance(key, str):
        if not re.fullmatch("[0-9a-f]+", key):
            raise R2Error("SSE-C Key has invalid format")
        if len(key) != 64:
            raise R2Error("SSE-C Key must be 32 bytes in length")
        key = bytes.fromhex(key)
    elif len(key) != 32:
        raise R2Error("SSE-C Key must be 32 bytes in length")
    return hashlib.md5(bytes(key), usedforsecurity=False).hexdigest()
