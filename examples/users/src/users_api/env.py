"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs

from core import Bindings, D1Database, KVNamespace, Secret


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace
    DB: D1Database
    ALLOWED_ORIGINS: str
    JWT_SECRET: Secret
