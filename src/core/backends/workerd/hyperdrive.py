"""Hyperdrive's addresses, read across when they are asked for."""

from __future__ import annotations

from core.backends.workerd.engine import JsBacked
from core.bindings.hyperdrive import Hyperdrive


class WorkerdHyperdrive(JsBacked, Hyperdrive):
    @property
    def connection_string(self) -> str:
        return str(self._js.connectionString)

    @property
    def host(self) -> str:
        return str(self._js.host)

    @property
    def port(self) -> int:
        return int(self._js.port)

    @property
    def user(self) -> str:
        return str(self._js.user)

    @property
    def password(self) -> str:
        return str(self._js.password)

    @property
    def database(self) -> str:
        return str(self._js.database)
