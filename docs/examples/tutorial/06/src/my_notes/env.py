"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs
from core import (
    Bindings,
    D1Database,
    DurableObjectNamespace,
    KVNamespace,
    Queue,
    R2Bucket,
    Secret,
)

from my_notes.activity import Activity
from my_notes.events import NoteWritten


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    READS: KVNamespace
    WRITTEN: Queue[NoteWritten]
    FILES: R2Bucket
    ACTIVITY: DurableObjectNamespace[Activity]
    JWT_SECRET: Secret
