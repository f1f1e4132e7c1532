"""Texts that this server signed and gets back: cookies, ids of sessions.

HMAC-SHA-256 (RFC 2104). Decided here: that a signature is for one purpose, so that no signed text passes for another,
and that of several secrets the first signs and each of them proves, so that a secret can be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.bindings.secret import Secret

__all__ = ["Secrets", "keys_of", "sign", "signature", "unsign"]

Secrets = str | bytes | Secret | Sequence[str | bytes | Secret | None]
"""One secret, or several while one takes over from another: the first is the newest, None among the others is left out.
"""


def keys_of(secrets: object) -> list[bytes]:
    """The bytes of one secret or several, the newest first.

    Raises ValueError for an empty one and for none at all, TypeError for a value that is not a secret.
    """
    whole: Any = secrets  # not narrowed by what follows
    given: Sequence[object] = whole if isinstance(secrets, list | tuple) else (secrets,)
    # Of several, all but the first may be missing: an old secret is in Env only while there is one.
    return [_key_of(each) for each in (*given[:1], *(each for each in given[1:] if each is not None))] or [
        _key_of(None)
    ]


def _key_of(secret: object) -> bytes:
    text = secret.reveal() if isinstance(secret, Secret) else secret
    if isinstance(text, str):
        text = text.encode()
    if not isinstance(text, bytes | None):
        raise TypeError(f"a secret is a str, bytes or Secret, or a list of them, not {type(text).__name__}")
    if not text or not text.strip():
        raise ValueError("a secret is empty or missing")
    return text


def signature(purpose: str, text: str, key: bytes) -> str:
    """The signature of `text` for one purpose: 43 characters of base64url."""
    import hmac
    from base64 import urlsafe_b64encode

    digest = hmac.digest(key, f"core {purpose}\0{text}".encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")


def sign(purpose: str, text: str, keys: Sequence[bytes]) -> str:
    """The text and its signature, made with the first key."""
    return f"{text}.{signature(purpose, text, keys[0])}"


def unsign(purpose: str, signed: str, keys: Iterable[bytes]) -> str | None:
    """The text behind `sign`, or None where none of the keys has signed it for this purpose."""
    from hmac import compare_digest

    text, dot, given = signed.rpartition(".")
    if not dot or not given.isascii():
        return None
    # Every key is tried, so that the time does not tell which one it was.
    return text if True in [compare_digest(given, signature(purpose, text, key)) for key in keys] else None
