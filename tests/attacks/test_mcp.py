"""What an attacker would send to an MCP server."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Bindings, CoreError, Request, create_app, http
from core.mcp import MCP
from core.mcp.messages import CAPABILITIES_KEY, LATEST, VERSION_KEY
from core.middleware.jwt import JWTUser, jwt_auth
from core.testing import Client, FakeClock, FakeExecutionContext
from core.values import is_object

SECRET = "a secret of thirty-two bytes or more"


@attrs.frozen
class Env(Bindings):
    SECRET: str = SECRET


@attrs.frozen
class Sure:
    sure: bool


app = create_app(Env)
auth = jwt_auth(Env, secret=lambda req: req.env.SECRET, audience="https://notes.example/mcp")
mcp = MCP(app, "notes", behind=auth, secret=lambda req: req.env.SECRET)
foreign = jwt_auth(Env, secret=lambda req: req.env.SECRET, audience="https://other.example/mcp")
deleted: list[int] = []


@mcp.tool
async def delete(req: Request[Env, JWTUser], id: int) -> str:
    """Delete a note."""
    answer = await mcp.ask(req, Sure, "Sure?")
    if answer is not None and answer.sure:
        deleted.append(id)
    return "done"


async def nobody(req: Request[Env, JWTUser]) -> None:
    raise CoreError(403)


@mcp.tool(guard=nobody)
async def hidden(req: Request[Env, JWTUser]) -> str:
    """Not for anybody."""
    raise AssertionError


clock = FakeClock()
client = Client(app, Env(), FakeExecutionContext(clock=clock))


@pytest.fixture(autouse=True)
def nothing_is_deleted() -> Any:
    deleted.clear()
    yield
    assert deleted == []


async def token(sub: str = "ada", by: Any = auth) -> str:
    tokens: list[str] = []
    issuing = create_app(Env)

    @issuing.get("/")
    async def issue(req: Any, res: Any) -> None:
        tokens.append(await by.issue(req, {"sub": sub}, expires_in=10_000))
        res.send()

    await Client(issuing, Env(), client.ctx).get("/")
    return f"Bearer {tokens[0]}"


def message(method: str = "tools/call", **params: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {"elicitation": {}}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}


async def send(body: Any, *, url: str = "/mcp", user: str = "ada", **changed: Any) -> tuple[int, Any]:
    given: Any = body.get("params") if is_object(body) else None
    params = given if is_object(given) else {}
    headers: dict[str, str | None] = {
        "Authorization": await token(user),
        "MCP-Protocol-Version": LATEST,
        "Mcp-Method": body["method"] if isinstance(body, dict) else "tools/call",
        "Mcp-Name": params.get("name"),
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    response = await client.post(
        url, json=body, headers={name: value for name, value in headers.items() if value is not None}
    )
    text = await response.text()
    return response.status, json.loads(text) if text else None


async def asked(**params: Any) -> str:
    status, answer = await send(message(name="delete", arguments={"id": 1}, **params))
    assert status == 200
    state: str = answer["result"]["requestState"]
    return state


def agreed(state: str, id: int = 1) -> dict[str, Any]:
    response = {"Sure": {"action": "accept", "content": {"sure": True}}}
    return message(name="delete", arguments={"id": id}, inputResponses=response, requestState=state)


async def test_what_is_asked_and_agreed_to_is_done() -> None:
    assert (await send(agreed(await asked())))[1]["result"]["isError"] is False
    assert deleted == [1]
    deleted.clear()


async def test_a_token_for_another_server_is_refused() -> None:
    assert (await send(message("tools/list"), Authorization=await token(by=foreign)))[0] == 401


async def test_a_token_in_the_query_is_none() -> None:
    bearer = (await token()).removeprefix("Bearer ")
    status, _ = await send(message("tools/list"), url=f"/mcp?access_token={bearer}&token={bearer}", Authorization=None)
    assert status == 401


async def test_the_state_of_another_user_is_refused() -> None:
    status, answer = await send(agreed(await asked()), user="eve")
    assert (status, answer["error"]["code"]) == (400, -32602)


async def test_a_state_that_is_older_than_ten_minutes_is_refused() -> None:
    state = await asked()
    clock.advance(600)
    assert (await send(agreed(state)))[0] == 400


async def test_the_state_of_other_arguments_is_refused() -> None:
    assert (await send(agreed(await asked(), id=2)))[0] == 400


@given(st.integers(min_value=0), st.characters())
async def test_a_state_that_was_changed_anywhere_is_refused(place: int, character: str) -> None:
    state = await asked()
    place %= len(state)
    changed = f"{state[:place]}{character}{state[place + 1 :]}"
    if changed != state:
        assert (await send(agreed(changed)))[0] == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"Mcp_Name": "hidden"},
        {"Mcp_Name": None},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Method": "TOOLS/CALL"},
        {"Mcp_Method": None},
        {"MCP_Protocol_Version": None},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"Mcp_Name": "=?base64?ZGVsZXRl!?="},
    ],
)
async def test_headers_that_differ_from_the_body_are_refused(changed: dict[str, Any]) -> None:
    status, answer = await send(message(name="delete", arguments={"id": 1}), **changed)
    assert (status, answer["error"]["code"], answer["id"]) == (400, -32020, 1)


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
async def test_a_header_that_comes_twice_is_refused(name: str) -> None:
    body = message(name="delete", arguments={"id": 1})
    headers = http.Headers(
        {
            "Authorization": await token(),
            "MCP-Protocol-Version": LATEST,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "delete",
        }
    )
    headers.append(name, str(headers[name]))
    request = http.Request("https://example.test/mcp", method="POST", headers=headers, json=body)
    assert (await client.fetch(request)).status == 400


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"]
)
async def test_the_host_of_a_stranger_is_refused_without_https(host: str) -> None:
    assert (await send(message("tools/list"), url=f"http://{host}/mcp"))[0] == 403
    assert (await send(message("tools/list"), url="http://127.0.0.1:8000/mcp"))[0] == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:3000", "https://example.test.evil.example"]
)
async def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert (await send(message("tools/list"), Origin=origin))[0] == 403
    assert (await send(message("tools/list"), Origin="https://example.test"))[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://[", "http://localhost.evil.example"])
async def test_a_page_from_elsewhere_is_refused_on_this_machine(origin: str) -> None:
    here = "http://localhost:8787/mcp"
    assert (await send(message("tools/list"), url=here, Origin=origin))[0] == 403
    assert (await send(message("tools/list"), url=here, Origin="http://127.0.0.1:5173"))[0] == 200


async def test_a_hidden_tool_is_as_unknown_as_one_that_is_not_there() -> None:
    status, answer = await send(message(name="hidden"))
    other_status, other = await send(message(name="absent"))
    assert (status, answer["error"]["message"].replace("hidden", "absent")) == (other_status, other["error"]["message"])
    assert [tool["name"] for tool in (await send(message("tools/list")))[1]["result"]["tools"]] == ["delete"]


async def test_65_levels_of_json_are_refused() -> None:
    deep: Any = 1
    for _ in range(61):  # the message, its params and the arguments are three more
        deep = [deep]
    assert (await send(message(name="delete", arguments={"id": deep})))[1]["result"]["isError"] is True
    status, answer = await send(message(name="delete", arguments={"id": [deep]}))
    assert (status, answer["error"]["code"]) == (400, -32600)


async def test_a_reference_to_another_host_is_data_like_any_other() -> None:
    body = message(name="delete", arguments={"id": {"$ref": "https://evil.example/schema.json"}})
    assert (await send(body))[1]["result"]["content"][0]["text"] == "id must be an integer"
    _, answer = await send(message("tools/list"))
    assert all(ref.startswith("#/") for ref in re.findall(r'"\$ref":"([^"]*)"', json.dumps(answer)))


async def test_an_argument_too_many_is_refused() -> None:
    _, answer = await send(message(name="delete", arguments={"id": 1, "force": True}))
    assert answer["result"] == {
        **answer["result"],
        "isError": True,
        "content": [{"type": "text", "text": "force is not a parameter"}],
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([], -32600),
        ([message()], -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": 1}}, -32602),
        (message(name=["delete"]), -32020),
        (message(name="delete", arguments=[]), -32602),
        (message(name="delete", arguments={"id": 1}, inputResponses=[]), -32602),
        (message(name="delete", arguments={"id": 1}, requestState=1), -32602),
    ],
)
async def test_a_message_of_another_form_is_refused(body: Any, code: int) -> None:
    status, answer = await send(body, **({"Mcp_Name": "delete"} if isinstance(body, dict) else {}))
    assert (status, answer["error"]["code"]) == (400, code)


async def test_a_form_of_a_page_is_no_message() -> None:
    response = await client.post(
        "/mcp",
        body=json.dumps(message("tools/list")),
        headers={"Content-Type": "text/plain", "Authorization": await token()},
    )
    assert response.status == 415


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
async def test_no_message_is_a_failure_of_the_server(value: Any) -> None:
    for body in (
        value,
        message(name="delete", arguments=value),
        message(name=value),
        {"jsonrpc": "2.0", "id": value, "method": "ping"},
    ):
        response = await client.post("/mcp", json=body, headers={"Authorization": await token()})
        assert response.status < 500
    status, _ = await send(message(name="delete", arguments={"id": value} if not isinstance(value, dict) else value))
    assert status < 500
