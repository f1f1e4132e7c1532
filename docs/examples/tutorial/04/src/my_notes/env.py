"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs
from core import (
    Bindings,
    D1Database,
    KVNamespace,
    Queue,
    Secret,
)

from my_notes.events import NoteWritten


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    READS: KVNamespace
    WRITTEN: Queue[NoteWritten]
    JWT_SECRET: Secret
