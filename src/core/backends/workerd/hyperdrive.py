"""Hyperdrive's addresses, read across when they are asked for."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.conversion import unwrap

__all__ = ["WorkerdHyperdrive"]


class WorkerdHyperdrive:
    """`Hyperdrive` over the runtime's."""

    __slots__ = ("_hyperdrive",)

    def __init__(self, hyperdrive: Any) -> None:
        self._hyperdrive = unwrap(hyperdrive)

    @property
    def connection_string(self) -> str:
        """All of it as a URL."""
        return str(self._hyperdrive.connectionString)

    @property
    def host(self) -> str:
        """The host."""
        return str(self._hyperdrive.host)

    @property
    def port(self) -> int:
        """The port."""
        return int(self._hyperdrive.port)

    @property
    def user(self) -> str:
        """The user."""
        return str(self._hyperdrive.user)

    @property
    def password(self) -> str:
        """The password."""
        return str(self._hyperdrive.password)

    @property
    def database(self) -> str:
        """The database's name."""
        return str(self._hyperdrive.database)
