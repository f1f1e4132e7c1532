"""Access by address: lists of addresses and networks, IPv4 and IPv6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from core.errors import CoreError, OptionError
from core.handlers import declare
from core.middleware import options
from core.request import AnyRequest
from core.response import Response
from core.types import Middleware, Next

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

__all__ = ["ip_restriction"]


def ip_restriction(
    *, allow: Iterable[str] | None = None, deny: Iterable[str] = (), message: str = "Forbidden", status: int = 403
) -> Middleware[object, object]:
    """Let in only clients of `allow`, where it is given, and none of `deny`; `deny` wins.

    Entries are addresses (`192.0.2.7`) and networks (`10.0.0.0/8`, `2001:db8::/32`). An IPv4 address written as IPv6
    (`::ffff:192.0.2.7`) is the IPv4 address, in the lists and of a client. A request without a readable address is
    refused. The address is `req.ip`, which the host sets and a client cannot.

    Raises OptionError for an entry that is not an address or a network, and for no list at all.
    """
    from ipaddress import ip_address

    allowed = None if allow is None else _networks("allow", allow)
    denied = _networks("deny", deny)
    if allowed is None and not denied:
        raise OptionError('ip_restriction() restricts nothing. Give allow or deny, for example allow=["10.0.0.0/8"]')
    options.text("ip_restriction", "message", message)
    options.status("ip_restriction", status)

    def permitted(ip: str | None) -> bool:
        try:
            address = ip_address((ip or "").partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        if any(address in network for network in denied):
            return False
        return allowed is None or any(address in network for network in allowed)

    async def guard(req: AnyRequest, res: Response, next: Next, /) -> None:
        if not permitted(req.ip):
            raise CoreError(status, message)
        await next()

    return declare(guard, name="ip_restriction", refuses=True)


def _networks(option: str, values: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    from ipaddress import IPv6Network, ip_network

    if isinstance(values, str):
        raise options.refuse("ip_restriction", option, values, f'must be a list, for example ["{values}"]')
    networks: list[IPv4Network | IPv6Network] = []
    for value in values:
        try:
            if not isinstance(value, str):
                raise ValueError("an address is text")
            network = ip_network(value.strip())
        except ValueError as error:
            why = f"is not an address or a network: {error}. Write 192.0.2.7 or 10.0.0.0/8"
            raise options.refuse("ip_restriction", option, value, why) from None
        if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped and network.prefixlen >= 96:
            network = ip_network(f"{network.network_address.ipv4_mapped}/{network.prefixlen - 96}")
        networks.append(network)
    return networks
