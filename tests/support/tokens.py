"""JSON Web Tokens that are signed properly, whatever is in them, and the Env with their key."""

from __future__ import annotations

import base64
import hmac
from typing import Any

import attrs

NOW = 1_800_000_000
KEY = "correct horse battery staple, and enough of it for sixty-four bytes"


@attrs.frozen
class Env:
    JWT_SECRET: Any = KEY


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def raw(header: str | bytes, payload: str | bytes, key: bytes = KEY.encode(), digest: str = "sha256") -> str:
    """A token of any header and payload, properly signed."""
    parts = [b64(part.encode() if isinstance(part, str) else part) for part in (header, payload)]
    signed = ".".join(parts)
    return f"{signed}.{b64(hmac.digest(key, signed.encode(), digest))}"
