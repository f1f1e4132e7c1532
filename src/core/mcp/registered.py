"""Functions as the tools, prompts and resources that a client sees: read once, when they are registered.

Everything that can be known to be wrong is refused then: a parameter without a type, a function without a docstring, a
name that clients may refuse, a type that JSON cannot hold. The types of the parameters decide how arguments are read,
by the reader of `req.json(T)`: nothing is converted that only looks alike.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import cleandoc
from itertools import chain
from typing import Any, ClassVar, Final, TypedDict, cast

from core.errors import Issue, RegistrationError
from core.handlers import name_of, require_async
from core.http.json import JsonObject
from core.mcp.content import is_content, present
from core.request import AnyRequest
from core.validation.mistakes import read_parts
from core.validation.schema import Schema, SchemaError, schema_of

Function = Callable[..., Awaitable[Any]]
Completion = Callable[[Any, str], Awaitable[Iterable[str]]]
_HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_NAME: Final = r"[A-Za-z0-9_.-]{1,128}"
_PLACEHOLDER: Final = r"\{([^{}]*)\}"
_HEADER: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"


class Hints(TypedDict, total=False):
    """What clients may show of a tool, and decide by whether they ask the person first. None of it is proven."""

    title: str
    read_only: bool
    """True if it changes nothing."""
    destructive: bool
    """True if it may delete or overwrite."""
    idempotent: bool
    """True if a second call with the same arguments changes nothing more."""
    open_world: bool
    """True if it reaches others than this application."""


class ToolError(Exception):
    """What went wrong, in words that the model reads: it may call the tool again, with other arguments."""


class ParamHeader:
    """Makes clients repeat a parameter in the header `Mcp-Param-<name>`, so that a gateway can route by it.

    In the signature of a tool:

        region: Annotated[str, ParamHeader("Region")]
    """

    def __init__(self, name: str) -> None:
        if not re.fullmatch(_HEADER, name):
            raise RegistrationError(
                f'ParamHeader({name!r}): a header\'s name has letters and digits. Write ParamHeader("Region")'
            )
        self.name = name


class Parameter:
    """One parameter of a function: its type, its schema, and its value where an argument is missing."""

    def __init__(self, name: str, type_: object, default: object, schema: Schema) -> None:
        self.name = name
        self.type = type_
        self.default = default
        """`...` for a parameter that must be given."""
        headers = [each.name for each in getattr(type_, "__metadata__", ()) if isinstance(each, ParamHeader)]
        self.header: str | None = headers[0] if headers else None
        self.schema: Schema = {**schema, "x-mcp-header": headers[0]} if headers else schema
        self.completion: Completion | None = None
        """Completes what a person types, where the schema does not list it."""


class Registered:
    """A function that clients reach by its name: what is common to tools, prompts and resources."""

    kind: ClassVar[str] = "tool"
    texts: ClassVar[bool] = False
    """True if its arguments come as texts."""

    def __init__(
        self, function: Function, name: str | None, description: str | None, around: Mapping[str, object]
    ) -> None:
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", name_of(function)))
        self.key: str = self.name
        """What it is registered under."""
        self.where: str = f"{self.kind} {self.name}"
        if not re.fullmatch(_NAME, self.name):
            raise RegistrationError(
                f"{self.where}: a name has 1 to 128 letters, digits, `_`, `-` and `.` (SEP-986). Give name=…"
            )
        self.description: str = cleandoc(description or function.__doc__ or "")
        if not self.description:
            raise RegistrationError(
                f"{self.where}: {name_of(function)} has no docstring, which is what a model chooses by. Write one"
            )
        require_async(function, self.where)
        self._around = around
        self.parameters: dict[str, Parameter] = self.parameters_of()

    def parameters_of(self) -> dict[str, Parameter]:
        """The parameters after the request."""
        given = list(inspect.signature(self.function).parameters.values())
        if not given:
            raise RegistrationError(f"{self.where}: the first parameter is the request. Write (req: Request[Env], …)")
        found: dict[str, Parameter] = {}
        for each in given[1:]:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                raise RegistrationError(f"{self.where}: {each} has no name for an argument. Name every parameter")
            if each.annotation is each.empty:
                raise RegistrationError(f"{self.where}: {each.name} has no type. Annotate it: {each.name}: str")
            type_ = self.type_of(each.annotation, each.name)
            schema = self.schema_of(type_, each.name)
            default = ... if each.default is each.empty else each.default
            if isinstance(default, bool | int | float | str):
                schema = {**schema, "default": getattr(default, "value", default)}
            found[each.name] = Parameter(each.name, type_, default, schema)
        return found

    def returned(self) -> object:
        """The type that the function returns."""
        annotation = getattr(self.function, "__annotations__", {}).get("return", ...)
        if annotation is ...:
            raise RegistrationError(f"{self.where}: it does not say what it returns. Annotate it: -> str")
        return self.type_of(annotation, "return")

    def type_of(self, annotation: object, name: str) -> object:
        """An annotation as a type, by the names of the function's module and of the place where it is registered."""
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, getattr(self.function, "__globals__", {}), dict(self._around))
        except NameError as error:
            raise RegistrationError(
                f"{self.where}: {name}: {annotation} names {error.name}, which is not there when it is registered. Import "
                "it outside of TYPE_CHECKING, and define it above"
            ) from None

    def schema_of(self, type_: object, name: str, *, written: bool = False) -> Schema:
        """The schema of a type. Raises RegistrationError for one that JSON cannot hold."""
        try:
            return schema_of(type_, written=written)
        except SchemaError as error:
            raise RegistrationError(
                f"{self.where}: {name} is or has {error}, which JSON cannot hold. Use a str, a number, a list, a dict or "
                "an attrs class"
            ) from None

    def read(self, given: Mapping[str, object]) -> JsonObject:
        """The arguments of a call, each as its parameter's type. Raises ToolError with every mistake."""
        from core.validation.structure import hook_of

        unknown: list[Issue] = [
            {"path": name, "message": "is not a parameter"} for name in given if name not in self.parameters
        ]
        asked = [each for each in self.parameters.values() if each.name in given or each.default is ...]
        found, wrong = read_parts(
            lambda value, hook: hook(value),
            ((each.name, given.get(each.name, ...)) for each in asked),
            [hook_of(each.type, "strings" if self.texts else "client") for each in asked],
        )
        if issues := [*unknown, *chain(*wrong.values())]:
            raise ToolError(words_of(None, issues[:100]))
        return found

    async def run(self, req: AnyRequest, given: Mapping[str, object]) -> Any:
        """The value of a call. Raises as `read` does."""
        return await self.function(req, **self.read(given))


class Tool(Registered):
    """A function that a model calls."""

    def __init__(
        self,
        function: Function,
        name: str | None,
        description: str | None,
        around: Mapping[str, object],
        hints: Hints,
        guard: Callable[[Any], Awaitable[object]] | None,
    ) -> None:
        super().__init__(function, name, description, around)
        self.guard = guard
        self.is_guarded: bool = guard is not None
        """True if not every caller has it."""
        self.hints: Hints = hints
        self.result: Any = self.returned()
        self.output: Schema | None = None
        self.wrapped: bool = False
        """True if the value is inside an object, since structured content is one: `{"result": …}`."""
        if self.result is not None and not is_content(self.result):
            self.set_output(self.result)

    def set_output(self, type_: object) -> None:
        """Let the tool return a value of this type, as structured content."""
        self.result = type_
        self.output = self.schema_of(type_, "return", written=True)
        self.wrapped = self.output.get("type") != "object"
        if self.wrapped:
            self.output = _object({"result": self.output}, ["result"])

    async def require(self, req: AnyRequest) -> None:
        """Ask whether the caller has it. Raises CoreError where it has not."""
        if self.guard is not None:
            await self.guard(req)

    def listed(self) -> JsonObject:
        """The tool in the list of tools."""
        required = [each.name for each in self.parameters.values() if each.default is ...]
        schema = _object({each.name: each.schema for each in self.parameters.values()}, required)
        hints = {_HINTS.get(key, key): value for key, value in self.hints.items() if key != "title"}
        return {
            "name": self.name,
            "description": self.description,
            **present(title=self.hints.get("title")),
            "inputSchema": {**schema, "additionalProperties": False},
            **present(outputSchema=self.output, annotations=hints or None),
        }


class Prompt(Registered):
    """A function that gives the messages of a prompt; its arguments are texts."""

    kind: ClassVar[str] = "prompt"
    texts: ClassVar[bool] = True

    def listed(self) -> JsonObject:
        """The prompt in the list of prompts."""
        arguments = [
            {"name": name, "required": each.default is ..., **present(description=each.schema.get("description"))}
            for name, each in self.parameters.items()
        ]
        return {"name": self.name, "description": self.description, **({"arguments": arguments} if arguments else {})}


class Resource(Registered):
    """A function that gives the contents of a resource, or of all whose URIs fit a template."""

    kind: ClassVar[str] = "resource"
    texts: ClassVar[bool] = True

    def __init__(
        self,
        function: Function,
        uri: str,
        name: str | None,
        mime_type: str | None,
        ttl: float,
        around: Mapping[str, object],
    ) -> None:
        super().__init__(function, name, None, around)
        self.key = uri
        self.mime_type = mime_type
        self.ttl = ttl
        self.where: str = f"resource {uri}"
        names = re.findall(_PLACEHOLDER, uri)
        if not re.match(r"[a-z][a-z0-9+.-]*:", uri):
            raise RegistrationError(f'{self.where}: a URI begins with a scheme. Write resource("notes://{{id}}")')
        if len(set(names)) != len(names) or not all(map(str.isidentifier, names)):
            raise RegistrationError(f"{self.where}: the names in braces are parameters, each once, as {{id}}")
        if set(names) != set(self.parameters):
            differing = ", ".join(sorted(set(names) ^ set(self.parameters)))
            raise RegistrationError(
                f"{self.where}: the names in braces and the parameters of {name_of(function)} are the same ones. Add or "
                f"remove {differing}"
            )
        parts = re.split(_PLACEHOLDER, uri)
        self._pattern = re.compile(
            "".join(f"(?P<{part}>[^/?#]+)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
        )

    def match(self, uri: str) -> dict[str, str] | None:
        """The arguments in a URI of this resource, or None for another one's."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        from urllib.parse import unquote

        return {name: unquote(text) for name, text in found.groupdict().items()}

    def listed(self) -> JsonObject:
        """The resource in the list of resources, or of templates."""
        address = {"uriTemplate" if self.parameters else "uri": self.key}
        return {**address, "name": self.name, "description": self.description, **present(mimeType=self.mime_type)}


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    """An object of these properties, whose classes move to its own `$defs`."""
    classes: dict[str, Schema] = {}
    inner: dict[str, Schema] = {}
    for name, schema in properties.items():
        for each, own in schema.get("$defs", {}).items():
            if classes.setdefault(each, own) != own:
                raise RegistrationError(
                    f"{name} has another {each} than a parameter before it. Rename one of the classes"
                )
        inner[name] = {key: value for key, value in schema.items() if key != "$defs"}
    whole: Schema = {"type": "object", "properties": inner, **present(required=required or None)}
    return {**whole, "$defs": classes} if classes else whole


def words_of(message: object, issues: object = None) -> str:
    """What a refusal says: its issues where it has any, one a line."""
    found = cast("list[JsonObject]", issues) if isinstance(issues, list) else []
    lines = [f"{each.get('path') or 'the arguments'} {each.get('message')}" for each in found]
    return "\n".join(lines or [str(message or "The request was refused")])
