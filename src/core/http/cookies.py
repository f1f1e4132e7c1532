"""Cookies: reading the `Cookie` header and writing `Set-Cookie`, as RFC 6265bis and browsers have them.

A value may be any text: characters that a cookie cannot carry are percent-encoded on the way out, and decoded on the
way in. Nothing that is given here can end a field, add an attribute or begin another cookie.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from core.http.escapes import decode_leniently, percent_encode
from core.http.headers import check_name

if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

__all__ = ["SameSite", "parse_cookies", "set_cookie"]

SameSite = Literal["Strict", "Lax", "None", "strict", "lax", "none"]
"""The rule by which a browser sends the cookie on requests that another site began."""

if TYPE_CHECKING:

    class CookieScope(TypedDict, total=False):
        """The attributes by which a browser knows a cookie and may keep it. See `set_cookie`."""

        path: str | None
        domain: str | None
        secure: bool
        http_only: bool
        same_site: SameSite | None
        partitioned: bool

    class CookieAttributes(CookieScope, total=False):
        """All attributes of a cookie. See `set_cookie`."""

        max_age: int | None
        expires: datetime | None


# The characters of a value that are not encoded: cookie-octet of RFC 6265 without the percent sign.
_ODD = r"[^!#$&-+\--:<-\[\]-~]+"
_DOMAIN = r"\.?[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*"
_PATH = r"/[ -:<-~]*"

# Browsers silently drop a cookie whose name and value are longer together.
_MOST_BYTES = 4096


def parse_cookies(header: str) -> dict[str, str]:
    """The cookies of a `Cookie` header by name.

    Lenient, as servers have to be: pieces without `=` or without a name are left out, quotes around a value are taken
    off, escapes are decoded where they are whole and valid UTF-8. The first of two with one name wins: browsers send
    the one with the longer path first.
    """
    cookies: dict[str, str] = {}
    for piece in header.split(";"):
        name, equals, value = piece.partition("=")
        name = name.strip(" \t")
        if not equals or not name or name in cookies:
            continue
        value = value.strip(" \t")
        if len(value) > 1 and value[0] == '"' and value[-1] == '"':
            value = value[1:-1]
        cookies[name] = decode_leniently(value, "strict") if "%" in value else value
    return cookies


def set_cookie(
    name: str,
    value: str,
    *,
    max_age: int | None = None,
    expires: datetime | None = None,
    path: str | None = "/",
    domain: str | None = None,
    secure: bool = False,
    http_only: bool = False,
    same_site: SameSite | None = None,
    partitioned: bool = False,
) -> str:
    """The value of a `Set-Cookie` header.

    `max_age` is in seconds, 0 or less deletes; `expires` must know its time zone. Characters that a value cannot have
    are percent-encoded as UTF-8, `%` included. Name and value together are at most 4096 bytes.

    Raises ValueError or TypeError for a cookie that no browser would keep; the message names the value to write.
    """
    try:
        check_name(name)
    except TypeError:
        raise ValueError(
            f"Cookie name {name!r} is not allowed: use letters, digits and !#$%&'*+-.^_`|~, and at least one of them"
        ) from None
    if not isinstance(value, str):
        raise TypeError(f"Cookie {name}: the value must be a str, not {type(value).__name__}: write str(value)")
    encoded = percent_encode(_ODD, value)
    if len(name) + len(encoded) > _MOST_BYTES:
        raise ValueError(
            f"Cookie {name}: name and value take {len(name) + len(encoded)} bytes and browsers keep at most {_MOST_BYTES}: "
            "store the value and send a key for it"
        )
    parts = [f"{name}={encoded}"]
    if max_age is not None:
        if type(max_age) is not int:
            raise TypeError(f"Cookie {name}: max_age={max_age!r} must be an int, in seconds")
        parts.append(f"Max-Age={max_age:d}")
    if domain is not None:
        if not _fits(_DOMAIN, domain):
            raise ValueError(f"Cookie {name}: domain={domain!r} must be a host name like 'example.com'")
        parts.append(f"Domain={domain}")
    if path is not None:
        if not _fits(_PATH, path):
            raise ValueError(
                f"Cookie {name}: path={path!r} must begin with '/' and be printable ASCII without ';': percent-encode it"
            )
        parts.append(f"Path={path}")
    if expires is not None:
        parts.append(f"Expires={_http_date(name, expires)}")
    if http_only:
        parts.append("HttpOnly")
    if secure:
        parts.append("Secure")
    if same_site is not None:
        spelled = str(same_site).capitalize()
        if spelled not in ("Strict", "Lax", "None"):
            raise ValueError(f"Cookie {name}: same_site={same_site!r} must be 'Strict', 'Lax' or 'None'")
        if spelled == "None" and not secure:
            raise ValueError(f"Cookie {name}: browsers drop same_site='None' without Secure: add secure=True")
        parts.append(f"SameSite={spelled}")
    if partitioned:
        if not secure:
            raise ValueError(f"Cookie {name}: browsers drop partitioned cookies without Secure: add secure=True")
        parts.append("Partitioned")
    _check_prefix(name, secure=secure, path=path, domain=domain)
    return "; ".join(parts)


def _fits(pattern: str, given: object) -> bool:
    return isinstance(given, str) and re.fullmatch(pattern, given) is not None


def _check_prefix(name: str, *, secure: bool, path: str | None, domain: str | None) -> None:
    # Browsers compare the prefixes in any case.
    lowered = name.lower()
    if lowered.startswith(("__secure-", "__host-")) and not secure:
        raise ValueError(f"Cookie {name}: the prefix promises Secure: add secure=True")
    if lowered.startswith("__host-"):
        if path != "/":
            raise ValueError(f"Cookie {name}: the prefix __Host- promises Path=/: leave path out")
        if domain is not None:
            raise ValueError(f"Cookie {name}: the prefix __Host- promises no Domain: leave domain out")


def _http_date(name: str, moment: datetime) -> str:
    offset = getattr(moment, "utcoffset", lambda: None)()
    if offset is None:
        raise ValueError(
            f"Cookie {name}: expires={moment!r} must be a datetime that knows its zone. Write datetime(…, tzinfo=timezone.utc)"
        )
    # Imported here, because a worker pays for every module that it loads at start.
    from core.http.dates import http_date

    return http_date(moment.timestamp())
