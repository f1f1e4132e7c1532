"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs

from core import Bindings, D1Database, Secret


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    JWT_SECRET: Secret
