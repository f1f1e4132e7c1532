"""The least size of an RSA key in JSON Web Tokens (RFC 7518, sections 3.3 and 3.5), whoever proves the signature.

Keys of other kinds have the size of their algorithm.
"""

from __future__ import annotations

from typing import Final

__all__ = ["WeakKeyError", "require_bits", "rsa_bits"]

_LEAST_RSA_BITS: Final = 2048


class WeakKeyError(ValueError):
    """A key that is too short for its algorithm. The message ends with a length that is enough."""


def require_bits(bits: object) -> None:
    """Raise WeakKeyError for an RSA key of fewer bits than RFC 7518 demands; None is a key of another kind."""
    if isinstance(bits, int) and bits < _LEAST_RSA_BITS:
        raise WeakKeyError(
            f"an RSA key has at least {_LEAST_RSA_BITS} bits (RFC 7518, section 3.3), and this one {bits}"
        )


def rsa_bits(key: object, algorithm: str) -> object:
    """The bits of a key that PyJWT prepared, where it is one of RSA."""
    return getattr(key, "key_size", None) if algorithm[:2] in ("RS", "PS") else None
