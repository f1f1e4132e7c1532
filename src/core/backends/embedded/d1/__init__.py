"""The embedded SQL database: the platform's semantics over one SQLite database of its own."""

from __future__ import annotations

from core.backends.embedded.d1.database import EmbeddedD1Database, EmbeddedD1PreparedStatement, EmbeddedD1Session
from core.backends.embedded.d1.engine import Engine, drop_all, engine_of
from core.backends.embedded.d1.values import Refused

__all__ = [
    "EmbeddedD1Database",
    "EmbeddedD1PreparedStatement",
    "EmbeddedD1Session",
    "Engine",
    "Refused",
    "drop_all",
    "engine_of",
]
