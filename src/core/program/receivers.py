"""Expressions of plain syntax trees that are a request, a response, a binding, a statement of SQL, or a coroutine.

Followed through annotations, the places of parameters in handlers, and names that are assigned once; an expression that
is not understood is none of them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import core
from core.config.model import Configuration
from core.program.bodies import Bodies
from core.program.modules import ClassScope, FunctionScope, Local, Modules, Scope, own_class, positional
from core.program.reader import Reader, arguments_of
from core.program.syntax import REQUESTS, option_with

REQUEST: Final = "Request"
RESPONSE: Final = "Response"
NEXT: Final = "Next"
CONTEXT: Final = "ExecutionContext"
STATEMENT: Final = "D1PreparedStatement"
_STATE: Final = "DurableObjectState"
_STORAGE: Final = "DurableObjectStorage"
_OBJECTS: Final = frozenset(["core.DurableObject", "core.bindings.durable_object.DurableObject"])

_BY_NAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(REQUESTS, REQUEST),
    **dict.fromkeys(["core.Response", "core.response.Response"], RESPONSE),
    **dict.fromkeys(["core.Next", "core.handlers.Next"], NEXT),
    **dict.fromkeys(["core.ExecutionContext", "core.context.ExecutionContext", "core.context.RequestContext"], CONTEXT),
    **dict.fromkeys(["core.DurableObjectState", "core.bindings.durable_object.DurableObjectState"], _STATE),
    **dict.fromkeys(["core.DurableObjectStorage", "core.bindings.durable_object.DurableObjectStorage"], _STORAGE),
    **dict.fromkeys(["core.D1DatabaseSession", "core.bindings.d1.D1DatabaseSession"], "D1Database"),
}

_RETURNS: Final[Mapping[str, Mapping[str, str]]] = {
    **{name: {RESPONSE: RESPONSE} for name in ("status", "header", "append", "cookie")},
    **{name: {STATEMENT: STATEMENT} for name in ("bind", "as_")},
    "prepare": {"D1Database": STATEMENT},
    "with_session": {"D1Database": "D1Database"},
}
"""The kinds that methods return, by the kind that has the method."""
_READS: Final = frozenset(["parse", "json", "form", "one", "first"])
"""Methods that read something as the class that they are given."""
_PARTS: Final = {(REQUEST, "ctx"): CONTEXT, (_STATE, "storage"): _STORAGE}
_AWAITED: Final = frozenset([REQUEST, STATEMENT, _STORAGE, "D1Database", "KVNamespace", "Queue", "R2Bucket"])
"""The classes of the framework with methods that have to be awaited."""
ASYNC_FUNCTIONS: Final = frozenset(
    ["core.middleware.sessions.session_of", "core.pagination.read_page"]
    + [f"core.passwords.{name}" for name in ("hash", "needs_rehash", "verify")]
)
"""Functions of the framework that have to be awaited."""
_MAKERS: Final = frozenset(["contextlib.asynccontextmanager", "contextlib.contextmanager"])
_ENTERS: Final = ("__aenter__", "__enter__")
_GENERATORS: Final = frozenset(
    f"{kind}{name}" for kind in ("", "Async") for name in ("Generator", "Iterable", "Iterator")
)
_MANAGERS: Final = frozenset(["AbstractAsyncContextManager", "AbstractContextManager"])


class Value(NamedTuple):
    """What an expression is: its kind, the name of the binding that it is, and the class of the program that it is an
    object of; nothing where it is not known, or may be any.
    """

    kind: str = ""
    name: str = ""
    class_: ClassScope | None = None


_UNKNOWN: Final = Value()


class Receivers:
    """The receivers of calls in one program. An answer is None, or nothing, where it is not known for certain."""

    def __init__(self, reader: Reader, bodies: Bodies, configurations: Sequence[Configuration]) -> None:
        self.reader = reader
        self.modules: Modules = reader.modules
        self.bodies = bodies
        """The functions that are registered."""
        self.configurations = configurations
        self._values: dict[ast.expr, Value] = {}
        self._declared: dict[ast.AST, Value] = {}

    # -- values

    def kind(self, expression: ast.expr, scope: Scope) -> str:
        """`Request`, `Response`, `Next`, `ExecutionContext`, or the kind of a binding; nothing for others."""
        return self.value_of(expression, scope).kind

    def class_of(self, expression: ast.expr, scope: Scope) -> ClassScope | None:
        """The class of the program that an expression is an object of: `req.env`, what is annotated or made so, and
        what such objects keep.
        """
        return self.value_of(expression, scope).class_

    def value_of(self, expression: ast.expr, scope: Scope) -> Value:
        """Everything that is known of an expression."""
        if expression not in self._values:
            self._values[expression] = _UNKNOWN  # for as long as it is followed: it may be made of itself
            value, where = self.modules.value(expression, scope)
            found = self._followed(value, where) if value is expression else self.value_of(value, where)
            resolved = self.modules.resolve(expression, scope) if isinstance(expression, ast.Name) else None
            self._values[expression] = self._named(resolved, found) if isinstance(resolved, Local) else found
        return self._values[expression]

    def _named(self, named: Local, value: Value) -> Value:
        """A value by a name, which may have an annotation, or be a parameter of a handler that is registered."""
        definition, scope = named
        if definition.node not in self._declared:
            self._declared[definition.node] = (
                self._annotated(definition.annotation, scope)
                if definition.annotation is not None
                else Value(self._by_position(definition.node, scope))
            )
        declared = self._declared[definition.node]
        return Value(value.kind or declared.kind, value.name if value.kind else "", declared.class_ or value.class_)

    def _followed(self, value: ast.expr, scope: Scope) -> Value:
        match value:
            case ast.Name():
                return self._entered(value, scope) or Value(class_=own_class(self.modules.resolve(value, scope)))
            case ast.Await(value=inner):
                return Value(class_=self.class_of(inner, scope))
            case ast.Attribute():
                return self._attribute(value, scope)
            case ast.Call(func=func, args=args):
                return self._returned(func, args, scope)
            case ast.IfExp(body=body, orelse=orelse):
                one, other = self.value_of(body, scope), self.value_of(orelse, scope)
                return Value(one.kind if one.kind == other.kind else "", one.name if one.name == other.name else "")
            case _:
                return _UNKNOWN

    def _returned(self, func: ast.expr, args: Sequence[ast.expr], scope: Scope) -> Value:
        name = func.attr if isinstance(func, ast.Attribute) else ""
        owner = self.value_of(func.value, scope) if isinstance(func, ast.Attribute) and name in _RETURNS else _UNKNOWN
        if owner.kind and owner.kind in _RETURNS[name]:
            return Value(_RETURNS[name][owner.kind], owner.name)
        function = self.reader.function(func, scope)
        returns = function.node.returns if function is not None else None
        found = self._annotated(returns, function.parent) if function is not None and returns is not None else _UNKNOWN
        if name in _READS and len(args) == 1:
            return found._replace(class_=self.reader.class_of(args[0], scope))
        return found if function is not None else Value(class_=self.reader.class_of(func, scope))

    def _attribute(self, value: ast.Attribute, scope: Scope) -> Value:
        name, owner = value.attr, self.value_of(value.value, scope)
        assigned = self.modules.of_self(value, scope)
        found = self.value_of(*assigned) if assigned is not None else _UNKNOWN
        annotation = self._declared_attribute(owner.class_, name) if owner.class_ is not None else None
        declared = self._annotated(*annotation) if annotation is not None else _UNKNOWN
        class_ = self._env_of(value.value, scope) if name == "env" else None
        if class_ is None:
            class_ = declared.class_
        if class_ is None and name == "env" and owner.class_ is not None and annotation is None:
            class_ = self._env_of_object(owner.class_)
        if found.kind:
            return found._replace(class_=class_)
        if part := _PARTS.get((owner.kind, name)):
            return Value(part, class_=class_)
        if owner.class_ is None:
            return Value(class_=class_)
        if name == "ctx" and self.reader.outside(owner.class_) & _OBJECTS:
            return Value(_STATE, class_=class_)
        if self.reader.is_env(owner.class_) or any(map(self.reader.is_protocol, self.reader.ancestors(owner.class_))):
            for attribute in self.reader.env_class(owner.class_).attributes:
                if attribute.attribute == name:
                    return Value(attribute.kind, attribute.name, class_)
        return Value(declared.kind, class_=class_)

    def _annotated(self, annotation: ast.expr, scope: Scope) -> Value:
        return Value(self._kind_of(annotation, scope), class_=self.reader.class_of(annotation, scope))

    def _kind_of(self, annotation: ast.expr, scope: Scope) -> str:
        written, where = self.reader.written_out(annotation, scope)
        kind = _BY_NAME.get(self.modules.outside(written, where)) or self.reader.annotation(annotation, scope).kind
        members = [each for each in self.reader.members(annotation, scope) if not isinstance(each[0], ast.Constant)]
        if kind or len(members) < 2:
            return kind
        kinds = {self._kind_of(*each) for each in members}
        return kinds.pop() if len(kinds) == 1 else ""

    def _by_position(self, node: ast.AST, scope: Scope) -> str:
        """The kind of a parameter by its place in a handler that is registered."""
        served, arguments = self.bodies.served.get(scope.node), self.arguments(scope)
        at = arguments.index(node) if isinstance(node, ast.arg) and node in arguments else -1
        # A decorator that calls the function may give it what it likes.
        if at in (0, 1) and len(arguments) == 2 and served is not None and served.handles and served.direct:
            websocket = any(route.kind == "websocket" for route in served.handles)
            named = arguments[0].arg in ("res", "response") or (websocket and at == 1)
            return "" if named else (REQUEST, RESPONSE)[at]
        if at == 2 and len(arguments) == 3 and arguments[2].arg == "next":
            second = arguments[1].annotation
            return NEXT if second is not None and self._kind_of(second, scope) == RESPONSE else ""
        return ""

    # -- classes

    def _env_of(self, request: ast.expr, scope: Scope) -> ClassScope | None:
        """The Env of a request: that of its annotation, or of the application that a handler is registered on."""
        if isinstance(request, ast.Name) and (option := option_with(request, scope)) is not None:
            made = self.modules.maker_of(option, scope).startswith("core.middleware.")
            return self.bodies.env_around(option, scope.module) if made else None
        resolved = self.modules.resolve(request, scope)
        if not isinstance(resolved, Local) or not isinstance(resolved.definition.node, ast.arg):
            return None
        annotation = resolved.definition.annotation
        if annotation is None:
            first = self.request_of(resolved.scope) == resolved.definition.node.arg
            return self.bodies.env_of(resolved.scope.node) if first and own_class(resolved) is None else None
        annotation, where = self.reader.written_out(annotation, resolved.scope)
        if not isinstance(annotation, ast.Subscript) or self.modules.outside(annotation, where) not in REQUESTS:
            return None
        return self.reader.class_of(arguments_of(annotation)[0], where)

    def _env_of_object(self, class_: ClassScope) -> ClassScope | None:
        """The type of `self.env` in a Durable Object."""
        for owner in self.reader.ancestors(class_):
            if "env" in owner.names:
                return None
            for base in owner.node.bases:
                if isinstance(base, ast.Subscript) and self.modules.outside(base, owner.parent) in _OBJECTS:
                    return self.reader.class_of(base.slice, owner.parent)
        return None

    def _declared_attribute(self, class_: ClassScope, name: str) -> tuple[ast.expr, Scope] | None:
        """The annotation of an attribute: in the class, or of the parameter that `__init__` keeps under its name."""
        for owner in self.reader.ancestors(class_):
            for definition in owner.names.get(name, ()):
                node, annotation = definition.node, definition.annotation
                if isinstance(node, ast.FunctionDef) and node.decorator_list:  # a property
                    annotation = node.returns
                return (annotation, owner) if annotation is not None else None
            for one, scope in self.modules.given_to_self(owner, name):
                given = scope.names.get(one.value.id, ()) if isinstance(one.value, ast.Name) else ()
                annotation = one.annotation or (given[0].annotation if len(given) == 1 else None)
                if annotation is not None:
                    return annotation, scope
        return None

    # -- objects that a `with` binds

    def _entered(self, name: ast.expr, scope: Scope) -> Value | None:
        """The object under a name that a `with` binds, and nothing else."""
        definitions = self.modules.definitions(name, scope)
        entered = definitions[0][0].entered if len(definitions) == 1 else None
        if entered is None:
            return None
        context, scope = self.modules.value(entered, definitions[0][1])
        resolved = self.modules.resolve(context, scope)
        if isinstance(context, ast.Call):
            maker = context.func
        elif isinstance(resolved, Local) and resolved.definition.annotation is not None:
            maker, scope = resolved.definition.annotation, resolved.scope
        else:
            return None
        class_ = self.reader.class_of(maker, scope)
        if class_ is None:
            function = self.reader.function(maker, scope)
            return self._yielded(function) if function is not None else None
        method = next(filter(None, (self.reader.method(class_, name) for name in _ENTERS)), None)
        if method is None or method.node.decorator_list or method.node.returns is None:
            return None
        returns, where = self.reader.written_out(method.node.returns, method.parent)
        is_itself = self.modules.outside(returns, where).endswith(".Self")
        return self._annotated(maker, scope) if is_itself else self._annotated(returns, where)

    def _yielded(self, function: FunctionScope) -> Value | None:
        """The object that a generator yields once, by its value and by what the annotation says of it."""
        makers = [self.reader.maker(decorator, function.parent) for decorator in function.node.decorator_list]
        declared = found = _UNKNOWN
        if makers and (len(makers) != 1 or makers[0] not in _MAKERS):
            return None
        if function.node.returns is not None:
            returns, where = self.reader.written_out(function.node.returns, function.parent)
            name = self.modules.outside(returns, where).rpartition(".")[2]
            if isinstance(returns, ast.Subscript) and name in (_GENERATORS if makers else _MANAGERS):
                declared = self._annotated(next(iter(arguments_of(returns)), returns.slice), where)
        yields = [node.value for node in function.nodes.of(ast.Yield)] if makers else []
        if len(yields) == 1 and yields[0] is not None:
            found = self.value_of(yields[0], function)
        return Value(found.kind or declared.kind, found.name, declared.class_ or found.class_)

    # -- functions

    def arguments(self, scope: Scope) -> Sequence[ast.arg]:
        """The parameters of a function that have a place, without those that it is bound to: `self` of a method."""
        if not isinstance(scope, FunctionScope):
            return ()
        served = self.bodies.served.get(scope.node)
        return positional(scope.node)[served.bound if served is not None else isinstance(scope.parent, ClassScope) :]

    def request_of(self, scope: Scope) -> str | None:
        """The name of a handler's request, if nothing else has that name."""
        arguments = self.arguments(scope)
        return arguments[0].arg if arguments and len(scope.names.get(arguments[0].arg, ())) == 1 else None

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
                if name in async_methods(self.kind(owner, scope)):
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
        if not isinstance(receiver, ast.Attribute) or (env := self.class_of(receiver.value, scope)) is None:
            return None
        declared = self._declared_attribute(env, receiver.attr)
        annotation, where = self.reader.written_out(*declared) if declared is not None else (receiver, scope)
        if not self.modules.outside(annotation, where).endswith(".DurableObjectNamespace"):
            return None
        class_ = self.reader.class_of(annotation.slice, where) if isinstance(annotation, ast.Subscript) else None
        return class_ if class_ is not None and self.reader.outside(class_) & _OBJECTS else None

    def _is_async(self, func: ast.expr, scope: Scope) -> bool:
        found = self.function(func, scope)
        return found is not None and isinstance(found.node, ast.AsyncFunctionDef) and not found.nodes.of(ast.Yield)


@cache
def async_methods(kind: str) -> Collection[str]:
    """The methods of a class of the framework that have to be awaited."""
    members = inspect.getmembers(getattr(core, kind)) if kind in _AWAITED else ()
    return {name for name, given in members if inspect.iscoroutinefunction(inspect.unwrap(given)) and name[0] != "_"}
