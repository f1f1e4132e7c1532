"""A JSON Web Token as text, and the rules of its claims (RFC 7515, section 7.1; RFC 7519, section 4.1).

Reading is stricter than PyJWT's own: no foreign characters in base64, one spelling for one value, no duplicate names
and no `NaN` in the JSON. Nothing here proves a signature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs

from core.http.json import check_depth, dumps, parse_float
from core.middleware import options
from core.middleware.authentication import Refusal
from core.values import is_array, is_object

_MOST_LEEWAY: Final = 60

_is_token = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)").fullmatch


@attrs.frozen
class CompactToken:
    """The three parts of a token. Its claims are not to be read before the signature is proven."""

    header: Mapping[str, object]
    signed: bytes
    """The bytes that are signed."""
    payload: bytes
    signature: bytes

    def claims(self) -> dict[str, object]:
        """The claims. Raises Refusal for anything but a JSON object."""
        return _object_of(self.payload)


def parse_token(text: str) -> CompactToken:
    """Read a token. Raises Refusal for every text that is none."""
    parts = _is_token(text)
    if parts is None:
        raise Refusal("the token has not three parts of base64url")
    header = _object_of(_bytes_of(parts[1]))
    if "crit" in header or header.get("b64", True) is not True:
        raise Refusal("the header demands what is not understood")
    return CompactToken(header, f"{parts[1]}.{parts[2]}".encode(), _bytes_of(parts[2]), _bytes_of(parts[3]))


def write_part(value: object) -> bytes:
    """One part of a token: bytes as they are, everything else as JSON."""
    from base64 import urlsafe_b64encode

    data = value if isinstance(value, bytes) else dumps(value).encode()
    return urlsafe_b64encode(data).rstrip(b"=")


def _bytes_of(part: str) -> bytes:
    from base64 import urlsafe_b64decode

    try:
        data = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise Refusal("a part is not base64url") from None
    # One value, one spelling: bits left over at the end would make two tokens of one.
    if write_part(data) != part.encode():
        raise Refusal("a part is not canonical base64url")
    return data


def _object_of(data: bytes) -> dict[str, object]:
    """A JSON object, without NaN, infinities, duplicate names and deep nesting."""
    from json import JSONDecoder

    decoder = JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=parse_float)
    try:
        text = data.decode()
        check_depth(text)
        value = decoder.decode(text)
    except (ValueError, RecursionError):
        raise Refusal("a part is not JSON") from None
    if not is_object(value):
        raise Refusal("a part is not a JSON object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name comes twice")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class Claims:
    """The demands of `jwt_auth` on the claims of a token. Raises OptionError for options that cannot be."""

    def __init__(self, issuer: object, audience: object, required: Iterable[str], leeway: float) -> None:
        self.issuers: tuple[str, ...] | None = _names("issuer", issuer)
        self.audiences: tuple[str, ...] | None = _names("audience", audience)
        self._required = _names("required", required) or ()
        if leeway.__class__ not in (int, float) or not 0 <= leeway <= _MOST_LEEWAY:
            raise options.refuse("jwt_auth", "leeway", leeway, f"must be a number from 0 to {_MOST_LEEWAY}, in seconds")
        self._leeway = leeway

    def check(self, claims: Mapping[str, object], now: float) -> None:
        """Raise Refusal where a claim is missing or wrong. `now` in seconds since 1970."""
        for name in sorted(self._required):
            if claims.get(name) is None:
                raise Refusal(f"the claim {name} is missing")
        expires, begins, issued = (_date(claims, name) for name in ("exp", "nbf", "iat"))
        if expires is not None and expires <= now - self._leeway:
            raise Refusal("the token has expired")
        if begins is not None and begins > now + self._leeway:
            raise Refusal("the token is not valid yet")
        if issued is not None and issued > now + self._leeway:
            raise Refusal("the token was issued in the future")
        subject = claims.get("sub")
        if subject is not None and not isinstance(subject, str):
            raise Refusal("sub is not a string")
        if self.issuers is not None:
            issuer = claims.get("iss")
            if not isinstance(issuer, str) or issuer not in self.issuers:
                raise Refusal("the issuer is another")
        self._check_audience(claims.get("aud"))

    def _check_audience(self, audience: object) -> None:
        if self.audiences is None:
            if audience is not None:
                raise Refusal("the token is for an audience, and none is expected here")
            return
        listed: list[object] = [audience] if isinstance(audience, str) else audience if is_array(audience) else []
        if not all(isinstance(name, str) for name in listed) or not set(self.audiences).intersection(listed):
            raise Refusal("the token is for another audience")


def _names(option: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    given: Iterable[object] = (value,) if isinstance(value, str) else cast("Iterable[object]", value)
    names = tuple(options.text("jwt_auth", option, name) for name in given)
    if not names and option != "required":
        raise options.refuse("jwt_auth", option, value, "allows nobody. Leave it out to accept any")
    return names


def _date(claims: Mapping[str, Any], name: str) -> float | None:
    """A date of a token, in seconds since 1970. Booleans, infinities and texts are none."""
    if name not in claims:
        return None
    value = claims[name]
    if value.__class__ is int and abs(value) < 1 << 53:
        return float(value)
    if value.__class__ is float and math.isfinite(value):
        return float(value)
    raise Refusal(f"{name} is not a date")
