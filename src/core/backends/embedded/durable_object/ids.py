"""The id of a Durable Object: derived from a name, read back, and good in one namespace and jurisdiction only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

import attrs

from core.bindings.durable_object import DurableObjectId, DurableObjectJurisdiction
from core.errors import DurableObjectTypeError


@attrs.frozen
class ObjectId:
    """The id of an object. `str()` gives its 64 hex digits; two of the same digits are equal."""

    digits: str
    name: str | None = attrs.field(default=None, eq=False)
    jurisdiction: DurableObjectJurisdiction | None = attrs.field(default=None, eq=False)

    def __str__(self) -> str:
        return self.digits

    def equals(self, other: DurableObjectId, /) -> bool:
        return str(other) == self.digits


_JURISDICTIONS: Final[Sequence[DurableObjectJurisdiction | None]] = (None, "eu", "fedramp", "fedramp-high", "us")


def id_from_name(namespace: str, jurisdiction: DurableObjectJurisdiction | None, name: str) -> ObjectId:
    """The id of a name. Raises DurableObjectTypeError for anything but a str."""
    if not isinstance(name, str):
        raise DurableObjectTypeError(f"The name of a Durable Object must be a str, not {type(name).__name__}")
    key = _key(namespace, jurisdiction)
    return ObjectId(_digits(key, _mac(key, name.encode("utf-8", "surrogatepass"))), name, jurisdiction)


def id_from_digits(namespace: str, jurisdiction: DurableObjectJurisdiction | None, digits: str) -> ObjectId:
    """The id that has these digits. Raises DurableObjectTypeError for an id of another namespace or jurisdiction."""
    if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
        raise DurableObjectTypeError("Invalid Durable Object ID: must be 64 hex digits")
    head = bytes.fromhex(digits[:32])
    for allowed in _JURISDICTIONS if jurisdiction is None else (jurisdiction,):
        if _digits(_key(namespace, allowed), head) == digits:
            return ObjectId(digits, None, allowed)
    raise DurableObjectTypeError("Durable Object ID is not valid for this namespace.")


def new_id(namespace: str, jurisdiction: DurableObjectJurisdiction | None) -> ObjectId:
    return ObjectId(_digits(_key(namespace, jurisdiction), secrets.token_bytes(16)), None, jurisdiction)


def check_jurisdiction(jurisdiction: DurableObjectJurisdiction) -> None:
    if jurisdiction not in _JURISDICTIONS:
        raise DurableObjectTypeError(f'"{jurisdiction}" is not a jurisdiction: eu, fedramp, fedramp-high or us')


def _key(namespace: str, jurisdiction: str | None) -> bytes:
    scope = namespace if jurisdiction is None else f"{namespace}\0{jurisdiction}"
    return hashlib.sha256(scope.encode()).digest()


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")[:16]


def _digits(key: bytes, head: bytes) -> str:
    return (head + _mac(key, head)).hex()
