"""Access to the explorer and the error pages: for the developer at this machine, and for no page of another site.

A page elsewhere can make a browser send requests here, and a name server can make a strange name point here. So the
Host must be one of this server's own, the Origin must be the same, and every call carries a token, which only the
explorer's own page was given.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Final

from core.http.url import host_and_port

_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """The rules for one server: `host` and `port` as it listens, and its token."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self.public: bool = not is_loopback(host)
        """True if other machines reach the server. Then the page itself asks for the token too."""
        self._names = set(_LOCAL_NAMES)
        if host not in _ANY_ADDRESS:
            self._names.add(f"[{host}]" if ":" in host else host.lower())
        self._any_address = host in _ANY_ADDRESS

    def allows_host(self, host: str) -> bool:
        """Return True if the Host header names this server, by a name that no stranger can point at it."""
        name, port = _split(host)
        if port is not None and port != self._port:
            return False
        if name in self._names:
            return True
        if not self._any_address:
            return False
        # On every address of the machine: an address is fine, since no name server is behind it.
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def allows_origin(self, origin: str | None, host: str) -> bool:
        """Return True if a request comes from this server's own page: no Origin at all, or the same as the Host."""
        return origin is None or origin == f"http://{host}"

    def may_read_errors(self, host: str, origin: str | None) -> bool:
        """Return True if details of an error are for the page that asks: this server's own, or one of this machine.

        An application may let every origin read its answers. The contents of a traceback are not the application's to
        give.
        """
        return self.allows_host(host) and (self.allows_origin(origin, host) or _is_of_this_machine(origin or ""))

    def allows_token(self, token: str | None) -> bool:
        return bool(self._token) and hmac.compare_digest((token or "").encode(), self._token.encode())


def _is_of_this_machine(origin: str) -> bool:
    """Return True if an origin is a front end under development, such as http://localhost:5173."""
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and _split(host)[0] in _LOCAL_NAMES


def _split(host: str) -> tuple[str, int | None]:
    name, port = host_and_port(host.lower())
    return (name, int(port)) if port.isascii() and port.isdigit() else (host.lower(), None)
