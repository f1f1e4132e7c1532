"""Transactions, as the explanation of a request's life describes them."""

from __future__ import annotations

from core.testing import Client
from transaction import app, journal


async def test_a_transaction_commits_at_the_end_and_rolls_back_on_an_error() -> None:
    client = Client(app, None)
    assert (await client.post("/orders", json={"id": 1})).status == 201
    assert journal == ["begin", "commit"]
    journal.clear()
    assert (await client.post("/orders", json={})).status == 500
    assert journal == ["begin", "rollback"]
