"""Requests that schemathesis makes up from the documents: every answer of the examples is one that they declare.

Each operation is asked with credentials and without, and about what is there: a user, an article, a comment.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import conduit.auth
import conduit.env
import conduit.main
import users_api.env
import users_api.main
from core import Request, http, passwords
from core.openapi.contract import Contract
from core.testing import Client, FakeExecutionContext, env

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = {name: json.loads((EXAMPLES / name / "openapi.json").read_text("utf-8")) for name in ("users", "conduit")}
SECRET = "a-secret-for-tests-that-is-long-enough"


OPERATIONS = [
    pytest.param(name, path, method, id=f"{name} {method.upper()} {path}")
    for name, document in DOCUMENTS.items()
    for path, item in document["paths"].items()
    for method in item
]


@cache
def schema_of(name: str) -> Any:
    """An example's document as schemathesis reads it, which takes seconds: not in each process that collects tests."""
    import schemathesis

    return schemathesis.openapi.from_dict(DOCUMENTS[name])


async def users_client(contract: Contract) -> tuple[Client[Any], str]:
    fakes = env(users_api.env.Env, config=EXAMPLES / "users" / "wrangler.toml", JWT_SECRET=SECRET)
    client = Client(users_api.main.app, fakes, contract=contract)
    await client.post("/users", json={"name": "Ada", "email": "ada@example.com"})
    claims = {"sub": "1", "email": "ada@example.com", "isAdmin": True, "exp": int(time.time()) + 3600}
    return client, f"Bearer {jwt.encode(claims, SECRET, algorithm='HS256')}"


async def conduit_client(contract: Contract) -> tuple[Client[Any], str]:
    fakes = env(conduit.env.Env, config=EXAMPLES / "conduit" / "wrangler.toml", JWT_SECRET=SECRET)
    client = Client(conduit.main.app, fakes, contract=contract)
    await fakes.DB.prepare("INSERT INTO users (username, email, password) VALUES ('ada', 'ada@example.com', '')").run()
    await fakes.DB.prepare(
        "INSERT INTO articles (slug, title, description, body, tag_list, author_id) VALUES ('1', 'A', 'B', 'C', '[]', 1)"
    ).run()
    await fakes.DB.prepare("INSERT INTO comments (body, article_id, author_id) VALUES ('D', 1, 1)").run()
    user = conduit.auth.User(1, "ada", "ada@example.com", None, None)
    req = Request(http.Request("https://conduit.test/"), fakes, FakeExecutionContext())
    return client, f"Token {await conduit.auth.issue_token(req, user)}"


CLIENTS = {"users": users_client, "conduit": conduit_client}
THERE = {"id": "1", "slug": "1", "username": "ada"}


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash takes a quarter of a second at the cost that is advised."""
    monkeypatch.setattr(passwords, "_COST", (1, 1, 1))


@pytest.mark.parametrize(("name", "path", "method"), OPERATIONS)
def test_every_answer_is_one_that_the_document_declares(name: str, path: str, method: str) -> None:
    contract, operation = Contract(DOCUMENTS[name]), schema_of(name)[path][method]

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
        if data.draw(st.booleans()):
            parameters: dict[str, object] = case.path_parameters or {}
            case.path_parameters = {key: THERE[key] for key in parameters}
        signed_in = data.draw(st.sampled_from([True, True, False]))
        sent = case.as_transport_kwargs(base_url="https://example.test")
        body = sent.get("json")
        content = None if body is None else json.dumps(body)
        given: dict[str, str] = sent.get("headers") or {}

        async def send() -> int:
            client, credentials = await CLIENTS[name](contract)
            headers = {key: value for key, value in given.items() if key.lower() != "authorization"}
            if signed_in:
                headers["authorization"] = credentials
            params: dict[str, object] = sent.get("params") or {}
            query = {key: str(value) for key, value in params.items()}
            response = await client.request(sent["method"], sent["url"], query=query, headers=headers, body=content)
            await client.ctx.drain()  # type: ignore[union-attr]  # it is the fake one
            return response.status

        assert asyncio.run(send()) < 500

    ask()
    assert contract.reached
