"""The addresses of databases: which connection strings can be used, and the mistakes of the others."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

PORTS: Final = {"postgres": 5432, "postgresql": 5432, "mysql": 3306}
"""The ports of databases by the scheme of their addresses."""


def connection_problem(text: str) -> str | None:
    """Return the reason why a connection string cannot be used, without a word of it, or None."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return "it is not a URL"
    if url.scheme not in PORTS:
        return "it must begin with postgres://, postgresql:// or mysql://"
    if port == 0:
        return "0 is not a port"
    missing = [
        name
        for name, value in (("a host", url.hostname), ("a user", url.username), ("a password", url.password))
        if not value
    ]
    if len(url.path) < 2:
        missing.append("a database")
    return f"{', '.join(missing)} is missing" if missing else None
