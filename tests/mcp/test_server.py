"""Tools, resources, prompts and rights, as a client meets them, through `app.fetch`."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import attrs
import pytest

from core import Bindings, CoreError, Next, Request, Response, Router, create_app
from core.errors import AuthenticationError, DeveloperError, RegistrationError
from core.http.streams import close
from core.mcp import MCP, Audio, Content, Embedded, Image, Link, ToolError, elicit
from core.mcp.messages import CAPABILITIES_KEY, LATEST, LEVEL_KEY, VERSION_KEY, ProtocolError
from core.middleware.jwt import jwt_auth
from core.testing import Client, FakeClock, FakeExecutionContext
from core.validation.structure import structure


@attrs.frozen
class Env(Bindings):
    MCP_SECRET: str = "a secret"


@attrs.frozen
class User:
    id: int
    role: str = "user"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Pen:
    color: Color
    width: float = attrs.field(default=1.0, validator=attrs.validators.gt(0))
    bought: date | None = None


def server(**options: Any) -> tuple[Client[Env], MCP[Env, Any]]:
    app = create_app(Env)
    return Client(app, Env()), MCP(app, "pens", secret=lambda req: req.env.MCP_SECRET, **options)


async def rpc(client: Client[Any], method: str, params: dict[str, Any], **headers: str) -> Any:
    """One request of the stateless revision, with the headers that belong to it, and the JSON of its answer."""
    name = params.get("uri" if method == "resources/read" else "name")
    given = {"MCP-Protocol-Version": LATEST, "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {"_meta": {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}}, **params},
    }
    names = {key.replace("_", "-"): value for key, value in headers.items()}
    return await (await client.post("/mcp", json=body, headers=given | names)).json()


# -- tools


async def test_arguments_are_read_as_a_body_is_and_every_mistake_is_told() -> None:
    client, mcp = server()

    @mcp.tool
    async def draw(req: Request[Env], pen: Pen, points: list[int], label: str | None = None) -> Pen:
        """Draw a line."""
        return pen

    tools = client.mcp()
    pen = Pen(Color.RED, 2.0, date(2026, 1, 2))
    assert await tools.call(draw, pen, points=[1, 2]) == pen
    with pytest.raises(ToolError) as raised:
        await tools.call_by_name("draw", {"pen": {"color": "green", "width": 0}, "points": ["1"], "size": 3})
    assert str(raised.value).split("\n") == [
        "size is not a parameter",
        'pen.color must be one of "red", "blue"',
        "pen.width must be more than 0",
        "points[0] must be an integer",
    ]


async def test_the_schema_says_what_the_reader_takes() -> None:
    client, mcp = server()

    @mcp.tool(read_only=True, title="Draw")
    async def draw(req: Request[Env], pen: Pen, size: Annotated[int, "In points"] = 3) -> list[Pen]:
        """Draw a line."""
        return [pen]

    shown = (await client.mcp().tools())["draw"]
    properties = shown["inputSchema"].pop("properties")
    assert shown["inputSchema"] == {"type": "object", "required": ["pen"], "additionalProperties": False}
    assert properties["size"] == {"type": "integer", "description": "In points", "default": 3}
    pen = properties["pen"]
    assert pen["required"] == ["color"]
    assert pen["properties"]["width"] == {"type": "number", "exclusiveMinimum": 0, "default": 1.0}
    assert shown["outputSchema"]["required"] == ["result"]
    assert shown["annotations"] == {"readOnlyHint": True}
    assert shown["title"] == "Draw"


@pytest.mark.parametrize("value", ["a", 1, True, None, [1], {"a": 1}])
async def test_what_a_tool_returns_is_structured_content(value: Any) -> None:
    client, mcp = server()

    @mcp.tool
    async def give(req: Request[Env]) -> Any:
        """Give a value."""
        return value

    result = await client.mcp().call_by_name("give", {})
    assert result["structuredContent"] == {"result": value}


async def test_content_is_what_a_model_reads() -> None:
    client, mcp = server()

    @mcp.tool
    async def show(req: Request[Env]) -> list[Content]:
        """Show everything."""
        return ["a", "b", Image(b"1"), Audio(b"2"), Embedded("x://1", b"3", "a/b"), Link("x://2", "two")]

    @mcp.tool
    async def forget(req: Request[Env]) -> None:
        """Show nothing."""

    content = (await client.mcp().call_by_name("show", {}))["content"]
    assert [each["type"] for each in content] == ["text", "text", "image", "audio", "resource", "resource_link"]
    assert content[4]["resource"] == {"uri": "x://1", "mimeType": "a/b", "blob": "Mw=="}
    assert (await client.mcp().call_by_name("forget", {}))["content"] == []


async def test_a_refusal_is_for_the_model_and_a_failure_is_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    client, mcp = server()

    @mcp.tool
    async def fail(req: Request[Env], how: Literal["refused", "broken", "down", "stale"]) -> str:
        """Fail."""
        if how == "refused":
            raise CoreError(409, "It is sold")
        if how == "stale":
            structure({"color": "green"}, Pen)  # what was stored, and is none of the arguments
        raise RuntimeError("the password is 123") if how == "broken" else CoreError(503, "The database is 10.0.0.7")

    with pytest.raises(ToolError, match=r"^It is sold$"):
        await client.mcp().call(fail, "refused")
    for how in ("broken", "down", "stale"):
        caplog.clear()
        with caplog.at_level(logging.ERROR), pytest.raises(ProtocolError, match=r"^Internal error$") as raised:
            await client.mcp().call_by_name("fail", {"how": how})
        assert raised.value.status == 500
        assert "tools/call of MCP('pens') failed" in caplog.text


async def no_words(req: Request[Env], id: int) -> str:
    return ""


async def no_type(req: Request[Env], id) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Words."""
    return ""


async def no_return(req: Request[Env], id: int):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Words."""


async def takes_bytes(req: Request[Env], data: dict[str, list[bytes]]) -> str:
    """Words."""
    return ""


async def gives_a_function(req: Request[Env]) -> set[object] | type[int]:
    """Words."""
    return set()


async def names_nothing(req: Request[Env], x: Nothing) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Words."""
    return ""


async def any_number(req: Request[Env], *ids: int) -> str:
    """Words."""
    return ""


def not_async(req: Request[Env]) -> str:
    """Words."""
    return ""


REFUSED: list[tuple[Any, str]] = [
    (no_words, "tool no_words: no_words has no docstring"),
    (no_type, "id has no type. Annotate it: id: str"),
    (no_return, "does not say what it returns"),
    (takes_bytes, "data is or has bytes, which JSON cannot hold"),
    (gives_a_function, "return is or has type, which JSON cannot hold"),
    (names_nothing, "x: Nothing names Nothing, which is not there"),
    (any_number, "has no name for an argument"),
    (not_async, "not_async"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_a_function_that_is_no_tool_is_refused_with_the_way_out(function: Any, words: str) -> None:
    _, mcp = server()
    with pytest.raises((RegistrationError, TypeError), match=words):
        mcp.tool(function)


def test_a_name_is_one_that_clients_take_and_is_there_once() -> None:
    _, mcp = server()

    async def fine(req: Request[Env]) -> str:
        """Words."""
        return ""

    with pytest.raises(RegistrationError, match=r"SEP-986"):
        mcp.tool(name="not a name")(fine)
    mcp.tool(fine)
    with pytest.raises(RegistrationError, match="registered already"):
        mcp.tool(fine)


# -- routes


@attrs.frozen
class NewPen:
    color: Color
    names: list[str]


@attrs.frozen
class Page:
    size: int = 10
    tag: list[str] = attrs.field(factory=list[str])


def routes() -> tuple[Client[Env], MCP[Env, Any], list[Any]]:
    client, mcp = server()
    app = client.app

    async def signed_in(req: Request[Env]) -> User:
        if req.header("authorization") != "Bearer ada":
            raise AuthenticationError(missing=True)
        return User(1)

    @app.get("/boxes/:box/pens")
    async def list_pens(req: Request[Env], res: Response) -> None:
        """The pens in a box."""
        page = req.query.parse(Page)
        if req.params["box"] == "none":
            raise CoreError(404, "There is no such box")
        res.json({"box": req.params["box"], "size": page.size, "tag": page.tag})

    @app.authenticated(signed_in).post("/pens")
    async def create_pen(req: Request[Env, User], res: Response) -> None:
        """A new pen."""
        res.status(201).json(await req.json(NewPen))

    @app.delete("/pens")
    async def broken(req: Request[Env], res: Response) -> None:
        """Break."""
        raise RuntimeError("inside")

    return client, mcp, [list_pens, create_pen, broken]


async def test_a_route_is_called_with_flat_arguments() -> None:
    client, mcp, (list_pens, create_pen, _) = routes()
    mcp.expose(list_pens, query=Page)
    mcp.expose(create_pen, body=NewPen, returns=NewPen, name="new_pen")
    client.headers["Authorization"] = "Bearer ada"
    tools = client.mcp()
    shown = await tools.tools()
    assert list(shown["list_pens"]["inputSchema"]["properties"]) == ["box", "size", "tag"]
    assert shown["list_pens"]["inputSchema"]["required"] == ["box"]
    assert shown["list_pens"]["annotations"] == {"readOnlyHint": True, "idempotentHint": True}
    assert shown["new_pen"]["annotations"] == {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": False}
    text = (await tools.call_by_name("list_pens", {"box": "a/b", "size": 3, "tag": ["x", "y"]}))["content"][0]["text"]
    assert text == '{"box":"a/b","size":3,"tag":["x","y"]}'
    result = await tools.call_by_name("new_pen", {"color": "red", "names": ["a"]})
    assert result["structuredContent"] == {"color": "red", "names": ["a"]}


async def test_a_body_in_an_envelope_is_sent_in_it_and_errors_of_another_shape_are_told_whole() -> None:
    client, mcp = server()

    @client.app.put("/pens/:id")
    async def put_pen(req: Request[Env], res: Response) -> Response:
        """Write a pen."""
        pen = await req.json(NewPen, key="pen")
        if not pen.names:
            return res.status(422).json({"errors": {"names": ["are missing"]}})
        return res.json({"pen": pen})

    mcp.expose(put_pen, body=NewPen, key="pen")
    (tool,) = (await client.mcp().tools()).values()
    assert list(tool["inputSchema"]["properties"]) == ["id", "color", "names"]
    found = await client.mcp().call_by_name("put_pen", {"id": "1", "color": "red", "names": ["a"]})
    assert json.loads(found["content"][0]["text"]) == {"pen": {"color": "red", "names": ["a"]}}
    with pytest.raises(ToolError, match=r'^\{"errors":\{"names":\["are missing"\]\}\}$'):
        await client.mcp().call_by_name("put_pen", {"id": "1", "color": "red", "names": []})


@attrs.frozen
class Tip:
    color: Color


@attrs.frozen
class TwoTips:
    front: Tip
    back: Tip | None = None


async def test_a_body_whose_fields_share_a_class_has_a_schema_that_is_whole() -> None:
    client, mcp = server()

    @client.app.post("/tips")
    async def create(req: Request[Env], res: Response) -> None:
        """A pen with two tips."""
        res.json(await req.json(TwoTips))

    mcp.expose(create, body=TwoTips)
    schema = (await client.mcp().tools())["create"]["inputSchema"]
    assert schema["properties"]["front"] == {"$ref": "#/$defs/Tip"}
    assert schema["$defs"]["Tip"]["required"] == ["color"]


async def test_what_a_route_refuses_is_told_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    client, mcp, (list_pens, create_pen, broken) = routes()
    mcp.expose(list_pens)
    mcp.expose(create_pen, body=NewPen)
    mcp.expose(broken)
    with pytest.raises(ToolError, match=r"^There is no such box$"):
        await client.mcp().call_by_name("list_pens", {"box": "none"})
    for box in ("", ".."):
        with pytest.raises(ToolError, match=r"^/boxes/:box/pens does not match these values$"):
            await client.mcp().call_by_name("list_pens", {"box": box})
    with pytest.raises(ProtocolError, match=r"^Internal error$"):
        await client.mcp().call_by_name("broken", {})
    assert "inside" in caplog.text


async def test_a_route_behind_an_authenticator_is_hidden_from_others() -> None:
    client, mcp, (_, create_pen, _) = routes()
    mcp.expose(create_pen, body=NewPen)
    assert await client.mcp().tools() == {}
    assert (await rpc(client, "tools/list", {}))["result"]["cacheScope"] == "private"
    client.headers["Authorization"] = "Bearer ada"
    assert list(await client.mcp().tools()) == ["create_pen"]


async def test_an_authenticator_decides_on_each_route_that_a_tool_asks_by_its_own_path_and_parameters() -> None:
    client, _ = server()
    app = client.app

    async def member(req: Request[Env]) -> User:
        if req.path.startswith("/staff") or req.params.get("team", "red") != "red":
            raise CoreError(403)
        return User(1)

    members = app.authenticated(member)

    @members.get("/teams/:team", tool=True)
    async def team(req: Request[Env, User], res: Response) -> None:
        """A team."""
        res.json(req.params["team"])

    @members.get("/staff", tool=True)
    async def staff(req: Request[Env, User], res: Response) -> None:
        """The staff."""
        res.json("secret")

    mcp = MCP(app, "members", behind=member, path="/members")
    tools = client.mcp(mcp)
    assert (await tools.call_by_name("team", {"team": "red"}))["content"][0]["text"] == '"red"'
    assert (await client.get("/teams/blue")).status == (await client.get("/staff")).status == 403
    with pytest.raises(ToolError, match=r"^Forbidden$"):
        await tools.call_by_name("team", {"team": "blue"})
    with pytest.raises(ToolError, match=r"^Forbidden$"):
        await tools.call_by_name("staff", {})
    assert (await client.mcp(mcp, user=User(1)).call_by_name("staff", {}))["content"][0]["text"] == '"secret"'


async def test_an_authenticator_that_needs_more_than_the_headers_is_asked_by_the_call() -> None:
    client, _ = server()
    app = client.app

    async def member(req: Request[Env]) -> User:
        if req.params["team"] != "red":
            raise CoreError(403)
        return User(req.state["number"])

    async def numbered(req: Request[Env], res: Response, next: Next) -> None:
        req.state["number"] = 7
        await next()

    app.use("/teams", numbered)

    @app.authenticated(member).get("/teams/:team", tool=True)
    async def team(req: Request[Env, User], res: Response) -> None:
        """A team."""
        res.json(req.user.id)

    tools = client.mcp()
    assert list(await tools.tools()) == ["team"]
    assert (await tools.call_by_name("team", {"team": "red"}))["content"][0]["text"] == "7"
    with pytest.raises(ToolError, match=r"^Forbidden$"):
        await tools.call_by_name("team", {"team": "blue"})


async def test_a_route_that_is_marked_is_a_tool_wherever_its_router_is_mounted() -> None:
    client, _ = server()
    pens: Router[Env] = Router()

    @pens.get("/:id", tool=True)
    async def show(req: Request[Env], res: Response) -> None:
        """A pen."""
        res.json({"id": req.params["id"]})

    @pens.delete("/:id")
    async def remove(req: Request[Env], res: Response) -> None:
        """Not offered."""

    client.app.use("/pens", pens)
    tools = client.mcp()
    assert list(await tools.tools()) == ["show"]
    assert (await tools.call_by_name("show", {"id": "a/b"}))["content"][0]["text"] == '{"id":"a/b"}'

    @client.app.get("/late", tool=True)
    async def late(req: Request[Env], res: Response) -> None:
        """Registered after a request was served."""
        res.send()

    assert list(await tools.tools()) == ["show", "late"]
    assert {route.handler: route.tools for route in client.app.routes if route.tools} == {
        "mcp": ("show", "late"),
        "show": ("show",),
        "late": ("late",),
    }


async def test_an_optional_segment_is_an_optional_argument() -> None:
    client, _ = server()

    @client.app.get("/orders/:id/:part?", tool=True)
    async def order(req: Request[Env], res: Response) -> None:
        """An order, or a part of it."""
        res.json([*req.params.values()])

    tools = client.mcp()
    assert (await tools.tools())["order"]["inputSchema"]["required"] == ["id"]
    for given in ({"id": "1"}, {"id": "1", "part": "b"}):
        assert (await tools.call_by_name("order", given))["content"][0]["text"] == json.dumps(
            [*given.values()]
        ).replace(" ", "")


@pytest.mark.parametrize("path", ["/files/*", "/files/*/versions"])
def test_a_path_with_a_part_that_no_argument_names_is_no_tool(path: str) -> None:
    app = create_app(Env)
    MCP(app, "files")

    @app.get(path, tool=True)
    async def file(req: Request[Env], res: Response) -> None:
        """A file."""

    with pytest.raises(RegistrationError, match=r"tool file: /files/\*.* has a \*, which is the name of no argument"):
        app.check()


def test_a_tool_that_no_server_offers_is_refused() -> None:
    app = create_app(Env)

    @app.get("/pens", tool=True)
    async def pens(req: Request[Env], res: Response) -> None:
        """All pens."""

    with pytest.raises(RegistrationError, match=r"GET /pens: tool=True, and no MCP server.*MCP\(app"):
        app.check()


def test_what_cannot_be_exposed_is_refused() -> None:
    _, mcp, (list_pens, create_pen, _) = routes()

    async def unknown(req: Request[Env], res: Response) -> None:
        """Words."""

    with pytest.raises(RegistrationError, match="handler of no route here"):
        mcp.expose(unknown)
    with pytest.raises(RegistrationError, match="body must be a class with fields"):
        mcp.expose(create_pen, body=list[int])
    with pytest.raises(RegistrationError, match="params has size, which /boxes/:box/pens has not"):
        mcp.expose(list_pens, params=Page)
    with pytest.raises(RegistrationError, match="body has size, and query has it too"):
        mcp.expose(list_pens, query=Page, body=Page)


# -- resources and prompts


async def test_resources_are_read_by_their_uri() -> None:
    client, mcp = server()

    @mcp.resource("pens://{color}/{number}", ttl=2.5)
    async def pen(req: Request[Env], color: Color, number: int) -> Pen:
        """A pen."""
        if number == 0:
            raise CoreError(404)
        return Pen(color, number)

    @mcp.resource("pens://logo", mime_type="image/png")
    async def logo(req: Request[Env]) -> bytes:
        """The logo."""
        return b"png"

    tools = client.mcp()
    assert (await tools.read("pens://red/2"))["text"] == '{"color":"red","width":2,"bought":null}'
    assert await tools.read("pens://logo") == {"uri": "pens://logo", "mimeType": "image/png", "blob": "cG5n"}
    result = await tools.request("resources/read", uri="pens://red/2")
    assert (result["ttlMs"], result["cacheScope"]) == (2500, "private")
    for uri in ("pens://red/0", "pens://red/2/3", "other://red/2"):
        with pytest.raises(ProtocolError, match="Resource not found") as raised:
            await tools.read(uri)
        assert raised.value.data == {"uri": uri}
    with pytest.raises(ProtocolError, match="number must be an integer"):
        await tools.read("pens://red/two")
    assert [each["uri"] for each in (await tools.request("resources/list"))["resources"]] == ["pens://logo"]
    templates = (await tools.request("resources/templates/list"))["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == ["pens://{color}/{number}"]
    ref = {"type": "ref/resource", "uri": "pens://{color}/{number}"}
    found = await tools.request("completion/complete", ref=ref, argument={"name": "color", "value": "b"})
    assert found["completion"]["values"] == ["blue"]


def test_the_names_in_a_template_are_the_parameters() -> None:
    _, mcp = server()

    async def pen(req: Request[Env], id: int) -> str:
        """Words."""
        return ""

    for uri, words in (
        ("pens://{number}", "Add or remove id, number"),
        ("pens", "begins with a scheme"),
        ("a:{id}/{id}", "each once"),
    ):
        with pytest.raises(RegistrationError, match=words):
            mcp.resource(uri)(pen)


async def test_prompts_read_texts_and_are_completed() -> None:
    client, mcp = server()

    @mcp.prompt
    async def praise(req: Request[Env], times: int, name: str, color: Color = Color.RED) -> str:
        """Praise a pen."""
        return f"{name} is {color.value} " * times

    @mcp.complete(praise, "name")
    async def names(req: Request[Env], text: str) -> list[str]:
        return [f"{text}{number}" for number in range(150)]

    tools = client.mcp()
    assert (await tools.prompt("praise", times="2", name="Pen"))[0]["content"]["text"] == "Pen is red Pen is red "
    with pytest.raises(ProtocolError, match="times must be an integer\nname is required"):
        await tools.prompt("praise", times="two")
    ref = {"type": "ref/prompt", "name": "praise"}
    found = await tools.request("completion/complete", ref=ref, argument={"name": "name", "value": "a"})
    assert len(found["completion"]["values"]) == 100
    assert found["completion"]["hasMore"]
    with pytest.raises(ProtocolError, match="name no parameter"):
        await tools.request("completion/complete", ref=ref, argument={"name": "size", "value": "a"})
    with pytest.raises(RegistrationError, match="no prompt or resource with such a parameter"):
        mcp.complete(praise, "size")


# -- asking back


@attrs.frozen
class Confirm:
    sure: bool
    color: Color | None = None


@attrs.frozen
class Nested:
    confirm: Confirm


async def test_a_question_is_asked_again_until_the_answer_fits() -> None:
    client, mcp = server()
    asked: list[str] = []

    @mcp.tool
    async def delete(req: Request[Env], id: int) -> str:
        """Delete a pen."""
        first = await mcp.ask(req, Confirm, f"Delete {id}?")
        second = await mcp.ask(req, Confirm, "Really?", key="again")
        return f"{first} {second}"

    def answer(message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(message)
        if message == "Really?":
            return None
        return {"sure": "yes"} if len(asked) == 1 else {"sure": True, "color": "red"}

    text = await client.mcp(answer=answer).call(delete, id=3)
    assert text == f"{Confirm(True, Color.RED)} None"
    assert asked == ["Delete 3?", "Delete 3?\nsure must be true or false", "Really?"]


async def test_a_client_that_cannot_be_asked_is_told_which_capability_it_lacks() -> None:
    client, mcp = server()

    @mcp.tool
    async def delete(req: Request[Env]) -> str:
        """Delete a pen."""
        return str(await mcp.ask(req, Confirm, "Sure?"))

    with pytest.raises(ProtocolError) as raised:
        await client.mcp().call(delete)
    assert raised.value.data == {"requiredCapabilities": {"elicitation": {}}}
    assert raised.value.status == 400


async def test_asking_needs_a_form_a_secret_and_a_call() -> None:
    with pytest.raises(DeveloperError, match="confirm is no field of a form"):
        elicit(Nested, "Sure?")
    app = create_app(Env)
    mcp = MCP(app, "pens")
    said: list[str] = []

    @mcp.tool
    async def delete(req: Request[Env]) -> str:
        """Delete a pen."""
        try:
            await mcp.ask(req, Confirm, "Sure?")
        except DeveloperError as error:
            said.append(str(error))
        return ""

    @app.get("/")
    async def handler(req: Request[Env], res: Response) -> None:
        try:
            await mcp.ask(req, Confirm, "Sure?")
        except DeveloperError as error:
            res.text(str(error))

    client = Client(app, Env())
    await client.mcp(answer=lambda message, schema: {}).call(delete)
    assert "Give secret=lambda req: req.env.MCP_SECRET" in said[0]
    assert "for the request of a tool" in await (await client.get("/")).text()


# -- the transport


async def test_progress_makes_a_stream_only_where_the_client_asks_for_it() -> None:
    client, mcp = server()

    @mcp.tool
    async def work(req: Request[Env]) -> str:
        """Work."""
        await mcp.progress(req, 1, 2, "half")
        await mcp.progress(req, 2, 2)
        return "done"

    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "work", "_meta": {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}, "progressToken": "t"}},
    }
    headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": "tools/call", "Mcp-Name": "work"}
    plain = await client.post("/mcp", json=body, headers=headers)
    assert plain.headers["content-type"] == "application/json"
    streamed = await client.post("/mcp", json=body, headers=headers | {"Accept": "application/json, text/event-stream"})
    assert streamed.headers["content-type"] == "text/event-stream"
    text = await streamed.text()
    assert text.count("notifications/progress") == 2
    assert text.index('"message":"half"') < text.index('"id":7')


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
@pytest.mark.parametrize("version", [LATEST, "2025-11-25"])
async def test_a_tool_that_takes_long_is_cancelled_where_its_client_closes_the_stream(
    version: str, accept: str
) -> None:
    """The cancellation of revision 2026-07-28; in earlier ones, a connection that ends is none."""
    clock = FakeClock()
    app = create_app(Env)
    client, mcp = Client(app, Env(), ctx=FakeExecutionContext(clock=clock)), MCP(app, "pens")
    begun, goes_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @mcp.tool
    async def think(req: Request[Env]) -> str:
        """Think."""
        begun.set()
        try:
            await goes_on.wait()
        finally:
            ended.set()
        return "thought"

    meta = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}} if version == LATEST else {}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "think", "_meta": meta}}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "think", "Accept": accept}
    asking = asyncio.ensure_future(client.post("/mcp", json=body, headers=headers))
    await begun.wait()
    await clock.advance(1)
    if version == LATEST and "event-stream" in accept:
        response = await asking
        assert response.headers["content-type"] == "text/event-stream"
        stream = response.stream()
        assert (await anext(stream)).startswith(b":")
        await close(stream)
        await ended.wait()
    else:
        goes_on.set()
        assert (await (await asking).json())["result"]["content"][0]["text"] == "thought"
    assert clock.pending == 0


@pytest.mark.parametrize(
    ("version", "level", "lines"),
    [(LATEST, None, 0), (LATEST, "debug", 2), (LATEST, "warning", 1), (LATEST, "loud", 0), ("2025-11-25", None, 2)],
)
async def test_lines_of_a_log_go_to_a_client_that_asks_for_their_level(
    version: str, level: str | None, lines: int
) -> None:
    client, mcp = server()

    @mcp.tool
    async def work(req: Request[Env]) -> str:
        """Work."""
        await mcp.log(req, "info", "begun")
        await mcp.log(req, "error", {"left": 3})
        return "done"

    own: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}, LEVEL_KEY: level} if version == LATEST else {}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "work", "_meta": own}}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "work"}
    response = await client.post("/mcp", json=body, headers=headers | {"Accept": "application/json, text/event-stream"})
    text = await response.text()
    assert text.count("notifications/message") == lines
    assert response.headers["content-type"] == ("text/event-stream" if lines else "application/json")
    assert ('"level":"error","logger":"pens","data":{"left":3}' in text) is (lines > 0)


async def test_a_level_is_taken_from_an_earlier_client_and_not_kept() -> None:
    client, _ = server()
    for level, answer in (("debug", "result"), ("loud", "error")):
        body = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": level}}
        assert answer in await (await client.post("/mcp", json=body)).json()


async def test_an_earlier_client_is_served_without_a_session() -> None:
    client, mcp = server(instructions="Ask for pens.")

    @mcp.tool
    async def pen(req: Request[Env]) -> str:
        """A pen."""
        return "red"

    async def send(method: str, params: dict[str, Any], **more: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await (await client.post("/mcp", json=body, **more)).json()

    first = (await send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}))["result"]
    assert first["protocolVersion"] == "2025-06-18"
    assert first["instructions"] == "Ask for pens."
    assert (await send("initialize", {"protocolVersion": "1999-01-01"}))["result"]["protocolVersion"] == "2025-11-25"
    headers = {"MCP-Protocol-Version": "2025-11-25"}
    assert (await send("tools/call", {"name": "pen"}, headers=headers))["result"]["content"][0]["text"] == "red"
    assert "resultType" not in (await send("tools/list", {}, headers=headers))["result"]
    notification = await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert notification.status == 202
    assert (await client.get("/mcp")).status == 405
    unknown = await client.post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={"MCP-Protocol-Version": "1"}
    )
    assert unknown.status == 400


# -- rights


async def test_a_client_finds_out_where_to_get_a_token() -> None:
    async def signed_in(req: Request[Env]) -> User:
        if req.header("authorization") != "Bearer ada":
            raise AuthenticationError(missing="authorization" not in req.headers)
        return User(1)

    client, mcp = server(behind=signed_in, authorization_servers=["https://login.example"], scopes=["pens:read"])

    async def admin(req: Request[Env, User]) -> User:
        if req.user.role != "admin":
            raise CoreError(403, "Only admins", scope="pens:admin")
        return req.user

    async def owner(req: Request[Env, User]) -> User:
        if req.user.id != 1:
            raise CoreError(403)
        return req.user

    @mcp.tool(guard=admin)
    async def wipe(req: Request[Env, User]) -> str:
        """Wipe everything."""
        return f"{req.user.id}"

    @mcp.tool(guard=owner)
    async def pen(req: Request[Env, User]) -> str:
        """A pen."""
        return f"{req.user.id}"

    metadata = "https://example.test/.well-known/oauth-protected-resource/mcp"
    response = await client.post("/mcp", json={})
    assert response.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{metadata}", scope="pens:read"'
    wrong = await client.post("/mcp", json={}, headers={"Authorization": "Bearer eve"})
    assert str(wrong.headers["WWW-Authenticate"]).startswith('Bearer error="invalid_token", resource_metadata=')
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert await (await client.get(path)).json() == {
            "resource": "https://example.test/mcp",
            "authorization_servers": ["https://login.example"],
            "bearer_methods_supported": ["header"],
            "resource_name": "pens",
            "scopes_supported": ["pens:read"],
        }
    assert list(await client.mcp(user=User(1)).tools()) == ["pen"]
    assert list(await client.mcp(user=User(2, "admin")).tools()) == ["wipe"]
    assert await client.mcp(user=User(2, "admin")).call(wipe) == "2"
    with pytest.raises(ProtocolError, match="Unknown tool: pen"):
        await client.mcp(user=User(2)).call(pen)
    with pytest.raises(ProtocolError, match="Only admins") as raised:
        await client.mcp(user=User(1)).call(wipe)
    assert raised.value.status == 403


def test_tokens_for_another_server_are_refused_at_the_start() -> None:
    with pytest.raises(RegistrationError, match=r"RFC 8707.*audience="):
        server(behind=jwt_auth(Env, secret=lambda req: req.env.MCP_SECRET))
    with pytest.raises(RegistrationError, match=r"an authenticator is"):
        server(behind=test_tokens_for_another_server_are_refused_at_the_start)


def test_default_deny_holds_for_the_server_as_well() -> None:
    app = create_app(Env, default_deny=True)
    MCP(app, "pens")
    with pytest.raises(RegistrationError, match="POST /mcp"):
        app.check()


async def test_a_client_names_one_of_several_servers() -> None:
    client, mcp = server()
    assert client.mcp() is not None
    MCP(client.app, "more", path="/more")
    with pytest.raises(LookupError, match="2 MCP servers"):
        client.mcp()
    assert client.mcp(mcp) is not None
