"""URLs of the web, their paths and their query strings, as the WHATWG URL standard parses and writes them.

Only http, https, ws and wss: what a request can be sent to. Whatever has nothing to normalise, which is nearly
everything, is recognised by one regular expression and passed on as it is. https://url.spec.whatwg.org/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

__all__ = [
    "MalformedPathError",
    "URL",
    "canonical_path",
    "decode_leniently",
    "encode_query",
    "is_canonical",
    "odd_in_path",
    "parse_query",
    "split_path",
    "split_url",
]

_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}

# The percent-encode sets of the standard, each as what is encoded. Compiled (and kept by `re`) when first wanted, as
# every expression here that a plain request does not meet: compiling them all would be most of this file's import.
_IN_PATH = r"[^!$-;=@-\]_a-z|~]+"
_IN_QUERY = r"[^!$-&(-;=?-~]+"
_IN_FRAGMENT = r"[^!#-;=?-_a-~]+"
_IN_USERINFO = r"[^!$-.0-9A-Z_a-z~]+"
_IN_FORM = r"[^*\-._0-9A-Za-z]+"

# The first character that may need something done to it: more than the sets above, also `%`, `\` and the delimiters.
odd_in_path: Callable[..., re.Match[str] | None] = re.compile(r"[^!$&-.0-;=@-\[\]_a-z|~/]").search
_ODD_IN_QUERY = r"[^!$&(-;=?@-\[\]_a-z|~/%]"
_FORBIDDEN_IN_HOST = r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]"

# Origins that passed, so that the next request to one of them costs a look-up.
_ORIGINS: dict[str, None] = {}
_ORIGINS_MOST = 256


class MalformedPathError(ValueError):
    """A path with an escape that is none (`%zz`), or whose bytes are not UTF-8. The client's mistake: 400."""


# --------------------------------------------------------------------- whole URLs


class URL:
    """An absolute http, https, ws or wss URL, normalised.

    The attributes are those of the standard: `protocol` ends in `:`, `port` is empty for the scheme's own,
    `search` and `hash` begin with their sign or are empty. `str(url)` is `href`. Two URLs of one `href` are equal.

    Raises TypeError `Invalid URL: …`.
    """

    # By hand: making it an attrs class would take longer than importing the rest of this file.
    __slots__ = ("hash", "hostname", "href", "password", "pathname", "port", "protocol", "search", "username")

    href: str
    protocol: str
    username: str
    password: str
    hostname: str
    port: str
    pathname: str
    search: str
    hash: str

    def __init__(self, text: str | URL) -> None:
        scheme, username, password, hostname, port, pathname, search, fragment = _parse(str(text))
        userinfo = username + (f":{password}" if password else "")
        put = object.__setattr__
        put(
            self,
            "href",
            f"{scheme}://{userinfo}{'@' if userinfo else ''}{hostname}{':' if port else ''}{port}{pathname}"
            f"{search or ''}{fragment or ''}",
        )
        put(self, "protocol", f"{scheme}:")
        put(self, "username", username)
        put(self, "password", password)
        put(self, "hostname", hostname)
        put(self, "port", port)
        put(self, "pathname", pathname)
        # A lone `?` or `#` stays in href and is none here: the standard has it so.
        put(self, "search", search if search and search != "?" else "")
        put(self, "hash", fragment if fragment and fragment != "#" else "")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a URL cannot be changed: make another one instead of setting {name}")

    def __reduce__(self) -> tuple[type[URL], tuple[str]]:
        return URL, (self.href,)

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a URL cannot be changed: {name} stays")

    @property
    def host(self) -> str:
        """Host name and port, the port only where it is not the scheme's own."""
        return f"{self.hostname}:{self.port}" if self.port else self.hostname

    @property
    def origin(self) -> str:
        """Scheme, host and port: what the same-origin policy compares."""
        return f"{self.protocol}//{self.host}"

    def __eq__(self, other: object) -> bool:
        return self.href == other.href if isinstance(other, URL) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.href)

    def __str__(self) -> str:
        return self.href

    def __repr__(self) -> str:
        return f"URL({self.href!r})"


def split_url(text: str) -> tuple[str, str, str]:
    """The normalised URL, its path and its query string without `?`: what a request needs of it.

    Raises TypeError `Invalid URL: …`.
    """
    slash = text.find("/", 8)
    if slash > 0:
        path, query = text[slash:], ""
        if "?" in path:
            path, _, query = path.partition("?")
        if odd_in_path(path) is None and "/." not in path and (not query or re.search(_ODD_IN_QUERY, query) is None):
            origin = text[:slash]
            if origin in _ORIGINS or _remember_origin(origin):
                return text, path, query
    url = URL(text)
    return url.href, url.pathname, url.search[1:]


def _remember_origin(origin: str) -> bool:
    """Whether `origin` is how the parser itself would write it."""
    try:
        if len(origin) > 255 or URL(origin).href != f"{origin}/":
            return False
    except TypeError:
        return False
    if len(_ORIGINS) >= _ORIGINS_MOST:
        _ORIGINS.clear()
    _ORIGINS[origin] = None
    return True


def _parse(given: str) -> tuple[str, str, str, str, str, str, str | None, str | None]:
    text = _whole_characters(given)
    text = text.strip("".join(map(chr, range(0x21)))).translate({9: None, 10: None, 13: None})
    match = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*):", text)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in _PORTS:
        raise TypeError(f"Invalid URL: {given}")
    rest, hash_mark, fragment = text[match.end() :].partition("#")
    rest, question_mark, query = rest.partition("?")
    # However many slashes there are, and whichever: the authority comes after them.
    authority, *segments = re.split(r"[/\\]", rest.lstrip("/\\"))
    userinfo, _, authority = authority.rpartition("@")
    username, _, password = userinfo.partition(":")
    host, port = _host_and_port(authority)
    try:
        hostname = _parse_host(host)
        number = _parse_port(port, _PORTS[scheme])
    except ValueError:
        raise TypeError(f"Invalid URL: {given}") from None
    return (
        scheme,
        _encode(_IN_USERINFO, username),
        _encode(_IN_USERINFO, password),
        hostname,
        number,
        _join_segments(segments or [""]),
        "?" + _encode(_IN_QUERY, query) if question_mark else None,
        "#" + _encode(_IN_FRAGMENT, fragment) if hash_mark else None,
    )


def _host_and_port(authority: str) -> tuple[str, str]:
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
        return f"[{_write_ipv6(_parse_ipv6(host[1:-1]))}]"
    if "%" in host:
        host = decode_leniently(host, "replace")
    if not host.isascii() or "xn--" in host.lower():
        # Only here, since its tables are seldom wanted.
        from core.http.domain import to_ascii

        host = to_ascii(host)
    else:
        host = host.lower()
    if not host or re.search(_FORBIDDEN_IN_HOST, host):
        raise ValueError(host)
    return _parse_ipv4(host)


def _parse_ipv4(host: str) -> str:
    parts = host.split(".")
    if parts[-1] == "" and len(parts) > 1:
        parts.pop()
    last = parts[-1]
    if not ((last.isascii() and last.isdigit()) or re.fullmatch(r"0[xX][0-9A-Fa-f]*", last)):
        return host
    if len(parts) > 4:
        raise ValueError(host)
    numbers = [_ipv4_number(part) for part in parts]
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise ValueError(host)
    address = numbers[-1] + sum(number << 8 * (3 - place) for place, number in enumerate(numbers[:-1]))
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))


def _ipv4_number(text: str) -> int:
    if not text:
        raise ValueError(text)
    if text[:2] in ("0x", "0X"):
        digits, base = text[2:], 16
    elif len(text) > 1 and text[0] == "0":
        digits, base = text[1:], 8
    else:
        digits, base = text, 10
    if not digits:
        return 0
    digits = digits.lstrip("0") or "0"
    # int() takes signs, blanks and underscores, and refuses what is very long.
    if not re.fullmatch(r"[0-9A-Fa-f]{1,12}", digits):
        raise ValueError(text)
    return int(digits, base)


def _parse_ipv6(text: str) -> list[int]:
    head, gap, tail = text.partition("::")
    if "::" in tail:
        raise ValueError(text)
    left = _ipv6_pieces(head, last=not gap)
    right = _ipv6_pieces(tail, last=True) if gap else []
    missing = 8 - len(left) - len(right)
    if missing < 0 or (gap and missing < 1) or (not gap and missing):
        raise ValueError(text)
    return [*left, *[0] * missing, *right]


def _ipv6_pieces(text: str, *, last: bool) -> list[int]:
    if not text:
        return []
    pieces: list[int] = []
    parts = text.split(":")
    for place, part in enumerate(parts):
        if last and place == len(parts) - 1 and "." in part:
            numbers = part.split(".")
            if len(numbers) != 4 or not all(re.fullmatch(r"0|[1-9][0-9]{0,2}", n) and int(n) < 256 for n in numbers):
                raise ValueError(text)
            a, b, c, d = map(int, numbers)
            pieces += [a << 8 | b, c << 8 | d]
        elif re.fullmatch(r"[0-9A-Fa-f]{1,4}", part):
            pieces.append(int(part, 16))
        else:
            raise ValueError(text)
    return pieces


def _write_ipv6(pieces: list[int]) -> str:
    # The first of the longest runs of zeros, if it is longer than one, becomes `::`.
    best_start, best_length = -1, 1
    start = 0
    while start < 8:
        length = 0
        while start + length < 8 and pieces[start + length] == 0:
            length += 1
        if length > best_length:
            best_start, best_length = start, length
        start += length + 1
    if best_start < 0:
        return ":".join(f"{piece:x}" for piece in pieces)
    left = ":".join(f"{piece:x}" for piece in pieces[:best_start])
    right = ":".join(f"{piece:x}" for piece in pieces[best_start + best_length :])
    return f"{left}::{right}"


# --------------------------------------------------------------------- paths


def is_canonical(path: str) -> bool:
    """Whether a path certainly is as `canonical_path` would write it; one with an escape in it may be, too."""
    return odd_in_path(path) is None and "/." not in path and path[:1] == "/"


def canonical_path(raw: str) -> str:
    """A path as a host received it, canonical: dot segments resolved, backslashes turned, still percent-encoded.

    The same text comes back when there is nothing to do. `?` and `#` are part of the path here, and are encoded.
    """
    if is_canonical(raw):
        return raw
    if raw[:1] == "/" or raw[:1] == "\\":
        raw = raw[1:]
    return _join_segments(re.split(r"[/\\]", _whole_characters(raw)))


def _join_segments(segments: list[str]) -> str:
    kept: list[str] = []
    last = len(segments) - 1
    for place, segment in enumerate(segments):
        dots = segment.replace("%2e", ".").replace("%2E", ".") if "%" in segment else segment
        if dots == "..":
            if kept:
                kept.pop()
            if place == last:
                kept.append("")
        elif dots == ".":
            if place == last:
                kept.append("")
        else:
            kept.append(_encode(_IN_PATH, segment))
    return "/" + "/".join(kept)


def split_path(path: str) -> tuple[str, ...]:
    """The segments of a path, split on `/` first and percent-decoded afterwards, once.

    One slash at the end is ignored; `/` and the empty path have no segments; an empty segment is a segment.

    Raises MalformedPathError for escapes that are none and for bytes that are not UTF-8.
    """
    if path[-1:] == "/":
        path = path[:-1]
    if path[:1] == "/":
        path = path[1:]
    elif not path:
        return ()
    if "%" not in path:
        return tuple(path.split("/"))
    return tuple([_decode_strictly(segment) if "%" in segment else segment for segment in path.split("/")])


def _decode_strictly(segment: str) -> str:
    first, *rest = segment.encode("utf-8", "surrogatepass").split(b"%")
    table = _hex_table()
    pieces = [first]
    for piece in rest:
        byte = table.get(piece[:2])
        if byte is None:
            raise MalformedPathError(f"malformed escape in the path segment {segment!r}")
        pieces += (byte, piece[2:])
    try:
        return b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedPathError(f"the path segment {segment!r} is not UTF-8") from None


# --------------------------------------------------------------------- query strings


def parse_query(text: str) -> list[tuple[str, str]]:
    """The names and values of a query string, in order.

    `+` and `%20` are blanks, escapes that are none stay, bytes that are not UTF-8 become U+FFFD. Empty pieces between
    two `&` are left out.
    """
    if not text:
        return []
    pairs: list[tuple[str, str]] = []
    if "%" not in text and "+" not in text:
        for piece in text.split("&"):
            if piece:
                name, _, value = piece.partition("=")
                pairs.append((name, value))
        return pairs
    for piece in text.split("&"):
        if piece:
            name, _, value = piece.replace("+", " ").partition("=")
            pairs.append(
                (
                    decode_leniently(name, "replace") if "%" in name else name,
                    decode_leniently(value, "replace") if "%" in value else value,
                )
            )
    return pairs


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Write a query string: blanks as `+`, everything but letters, digits and `*-._` percent-encoded as UTF-8."""
    return "&".join([f"{_encode_form(name)}={_encode_form(value)}" for name, value in pairs])


def _encode_form(text: str) -> str:
    return _encode(_IN_FORM, text).replace("%20", "+")


# --------------------------------------------------------------------- escapes


def decode_leniently(text: str, errors: str) -> str:
    """Decode the escapes that are whole and leave the others.

    Bytes that are not UTF-8 become U+FFFD with `errors="replace"`; with `"strict"` the whole text stays as it was.
    """
    first, *rest = _whole_characters(text).encode().split(b"%")
    table = _hex_table()
    pieces = [first]
    for piece in rest:
        byte = table.get(piece[:2])
        pieces += (b"%", piece) if byte is None else (byte, piece[2:])
    try:
        return b"".join(pieces).decode("utf-8", errors)
    except UnicodeDecodeError:
        return text


_hex: dict[bytes, bytes] = {}


def _hex_table() -> dict[bytes, bytes]:
    # 484 spellings of 256 bytes, made when the first escape is met.
    if not _hex:
        digits = b"0123456789abcdefABCDEF"
        _hex.update({bytes([a, b]): bytes([int(bytes([a, b]), 16)]) for a in digits for b in digits})
    return _hex


def _encode(pattern: str, text: str) -> str:
    # An escape that is there already stays: the percent sign itself is in none of the sets but the form's.
    return re.sub(pattern, _percent, text)


def _percent(match: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in _whole_characters(match[0]).encode()])


def _whole_characters(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD, which is what the standards do with them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
