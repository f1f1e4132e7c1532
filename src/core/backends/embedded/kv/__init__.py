"""The embedded key-value namespace."""

from __future__ import annotations

from core.backends.embedded.kv.namespace import EmbeddedKVNamespace
from core.backends.embedded.kv.rows import KeyRows, Stored

__all__ = ["EmbeddedKVNamespace", "KeyRows", "Stored"]
