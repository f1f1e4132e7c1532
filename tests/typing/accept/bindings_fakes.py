"""Embedded bindings and fakes fit where the Protocol is asked for, and their methods have the Protocol's types."""

from typing import assert_type

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.bindings.d1 import D1Database
from core.bindings.kv import KVNamespace
from core.testing import FakeD1Database, FakeKVNamespace
from core.testing.calls import Call


def namespaces(embedded: EmbeddedKVNamespace, fake: FakeKVNamespace) -> list[KVNamespace]:
    return [embedded, fake]


def databases(embedded: EmbeddedD1Database, fake: FakeD1Database) -> list[D1Database]:
    return [embedded, fake]


async def reads(kv: FakeKVNamespace, db: FakeD1Database) -> None:
    assert_type(await kv.get("k"), str | None)
    assert_type(kv.calls, list[Call])
    assert_type(kv.calls[0].method, str)
    assert_type(db.latency, float)
