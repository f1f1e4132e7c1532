"""The embedded key-value namespace."""

from core.backends.embedded.kv.namespace import EmbeddedKVNamespace as EmbeddedKVNamespace
from core.backends.embedded.kv.rows import KeyRows as KeyRows
from core.backends.embedded.kv.rows import Stored as Stored
