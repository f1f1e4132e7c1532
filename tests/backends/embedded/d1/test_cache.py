"""Statements of the engine itself are never taken for the application's."""

from __future__ import annotations

import pytest

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.store import Store
from core.errors import D1Error


@pytest.mark.parametrize("statement", ["COMMIT", "BEGIN IMMEDIATE", "ROLLBACK", "BEGIN"])
async def test_a_batch_cannot_end_its_own_transaction_with_a_statement_that_the_engine_prepared_before(
    statement: str,
) -> None:
    # The sqlite3 module keeps prepared statements by their text, and asks the authorizer only while preparing.
    with Store() as store:
        db = EmbeddedD1Database(store, "db")
        await db.exec("CREATE TABLE t (a)")
        await db.batch([db.prepare("INSERT INTO t VALUES (1)")])
        with pytest.raises(D1Error):
            await db.batch([db.prepare("INSERT INTO t VALUES (2)"), db.prepare("SELECT * FROM nope")])
        with pytest.raises(D1Error, match="To execute a transaction"):
            await db.batch([db.prepare("INSERT INTO t VALUES (3)"), db.prepare(statement)])
        assert await db.prepare("SELECT a FROM t").raw() == [[1]]
