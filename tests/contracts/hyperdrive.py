"""The promises of every `Hyperdrive`, whatever database is behind it."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from tests.contracts.contract import Contract

from core.bindings.hyperdrive import Hyperdrive


async def clean(hyperdrive: Hyperdrive) -> None:
    """There is nothing to clean."""


contract: Contract[Hyperdrive] = Contract("hyperdrive", clean)


@contract.case()
async def the_parts_are_those_of_the_connection_string(hyperdrive: Hyperdrive) -> None:
    url = urlsplit(hyperdrive.connection_string)
    assert url.scheme in ("postgres", "postgresql", "mysql")
    assert (hyperdrive.host, hyperdrive.port) == (url.hostname, url.port or 5432)
    assert (hyperdrive.user, hyperdrive.password) == (unquote(url.username or ""), unquote(url.password or ""))
    assert hyperdrive.database == unquote(url.path[1:])


@contract.case()
async def every_part_is_there(hyperdrive: Hyperdrive) -> None:
    assert hyperdrive.host
    assert 0 < hyperdrive.port < 65536
    assert hyperdrive.user
    assert hyperdrive.password
    assert hyperdrive.database


@contract.case()
async def its_repr_keeps_the_password_to_itself(hyperdrive: Hyperdrive) -> None:
    assert hyperdrive.password not in repr(hyperdrive)
