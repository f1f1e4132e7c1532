"""The values in a recorded test: what may differ, what stands in for a secret, and the answer that is expected."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

import attrs

from core.middleware.authentication import Refusal
from core.middleware.jwt_token import parse_token, write_part
from core.signing import sign

Record = dict[str, Any]
"""A row of a table, a key with its value, an object with its body, an alarm (`alarm`, in milliseconds since 1970), a
message, or what a rate limit has counted (`key`, `count`).
"""
State = dict[str, list[Record]]
"""Records by their place: `DB.users` is a table of the binding DB, `ROOM[lobby]` the storage of the Durable Object
lobby, `ROOM[lobby].lines` a table there, any other binding a place by itself.
"""
_PLACE: Final = re.compile(r"([^.\[]*)(?:\[(.*)\])?(?:\.(.*))?", re.DOTALL)


def parts_of(place: str) -> tuple[str, str | None, str | None]:
    """The binding, the Durable Object and the table of a place."""
    found = _PLACE.fullmatch(place)
    assert found is not None
    return found[1], found[2], found[3]


_HASHES: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_NEVER: Final = 4_102_444_800


def mapped(value: object, change: Callable[[object, str], object], name: str = "") -> Any:
    """A value with `change(part, name)` for every part that is no dict and no list; its name is the key above it."""
    match value:
        case dict():
            return {key: mapped(each, change, str(key)) for key, each in cast("dict[object, object]", value).items()}
        case list():
            return [mapped(each, change, name) for each in cast("list[object]", value)]
        case _:
            return change(value, name)


class _Any:
    """Equal to every value that fits."""

    def __init__(self, name: str, fits: Callable[[object], bool]) -> None:
        self._name = name
        self._fits = fits

    def __eq__(self, other: object) -> bool:
        return other is self or self._fits(other)

    def __repr__(self) -> str:
        return self._name


def is_time(value: object) -> bool:
    """True for a date, also as text (ISO 8601, or that of HTTP), or as seconds or milliseconds of this century."""
    if isinstance(value, datetime):
        return True
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 1e9 <= value < 4.2e9 or 1e12 <= value < 4.2e12
    if not isinstance(value, str):
        return False
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            read(value)
        except ValueError:
            continue
        return not value.isdigit()
    return False


def is_id(value: object) -> bool:
    """True for what may name something: a text that is not empty, bytes, or a number."""
    return isinstance(value, int | float | str | bytes) and not isinstance(value, bool) and value not in ("", b"")


ANY_TIME: Any = _Any("ANY_TIME", is_time)
"""Equal to every time: a date, also as text, or seconds or milliseconds since 1970."""
ANY_ID: Any = _Any("ANY_ID", is_id)
"""Equal to every number, and to every text that is not empty: an id, a token, a hash with a salt."""


class StandIn:
    """A value of a request that is made of a secret of the test's Env when the request is sent."""

    def text(self, reveal: Callable[[str], str]) -> str:
        """The value, by a function that gives a secret by its name."""
        raise NotImplementedError


@attrs.frozen
class Jwt(StandIn):
    """A JWT with `claims`, signed with the secret of the Env that is named `secret`, behind a `scheme` where it has
    one. One that had not expired does so in the year 2100, since libraries may follow the machine's clock.
    """

    secret: str
    claims: Mapping[str, Any]
    scheme: str = ""
    algorithm: str = "HS256"

    @classmethod
    def read(cls, token: str, secrets: Mapping[str, str], scheme: str, now: float) -> Jwt | None:
        """The token, where one of the secrets has signed it."""
        try:
            read = parse_token(token)
            claims: dict[str, Any] = read.claims()
            algorithm = str(read.header["alg"])
            for name, secret in secrets.items():
                if hmac.compare_digest(hmac.digest(secret.encode(), read.signed, _HASHES[algorithm]), read.signature):
                    if claims.get("exp", 0) > now:
                        claims["exp"] = _NEVER
                    return cls(name, claims, scheme, algorithm)
        except (Refusal, KeyError, TypeError):
            pass
        return None

    def text(self, reveal: Callable[[str], str]) -> str:
        signed = b".".join(map(write_part, ({"alg": self.algorithm, "typ": "JWT"}, self.claims)))
        digest = hmac.digest(reveal(self.secret).encode(), signed, _HASHES[self.algorithm])
        return f"{self.scheme} {signed.decode()}.{write_part(digest).decode()}".lstrip()


@attrs.frozen
class Signed(StandIn):
    """A text signed with the secret of the Env that is named `secret`, as cookies and ids of sessions are."""

    secret: str
    purpose: str
    signed: str

    def text(self, reveal: Callable[[str], str]) -> str:
        return sign(self.purpose, self.signed, [reveal(self.secret).encode()])


@attrs.frozen
class Revealed(StandIn):
    """The secret of the Env that is named `secret`, behind a `scheme` where it has one."""

    secret: str
    scheme: str = ""

    def text(self, reveal: Callable[[str], str]) -> str:
        return f"{self.scheme} {reveal(self.secret)}".lstrip()


@attrs.frozen
class Sent:
    """A request as a recorded test has it. Values may be a `StandIn`; `json` is left out as `...`."""

    method: str
    url: str
    headers: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    cookies: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    json: Any = ...
    body: str | bytes | None = None


@attrs.frozen
class Answer:
    """An answer, and the records that were there after it (`added`) or before it (`removed`) alone.

    `body` is what JSON says, else text, or bytes that are no text; None where there is none. `location` is the header.
    A record that was changed is in both. The order of records does not count.
    """

    status: int
    body: Any = None
    location: str | None = None
    added: Mapping[str, list[Record]] = attrs.field(factory=dict[str, list[Record]])
    removed: Mapping[str, list[Record]] = attrs.field(factory=dict[str, list[Record]])


class Unordered(list[Record]):
    """Records that equal the same ones in another order."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list):
            return False
        left, records = [*self], cast("list[object]", other)
        # Records with fewer values that may differ choose first.
        for record in sorted(records, key=lambda each: repr(each).count("ANY_")):
            if record not in left:
                return False
            left.remove(cast("Record", record))
        return not left

    def __ne__(self, other: object) -> bool:
        return not self == other
