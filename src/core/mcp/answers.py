"""The answer to each method of the protocol, out of what is registered with a server.

How a message is held against its headers is in `messages`, how a client is asked in `asking`. Nothing is kept between
two requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from core.errors import CoreError, DeveloperError
from core.http import json
from core.http.json import JsonObject
from core.http.sse import Event
from core.mcp import messages
from core.mcp.content import Content, Message, block_of, contents_of, resource_of
from core.mcp.messages import Call, InputRequired, ProtocolError
from core.mcp.registered import Prompt, Resource, Tool, ToolError, words_of
from core.request import AnyRequest
from core.response import Response
from core.values import is_array

if TYPE_CHECKING:
    from core.app import App
    from core.bindings.durable_object import DurableObjectNamespace
    from core.mcp.subscriptions import Subscriptions
    from core.middleware.authentication import SecretGiver

T = TypeVar("T")

log: logging.Logger = logging.getLogger("core")

STATE = "core.mcp"
"""The key of a request's state that has its `Call`."""
_NOTIFIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
_MOST_URIS = 100
_SECONDS = 1.0
"""The time in which a tool is answered with JSON alone."""


class Server:
    """The part of a server that answers its clients. `core.mcp.MCP` sets the attributes, and documents them."""

    app: App[Any]
    name: str
    path: str
    behind: Any
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...]
    _info: dict[str, str]
    _instructions: JsonObject
    _secret: SecretGiver[Any] | None
    _hosts: tuple[str, ...]
    _origins: tuple[str, ...]
    _ttl: float
    _subscriptions: Callable[[Any], DurableObjectNamespace[Subscriptions]] | None
    tools: dict[str, Tool]
    prompts: dict[str, Prompt]
    resources: dict[str, Resource]

    def _listeners(self, env: object) -> Subscriptions:
        """The Durable Object that knows who listens. Raises DeveloperError without one."""
        if self._subscriptions is None:
            raise DeveloperError(
                f'MCP("{self.name}"): a Durable Object knows who listens. Give subscriptions=lambda env: env.LISTEN'
            )
        return self._subscriptions(env).get_by_name(self.path)

    async def _keys(self, req: AnyRequest) -> list[bytes]:
        """The keys that what a client brings back is signed with. Raises DeveloperError without a secret."""
        if self._secret is None:
            raise DeveloperError(
                f'MCP("{self.name}"): what a client brings back is signed. Give secret=lambda req: req.env.MCP_SECRET'
            )
        from core.middleware.authentication import secrets_of
        from core.middleware.options import awaited

        return secrets_of("MCP", "secret", self._secret, await awaited(self._secret(req)))

    async def _may(self, req: AnyRequest, tool: Tool, *, called: bool) -> bool:
        """True if the caller has the tool. Where it is called, a CoreError names the scope that is missing."""
        try:
            await tool.require(req)
        except CoreError as error:
            if error.status >= 500:
                raise
            if called and error.status == 403 and "scope" in error.metadata:
                from core.mcp.rights import challenge

                raise challenge(self, req, error) from None
            return False
        return True

    async def _serve(self, req: AnyRequest, res: Response) -> None:
        """Answer one message."""
        try:
            messages.check_origin(req, self._hosts, self._origins)
            call = await messages.read_call(req)
        except ProtocolError as error:
            res.status(error.status).json(error.body())
            return
        if call.id is None:
            res.status(202).send()
            return
        req.state[STATE] = call
        listens = isinstance(call.meta.get("progressToken"), str | int) or call.least < len(messages.LEVELS)
        ends_with_client = call.stateless and call.method == "tools/call"
        if (listens or ends_with_client) and "text/event-stream" in (req.header("accept") or ""):
            await self._serve_with_notifications(req, res, call)
            return
        self._send(req, res, call, *await self._answer(req, call))

    def _send(self, req: AnyRequest, res: Response, call: Call, status: int, answer: JsonObject) -> None:
        if call.honored is None:
            res.status(status).json(answer)
            return
        from core.mcp.subscriptions import events

        res.sse(events(call, self._listeners(req.env), answer, req.clock))

    async def _serve_with_notifications(self, req: AnyRequest, res: Response, call: Call) -> None:
        """Answer with JSON where nothing comes before the answer, with a stream of events otherwise.

        A tool that takes long is answered with a stream too: a client cancels it by closing that, which every host
        tells.
        """
        waiting: asyncio.Queue[JsonObject | Event | None] = asyncio.Queue()
        call.notify = waiting.put_nowait
        task = asyncio.ensure_future(self._answer(req, call))
        task.add_done_callback(lambda _: waiting.put_nowait(None))
        late = None
        if call.stateless:
            late = req.clock.call_later(_SECONDS, lambda: waiting.put_nowait(Event(comment="it goes on")))
        try:
            first = await waiting.get()
        except BaseException:
            task.cancel()
            raise
        finally:
            if late is not None:
                late.cancel()
        if first is None:
            self._send(req, res, call, *await task)
            return

        async def events() -> AsyncIterator[JsonObject | Event]:
            event: JsonObject | Event | None = first
            try:
                while event is not None:
                    yield event
                    event = await waiting.get()
                yield (await task)[1]
            finally:
                task.cancel()

        res.sse(events())

    async def _answer(self, req: AnyRequest, call: Call) -> tuple[int, JsonObject]:
        try:
            try:
                result = await self._result(req, call)
            except InputRequired as question:
                from core.mcp import asking

                keys, now = await self._keys(req), req.clock.time()
                result = asking.questions_of(call, question, keys, now, asking.binding_of(call, req))
        except CoreError:
            raise
        except Exception as error:
            problem = error
            if not isinstance(problem, ProtocolError):
                problem = ProtocolError(messages.INTERNAL_ERROR, "Internal error")
                on_failure = self.app.dispatcher.failures.on_failure
                if on_failure is not None:
                    on_failure(error)
                log.exception("%s of MCP(%r) failed", call.method, self.name)
            # Of earlier revisions, clients take every other status than 200 for a broken transport.
            return (problem.status if call.stateless else 200), problem.body(call.id)
        if call.stateless:
            meta = {messages.SERVER_KEY: self._info, **result.get("_meta", {})}
            result = {"resultType": "complete", **result, "_meta": meta}
        return 200, {"jsonrpc": "2.0", "id": call.id, "result": result}

    async def _result(self, req: AnyRequest, call: Call) -> JsonObject:
        match call.method:
            case "server/discover" if call.stateless:
                found = {"supportedVersions": list(messages.VERSIONS), "capabilities": self._capabilities(call)}
                return self._cacheable(call, found | self._instructions, private=False)
            case "initialize" if not call.stateless:
                wanted = call.param("protocolVersion", str)
                version = wanted if wanted in messages.EARLIER else messages.EARLIER[0]
                can: JsonObject = {**self._capabilities(call), "logging": {}}
                found = {"protocolVersion": version, "capabilities": can, "serverInfo": self._info}
                return found | self._instructions
            case "ping" if not call.stateless:
                return {}
            case "logging/setLevel" if not call.stateless:
                if call.param("level", str) not in messages.LEVELS:
                    raise ProtocolError(
                        messages.INVALID_PARAMS, f"params.level must be one of {', '.join(messages.LEVELS)}"
                    )
                return {}
            case "tools/list" if self.tools:
                shown = [tool.listed() for tool in self.tools.values() if await self._may(req, tool, called=False)]
                return self._list(call, "tools", shown)
            case "tools/call" if self.tools:
                return await self._call_tool(req, call)
            case "prompts/list" if self.prompts:
                return self._list(call, "prompts", [each.listed() for each in self.prompts.values()])
            case "prompts/get" if self.prompts:
                return await self._get_prompt(req, call)
            case "resources/list" if self.resources:
                shown = [each.listed() for each in self.resources.values() if not each.parameters]
                return self._list(call, "resources", shown)
            case "resources/templates/list" if self.resources:
                shown = [each.listed() for each in self.resources.values() if each.parameters]
                return self._list(call, "resourceTemplates", shown)
            case "resources/read" if self.resources:
                contents, resource = await self._read_resource(req, call.param("uri", str))
                return self._cacheable(call, contents, private=True, ttl=resource.ttl)
            case "subscriptions/listen" if call.stateless and self._subscriptions is not None:
                return await self._listen(req, call)
            case "completion/complete" if self.prompts or self.resources:
                return await self._complete(req, call)
            case _:
                raise ProtocolError(messages.METHOD_NOT_FOUND, "Method not found")

    def _capabilities(self, call: Call) -> JsonObject:
        found = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources}
        found["completions"] = self.prompts or self.resources
        notified = {} if self._subscriptions is None or not call.stateless else _NOTIFIES
        return {name: notified.get(name, {}) for name, registered in found.items() if registered}

    def _cacheable(self, call: Call, result: JsonObject, *, private: bool, ttl: float | None = None) -> JsonObject:
        """A result, with how long clients may keep it; earlier revisions do not say that."""
        if not call.stateless:
            return result
        seconds = self._ttl if ttl is None else ttl
        return {**result, "ttlMs": round(seconds * 1000), "cacheScope": "private" if private else "public"}

    def _list(self, call: Call, name: str, items: list[JsonObject]) -> JsonObject:
        if call.params.get("cursor") is not None:
            raise ProtocolError(messages.INVALID_PARAMS, "There is one page, and no cursor")
        # Two callers may see different lists.
        is_private = self.behind is not None or any(tool.is_guarded for tool in self.tools.values())
        return self._cacheable(call, {name: items}, private=is_private)

    async def _call_tool(self, req: AnyRequest, call: Call) -> JsonObject:
        name, given = call.param("name", str), call.param("arguments", dict, {})
        tool = self.tools.get(name)
        if tool is None or not await self._may(req, tool, called=True):
            raise ProtocolError(messages.INVALID_PARAMS, f"Unknown tool: {name[:128]}")
        if call.stateless:
            self._check_mirrored(req, tool, given)
        try:
            value = await tool.run(req, given)
        except (CoreError, ToolError) as error:
            return {"content": [block_of(_message_of(error))], "isError": True}
        if tool.output is None:
            return {"content": contents_of(value), "isError": False}
        data = {"result": value} if tool.wrapped else value
        return {"content": [block_of(json.dumps(value))], "structuredContent": data, "isError": False}

    def _check_mirrored(self, req: AnyRequest, tool: Tool, given: Mapping[str, object]) -> None:
        for each in tool.parameters.values():
            if each.header is None:
                continue
            shown = f"Mcp-Param-{each.header}"
            text, value = messages.header_value(req, shown), given.get(each.name)
            if text != (None if value is None else messages.text_of(value)):
                raise messages.mismatch(shown)

    async def _get_prompt(self, req: AnyRequest, call: Call) -> JsonObject:
        name = call.param("name", str)
        prompt = self.prompts.get(name)
        if prompt is None:
            raise ProtocolError(messages.INVALID_PARAMS, f"Unknown prompt: {name[:128]}")
        value = await _refusing(prompt.run(req, call.param("arguments", dict, {})))
        parts: list[Message | Content] = value if is_array(value) else [value]
        shown = [part if isinstance(part, Message) else Message(part) for part in parts]
        found = [{"role": each.role, "content": block_of(each.content)} for each in shown]
        return {"description": prompt.description, "messages": found}

    async def _read_resource(self, req: AnyRequest, uri: str) -> tuple[JsonObject, Resource]:
        for resource in self.resources.values():
            found = resource.match(uri)
            if found is None:
                continue
            try:
                value = await resource.run(req, found)
            except (CoreError, ToolError) as error:
                if isinstance(error, CoreError) and error.status == 404:
                    break
                raise ProtocolError(messages.INVALID_PARAMS, _message_of(error)) from error
            kind = resource.mime_type
            if not isinstance(value, str | bytes):
                value, kind = json.dumps(value), kind or "application/json"
            kind = kind or ("text/plain" if isinstance(value, str) else "application/octet-stream")
            return {"contents": [resource_of(uri, value, kind)]}, resource
        raise ProtocolError(messages.INVALID_PARAMS, "Resource not found", {"uri": uri})

    async def _listen(self, req: AnyRequest, call: Call) -> JsonObject:
        wanted = call.param("notifications", dict)
        uris: Any = wanted.get("resourceSubscriptions", [])
        if not is_array(uris) or not all(isinstance(uri, str) for uri in uris) or len(uris) > _MOST_URIS:
            raise ProtocolError(
                messages.INVALID_PARAMS, f"resourceSubscriptions must be an array of at most {_MOST_URIS} strings"
            )
        tools = {"toolsListChanged": True} if self.tools and wanted.get("toolsListChanged") is True else {}
        readable = [uri for uri in dict.fromkeys(uris) if await self._may_read(req, uri)]
        call.honored = {**tools, "resourceSubscriptions": readable} if readable else tools
        return {"_meta": {messages.LISTEN_KEY: call.id}}

    async def _may_read(self, req: AnyRequest, uri: str) -> bool:
        """True if the caller reads the resource now: whoever may not is not told when it changes either."""
        try:
            await self._read_resource(req, uri)
        except ProtocolError:
            return False
        return True

    async def _complete(self, req: AnyRequest, call: Call) -> JsonObject:
        ref, argument = call.param("ref", dict), call.param("argument", dict)
        name, text = argument.get("name"), argument.get("value")
        owner: Prompt | Resource | None = None
        if ref.get("type") == "ref/prompt":
            owner = self.prompts.get(str(ref.get("name")))
        elif ref.get("type") == "ref/resource":
            owner = self.resources.get(str(ref.get("uri")))
        if owner is None or not isinstance(name, str) or name not in owner.parameters or not isinstance(text, str):
            raise ProtocolError(messages.INVALID_PARAMS, "ref and argument name no parameter that there is")
        parameter = owner.parameters[name]
        if parameter.completion is not None:
            values = list(await _refusing(parameter.completion(req, text)))
        else:
            choices = map(str, parameter.schema.get("enum", ()))
            values = [each for each in choices if each.lower().startswith(text.lower())]
        return {"completion": {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}}


async def _refusing(work: Awaitable[T]) -> T:
    """The value of `work`, whose refusals are errors of the protocol."""
    try:
        return await work
    except (CoreError, ToolError) as error:
        raise ProtocolError(messages.INVALID_PARAMS, _message_of(error)) from error


def _message_of(error: CoreError | ToolError) -> str:
    """What a client reads of a refusal. Raises RuntimeError for a CoreError that is none."""
    if isinstance(error, ToolError):
        return str(error)
    if error.status >= 500:
        raise RuntimeError(f"an answer of the status {error.status}") from error
    return words_of(error.message, error.metadata.get("issues"))
