"""A client of an MCP server for tests: typed calls through `app.fetch`, over fakes, with nothing in between."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from core import http
from core.mcp import MCP, ToolError
from core.mcp.messages import CAPABILITIES_KEY, LATEST, VERSION_KEY, ProtocolError, text_of
from core.request import Request
from core.values import is_object

__tracebackhide__ = True  # pytest shows the line of the test

P = ParamSpec("P")
R = TypeVar("R")

Send = Callable[[str, Mapping[str, str], dict[str, Any]], Awaitable[http.Response]]
"""Sends one POST: its path, headers and JSON."""
Answer = Callable[[str, dict[str, Any]], "dict[str, Any] | None"]
"""Answers a form: given its message and its schema, the contents, or None to decline."""


class MCPClient:
    """Calls of a model's client. See `Client.mcp`."""

    def __init__(self, send: Send, server: MCP[Any, Any], answer: Answer | None) -> None:
        self._send = send
        self._server = server
        self._answer = answer
        self._ids = 0

    async def call(
        self, tool: Callable[Concatenate[Request[Any, Any, Any], P], Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Call a tool with its arguments, and return its value, read from the structured content as the tool's type.

        Raises ToolError with what the model reads where the tool fails, ProtocolError where the server refuses.
        """
        registered = next((each for each in self._server.tools.values() if each.function is tool), None)
        if registered is None:
            raise LookupError(f"{getattr(tool, '__name__', tool)} is no tool of MCP({self._server.name!r})")
        bound = inspect.signature(tool).bind(None, *args, **kwargs).arguments
        arguments = {name: value for name, value in bound.items() if name in registered.parameters}
        result = await self.call_by_name(registered.name, arguments)
        if registered.output is None:
            return cast("R", result["content"][0]["text"] if registered.result is str else result["content"])
        from core.validation.structure import structure

        data = result["structuredContent"]
        return cast("R", structure(data["result"] if registered.wrapped else data, registered.result))

    async def call_by_name(self, name: str, arguments: Mapping[str, object], /) -> dict[str, Any]:
        """Call a tool as a model does, and return the result as it comes. Raises as `call` does."""
        result = await self.request("tools/call", name=name, arguments=arguments)
        if result.get("isError"):
            raise ToolError(result["content"][0]["text"])
        return result

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that the user has, by name."""
        return {tool["name"]: tool for tool in (await self.request("tools/list"))["tools"]}

    async def read(self, uri: str, /) -> dict[str, Any]:
        """The contents of a resource. Raises ProtocolError where there is none."""
        contents: list[dict[str, Any]] = (await self.request("resources/read", uri=uri))["contents"]
        return contents[0]

    async def prompt(self, name: str, /, **arguments: str) -> list[dict[str, Any]]:
        """The messages of a prompt."""
        messages: list[dict[str, Any]] = (await self.request("prompts/get", name=name, arguments=arguments))["messages"]
        return messages

    async def request(self, method: str, /, **params: object) -> dict[str, Any]:
        """The result of any request. Questions are answered by `answer`. Raises ProtocolError for an error."""
        while True:
            result = await self._once(method, params)
            if result.get("resultType") != "input_required" or self._answer is None:
                return result
            responses: dict[str, object] = {}
            for key, question in result["inputRequests"].items():
                given = question["params"]
                content = self._answer(given.get("message", ""), given.get("requestedSchema", {}))
                responses[key] = {"action": "decline"} if content is None else {"action": "accept", "content": content}
            params = {**params, "inputResponses": responses, "requestState": result["requestState"]}

    async def _once(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._ids += 1
        asks: dict[str, object] = {} if self._answer is None else {"elicitation": {}}
        meta: dict[str, object] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: asks}
        headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": method, "Accept": "application/json"}
        name = params.get("uri" if method == "resources/read" else "name")
        if isinstance(name, str):
            headers["Mcp-Name"] = name
        tool = self._server.tools.get(str(name)) if method == "tools/call" else None
        for parameter in tool.parameters.values() if tool is not None else ():
            value = params["arguments"].get(parameter.name)
            if parameter.header is not None and value is not None:
                headers[f"Mcp-Param-{parameter.header}"] = text_of(value)
        body = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": {**params, "_meta": meta}}
        response = await self._send(self._server.path, headers, body)
        answer = await response.json()
        error: Any = answer.get("error")
        if is_object(error):
            raise ProtocolError(error["code"], error["message"], error.get("data"), status=response.status)
        if error is not None:
            raise ProtocolError(0, str(error), status=response.status)
        return cast("dict[str, Any]", answer["result"])
