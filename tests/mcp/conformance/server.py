"""The server that the official conformance suite asks for, in the words of its scenarios."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Annotated, Literal

import attrs

from core import Bindings, DurableObjectNamespace, Request, create_app
from core.mcp import MCP, Audio, Content, Embedded, Image, Input, Message, ParamHeader, Subscriptions, ToolError

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@attrs.frozen
class Env(Bindings):
    MCP_SECRET: str
    LISTEN: DurableObjectNamespace[Subscriptions]


app = create_app(Env)
mcp = MCP(
    app,
    "conformance",
    version="1.0.0",
    secret=lambda req: req.env.MCP_SECRET,
    subscriptions=lambda env: env.LISTEN,
)

# -- tools


@mcp.tool
async def test_simple_text(req: Request[Env]) -> str:
    """Gives a text."""
    return "This is a simple text response for testing."


@mcp.tool
async def test_image_content(req: Request[Env]) -> Image:
    """Gives an image."""
    return Image(PNG)


@mcp.tool
async def test_audio_content(req: Request[Env]) -> Audio:
    """Gives a sound."""
    return Audio(b"RIFF$\0\0\0WAVEfmt ")


@mcp.tool
async def test_embedded_resource(req: Request[Env]) -> Embedded:
    """Gives a resource."""
    return Embedded("test://embedded-resource", "This is an embedded resource content.")


@mcp.tool
async def test_multiple_content_types(req: Request[Env]) -> list[Content]:
    """Gives a text, an image and a resource."""
    resource = Embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return ["Multiple content types test:", Image(PNG), resource]


@mcp.tool
async def test_error_handling(req: Request[Env]) -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@mcp.tool
async def test_tool_with_progress(req: Request[Env]) -> str:
    """Tells how far it is."""
    for done in (0, 50, 100):
        await mcp.progress(req, done, 100)
        await asyncio.sleep(0.01)
    return "done"


@mcp.tool
async def test_tool_with_logging(req: Request[Env]) -> str:
    """Logs three lines."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await mcp.log(req, "info", line)
    return "done"


@mcp.tool
async def test_logging_tool(req: Request[Env]) -> str:
    """Logs three lines."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await mcp.log(req, "info", line)
    return "done"


@mcp.tool
async def test_custom_header(req: Request[Env], region: Annotated[str, ParamHeader("Region")]) -> str:
    """Has a parameter that a header repeats."""
    return region


# -- asking back


@attrs.frozen
class Name:
    name: str


@attrs.frozen
class Color:
    color: str


@attrs.frozen
class Ok:
    ok: bool


@attrs.frozen
class Context:
    context: str


@attrs.frozen
class Account:
    username: str
    email: str


def sampling(text: str, tokens: int = 100) -> Input:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return Input("sampling/createMessage", {"messages": [message], "maxTokens": tokens})


@mcp.tool
async def test_input_required_result_elicitation(req: Request[Env]) -> str:
    """Asks for a name."""
    given = await mcp.ask(req, Name, "What is your name?", key="user_name")
    return f"Hello, {given.name}!" if given is not None else "Hello!"


@mcp.tool
async def test_input_required_result_sampling(req: Request[Env]) -> str:
    """Asks the client's model."""
    answers = await mcp.inputs(req, {"capital_question": sampling("What is the capital of France?")})
    return str(answers["capital_question"])


@mcp.tool
async def test_input_required_result_list_roots(req: Request[Env]) -> str:
    """Asks for the client's roots."""
    return str(await mcp.inputs(req, {"client_roots": Input("roots/list", {})}))


@mcp.tool
async def test_input_required_result_request_state(req: Request[Env]) -> str:
    """Asks for a confirmation."""
    await mcp.ask(req, Ok, "Please confirm", key="confirm")
    return "state-ok"


@mcp.tool
async def test_input_required_result_multiple_inputs(req: Request[Env]) -> str:
    """Asks three questions at once."""
    from core.mcp import elicit

    questions = {
        "user_name": elicit(Name, "What is your name?"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": Input("roots/list", {}),
    }
    return str(sorted(await mcp.inputs(req, questions)))


@mcp.tool
async def test_input_required_result_multi_round(req: Request[Env]) -> str:
    """Asks twice."""
    name = await mcp.ask(req, Name, "Step 1: What is your name?", key="step1")
    color = await mcp.ask(req, Color, "Step 2: What is your favorite color?", key="step2")
    return f"{name} {color}"


@mcp.tool
async def test_input_required_result_tampered_state(req: Request[Env]) -> str:
    """Asks for a confirmation."""
    await mcp.ask(req, Ok, "Please confirm", key="confirm")
    return "confirmed"


@mcp.tool
async def test_input_required_result_capabilities(req: Request[Env]) -> str:
    """Asks only what the client has said that it answers."""
    from core.mcp import elicit

    questions = {"name": elicit(Name, "What is your name?"), "greeting": sampling("Generate a greeting")}
    asked = {key: each for key, each in questions.items() if mcp.can_ask(req, each.method)}
    return str(await mcp.inputs(req, asked))


@mcp.tool
async def test_missing_capability(req: Request[Env]) -> str:
    """Requires sampling."""
    return str(await mcp.inputs(req, {"question": sampling("Anything")}))


@mcp.tool
async def test_streaming_elicitation(req: Request[Env]) -> str:
    """Asks for an account."""
    return str(await mcp.ask(req, Account, "Who are you?"))


# -- prompts


@mcp.prompt
async def test_simple_prompt(req: Request[Env]) -> str:
    """A simple prompt."""
    return "This is a simple prompt for testing."


@mcp.prompt
async def test_prompt_with_arguments(
    req: Request[Env], arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second test argument"]
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@mcp.complete(test_prompt_with_arguments, "arg1")
async def cities(req: Request[Env], text: str) -> list[str]:
    return [city for city in ("paris", "park", "party") if city.startswith(text)]


@mcp.prompt
async def test_prompt_with_embedded_resource(req: Request[Env], resourceUri: str) -> list[Content]:
    """A prompt with a resource."""
    resource = Embedded(resourceUri, "Embedded resource content for testing.")
    return [resource, "Please process the embedded resource above."]


@mcp.prompt
async def test_prompt_with_image(req: Request[Env]) -> list[Message]:
    """A prompt with an image."""
    return [Message(Image(PNG)), Message("Please analyze the image above.")]


@mcp.prompt
async def test_input_required_result_prompt(req: Request[Env]) -> str:
    """A prompt that asks for its context."""
    given = await mcp.ask(req, Context, "What context should the prompt use?", key="user_context")
    return f"Use {given.context if given is not None else 'nothing'}."


# -- resources


@mcp.resource("test://static-text", mime_type="text/plain")
async def static_text(req: Request[Env]) -> str:
    """A text."""
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png")
async def static_binary(req: Request[Env]) -> bytes:
    """An image."""
    return PNG


@mcp.resource("test://template/{id}/data", mime_type="application/json")
async def template(req: Request[Env], id: str) -> dict[str, Literal[True] | str]:
    """Data, by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# -- changes


@mcp.tool
async def test_trigger_tool_change(req: Request[Env]) -> str:
    """Says that something has changed."""
    await mcp.changed(req.env, "test://template/2/data", "test://template/1/data", tools=True)
    return "told"
