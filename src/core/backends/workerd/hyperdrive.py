"""Hyperdrive's addresses, read across when they are asked for."""

from __future__ import annotations

from core.backends.workerd.conversion import unwrap
from core.bindings.hyperdrive import Hyperdrive


class WorkerdHyperdrive(Hyperdrive):
    """`Hyperdrive` over the runtime's."""

    __slots__ = ("_hyperdrive",)

    def __init__(self, hyperdrive: object) -> None:
        self._hyperdrive = unwrap(hyperdrive)

    @property
    def connection_string(self) -> str:
        return str(self._hyperdrive.connectionString)

    @property
    def host(self) -> str:
        return str(self._hyperdrive.host)

    @property
    def port(self) -> int:
        return int(self._hyperdrive.port)

    @property
    def user(self) -> str:
        return str(self._hyperdrive.user)

    @property
    def password(self) -> str:
        return str(self._hyperdrive.password)

    @property
    def database(self) -> str:
        return str(self._hyperdrive.database)
