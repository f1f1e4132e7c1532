"""Requests that schemathesis makes up from the document: every answer of the examples is one that it declares."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.openapi.contract import Contract
from core.testing import Client, env
from users_api.env import Env
from users_api.main import app

USERS = Path(__file__).parents[2] / "examples" / "users"
DOCUMENT = json.loads((USERS / "openapi.json").read_text("utf-8"))
SCHEMA: Any = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_of_users_is_one_that_its_document_declares(operation: Any) -> None:
    contract = Contract(DOCUMENT)

    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy())
        sent = case.as_transport_kwargs(base_url="https://example.test")
        body = sent.get("json")
        content = None if body is None else json.dumps(body)

        async def send() -> int:
            fakes = env(Env, config=USERS / "wrangler.toml", JWT_SECRET="a-secret-for-tests-that-is-long-enough")
            client = Client(app, fakes, contract=contract)
            params: dict[str, object] = sent.get("params") or {}
            query = {key: str(value) for key, value in params.items()}
            response = await client.request(sent["method"], sent["url"], query=query, body=content)
            await client.ctx.drain()  # type: ignore[union-attr]  # it is the fake one
            return response.status

        assert asyncio.run(send()) < 500

    ask()
    assert contract.reached
