"""A route as a tool: its arguments go to where the route reads them, and the request runs through the whole chain.

The middleware of the route, its authenticators and its own validation decide as they do for any request, so that a tool
can do nothing that its caller could not do over HTTP. No user that was found for the message itself, or for the list of
tools, counts for the route: an authenticator may decide by the path and its parameters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from core import http
from core.errors import CoreError, PathError, RegistrationError
from core.handlers import info_of, name_of
from core.http import json
from core.http.escapes import encode_query
from core.http.json import JsonObject
from core.mcp.messages import INTERNAL_ERROR, ProtocolError, text_of
from core.mcp.registered import Hints, Parameter, Tool, ToolError, words_of
from core.request import AnyRequest, Request
from core.response import Response
from core.routing.pattern import has_nameless
from core.validation.kinds import fields_of
from core.values import is_array, is_object

if TYPE_CHECKING:
    from core.app import App
    from core.routing.table import Route

_SAFE = ("GET", "HEAD")
_NOT_PASSED_ON = ("accept", "content-type", "content-length", "transfer-encoding", "content-encoding")


class Exposed(Tool):
    """A tool that sends a request to a route of the application."""

    def __init__(
        self,
        app: App[Any],
        handler: Callable[..., Awaitable[object]],
        name: str | None,
        description: str | None,
        hints: Hints,
        types: Mapping[str, object],
        key: str | None,
        returns: object,
    ) -> None:
        self._app = app
        self._types = types
        self.sends_body: bool = "body" in types
        self._key = key
        self._places: dict[str, str] = {}
        found = next((each for each in app._chains() if each[0].handler is handler), None)
        if found is None:
            raise RegistrationError(
                f"expose({name_of(handler)}): it is the handler of no route here. Register it, and mount its router, before"
            )
        self._route: Route = found[0]
        self._guards: list[Any] = [each for each, _ in found[1] if (info := info_of(each)) and info.authenticates]
        self.method: str = "POST" if self._route.method == "*" else cast("str", self._route.method)
        by_method: Hints = {"read_only": self.method in _SAFE, "idempotent": self.method in (*_SAFE, "PUT", "DELETE")}
        if self.method not in _SAFE:
            by_method["destructive"] = self.method == "DELETE"
        super().__init__(handler, name, description, {}, {**by_method, **hints}, None)
        self.is_guarded: bool = bool(self._guards)
        if returns is not None:
            self.set_output(returns)

    def returned(self) -> object:
        """Nothing that the handler's annotation says: a handler sends."""
        return None

    def parameters_of(self) -> dict[str, Parameter]:
        """Those of the path, of the query and of the body."""
        pattern = self._route.pattern
        if pattern.rest or has_nameless(pattern):
            raise RegistrationError(
                f"{self.where}: {pattern.text} has a *, which is the name of no argument. Register a route with a parameter"
            )
        left_out = pattern.names[-1:] if pattern.optional else ()
        found = {
            each[0]: Parameter(each[0], str, None if each in left_out else ..., self.schema_of(str, each[0]))
            for each in pattern.names
        }
        self._places = dict.fromkeys(found, "params")
        for place, type_ in self._types.items():
            own = fields_of(type_)
            if own is None:
                raise RegistrationError(
                    f"{self.where}: {place} must be a class with fields. Give an attrs class or a TypedDict"
                )
            whole = self.schema_of(type_, place)
            classes = {"$defs": whole["$defs"]} if "$defs" in whole else {}
            for key, hint, is_required in ((each.key, each.type, each.is_required) for each in own if each.is_read):
                if key in found and (place != "params" or self._places[key] != "params"):
                    raise RegistrationError(
                        f"{self.where}: {place} has {key}, and {self._places[key]} has it too. One name is one argument: "
                        "rename a field"
                    )
                if place == "params" and key not in found:
                    raise RegistrationError(
                        f"{self.where}: params has {key}, which {self._route.pattern.text} has not. Remove it"
                    )
                schema = {**whole["properties"][key], **classes}
                found[key] = Parameter(key, hint, ... if is_required else None, schema)
                self._places[key] = place
        return found

    async def run(self, req: AnyRequest, given: Mapping[str, object]) -> object:
        """What the route answers: its JSON, or its text where no type says what that is.

        Raises ToolError with the words of an answer from 400 to 499 and for values that its path cannot have, and as
        `read` does.
        """
        self.read(given)
        inner, res = self._request(req, given), Response()  # the route reads them again
        await self._app.dispatcher.respond(inner, res)
        answer = res.to_http()
        text = await answer.text()
        is_json = "json" in answer.headers.get("content-type", "")
        value: Any = json.loads(text) if is_json and text else text or None
        if answer.status < 400:
            return value if self.output is not None else text or None
        if answer.status >= 500:
            raise ProtocolError(INTERNAL_ERROR, "Internal error")
        if is_object(value):
            said = value.get("error") or value.get("detail") or value.get("title")
            raise ToolError(words_of(said or text, value.get("issues")))  # the whole where it is of another shape
        raise ToolError(text or f"The answer is {answer.status}")

    async def require(self, req: AnyRequest) -> None:
        """Ask the authenticators before the route. Raises CoreError where one refuses.

        One that fails without the parameters of the path, or what other middleware puts on the request, has no answer
        here: a call asks it behind all of that.
        """
        inner = self._request(req, {})
        inner._users = req.users

        async def end(*_: object) -> None: ...

        try:
            for guard in self._guards:
                await guard(inner, Response(), end)
        except CoreError:
            raise
        except Exception:
            return

    def _request(self, req: AnyRequest, arguments: Mapping[str, object]) -> Request[Any, Any, Any]:
        parts: dict[str, JsonObject] = {"params": {}, "query": {}, "body": {}}
        for key, value in arguments.items():
            parts[self._places[key]][key] = value
        path = self._route.pattern.text
        if arguments:
            try:
                path = self._app.url_for(self.function, **{key: text_of(each) for key, each in parts["params"].items()})
            except PathError:
                raise ToolError(f"{path} does not match these values") from None
        pairs = [
            (key, text_of(each))
            for key, value in parts["query"].items()
            if value is not None
            for each in (value if is_array(value) else [value])
        ]
        url = f"{http.URL(req.url).origin}{path}{'?' if pairs else ''}{encode_query(pairs)}"
        headers = http.Headers(req.headers)
        for name in list(headers):
            if name.lower().startswith("mcp-") or name.lower() in _NOT_PASSED_ON:
                del headers[name]
        content: dict[str, Any] = {}
        if self.sends_body:
            content["json"] = parts["body"] if self._key is None else {self._key: parts["body"]}
        message = http.Request(url, method=self.method, headers=headers, **content)
        inner: Request[Any, Any, Any] = Request(message, req.env, req.ctx)
        inner._app = self._app
        inner._known_users = req._known_users
        return inner
