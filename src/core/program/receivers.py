"""Expressions of plain syntax trees that are a request, a response, a binding, a statement of SQL, or a coroutine.

Followed through annotations, the places of parameters in handlers, and names that are assigned once; an expression that
is not understood is none of them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

from core.config.model import Configuration
from core.program.bodies import Bodies
from core.program.databases import OBJECTS, Databases
from core.program.entered import entered
from core.program.modules import ClassScope, FunctionScope, Local, Scope
from core.program.reader import Reader
from core.program.sources import Sources
from core.program.syntax import REQUESTS, Node

REQUEST: Final = "Request"
RESPONSE: Final = "Response"
NEXT: Final = "Next"
CONTEXT: Final = "ExecutionContext"
_STATE: Final = "DurableObjectState"
_STORAGE: Final = "DurableObjectStorage"

_BY_NAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(REQUESTS, REQUEST),
    **dict.fromkeys(["core.Response", "core.response.Response"], RESPONSE),
    **dict.fromkeys(["core.Next", "core.handlers.Next"], NEXT),
    **dict.fromkeys(["core.ExecutionContext", "core.context.ExecutionContext", "core.context.RequestContext"], CONTEXT),
    **dict.fromkeys(["core.DurableObjectState", "core.bindings.durable_object.DurableObjectState"], _STATE),
    **dict.fromkeys(["core.DurableObjectStorage", "core.bindings.durable_object.DurableObjectStorage"], _STORAGE),
}

ASYNC_METHODS: Final[Mapping[str, frozenset[str]]] = {
    REQUEST: frozenset(["bytes", "form", "is_disconnected", "json", "text"]),
    "KVNamespace": frozenset(["delete", "get", "get_json", "get_with_metadata", "list", "put", "put_json"]),
    "D1Database": frozenset(["batch", "exec"]),
    "D1PreparedStatement": frozenset(["all", "first", "one", "raw", "run"]),
    "DurableObjectStorage": frozenset(
        [
            "delete",
            "delete_alarm",
            "delete_all",
            "get",
            "get_alarm",
            "get_bookmark_for_time",
            "get_current_bookmark",
            "list",
            "on_next_session_restore_bookmark",
            "put",
            "set_alarm",
            "sync",
            "transaction",
        ]
    ),
    "R2Bucket": frozenset(["create_multipart_upload", "delete", "get", "head", "list", "put"]),
    "Queue": frozenset(["metrics", "send", "send_batch"]),
}
"""The methods that have to be awaited, by the class: tests/program/test_shapes.py compares them with the Protocols."""
ASYNC_FUNCTIONS: Final = frozenset(
    [
        "core.middleware.sessions.session_of",
        "core.pagination.read_page",
        "core.passwords.hash",
        "core.passwords.needs_rehash",
        "core.passwords.verify",
    ]
)
"""Functions of the framework that have to be awaited."""
_EVERY: Final = frozenset(name for names in ASYNC_METHODS.values() for name in names)
_STATEMENT: Final = ASYNC_METHODS["D1PreparedStatement"]


class Receivers(Databases):
    """The receivers of calls in one program."""

    def __init__(
        self, reader: Reader, bodies: Bodies, configurations: Sequence[Configuration], sources: Sources
    ) -> None:
        super().__init__(reader, bodies, configurations, sources)
        self._parameters: dict[ast.AST, str] = {}
        """The kinds of parameters: most are asked for several times."""

    def kind(self, expression: ast.expr, scope: Scope) -> str:
        """`Request`, `Response`, `Next`, `ExecutionContext`, or the kind of a binding; nothing for others."""
        return self.kind_of(*self.modules.value(expression, scope))

    def kind_of(self, value: ast.expr, scope: Scope) -> str:
        """The same of a value, which is no name of another."""
        match value:
            case ast.Name():
                resolved = self.modules.resolve(value, scope)
                if isinstance(resolved, Local):
                    node = resolved.definition.node
                    if node not in self._parameters:
                        self._parameters[node] = self._parameter(resolved)
                    return self._parameters[node]
                given = entered(self.reader, value, scope)
                if given is None:
                    return ""
                kind = self.kind(*given.value) if given.value is not None else ""
                return kind or (self.reader.annotation(*given.annotation).kind if given.annotation is not None else "")
            case ast.Attribute(attr="ctx", value=owner):
                if self.kind(owner, scope) == REQUEST:
                    return CONTEXT
                own = self.class_of(owner, scope)
                return _STATE if own is not None and self.reader.outside(own) & OBJECTS else ""
            case ast.Attribute(attr="storage", value=owner) if self.kind(owner, scope) == _STATE:
                return _STORAGE
            case ast.Attribute(value=owner, attr=name):
                env = self.class_of(owner, scope)
                fields = self.reader.shape(env).attributes if env is not None else ()
                return next((field.kind for field in fields if field.attribute == name), "")
            case ast.Call(func=ast.Attribute(value=owner, attr="status" | "header" | "append" | "cookie")):
                return RESPONSE if self.kind(owner, scope) == RESPONSE else ""  # which they return
            case _:
                return ""

    def _parameter(self, parameter: Local) -> str:
        """The kind of a parameter by its annotation, or by its place in a handler that is registered."""
        node, scope = parameter.definition.node, parameter.scope
        if not isinstance(node, ast.arg):
            return ""
        if node.annotation is not None:
            annotation, where = self.reader.written_out(node.annotation, scope)
            name = self.modules.outside(annotation, where)
            if name in _BY_NAME:
                return _BY_NAME[name]
            return self.reader.annotation(node.annotation, scope).kind
        served, arguments = self.bodies.served.get(scope.node), self.arguments(scope)
        at = arguments.index(node) if node in arguments else -1
        # A decorator that calls the function may give it what it likes.
        if at in (0, 1) and len(arguments) == 2 and served is not None and served.handles and served.direct:
            websocket = any(route.kind == "websocket" for route in served.handles)
            named = arguments[0].arg in ("res", "response") or (websocket and at == 1)
            return "" if named else (REQUEST, RESPONSE)[at]
        if at == 2 and len(arguments) == 3 and node.arg == "next":
            second = Local(scope.names[arguments[1].arg][0], scope)
            return NEXT if arguments[1].annotation is not None and self._parameter(second) == RESPONSE else ""
        return ""

    def function(self, expression: ast.expr, scope: Scope) -> FunctionScope | None:
        """The function of the program that an expression names, as its `def` has it."""
        found = self.reader.function(expression, scope)
        if found is None or found.node.decorator_list or len(found.parent.names.get(found.node.name, ())) != 1:
            return None
        return found

    def is_coroutine(self, expression: ast.expr, scope: Scope) -> bool:
        """Return True for a call that certainly gives a coroutine, itself or by a name that is assigned once."""
        call, scope = self.modules.value(expression, scope)
        if not isinstance(call, ast.Call):
            return False
        if self.modules.outside(call.func, scope) in ASYNC_FUNCTIONS:
            return True
        match call.func:
            case ast.Name() as func:
                return self._is_async(func, scope) or self.kind(func, scope) == NEXT
            case ast.Attribute(value=owner, attr=name) as func:
                if name in _EVERY:
                    if name in ASYNC_METHODS.get(self.kind(owner, scope), ()):
                        return True
                    if name in _STATEMENT and self.behind(Node(owner, scope)) is not None:
                        return True
                return (isinstance(owner, ast.Name) and self._is_async(func, scope)) or self._is_remote(func, scope)
            case _:
                return False

    def _is_remote(self, func: ast.Attribute, scope: Scope) -> bool:
        """Return True for an async method, called on the stub of a Durable Object."""
        class_ = self.stub_of(*self.modules.value(func.value, scope))
        method = self.reader.method(class_, func.attr) if class_ is not None else None
        return method is not None and isinstance(method.node, ast.AsyncFunctionDef)

    def stub_of(self, value: ast.expr, scope: Scope) -> ClassScope | None:
        """The class of the Durable Object that a value, which is no name of another, is a stub of."""
        match value:
            case ast.Call(func=ast.Attribute(attr="get" | "get_by_name", value=namespace)):
                receiver, scope = self.modules.value(namespace, scope)
            case _:
                return None
        if not isinstance(receiver, ast.Attribute):
            return None
        env = self.class_of(receiver.value, scope)
        fields = self.reader.fields(env) if env is not None else ()
        field = next((field for field in fields if field.name == receiver.attr), None)
        if field is None:
            return None
        annotation, where = self.reader.written_out(field.annotation, field.owner)
        if not isinstance(annotation, ast.Subscript):
            return None
        if not self.modules.outside(annotation, where).endswith(".DurableObjectNamespace"):
            return None
        class_ = self.reader.class_of(annotation.slice, where)
        return class_ if class_ is not None and self.reader.outside(class_) & OBJECTS else None

    def _is_async(self, func: ast.expr, scope: Scope) -> bool:
        found = self.function(func, scope)
        if found is None or not isinstance(found.node, ast.AsyncFunctionDef):
            return False
        return not found.nodes.of(ast.Yield)
