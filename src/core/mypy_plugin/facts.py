"""The facts of a module (`core.openapi.facts`), read from its checked syntax tree.

One walk over every function, statement by statement: its responses with their status, the errors it makes, the parts
it reads of the request, and its calls. The JSON of an expression is decided in `followed.py`. An unknown value
becomes `{"$unknown": …}`, which is a finding later, and never a guess.

One file, since the walk is one class: the status, the content type, and the errors caught and narrowed are
carried from statement to statement, and every effect that is noted reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
from mypy.constant_fold import constant_fold_expr
from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_NAMED,
    AssertStmt,
    AssignmentStmt,
    Block,
    CallExpr,
    ClassDef,
    ComparisonExpr,
    Decorator,
    DictExpr,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    IfStmt,
    IndexExpr,
    MatchStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    OperatorAssignmentStmt,
    OpExpr,
    OverloadedFuncDef,
    RaiseStmt,
    RefExpr,
    ReturnStmt,
    Statement,
    StrExpr,
    SuperExpr,
    TryStmt,
    TupleExpr,
    TypeInfo,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.types import Instance, NoneType, Type, get_proper_type

from core.errors import phrase_of
from core.mypy_plugin.followed import CORE_ERROR, ColumnsOf, Followed, blocks, is_core_error, parts_of
from core.mypy_plugin.schemas import Schemas, argument, constant, details, docstring
from core.openapi.facts import (
    Answer,
    Call,
    ClassFacts,
    Effect,
    FunctionFacts,
    ModuleFacts,
    Raise,
    Read,
    Schema,
    StagedHeader,
    any_of,
)
from core.openapi.failures import INVALID, ISSUES, error

__all__ = ["read_module"]

RESPONSE: Final = "core.response.Response"
_HTTP_RESPONSE: Final = "core.http.response.Response"
_STATEMENT: Final = "core.bindings.d1.D1PreparedStatement"
_AUTHENTICATION: Final = "core.middleware.authentication.Authentication"
REQUEST: Final = "core.request.Request"

_EVENT: Final = "core.http.sse.Event"
_STREAMS: Final = frozenset(["typing.AsyncIterable"])
_SENDERS: Final[Mapping[str, str | None]] = {
    "json": "application/json",
    "text": "text/plain",
    "html": "text/html",
    "send": None,
    "redirect": None,
    "stream": "application/octet-stream",
    "sse": "text/event-stream",
    "file": "application/octet-stream",
}
_BODIES: Final = frozenset(["json", "form", "text", "bytes", "stream"])
_NO_BODY: Final = frozenset([101, 204, 205, 304])
_PLACES: Final = {
    "core.request.Query": "query",
    "core.request.Params": "params",
    "core.request.FoundParams": "params",
    "core.http.forms.Form": "form",
}
"""The part of a request that fields are read from, by the class that reads them."""
_BINDINGS: Final = {
    "core.bindings.ai": "core.binding_errors.AiError",
    "core.bindings.d1": "core.binding_errors.D1Error",
    "core.bindings.durable_object": "core.binding_errors.DurableObjectError",
    "core.bindings.kv": "core.binding_errors.KVError",
    "core.bindings.queue": "core.binding_errors.QueueError",
    "core.bindings.r2": "core.binding_errors.R2Error",
}
"""The errors that a call of a binding may raise, by the module of its class: an error handler may make an answer of it.
"""
_LATER: Final = frozenset(["wait_until", "create_task", "ensure_future"])
"""The functions that run their argument after the response, so that its errors answer nobody."""
_PAGED: Final = {"core.pagination.page_of": "page", "core.pagination.cursor_of": "cursor"}
_AUTHENTICATION_ERROR: Final = "core.errors.AuthenticationError"
_VALIDATION_ERROR: Final = "core.errors.ValidationError"
_SUPPRESS: Final = "contextlib.suppress"


def read_module(
    tree: MypyFile,
    types: Mapping[Expression, Type],
    *,
    is_program: Callable[[str], bool],
    columns_of: ColumnsOf = lambda call: None,
) -> ModuleFacts:
    """The facts of one checked module.

    `is_program` tells whether a full name is one of the program's own, `columns_of` the columns of a statement of SQL.
    """
    classes: dict[str, ClassFacts] = {}
    schemas = Schemas(classes)
    every = list(_functions(tree.defs, tree.fullname))
    names = {node: name for name, node, _ in every}
    functions: list[FunctionFacts] = []
    for name, node, owner in every:
        followed = Followed(node, types, schemas, names, is_program, columns_of)
        functions.append(_Function(name, node, owner, followed, schemas).read())
    told: dict[str, dict[str, Schema]] = {}
    overrides: dict[str, list[str]] = {}
    for info in _classes(tree.defs):
        if found := details(info.defn):
            told[info.fullname] = found
        for name in info.names:
            for base in info.mro[1:]:
                if name in base.names and is_program(base.fullname) and not name.startswith("__"):
                    overrides.setdefault(f"{base.fullname}.{name}", []).append(f"{info.fullname}.{name}")
    frozen = {method: tuple(others) for method, others in overrides.items()}
    return ModuleFacts(tree.fullname, tree.path, docstring(tree.defs), tuple(functions), classes, told, frozen)


def _functions(
    body: Iterable[Statement], prefix: str, owner: TypeInfo | None = None
) -> Iterator[tuple[str, FuncDef, TypeInfo | None]]:
    """Every function of a body with its qualified name, those inside functions and classes too."""
    for statement in body:
        match statement:
            case FuncDef():
                yield f"{prefix}.{statement.name}", statement, owner
                yield from _functions(statement.body.body, f"{prefix}.{statement.name}.<locals>")
            case Decorator():
                yield from _functions([statement.func], prefix, owner)
            case OverloadedFuncDef():
                parts = [statement.impl] if statement.impl is not None else statement.items
                yield from _functions(parts, prefix, owner)
            case ClassDef():
                generated = {name for name, symbol in statement.info.names.items() if symbol.plugin_generated}
                written = [part for part in statement.defs.body if getattr(part, "name", "") not in generated]
                yield from _functions(written, f"{prefix}.{statement.name}", statement.info)
            case _:
                for block in blocks(statement):
                    yield from _functions(block.body, prefix, owner)


def _classes(body: Iterable[Statement]) -> Iterator[TypeInfo]:
    for statement in body:
        match statement:
            case ClassDef():
                yield statement.info
                yield from _classes(statement.defs.body)
            case FuncDef():
                yield from _classes(statement.body.body)
            case Decorator():
                yield from _classes([statement.func])
            case _:
                for block in blocks(statement):
                    yield from _classes(block.body)


class _Function:
    """One function, walked once."""

    def __init__(self, name: str, node: FuncDef, owner: TypeInfo | None, followed: Followed, schemas: Schemas) -> None:
        self.name = name
        self.node = node
        self.owner = owner
        self.followed = followed
        self.schemas = schemas
        self.effects: list[Effect] = []
        self.returned: list[Expression] = []
        self.status: tuple[int, ...] | None = (200,)
        self.media: str | None = None
        """The content type that was staged, which wins over that of the sender."""
        self.caught: tuple[str, ...] = ()
        self.narrowed: tuple[str, ...] = ()

    def read(self) -> FunctionFacts:
        self._block(self.node.body)
        returns = any_of(self.followed.schema(value) for value in self.returned) if self.returned else None
        return FunctionFacts(self.name, self.node.line, docstring(self.node.body.body), tuple(self.effects), returns)

    # -- statements

    def _block(self, block: Block) -> None:
        for statement in block.body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case ExpressionStmt():
                self._expression(statement.expr)
            case AssignmentStmt():
                self._expression(statement.rvalue)
                for target in statement.lvalues:
                    self._assigned(target, statement.rvalue)
            case OperatorAssignmentStmt():
                self._expression(statement.rvalue)
            case ReturnStmt():
                if statement.expr is not None:
                    self._expression(statement.expr)
                    self.returned.append(statement.expr)
            case RaiseStmt():
                for raised in (statement.expr, statement.from_expr):
                    if raised is not None:
                        self._expression(raised)
                self._raised(statement.expr)
            case AssertStmt():
                self._expression(statement.expr)
            case IfStmt():
                self._if(statement)
            case ForStmt() | WhileStmt():
                self._expression(statement.expr)
                self._branches([statement.body, statement.else_body])
            case WithStmt():
                self._with(statement)
            case TryStmt():
                self._try(statement)
            case MatchStmt():
                self._expression(statement.subject)
                self._branches(statement.bodies)
            case Block():
                self._block(statement)
            case _:
                pass

    def _assigned(self, target: Expression, value: Expression) -> None:
        """`res.headers["X-Total"] = …` stages a header."""
        if (
            isinstance(target, IndexExpr)
            and isinstance(target.base, MemberExpr)
            and target.base.name == "headers"
            and self.followed.class_of(target.base.expr) == RESPONSE
        ):
            self._stage(target.line, target.index, value)

    def _if(self, statement: IfStmt) -> None:
        for condition in statement.expr:
            self._expression(condition)
        before, start = self.narrowed, self.status
        ends: list[tuple[int, ...] | None] = []
        for condition, block in zip(statement.expr, statement.body, strict=True):
            self.narrowed = self._narrowing(condition) or before
            self.status = start
            self._block(block)
            if not _leaves(block):
                ends.append(self.status)
        self.narrowed, self.status = before, start
        if statement.else_body is not None:
            self._block(statement.else_body)
            if not _leaves(statement.else_body):
                ends.append(self.status)
        else:
            ends.append(start)
        self.status = _either(ends) if ends else start
        match statement.expr[0]:
            case ComparisonExpr(operators=["is"], operands=[NameExpr(node=node), NameExpr(fullname="builtins.None")]):
                if node is not None and len(statement.expr) == 1 and _leaves(statement.body[0]):
                    self.followed.never_none.add(node)
            case _:
                pass

    def _narrowing(self, condition: Expression) -> tuple[str, ...]:
        """The classes of `isinstance(err, …)` over the function's first parameter."""
        match condition:
            case CallExpr(callee=NameExpr(fullname="builtins.isinstance"), args=[NameExpr(node=subject), kinds]):
                first = self.node.arguments[0].variable if self.node.arguments else None
                if subject is first:
                    return tuple(_named(kinds))
            case OpExpr(op="and"):
                return self._narrowing(condition.left) or self._narrowing(condition.right)
            case _:
                pass
        return ()

    def _branches(self, branches: Iterable[Block | None]) -> None:
        """Read branches of which one or none runs."""
        start = self.status
        ends = [start]
        for block in branches:
            if block is not None:
                self.status = start
                self._block(block)
                if not _leaves(block):
                    ends.append(self.status)
        self.status = _either(ends)

    def _with(self, statement: WithStmt) -> None:
        outer = self.caught
        for manager in statement.expr:
            self._expression(manager)
            if isinstance(manager, CallExpr) and getattr(manager.callee, "fullname", "") == _SUPPRESS:
                self.caught = (*self.caught, *(name for kind in manager.args for name in _named(kind)))
            info = self.followed.info_of(manager)
            for method in ("__aenter__", "__enter__", "__aexit__", "__exit__"):
                if name := self.followed.method(info, method):
                    self.effects.append(Call(manager.line, name, outer))
        self._block(statement.body)
        self.caught = outer

    def _try(self, statement: TryStmt) -> None:
        caught: list[str] = []
        for kinds, variable, handler in zip(statement.types, statement.vars, statement.handlers, strict=True):
            if not _raises_again(handler, variable.name if variable is not None else ""):
                caught += _named(kinds) if kinds is not None else ["builtins.BaseException"]
        outer, start = self.caught, self.status
        self.caught = (*outer, *caught)
        self._block(statement.body)
        self.caught = outer
        after = self.status
        if statement.else_body is not None:
            self._block(statement.else_body)
        leaves = _leaves(statement.else_body if statement.else_body is not None else statement.body)
        ends = [] if leaves else [self.status]
        for handler in statement.handlers:
            self.status = _either([start, after])
            self._block(handler)
            if not _leaves(handler):
                ends.append(self.status)
        self.status = _either(ends) if ends else start
        if statement.finally_body is not None:
            self._block(statement.finally_body)

    # -- expressions

    def _expression(self, expression: Expression) -> None:
        """Add the effects of an expression, the innermost first."""
        if isinstance(expression, CallExpr):
            self._call(expression)
            return
        if isinstance(expression, IndexExpr):
            self._index(expression)
        for part in parts_of(expression):
            self._expression(part)
        if isinstance(expression, MemberExpr):
            self._property(expression)

    def _call(self, call: CallExpr) -> None:
        callee = call.callee
        if isinstance(callee, MemberExpr):
            if callee.name in _LATER:
                return
            receiver = self.followed.class_of(callee.expr)
            if receiver == RESPONSE and self._response(call, callee):
                return
            self._request(call, callee, receiver)
            if receiver == _STATEMENT and callee.name == "one":
                self._requires_row(call)
            if failure := _BINDINGS.get(receiver.rpartition(".")[0]):
                bases = (failure, "core.binding_errors.BindingError", "builtins.Exception", "builtins.BaseException")
                self._fails(call.line, bases)
        for part in parts_of(call):
            self._expression(part)
        self._goes_to(call)
        for given in call.args:  # a function that is handed on may be called
            if isinstance(given, RefExpr) and (name := self.followed.function(given)) and not _is_instance(given):
                self.effects.append(Call(call.line, name, self.caught))

    def _requires_row(self, call: CallExpr) -> None:
        """`statement.one(T)`: no row is a 404, or the error that is handed over."""
        given = argument(call, 99, "error")
        if given is None or constant(given) == (None,):
            self.effects.append(attrs.evolve(error(404, "Not Found"), line=call.line, caught=self.caught))
        else:
            self._raised(given)

    def _fails(self, line: int, classes: tuple[str, ...]) -> None:
        """A binding may fail here, which is one fact however often a function asks it."""
        for effect in self.effects:
            if isinstance(effect, Raise) and effect.classes == classes and effect.caught == self.caught:
                return
        self.effects.append(Raise(line, (), {"type": "string"}, classes=classes, caught=self.caught))

    def _property(self, expression: MemberExpr) -> None:
        """A property of the program is a call."""
        info = self.followed.info_of(expression.expr)
        symbol = info.get(expression.name) if info is not None else None
        is_property = symbol is not None and isinstance(symbol.node, Decorator) and symbol.node.var.is_property
        if is_property and (name := self.followed.method(info, expression.name)):
            self.effects.append(Call(expression.line, name, self.caught))

    # -- responses

    def _response(self, call: CallExpr, callee: MemberExpr) -> bool:
        """A call of a response's method. True where all of its parts have been walked."""
        method = callee.name
        if method not in _SENDERS and method not in ("status", "header", "append", "cookie", "delete_cookie"):
            return False
        before, media = self.status, self.media
        self._expression(callee.expr)  # `res`, or the rest of the chain before this method
        for given in call.args:
            self._expression(given)
        if method == "status":
            self.status = self.followed.statuses(call.args[0]) if call.args else self.status
        elif method in ("header", "append"):
            if len(call.args) == 2:
                self._stage(call.line, call.args[0], call.args[1])
        elif method in ("cookie", "delete_cookie"):
            self.effects.append(StagedHeader(call.line, "Set-Cookie"))
        else:
            self._send(call, method)
            self.status, self.media = before, media
        return True

    def _stage(self, line: int, name: Expression, value: Expression) -> None:
        known, given = constant_fold_expr(name, ""), constant(value)
        if not isinstance(known, str) or given == (None,):
            return
        if known.lower() == "content-type":
            self.media = str(given[0]).partition(";")[0].strip() if given is not None else None
            return
        self.effects.append(StagedHeader(line, known))

    def _send(self, call: CallExpr, method: str) -> None:
        body = argument(call, 0, "body" if method == "send" else "value")
        media = _SENDERS[method]
        status = self.status
        schema: Schema | None = None
        item: Schema | None = None
        headers: dict[str, Schema] = {}
        if method == "send" and body is not None and self.followed.class_of(body) == _HTTP_RESPONSE:
            self._pass_on(call.line, body)
            return
        match method:
            case "json":
                schema = self.followed.schema(body) if body is not None else {}
            case "text" | "html":
                schema = {"type": "string"}
            case "redirect":
                given = argument(call, 1, "status")
                status = self.followed.statuses(given) if given is not None else (302,)
                headers["Location"] = {"type": "string", "format": "uri-reference"}
            case "stream" | "file":
                if method == "file" and status == (200,):
                    # As the request's conditions and ranges have it (RFC 9110, sections 13 and 14).
                    status = (200, 206)
                    self.effects.append(Answer(call.line, (304, 416), None, errors=self.narrowed))
                given = argument(call, 1, "content_type")
                named = constant_fold_expr(given, "") if given is not None else None
                media = named.partition(";")[0].strip() if isinstance(named, str) else media
                schema = _contents(media)
            case "sse":
                item = self._event(body)
            case _ if body is not None:
                media, schema = self._sent(body)
            case _:
                pass
        if media is not None and self.media is not None and method != "sse":
            media = self.media
            schema = _contents(media) if method in ("send", "stream", "file") else schema
        if status and _NO_BODY.issuperset(status):
            media, schema = None, None
        self.effects.append(Answer(call.line, status, media, schema, item, headers, self.narrowed))

    def _pass_on(self, line: int, sent: Expression) -> None:
        """`res.send(http.Response(…))`: known as far as it is made here."""
        value = self.followed.value(sent) if isinstance(sent, NameExpr) else sent
        match value:
            case CallExpr(callee=RefExpr(fullname=made)) if made == _HTTP_RESPONSE:
                how = ""
            case CallExpr(callee=MemberExpr(expr=RefExpr(fullname=made), name=how)) if made == _HTTP_RESPONSE:
                pass
            case _:
                passed = Answer(
                    line, (), "*/*", {"$unknown": "another response"}, errors=self.narrowed, is_passed_on=True
                )
                self.effects.append(passed)
                return
        body, status, given = (argument(value, at, name) for at, name in ((0, "body"), (99, "status"), (99, "headers")))
        media: str | None = None
        schema: Schema | None = None
        headers: dict[str, Schema] = {}
        otherwise: tuple[int, ...] = (200,)
        match how:
            case "from_json":
                media, schema = "application/json", self.followed.schema(value.args[0]) if value.args else {}
            case "redirect":
                status, otherwise = argument(value, 1, "status"), (302,)
                headers["Location"] = {"type": "string", "format": "uri-reference"}
            case _ if body is not None:
                media, schema = self._sent(body)
            case _:
                pass
        for key, content in given.items if isinstance(given, DictExpr) else []:
            known = constant(content)
            if not isinstance(key, StrExpr):
                continue
            if key.value.lower() == "content-type" and known is not None and media is not None:
                media = str(known[0]).partition(";")[0].strip()
            else:
                headers[key.value] = {"type": "string"}
        statuses = self.followed.statuses(status) if status is not None else otherwise
        self.effects.append(Answer(line, statuses, media, schema, None, headers, self.narrowed))

    def _sent(self, body: Expression) -> tuple[str | None, Schema | None]:
        """Return the content that `res.send(body)` sends."""
        proper = get_proper_type(self.followed.type_of(body)) if self.followed.type_of(body) is not None else None
        if isinstance(proper, NoneType):
            return None, None
        match self.followed.class_of(body):
            case "builtins.str":
                return "text/plain", {"type": "string"}
            case "builtins.bytes" | "builtins.bytearray" | "builtins.memoryview":
                return "application/octet-stream", _contents("application/octet-stream")
            case other:
                return "*/*", {"$unknown": other or "the body sent"}

    def _event(self, events: Expression | None) -> Schema:
        """The data of one event of a stream."""
        type_ = get_proper_type(self.followed.type_of(events)) if events is not None else None
        if isinstance(type_, Instance):
            for base in type_.type.mro:
                if base.fullname in _STREAMS:
                    given = get_proper_type(map_instance_to_supertype(type_, base).args[0])
                    if isinstance(given, Instance) and given.type.fullname == _EVENT:
                        return {"$unknown": "the data of an Event: yield the data itself, or annotate"}
                    return self.schemas.of(given)
        return {"$unknown": "the events of a stream"}

    # -- requests

    def _request(self, call: CallExpr, callee: MemberExpr, receiver: str) -> None:
        method = callee.name
        if receiver == REQUEST and method in _BODIES:
            typed = method == "json" and bool(call.args)
            schema = self.followed.structured(call) if typed else None
            self.effects.append(Read(call.line, method, schema=schema, caught=self.caught))
            return
        if receiver == REQUEST and method == "require_match":
            self._requires_match(call)
            return
        if receiver == REQUEST and method == "header":
            where, method = "header", "get"
        elif receiver == REQUEST and method == "signed_cookie":
            where, method = "cookie", "get"
        else:
            where = self._place(callee.expr, receiver)
        if not where or not call.args:
            return
        if method == "parse":
            part = {"header": "headers"}.get(where, where)
            self.effects.append(Read(call.line, part, schema=self.followed.structured(call), caught=self.caught))
        elif method in ("get", "get_all", "text", "file") and where != "params":
            name = constant_fold_expr(call.args[0], "")
            if isinstance(name, str):
                kind: Schema = _contents("application/octet-stream") if method == "file" else {"type": "string"}
                schema = {"type": "array", "items": kind} if method == "get_all" else kind
                self.effects.append(Read(call.line, f"{where}-name", name, schema))

    def _requires_match(self, call: CallExpr) -> None:
        """`req.require_match(etag)`: the client has seen the version it changes, or is refused."""
        given = argument(call, 1, "required")
        required = constant(given) if given is not None else (False,)
        self.effects.append(Read(call.line, "header-name", "If-Match", {"type": "string"}))
        self.effects.append(attrs.evolve(error(412, "Precondition Failed"), line=call.line, caught=self.caught))
        if required != (False,):
            self.effects.append(attrs.evolve(error(428, "Precondition Required"), line=call.line, caught=self.caught))

    def _place(self, expression: Expression, receiver: str) -> str:
        """Return the part of a request that an expression is: `req.headers`, `req.cookies`, or a query kept in a
        name.
        """
        if receiver in _PLACES:
            return _PLACES[receiver]
        if isinstance(expression, NameExpr):
            value = self.followed.value(expression)
            return self._place(value, "") if value is not None else ""
        if isinstance(expression, MemberExpr) and self.followed.class_of(expression.expr) == REQUEST:
            return {"headers": "header", "cookies": "cookie"}.get(expression.name, "")
        return ""

    def _index(self, expression: IndexExpr) -> None:
        where = self._place(expression.base, self.followed.class_of(expression.base))
        name = constant_fold_expr(expression.index, "")
        if where not in ("", "params") and isinstance(name, str):
            required = where != "form" or self.followed.class_of(expression) != ""
            self.effects.append(Read(expression.line, f"{where}-name", name, {"type": "string"}, required=required))

    # -- errors and calls

    def _goes_to(self, call: CallExpr) -> None:
        callee = call.callee
        if isinstance(callee, SuperExpr):
            above = self.owner.mro[1:] if self.owner is not None else []
            owner = next((base for base in above if callee.name in base.names), None)
            if self.owner is not None and owner is not None:
                if owner.fullname == CORE_ERROR:
                    self._made(call, self.owner)
                elif owner.fullname == _VALIDATION_ERROR:
                    self._invalid(call, self.owner)
                elif owner.fullname == _AUTHENTICATION_ERROR:
                    self._unauthenticated(call, self.owner)
                else:
                    self.effects.append(Call(call.line, f"{owner.fullname}.{callee.name}", self.caught))
            return
        node = callee.node if isinstance(callee, RefExpr) else None
        if isinstance(callee, RefExpr) and callee.fullname in _PAGED:
            self._paged(call, _PAGED[callee.fullname])
        elif isinstance(node, TypeInfo):
            self._instance(call, node)
        elif name := self.followed.function(callee):
            self.effects.append(Call(call.line, name, self.caught))
        elif isinstance(node, Var) and self.followed.class_of(callee) == _AUTHENTICATION:
            self.effects.append(Call(call.line, node.fullname, self.caught))

    def _paged(self, call: CallExpr, which: str) -> None:
        """`page_of(req)` and `cursor_of(req, T)`: the part of a list that the query asks for."""
        limit: Schema = {"type": "integer", "minimum": 1}
        for word, key, otherwise in (("most", "maximum", 100), ("limit", "default", 20)):
            given = argument(call, 99, word)
            known = constant(given) if given is not None else (otherwise,)
            if known is not None:
                limit[key] = known[0]
        part: Schema = {"type": "integer", "minimum": 1, "default": 1} if which == "page" else {"type": "string"}
        for name, schema in ((which, part), ("limit", limit)):
            self.effects.append(Read(call.line, "query-name", name, schema))
        self.effects.append(attrs.evolve(INVALID, line=call.line, caught=self.caught))

    def _instance(self, call: CallExpr, made: TypeInfo) -> None:
        """A class that is called."""
        init = next((base for base in made.mro if "__init__" in base.names), None)
        if is_core_error(made) and (init is None or init.fullname == CORE_ERROR):
            self._made(call, made)
            return
        if is_core_error(made) and init is not None and init.fullname == _VALIDATION_ERROR:
            self._invalid(call, made)
            return
        if is_core_error(made) and init is not None and init.fullname == _AUTHENTICATION_ERROR:
            self._unauthenticated(call, made)
            return
        own = tuple(base.fullname for base in made.mro) if is_core_error(made) else ()
        for method in ("__init__", "__attrs_post_init__", "__post_init__"):
            if name := self.followed.method(made, method):
                self.effects.append(Call(call.line, name, self.caught, own))

    def _made(self, call: CallExpr, info: TypeInfo) -> None:
        """An error for the client: most often it is raised here, and always by somebody."""
        given, text = argument(call, 0, ""), argument(call, 1, "")  # positional only, so that metadata may be called so
        metadata: dict[str, Schema] = {}
        headers: dict[str, Schema] = {}
        for value, kind, name in zip(call.args, call.arg_kinds, call.arg_names, strict=True):
            if name == "headers":
                for key, content in value.items if isinstance(value, DictExpr) else []:
                    if isinstance(key, StrExpr):
                        known = constant(content)
                        headers[key.value] = {"const": known[0]} if known is not None else {"type": "string"}
            elif kind == ARG_NAMED and name is not None:
                metadata[name] = self.followed.schema(value)
            elif kind.is_star() and kind.is_named(star=True):
                metadata.update(self.followed.schema(value).get("properties", {}))
        status = (self.followed.statuses(given) or ()) if given is not None else ()
        phrases: Schema = any_of({"const": phrase_of(known)} for known in status) if status else {"type": "string"}
        self.effects.append(
            Raise(
                call.line,
                status,
                self.followed.schema(text) if text is not None else phrases,
                metadata,
                headers,
                tuple(base.fullname for base in info.mro),
                self.caught,
            )
        )

    def _invalid(self, call: CallExpr, info: TypeInfo) -> None:
        """A ValidationError, whose issues are always of one shape."""
        given, text = argument(call, 99, "status"), argument(call, 99, "message")
        self.effects.append(
            Raise(
                call.line,
                (self.followed.statuses(given) or ()) if given is not None else (422,),
                self.followed.schema(text) if text is not None else {"const": "Validation failed"},
                {"issues": ISSUES},
                classes=tuple(base.fullname for base in info.mro),
                caught=self.caught,
            )
        )

    def _unauthenticated(self, call: CallExpr, info: TypeInfo) -> None:
        """An AuthenticationError, whose challenge says which scheme it is."""
        given = argument(call, 0, "")
        challenge = constant(given) if given is not None else ("Bearer",)
        header: Schema = {"const": challenge[0]} if challenge is not None else {"type": "string"}
        made = error(401, "Unauthorized", tuple(base.fullname for base in info.mro))
        self.effects.append(
            attrs.evolve(made, line=call.line, headers={"WWW-Authenticate": header}, caught=self.caught)
        )

    def _raised(self, raised: Expression | None) -> None:
        """An exception that is not an error for the client by itself: an error handler may make one of it."""
        callee = raised.callee if isinstance(raised, CallExpr) else raised
        made = callee.node if isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo) else None
        if raised is None or made is None or is_core_error(made):
            return
        classes = tuple(base.fullname for base in made.mro)
        status = self._class_constant(made, "status")
        message = self._class_constant(made, "message")
        self.effects.append(
            Raise(
                raised.line,
                (status,) if isinstance(status, int) else (),
                {"const": message} if isinstance(message, str) else {"type": "string"},
                classes=classes,
                caught=self.caught,
            )
        )

    def _class_constant(self, info: TypeInfo, name: str) -> object:
        """The value of an attribute that a class gives all of its instances."""
        symbol = info.get(name)
        node = symbol.node if symbol is not None else None
        if not isinstance(node, Var) or node.type is None:
            return None
        schema = self.schemas.of(expand_type_by_instance(node.type, Instance(info, [])))
        if "const" in schema:
            return schema["const"]
        for statement in info.defn.defs.body:
            match statement:
                case AssignmentStmt(lvalues=[NameExpr(name=own)], rvalue=value) if own == name:
                    found = constant(value)
                    return found[0] if found is not None else None
                case _:
                    pass
        return None


def _named(kinds: Expression) -> list[str]:
    """The full names of the classes of `except (A, B)` and `isinstance(x, (A, B))`."""
    named = kinds.items if isinstance(kinds, TupleExpr) else [kinds]
    return [kind.fullname for kind in named if isinstance(kind, RefExpr)]


def _is_instance(expression: RefExpr) -> bool:
    """Return True if a name stands for an object rather than for a function."""
    return isinstance(expression.node, Var)


def _contents(media: str | None) -> Schema:
    return {"type": "string", "contentMediaType": media or "application/octet-stream"}


def _either(ends: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    found: list[int] = []
    for end in ends:
        if end is None:
            return None
        found += [status for status in end if status not in found]
    return tuple(found)


def _leaves(block: Block) -> bool:
    """Return True if a block ends the function."""
    last = block.body[-1] if block.body else None
    if isinstance(last, IfStmt):
        return last.else_body is not None and _leaves(last.else_body) and all(map(_leaves, last.body))
    return isinstance(last, ReturnStmt | RaiseStmt)


def _raises_again(handler: Block, name: str) -> bool:
    """Return True if an `except` raises again the error it caught: a bare `raise` in it, or a `raise` of its name."""
    for statement in handler.body:
        if isinstance(statement, RaiseStmt):
            given = statement.expr
            if given is None or (isinstance(given, NameExpr) and given.name == name):
                return True
        if any(_raises_again(block, name) for block in blocks(statement)):
            return True
    return False
