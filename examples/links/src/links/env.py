"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs

from core import Bindings, D1Database, DurableObjectNamespace, KVNamespace, Queue, Secret
from links.live import Live
from links.messages import Click


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    CACHE: KVNamespace
    CLICKS: Queue[Click]
    LIVE: DurableObjectNamespace[Live]
    JWT_SECRET: Secret
