"""The embedded Hyperdrive: the address of a database as the developer wrote it, without a pool in between.

It is read from the environment variable that the platform's own tool reads, else from `localConnectionString`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

from core.bindings.hyperdrive import Hyperdrive
from core.config.addresses import PORTS, connection_problem
from core.errors import ConfigurationError, UnsupportedBindingError

VARIABLES: Final = ("CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_", "WRANGLER_HYPERDRIVE_LOCAL_CONNECTION_STRING_")
"""The beginning of the environment variable of a binding; its name follows. The first one that is set counts."""


class EmbeddedHyperdrive(Hyperdrive):
    """`Hyperdrive` over a connection string. `binding` is its name on the Env, for messages."""

    def __init__(self, connection_string: str | None, *, binding: str = "") -> None:
        problem = None if connection_string is None else connection_problem(connection_string)
        if problem is not None:
            way_out = "Write postgres://user:password@127.0.0.1:5432/database, with special characters as %40"
            raise ConfigurationError([f"{binding}: the connection string cannot be used: {problem}. {way_out}"])
        self._text = connection_string
        self.binding: str = binding

    def __repr__(self) -> str:
        return f"<Hyperdrive {self.binding}>"  # never the password

    @property
    def connection_string(self) -> str:
        if self._text is None:
            raise UnsupportedBindingError(
                f"{self.binding}: no database is named for this machine. Set {VARIABLES[0]}{self.binding}, or write "
                'localConnectionString = "postgres://user:password@127.0.0.1:5432/database" in its [[hyperdrive]] table'
            )
        return self._text

    @property
    def host(self) -> str:
        return urlsplit(self.connection_string).hostname or ""

    @property
    def port(self) -> int:
        url = urlsplit(self.connection_string)
        return url.port or PORTS[url.scheme]

    @property
    def user(self) -> str:
        return unquote(urlsplit(self.connection_string).username or "")

    @property
    def password(self) -> str:
        return unquote(urlsplit(self.connection_string).password or "")

    @property
    def database(self) -> str:
        return unquote(urlsplit(self.connection_string).path[1:])
