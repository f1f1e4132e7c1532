"""URLs of the web, as the WHATWG URL standard parses and writes them. Their paths are in `core.http.paths`.

Only http, https, ws and wss: a request can be sent to no other. A URL with nothing to normalise, as nearly all are, is
recognised by one regular expression and passed on as it is. https://url.spec.whatwg.org/
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from core.http.escapes import decode_leniently, parse_query, percent_encode
from core.http.paths import CANONICAL, canonical_path, join_segments
from core.http.streams import well_formed

if TYPE_CHECKING:
    from core.http.query import URLSearchParams

_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}

# The percent-encode sets of the standard, each as a pattern of the encoded characters. Compiled (and kept by `re`) when
# first wanted, as every expression here that a plain request does not meet: compiling them all would be most of this
# file's import.
_IN_QUERY = r"[^!$-&(-;=?-~]+"
_IN_FRAGMENT = r"[^!#-;=?-_a-~]+"
_IN_USERINFO = r"[^!$-.0-9A-Z_a-z~]+"

_ODD_IN_QUERY = r"[^!$&(-;=?@-\[\]_a-z|~/%]"
_FORBIDDEN_IN_HOST = r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]"

_CONTROLS = "".join(map(chr, range(0x21)))
_PLAIN_IN_HOST = "-._0123456789abcdefghijklmnopqrstuvwxyz"


class URL:
    """An absolute http, https, ws or wss URL, normalised, which can be read and changed part by part.

    The attributes are those of the standard: `protocol` ends in `:`, `port` is empty for the scheme's own, `search` and
    `hash` begin with their sign or are empty, `search_params` is the query as a mapping. Setting one encodes what has
    to be encoded and is without effect where the part would not be one, as the standard says; only `href` raises then.
    `str(url)` is `href`. Two URLs of one `href` are equal. `base` is the URL that a relative `text` is resolved
    against.

    Raises TypeError `Invalid URL: …`.
    """

    # By hand: making it an attrs class would take longer than importing the rest of this file.
    __slots__ = ("_parts", "_search_params")

    _parts: list[str]
    """Scheme, username, password, host, port, path, query with its sign, fragment with its sign."""
    _search_params: URLSearchParams | None

    def __init__(self, text: str | URL, base: str | URL | None = None) -> None:
        self._parts = _parse(str(text) if base is None else _resolved(str(text), URL(base)))
        self._search_params = None

    @property
    def href(self) -> str:
        """The whole URL."""
        return self._base + "".join(self._parts[5:])

    @href.setter
    def href(self, value: str) -> None:
        self._parts = _parse(value)
        self._renew()

    @property
    def _base(self) -> str:
        scheme, username, password = self._parts[:3]
        userinfo = username + (f":{password}" if password else "")
        return f"{scheme}://{userinfo}{'@' if userinfo else ''}{self.host}"

    @property
    def protocol(self) -> str:
        """The scheme, with a colon."""
        return f"{self._parts[0]}:"

    @protocol.setter
    def protocol(self, value: str) -> None:
        scheme = value.partition(":")[0].lower()
        if scheme in _PORTS:
            self._parts[0] = scheme
            self._parts[4] = self.port if self.port != _PORTS[scheme] else ""

    @property
    def username(self) -> str:
        """The name before the host, percent-encoded."""
        return self._parts[1]

    @username.setter
    def username(self, value: str) -> None:
        self._parts[1] = percent_encode(_IN_USERINFO, value)

    @property
    def password(self) -> str:
        """The password before the host, percent-encoded."""
        return self._parts[2]

    @password.setter
    def password(self, value: str) -> None:
        self._parts[2] = percent_encode(_IN_USERINFO, value)

    @property
    def host(self) -> str:
        """Host name and port, the port only where it is not the scheme's own."""
        return f"{self._parts[3]}:{self._parts[4]}" if self._parts[4] else self._parts[3]

    @host.setter
    def host(self, value: str) -> None:
        host, port = host_and_port(_authority_in(value))
        with suppress(ValueError):
            self._parts[3] = _parse_host(well_formed(host))
            if port:
                self.port = port

    @property
    def hostname(self) -> str:
        """The host, without the port; an IPv6 address in brackets."""
        return self._parts[3]

    @hostname.setter
    def hostname(self, value: str) -> None:
        host, port = host_and_port(authority := _authority_in(value))
        if not port and not authority.endswith(":"):
            with suppress(ValueError):
                self._parts[3] = _parse_host(well_formed(host))

    @property
    def port(self) -> str:
        """The port, empty for the scheme's own."""
        return self._parts[4]

    @port.setter
    def port(self, value: str) -> None:
        digits = re.match("[0-9]*", _without_breaks(value))
        if digits is not None and (digits[0] or not value):
            with suppress(ValueError):
                self._parts[4] = _parse_port(digits[0], _PORTS[self._parts[0]])

    @property
    def origin(self) -> str:
        """Scheme, host and port, which the same-origin policy compares. It cannot be set."""
        return f"{self._parts[0]}://{self.host}"

    @property
    def pathname(self) -> str:
        """The path, percent-encoded, dot segments resolved."""
        return self._parts[5]

    @pathname.setter
    def pathname(self, value: str) -> None:
        self._parts[5] = canonical_path(well_formed(_without_breaks(value)))

    @property
    def search(self) -> str:
        """The query with its question mark; empty where there is none, or an empty one."""
        search = self._parts[6]
        # A lone `?` or `#` stays in href and is none here: the standard has it so.
        return search if search != "?" else ""

    @search.setter
    def search(self, value: str) -> None:
        query = _without_breaks(value).removeprefix("?")
        self._parts[6] = f"?{percent_encode(_IN_QUERY, query)}" if value else ""
        self._renew()

    @property
    def search_params(self) -> URLSearchParams:
        """The query as names and values. A change there is one of the URL."""
        if self._search_params is None:
            from core.http.query import URLSearchParams  # most workers change no query

            self._search_params = URLSearchParams(self.search)
            self._search_params._on_change = self._put_query
        return self._search_params

    @property
    def hash(self) -> str:
        """The fragment with its sign; empty where there is none, or an empty one."""
        fragment = self._parts[7]
        return fragment if fragment != "#" else ""

    @hash.setter
    def hash(self, value: str) -> None:
        fragment = _without_breaks(value).removeprefix("#")
        self._parts[7] = f"#{percent_encode(_IN_FRAGMENT, fragment)}" if value else ""

    def _put_query(self, query: str) -> None:
        self._parts[6] = f"?{query}" if query else ""

    def _renew(self) -> None:
        """Let the mapping of the query have the query's present values."""
        if self._search_params is not None:
            self._search_params._pairs = parse_query(self.search[1:])

    def __reduce__(self) -> tuple[type[URL], tuple[str]]:
        return URL, (self.href,)

    def __eq__(self, other: object) -> bool:
        return self.href == other.href if isinstance(other, URL) else NotImplemented

    if not TYPE_CHECKING:  # to a type checker every object has one
        __hash__ = None  # it can be changed; its href can be a key

    def __str__(self) -> str:
        return self.href

    def __repr__(self) -> str:
        return f"URL({self.href!r})"


def _without_breaks(text: str) -> str:
    return text.translate({9: None, 10: None, 13: None})


def _authority_in(value: str) -> str:
    """Return the authority within a string set as a host: all before a path, a query or a fragment begins."""
    return re.split(r"[/\\?#]", _without_breaks(value), maxsplit=1)[0]


def _resolved(text: str, base: URL) -> str:
    """A string that may be relative as an absolute URL."""
    text = _without_breaks(text.strip(_CONTROLS))
    match = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*):", text)
    if match is not None:
        rest = text[match.end() :]
        # Of the base's own scheme, and with no slash: relative, as it was in the first URLs.
        if match[1].lower() != base.protocol[:-1] or rest[:1] in ("/", "\\"):
            return text
        text = rest
    start = text[:2].replace("\\", "/")
    if start == "//":
        return base.protocol + text
    if start[:1] == "/":
        return base._base + text
    if not text or text[0] == "#":
        return base._base + base.pathname + base.search + text
    if text[0] == "?":
        return base._base + base.pathname + text
    return base._base + base.pathname.rpartition("/")[0] + "/" + text


def split_url(text: str) -> tuple[str, str, str]:
    """The normalised URL, its path and its query string without `?`: the parts that a request needs.

    Raises TypeError `Invalid URL: …`.
    """
    slash = text.find("/", 8)
    if slash > 0:
        path, query = text[slash:], ""
        if "?" in path:
            path, _, query = path.partition("?")
        if not path.strip(CANONICAL) and "/." not in path and (not query or re.search(_ODD_IN_QUERY, query) is None):
            origin = text[:slash]
            if len(origin) < 256 and _is_normal(origin):
                return text, path, query
    url = URL(text)
    return url.href, url.pathname, url.search[1:]


# Host and port as RFC 3986 (3.2.2) and RFC 9112 (3.2) have them, without the escapes that no host of the web has.
_AUTHORITY = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=]+)(?::[0-9]*)?"


def origin_of(scheme: str, *hosts: str | None) -> str:
    """The origin with the first of `hosts` that is a host with or without a port, normalised; `localhost` if none is.

    `Host` headers come from a client: one that is empty, malformed or no host of the URL standard is passed over.
    """
    for host in hosts:
        if host is not None and re.fullmatch(_AUTHORITY, host) is not None:
            origin = f"{scheme}://{host}"
            if len(origin) < 256 and _is_normal(origin):
                return origin
            with suppress(TypeError):
                return URL(origin).origin
    return f"{scheme}://localhost"


def is_same_origin(origin: str, url: str) -> bool:
    """Return True if a page of `origin`, as a browser writes it, is of the server that `url` names.

    The URL of a WebSocket says ws where its page says http.
    """
    try:
        own = URL(url).origin
    except TypeError:
        return False
    return origin == ("http" + own[2:] if own.startswith("ws") else own)


@lru_cache(256)  # so that the next request to the same origin costs a look-up
def _is_normal(origin: str) -> bool:
    """Return True if `origin` is how the parser itself would write it."""
    try:
        return URL(origin).href == f"{origin}/"
    except TypeError:
        return False


def _parse(given: str) -> list[str]:
    text = _without_breaks(well_formed(given).strip(_CONTROLS))
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if not colon or scheme not in _PORTS:
        raise TypeError(f"Invalid URL: {given}")
    rest, hash_mark, fragment = rest.partition("#")
    rest, question_mark, query = rest.partition("?")
    # However many slashes there are, and whichever: the authority comes after them.
    authority, *segments = rest.replace("\\", "/").lstrip("/").split("/")
    userinfo, _, authority = authority.rpartition("@")
    username, _, password = userinfo.partition(":")
    host, port = host_and_port(authority)
    try:
        hostname = _parse_host(host)
        number = _parse_port(port, _PORTS[scheme])
    except ValueError:
        raise TypeError(f"Invalid URL: {given}") from None
    return [
        scheme,
        percent_encode(_IN_USERINFO, username),
        percent_encode(_IN_USERINFO, password),
        hostname,
        number,
        join_segments(segments or [""]),
        question_mark + percent_encode(_IN_QUERY, query),
        hash_mark + percent_encode(_IN_FRAGMENT, fragment),
    ]


def host_and_port(authority: str) -> tuple[str, str]:
    """The parts of an authority without a user; the port is empty where there is none."""
    bracket = authority.rfind("]") if authority[:1] == "[" else -1
    colon = authority.find(":", bracket + 1)
    return (authority, "") if colon < 0 else (authority[:colon], authority[colon + 1 :])


def _parse_port(text: str, default: str) -> str:
    if not text:
        return ""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    # Cut before int(): a million zeros are allowed, and int() would refuse them.
    digits = text.lstrip("0") or "0"
    if len(digits) > 5 or int(digits) > 65535:
        raise ValueError(text)
    return "" if digits == default else digits


def _parse_host(host: str) -> str:
    """The host as it is written in a URL. Raises ValueError."""
    if host[:1] == "[":
        if host[-1] != "]":
            raise ValueError(host)
        from core.http.addresses import normalise_ipv6  # seldom needed, as is the rest

        return f"[{normalise_ipv6(host[1:-1])}]"
    if "%" in host:
        host = decode_leniently(host, "replace")
    if not host.isascii() or "xn--" in host.lower():
        from core.http.domain import to_ascii

        host = to_ascii(host)
    else:
        host = host.lower()
    if not host or (host.strip(_PLAIN_IN_HOST) and re.search(_FORBIDDEN_IN_HOST, host)):
        raise ValueError(host)
    last = host.removesuffix(".").rpartition(".")[2]
    if (last.isascii() and last.isdigit()) or (last[:2] == "0x" and not last[2:].strip("0123456789abcdef")):
        from core.http.addresses import normalise_ipv4

        return normalise_ipv4(host)
    return host
