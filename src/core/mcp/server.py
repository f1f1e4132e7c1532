"""The server: what is registered with it, and the answer to each method of the protocol.

Nothing is kept between two requests. How a message is held against its headers is in `messages`, what a function says
of itself in `registered`, how a client is asked in `asking`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from core.description import describe
from core.errors import CoreError, DeveloperError, RegistrationError
from core.handlers import name_of, public, require_async
from core.http import json
from core.mcp import messages
from core.mcp.content import Content, Message, block_of, contents_of, present, resource_of
from core.mcp.messages import Call, Input, InputRequired, ProtocolError
from core.mcp.registered import Function, Hints, Prompt, Registered, Resource, Tool, ToolError, words_of
from core.request import AnyRequest, Request
from core.response import Response
from core.validation.schema import is_array

if TYPE_CHECKING:
    from core.app import App
    from core.bindings.durable_object import DurableObjectNamespace
    from core.mcp.messages import Level
    from core.mcp.registered import Completion
    from core.mcp.subscriptions import Subscriptions
    from core.middleware.authentication import SecretGiver
    from core.types import Authenticator, Middleware

E = TypeVar("E", default=Any)
U = TypeVar("U", default=object)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

if TYPE_CHECKING:
    Q = TypeVar("Q")
    Typed: TypeAlias = Callable[Concatenate[Q, P], Awaitable[R]]
    """A function of a request, and of arguments."""

    class FunctionDecorator(Protocol[E, U]):
        """Returned by `mcp.tool(…)`, `mcp.resource(…)` and `mcp.prompt(…)`: registers the decorated function."""

        def __call__(self, function: Typed[Request[E, U, Any], P, R], /) -> Typed[Request[E, U, Any], P, R]:
            """Register `function`, and return it."""
            ...


log: logging.Logger = logging.getLogger("core")

_STATE = "core.mcp"
_TOLD = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
_MOST_URIS = 100


class MCP(Generic[E, U]):
    """An MCP server at `path` of an application (Model Context Protocol, revision 2026-07-28).

        mcp = MCP(app, "notes", secret=lambda req: req.env.MCP_SECRET)

        @mcp.tool
        async def note(req: Request[Env], id: int) -> Note:
            \"""One note, by its number.\"""

    `middleware` runs before every message, as that of a route does. `version` and `instructions` are what clients are
    told of the server.

    `behind`: an authenticator; tools see `req.user`. Clients that bring nothing valid get 401 with the address of the
    metadata (RFC 9728) that names `authorization_servers` and `scopes`; a `jwt_auth` must name its `audience`, since a
    token for another server would be good here otherwise (RFC 8707).

    `secret`: a function of the request, for `ask`: what a client brings back is signed with it. `hosts`: the names of
    the server, for one that is reached over plain HTTP under another name than this machine's. `origins`: the pages
    that may connect beside the server's own.
    `ttl`: the seconds for which clients may keep a list. `subscriptions`: the binding of the Durable Object
    `Subscriptions`, for clients that listen for changes: `lambda env: env.LISTEN`.

    Raises RegistrationError for options that cannot work.
    """

    def __init__(
        self,
        app: App[E],
        name: str,
        /,
        *middleware: Middleware[E, object],
        behind: Authenticator[E, U] | None = None,
        authorization_servers: Iterable[str] = (),
        scopes: Iterable[str] = (),
        version: str = "1.0.0",
        instructions: str | None = None,
        path: str = "/mcp",
        secret: SecretGiver[E] | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        ttl: float = 60,
        subscriptions: Callable[[E], DurableObjectNamespace[Subscriptions]] | None = None,
    ) -> None:
        self.app = app
        self.name = name
        self.path = path
        self.behind = behind
        """The authenticator of every message, or None."""
        self.tools: dict[str, Tool] = {}
        """The tools, by name."""
        self.prompts: dict[str, Prompt] = {}
        """The prompts, by name."""
        self.resources: dict[str, Resource] = {}
        """The resources and templates, by URI."""
        self._info = {"name": name, "version": version}
        self._instructions = present(instructions=instructions)
        self._secret = secret
        self._subscriptions = subscriptions
        self._hosts, self._origins, self._ttl = tuple(hosts), tuple(origins), ttl
        self.authorization_servers: tuple[str, ...] = tuple(authorization_servers)
        """Where clients get a token."""
        self.scopes: tuple[str, ...] = tuple(scopes)
        """The scopes of a token that clients ask for."""
        chain: list[Any] = [*middleware]
        if behind is not None:
            from core.mcp.rights import METADATA, guard_of, metadata_of

            chain.append(guard_of(self, behind))
            for place in (f"{METADATA}{path}", METADATA):
                app.get(place, public(), describe(metadata_of(self), hidden=True))

        async def mcp(req: AnyRequest, res: Response) -> None:
            await self._serve(req, res)

        async def post_only(req: AnyRequest, res: Response) -> None:
            res.status(405).header("Allow", "POST").json({"error": "Method Not Allowed"})

        mcp.__core_mcp__ = self  # type: ignore[attr-defined]  # tools find the server by it
        self.handler: Callable[[AnyRequest, Response], Awaitable[None]] = mcp
        """The handler of its route."""
        app.post(path, *chain, describe(mcp, hidden=True))
        app.all(path, public(), describe(post_only, hidden=True))

    # -- registration

    @overload
    def tool(self, function: Typed[Request[E, U, Any], P, R], /) -> Typed[Request[E, U, Any], P, R]: ...
    @overload
    def tool(
        self, /, *, name: str | None = ..., guard: Authenticator[E, Any, U] | None = ..., **hints: Unpack[Hints]
    ) -> FunctionDecorator[E, U]: ...
    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        guard: Authenticator[E, Any, U] | None = None,
        **hints: Unpack[Hints],
    ) -> Any:
        """Let models call the decorated `async (req, …)`. Its docstring is what they choose by.

        The parameters after the request are the arguments, read as `req.json(T)` reads: nothing is converted that only
        looks alike. `Annotated[str, "…"]` describes one. What it returns is structured content by its type: an attrs
        class, a list, a number; `str`, `Image` and the rest of `Content` are for the model to read. ToolError and a
        CoreError below 500 are told to the model, every other error is logged and told as "Internal error".

        `guard`: an authenticator; whom it refuses has no such tool. `hints` are what clients show: see `Hints`.

        Raises RegistrationError, which names the fix: for a parameter without a type, a missing docstring, a name that
        clients refuse, a type that JSON cannot hold.
        """
        around = sys._getframe(1).f_locals
        return self._registering(self.tools, lambda found: Tool(found, name, None, around, hints, guard), function)

    def expose(
        self,
        handler: Callable[[Any, Response], Awaitable[Any]],
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        params: TypeForm[Any] | None = None,
        query: TypeForm[Any] | None = None,
        body: TypeForm[Any] | None = None,
        key: str | None = None,
        returns: TypeForm[Any] | None = None,
        **hints: Unpack[Hints],
    ) -> None:
        """Let models call a route that is registered, by its handler.

            mcp.expose(create_user, body=NewUser, returns=User)

        A route that reads nothing but its path needs no such line: `@app.get("/users/:id", tool=True)`.
        `params`, `query` and `body` are the types that the handler reads; their fields, and the parameters of the path,
        are the arguments. `key` is that of `req.json(T, key=…)`, under which the body is sent. `returns` is the type of
        the JSON that it sends. Name and description are the handler's own.
        A call is a request to the route with the caller's headers, through all middleware; whom its authenticators
        refuse has no such tool. Hints follow the method.

        Raises RegistrationError as `tool` does, and for a handler without a route.
        """
        from core.mcp.exposed import Exposed

        types = {"params": params, "query": query, "body": body}
        self._add(self.tools, lambda: Exposed(self.app, handler, name, description, hints, types, key, returns))

    def offer(self, handler: Callable[[Any, Response], Awaitable[Any]], /) -> None:
        """Expose the handler of a route that is registered with `tool=True`, unless it is exposed already."""
        if all(each.function is not handler for each in self.tools.values()):
            self.expose(handler)

    def resource(
        self, uri: str, /, *, name: str | None = None, mime_type: str | None = None, ttl: float = 0
    ) -> FunctionDecorator[E, U]:
        """Let clients read the decorated `async (req, …)` under `uri`.

            @mcp.resource("notes://{id}")
            async def note(req: Request[Env], id: int) -> Note: ...

        The names in braces are its parameters. It returns a str, bytes, or a value that is sent as JSON. `ttl`: the
        seconds for which a client may keep it. A CoreError of the status 404 is a resource that is not there.

        Raises RegistrationError where the names differ, and as `tool` does.
        """
        around = sys._getframe(1).f_locals
        decorator: FunctionDecorator[E, U] = self._registering(
            self.resources, lambda found: Resource(found, uri, name, mime_type, ttl, around), None
        )
        return decorator

    @overload
    def prompt(self, function: Typed[Request[E, U, Any], P, R], /) -> Typed[Request[E, U, Any], P, R]: ...
    @overload
    def prompt(self, /, *, name: str | None = ...) -> FunctionDecorator[E, U]: ...
    def prompt(self, function: Function | None = None, /, *, name: str | None = None) -> Any:
        """Offer the decorated `async (req, …)` as a prompt: it returns a text, a Message, or a list of them.

        Its arguments are texts, read as those of a query are. Raises RegistrationError as `tool` does.
        """
        around = sys._getframe(1).f_locals
        return self._registering(self.prompts, lambda found: Prompt(found, name, None, around), function)

    def complete(
        self, function: Function, parameter: str, /
    ) -> Callable[[Callable[[Request[E, U, Any], str], Awaitable[Iterable[str]]]], Completion]:
        """Complete a parameter of a prompt or of a resource with the decorated `async (req, text)`.

        Parameters of a Literal or an Enum are completed without it. Raises RegistrationError for one that is not there.
        """
        owners = [each for each in (*self.prompts.values(), *self.resources.values()) if each.function is function]
        if not owners or parameter not in owners[0].parameters:
            raise RegistrationError(
                f"complete({name_of(function)}, {parameter!r}): no prompt or resource with such a parameter. Register it "
                "first"
            )

        def register(completion: Completion) -> Completion:
            require_async(completion, f"complete({name_of(function)}, {parameter!r})")
            for owner in owners:
                owner.parameters[parameter].completion = completion
            return completion

        return register

    def _registering(
        self, table: dict[str, Any], make: Callable[[Function], Registered], function: Function | None
    ) -> Any:
        """The decorator that registers what `make` makes of a function, or `function` once it has done so."""

        def register(function: Function) -> Function:
            self._add(table, lambda: make(function))
            return function

        return register if function is None else register(function)

    def _add(self, table: dict[str, Any], make: Callable[[], Registered]) -> None:
        registered = make()
        if registered.key in table:
            raise RegistrationError(f"{registered.where} is registered already. Give it another name")
        table[registered.key] = registered

    # -- for tools while they run

    async def ask(self, req: Request[E, Any, Any], form: type[T], message: str, /, *, key: str = "") -> T | None:
        """Ask the person at the client to fill in a form: the fields of the attrs class `form`. None: they declined.

            answer = await mcp.ask(req, Confirm, "Delete 3 notes?")

        The function runs again with the answer, from its first line: write nothing before an `ask`, since it would be
        written twice. `key` tells several questions of one call apart; it is the name of the class by default.

        Raises DeveloperError outside of a tool, a prompt or a resource, without `secret`, and for a class that is no
        form. A client that cannot ask is told so.
        """
        from core.mcp.asking import elicit

        key = key or form.__name__
        answer = (await self.inputs(req, {key: elicit(form, message)}))[key]
        if answer.get("action") != "accept":
            return None
        from core.validation.mistakes import StructureError
        from core.validation.structure import structure

        try:
            return structure(answer.get("content"), form, client=True)
        except StructureError as error:
            raise InputRequired({key: elicit(form, f"{message}\n{error}")}) from None

    async def inputs(self, req: Request[E, Any, Any], questions: Mapping[str, Input], /) -> dict[str, dict[str, Any]]:
        """Ask several questions at once, of any kind; the answers are the results of the protocol, as they came.

        Raises as `ask` does.
        """
        from core.mcp import asking

        call = self._call(req, "ask")
        if call.asked is None:
            keys = await self._keys(req)
            call.asked = asking.read_answers(call, keys, req.clock.time(), asking.binding_of(call, req))
        missing = {key: each for key, each in questions.items() if key not in call.asked}
        if missing:
            raise InputRequired(missing)
        return {key: call.asked[key] for key in questions}

    def can_ask(self, req: Request[E, Any, Any], method: str = "elicitation/create", /) -> bool:
        """True if the client has said that it answers such questions."""
        return self._call(req, "can_ask").can_ask(method)

    async def progress(
        self, req: Request[E, Any, Any], progress: float, total: float | None = None, message: str | None = None, /
    ) -> None:
        """Tell a client that asked for it how far a call has come; the answer is a stream of events then."""
        call = self._call(req, "progress")
        token = call.meta.get("progressToken")
        if token is not None:
            more = present(total=total, message=message)
            call.tell("progress", {"progressToken": token, "progress": progress, **more})

    async def log(self, req: Request[E, Any, Any], level: Level, data: object, /) -> None:
        """Send a line of a log to a client that asks for that level; the answer is a stream of events then.

        `data`: a text, or a value of JSON. Revision 2026-07-28 has deprecated it (SEP-2577): a client asks with each
        request. One of an earlier revision asks once, which is not kept, and gets the lines of every level.
        """
        call = self._call(req, "log")
        if messages.LEVELS.index(level) >= call.least:
            call.tell("message", {"level": level, "logger": self.name, "data": data})

    async def changed(self, env: E, /, *uris: str, tools: bool = False) -> None:
        """Tell the clients that listen that these resources have changed, or with `tools` that guards decide otherwise.

            await mcp.changed(req.env, "notes://1")

        They read anew what they need. Raises DeveloperError without `subscriptions`.
        """
        await self._listeners(env).changed([*uris], tools)

    def _listeners(self, env: E) -> Subscriptions:
        if self._subscriptions is None:
            raise DeveloperError(
                f'MCP("{self.name}"): a Durable Object knows who listens. Give subscriptions=lambda env: env.LISTEN'
            )
        return self._subscriptions(env).get_by_name(self.path)

    def _call(self, req: AnyRequest, what: str) -> Call:
        call = req.state.get(_STATE)
        if not isinstance(call, Call):
            raise DeveloperError(f"{what}(req, …) is for the request of a tool, a prompt or a resource. Call it there")
        return call

    async def _keys(self, req: AnyRequest) -> list[bytes]:
        if self._secret is None:
            raise DeveloperError(
                f'MCP("{self.name}"): what a client brings back is signed. Give secret=lambda req: req.env.MCP_SECRET'
            )
        from core.middleware.authentication import secrets_of
        from core.middleware.options import awaited

        return secrets_of("MCP", "secret", self._secret, await awaited(self._secret(req)))

    # -- answering

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
        try:
            messages.check_origin(req, self._hosts, self._origins)
            call = await messages.read_call(req)
        except ProtocolError as error:
            res.status(error.status).json(error.body())
            return
        if call.id is None:
            res.status(202).send()
            return
        req.state[_STATE] = call
        listens = isinstance(call.meta.get("progressToken"), str | int) or call.least < len(messages.LEVELS)
        if listens and "text/event-stream" in (req.header("accept") or ""):
            await self._serve_with_notifications(req, res, call)
            return
        self._send(req, res, call, *await self._answer(req, call))

    def _send(self, req: AnyRequest, res: Response, call: Call, status: int, answer: dict[str, Any]) -> None:
        if call.honored is None:
            res.status(status).json(answer)
            return
        from core.mcp.subscriptions import events

        res.sse(events(call, self._listeners(req.env), answer, req.clock))

    async def _serve_with_notifications(self, req: AnyRequest, res: Response, call: Call) -> None:
        """Answer with JSON where nothing comes before the answer, with a stream of events otherwise."""
        import asyncio

        waiting: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        call.notify = waiting.put_nowait
        task = asyncio.ensure_future(self._answer(req, call))
        task.add_done_callback(lambda _: waiting.put_nowait(None))
        try:
            first = await waiting.get()
        except BaseException:
            task.cancel()
            raise
        if first is None:
            self._send(req, res, call, *await task)
            return

        async def events() -> AsyncIterator[dict[str, Any]]:
            event: dict[str, Any] | None = first
            try:
                while event is not None:
                    yield event
                    event = await waiting.get()
                yield (await task)[1]
            finally:
                task.cancel()

        res.sse(events())

    async def _answer(self, req: AnyRequest, call: Call) -> tuple[int, dict[str, Any]]:
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
            told = (
                error if isinstance(error, ProtocolError) else ProtocolError(messages.INTERNAL_ERROR, "Internal error")
            )
            if told is not error:
                on_failure = self.app.dispatcher.failures.on_failure
                if on_failure is not None:
                    on_failure(error)
                log.exception("%s of MCP(%r) failed", call.method, self.name)
            # Of earlier revisions, clients take every other status than 200 for a broken transport.
            return (told.status if call.stateless else 200), told.body(call.id)
        if call.stateless:
            meta = {messages.SERVER_KEY: self._info, **result.get("_meta", {})}
            result = {"resultType": "complete", **result, "_meta": meta}
        return 200, {"jsonrpc": "2.0", "id": call.id, "result": result}

    async def _result(self, req: AnyRequest, call: Call) -> dict[str, Any]:
        match call.method:
            case "server/discover" if call.stateless:
                found = {"supportedVersions": list(messages.VERSIONS), "capabilities": self._capabilities(call)}
                return self._kept(call, found | self._instructions, private=False)
            case "initialize" if not call.stateless:
                wanted = call.param("protocolVersion", str)
                version = wanted if wanted in messages.EARLIER else messages.EARLIER[0]
                can: dict[str, Any] = {**self._capabilities(call), "logging": {}}
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
                return self._kept(call, contents, private=True, ttl=resource.ttl)
            case "subscriptions/listen" if call.stateless and self._subscriptions is not None:
                return await self._listen(req, call)
            case "completion/complete" if self.prompts or self.resources:
                return await self._complete(req, call)
            case _:
                raise ProtocolError(messages.METHOD_NOT_FOUND, "Method not found")

    def _capabilities(self, call: Call) -> dict[str, Any]:
        completed = bool(self.prompts or self.resources)
        found = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources, "completions": completed}
        told = {} if self._subscriptions is None or not call.stateless else _TOLD
        return {name: told.get(name, {}) for name, registered in found.items() if registered}

    def _kept(self, call: Call, result: dict[str, Any], *, private: bool, ttl: float | None = None) -> dict[str, Any]:
        """A result, with how long clients may keep it; earlier revisions do not say that."""
        if not call.stateless:
            return result
        seconds = self._ttl if ttl is None else ttl
        return {**result, "ttlMs": round(seconds * 1000), "cacheScope": "private" if private else "public"}

    def _list(self, call: Call, name: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        if call.params.get("cursor") is not None:
            raise ProtocolError(messages.INVALID_PARAMS, "There is one page, and no cursor")
        # Two callers may see different lists.
        is_private = self.behind is not None or any(tool.is_guarded for tool in self.tools.values())
        return self._kept(call, {name: items}, private=is_private)

    async def _call_tool(self, req: AnyRequest, call: Call) -> dict[str, Any]:
        name, given = call.param("name", str), call.param("arguments", dict, {})
        tool = self.tools.get(name)
        if tool is None or not await self._may(req, tool, called=True):
            raise ProtocolError(messages.INVALID_PARAMS, f"Unknown tool: {name[:128]}")
        if call.stateless:
            self._check_mirrored(req, tool, given)
        try:
            value = await tool.run(req, given)
        except (CoreError, ToolError) as error:
            return {"content": [block_of(_told(error))], "isError": True}
        if tool.output is None:
            return {"content": contents_of(value), "isError": False}
        data = {"result": value} if tool.wrapped else value
        return {"content": [block_of(json.dumps(value))], "structuredContent": data, "isError": False}

    def _check_mirrored(self, req: AnyRequest, tool: Tool, given: Mapping[str, Any]) -> None:
        for each in tool.parameters.values():
            if each.header is None:
                continue
            shown = f"Mcp-Param-{each.header}"
            text, value = messages.header_value(req, shown), given.get(each.name)
            if text != (None if value is None else value if isinstance(value, str) else json.dumps(value)):
                raise messages.mismatch(shown)

    async def _get_prompt(self, req: AnyRequest, call: Call) -> dict[str, Any]:
        name = call.param("name", str)
        prompt = self.prompts.get(name)
        if prompt is None:
            raise ProtocolError(messages.INVALID_PARAMS, f"Unknown prompt: {name[:128]}")
        value = await _refusing(prompt.run(req, call.param("arguments", dict, {})))
        parts: list[Message | Content] = value if is_array(value) else [value]
        shown = [part if isinstance(part, Message) else Message(part) for part in parts]
        found = [{"role": each.role, "content": block_of(each.content)} for each in shown]
        return {"description": prompt.description, "messages": found}

    async def _read_resource(self, req: AnyRequest, uri: str) -> tuple[dict[str, Any], Resource]:
        for resource in self.resources.values():
            found = resource.match(uri)
            if found is None:
                continue
            try:
                value = await resource.run(req, found)
            except (CoreError, ToolError) as error:
                if isinstance(error, CoreError) and error.status == 404:
                    break
                raise ProtocolError(messages.INVALID_PARAMS, _told(error)) from error
            kind = resource.mime_type
            if not isinstance(value, str | bytes):
                value, kind = json.dumps(value), kind or "application/json"
            kind = kind or ("text/plain" if isinstance(value, str) else "application/octet-stream")
            return {"contents": [resource_of(uri, value, kind)]}, resource
        raise ProtocolError(messages.INVALID_PARAMS, "Resource not found", {"uri": uri})

    async def _listen(self, req: AnyRequest, call: Call) -> dict[str, Any]:
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

    async def _complete(self, req: AnyRequest, call: Call) -> dict[str, Any]:
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
        raise ProtocolError(messages.INVALID_PARAMS, _told(error)) from error


def _told(error: CoreError | ToolError) -> str:
    """What a client reads of a refusal. Raises RuntimeError for a CoreError that is none."""
    if isinstance(error, ToolError):
        return str(error)
    if error.status >= 500:
        raise RuntimeError(f"an answer of the status {error.status}") from error
    return words_of(error.message, error.metadata.get("issues"))
