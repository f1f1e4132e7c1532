"""Messages that are passed on: the headers that go along, and those that belong to one connection.

RFC 9110, section 7.6.1: hop-by-hop headers, and those that `Connection` names, are for the next recipient alone.
"""

from __future__ import annotations

from typing import Final

from core.http.headers import HeadersView

_HOP_BY_HOP: Final = frozenset([
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
])  # fmt: skip

_HOSTS: Final = frozenset(["edge-connecting-ip", "cf-connecting-ip"])
"""Headers that the host sets, whatever a client sent: `Connection` names none of them away."""


def end_to_end(headers: HeadersView) -> tuple[dict[str, str], list[str]]:
    """The headers that are for the last recipient, by lower-case name, and the values of `Set-Cookie`."""
    named = {name.strip().lower() for name in (headers.get("connection") or "").split(",")}
    values = dict(headers.raw())
    values.pop("set-cookie", None)
    dropped = _HOP_BY_HOP | (named - _HOSTS)
    return {name: value for name, value in values.items() if name not in dropped}, headers.get_set_cookie()
