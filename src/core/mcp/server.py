"""The server: what is registered with it, and what its functions may do while they run.

What a function says of itself is in `registered`, the answer to each method of the protocol in `answers`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from core.description import describe
from core.errors import DeveloperError, RegistrationError
from core.handlers import name_of, public, require_async
from core.http.json import JsonObject
from core.mcp import messages
from core.mcp.answers import STATE, Server
from core.mcp.content import present
from core.mcp.messages import Call, Input, InputRequired, Level
from core.mcp.registered import Completion, Function, Hints, Prompt, Registered, Resource, Tool
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from core.app import App
    from core.bindings.durable_object import DurableObjectNamespace
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


class MCP(Server, Generic[E, U]):
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
        self._info: dict[str, str] = {"name": name, "version": version}
        self._instructions: JsonObject = present(instructions=instructions)
        self._secret = secret
        self._hosts: tuple[str, ...] = tuple(hosts)
        self._origins: tuple[str, ...] = tuple(origins)
        self._ttl = ttl
        self._subscriptions = subscriptions
        self.tools: dict[str, Tool] = {}
        """The tools, by name."""
        self.prompts: dict[str, Prompt] = {}
        """The prompts, by name."""
        self.resources: dict[str, Resource] = {}
        """The resources and templates, by URI."""
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
    ) -> object:
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
        handler: Callable[[Any, Response], Awaitable[object]],
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

        given = {"params": params, "query": query, "body": body}
        types = {place: type_ for place, type_ in given.items() if type_ is not None}
        self._add(self.tools, lambda: Exposed(self.app, handler, name, description, hints, types, key, returns))

    def offer(self, handler: Callable[[Any, Response], Awaitable[object]], /) -> None:
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
    def prompt(self, function: Function | None = None, /, *, name: str | None = None) -> object:
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

    def _registering(self, table: JsonObject, make: Callable[[Function], Registered], function: Function | None) -> Any:
        """The decorator that registers what `make` makes of a function, or `function` once it has done so."""

        def register(function: Function) -> Function:
            self._add(table, lambda: make(function))
            return function

        return register if function is None else register(function)

    def _add(self, table: JsonObject, make: Callable[[], Registered]) -> None:
        registered = make()  # here, where `core check` notes what is refused, and goes on
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
            return structure(answer.get("content"), form, "client")
        except StructureError as error:
            raise InputRequired({key: elicit(form, f"{message}\n{error}")}) from None

    async def inputs(self, req: Request[E, Any, Any], questions: Mapping[str, Input], /) -> dict[str, JsonObject]:
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

    def _call(self, req: AnyRequest, what: str) -> Call:
        call = req.state.get(STATE)
        if not isinstance(call, Call):
            raise DeveloperError(f"{what}(req, …) is for the request of a tool, a prompt or a resource. Call it there")
        return call
