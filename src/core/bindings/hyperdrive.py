"""A Hyperdrive configuration: the address of a database behind the platform's pool."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Hyperdrive"]


@runtime_checkable
class Hyperdrive(Protocol):
    """The address that a database client connects to. The credentials are good only inside the worker."""

    @property
    def connection_string(self) -> str:
        """All of it as a URL: `postgres://user:password@host:port/database`."""
        ...

    @property
    def host(self) -> str:
        """The host, which resolves only inside the worker."""
        ...

    @property
    def port(self) -> int:
        """The port."""
        ...

    @property
    def user(self) -> str:
        """The user."""
        ...

    @property
    def password(self) -> str:
        """The password; another one for every worker start."""
        ...

    @property
    def database(self) -> str:
        """The database's name."""
        ...
