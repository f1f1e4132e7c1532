"""Lists and calls everything of a server with the Python SDK."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import mcp_types as types
from mcp.client.context import ClientRequestContext

from mcp import Client, MCPError


async def listed_and_called(address: str, mode: str) -> dict[str, Any]:
    """What was seen: the types of each content, by name."""
    seen: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "changes": []}
    given = {"test_custom_header": {"region": "eu"}}
    callbacks: dict[str, Any] = {
        "elicitation_callback": fill_in,
        "sampling_callback": sample,
        "list_roots_callback": roots,
    }
    async with Client(address, mode="auto" if mode != "legacy" else mode, **callbacks) as client:
        seen["version"] = client.protocol_version
        for tool in (await client.list_tools()).tools:
            seen["tools"][tool.name] = await seen_of(client.call_tool(tool.name, given.get(tool.name, {})))
        uris = [each.uri for each in (await client.list_resources()).resources]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        for uri in [*uris, *(each.replace("{id}", "7") for each in templates)]:
            seen["resources"][uri] = (await client.read_resource(uri)).contents[0].mime_type
        for prompt in (await client.list_prompts()).prompts:
            arguments = {each.name: "test://static-text" for each in prompt.arguments or []}
            seen["prompts"][prompt.name] = await seen_of(client.get_prompt(prompt.name, arguments))
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "par"})
        seen["completed"] = completed.completion.values
        if mode != "legacy":
            wanted = ["test://template/1/data"]
            async with client.listen(tools_list_changed=True, resource_subscriptions=wanted) as changes:
                await client.call_tool("test_trigger_tool_change")
                seen["changes"] = [getattr(await anext(changes), "uri", "tools") for _ in range(2)]
    return seen


async def seen_of(answer: Awaitable[types.CallToolResult | types.GetPromptResult]) -> object:
    """The types of the contents of an answer, or the code of its error."""
    try:
        found = await answer
    except MCPError as error:
        return error.error.code
    if isinstance(found, types.GetPromptResult):
        return " ".join(each.content.type for each in found.messages)
    return "isError" if found.is_error else " ".join(each.type for each in found.content)


FORM: dict[str, str | int | float | bool | list[str] | None] = {
    "name": "Ada",
    "color": "blue",
    "ok": True,
    "context": "tests",
    "username": "ada",
    "email": "ada@example.com",
}


async def fill_in(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=FORM)


async def sample(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def roots(context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///work", "name": "work"})])
