"""JSON schemas of expressions, where the code is more precise than its type.

A dict that is written out keeps its fields although its type is `dict[str, object]`, a name that is assigned once is
the value assigned to it, a column of a statement has the type that the migrations give it. Everything else has
the type that mypy gives it.

One file, since following an expression is one recursion over all kinds of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mypy.constant_fold import constant_fold_expr
from mypy.expandtype import expand_type
from mypy.nodes import (
    ARG_NAMED,
    AssertStmt,
    AssignmentExpr,
    AssignmentStmt,
    AwaitExpr,
    Block,
    CallExpr,
    CastExpr,
    ComparisonExpr,
    ConditionalExpr,
    Decorator,
    DelStmt,
    DictExpr,
    DictionaryComprehension,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    GeneratorExpr,
    IfStmt,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListComprehension,
    ListExpr,
    MatchStmt,
    MemberExpr,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    OverloadedFuncDef,
    RaiseStmt,
    RefExpr,
    ReturnStmt,
    SetComprehension,
    SetExpr,
    SliceExpr,
    StarExpr,
    Statement,
    TryStmt,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    WhileStmt,
    WithStmt,
    YieldExpr,
    YieldFromExpr,
)
from mypy.types import (
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    Type,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from core.mypy_plugin.schemas import Schemas, is_vague
from core.openapi.facts import ERROR_BODY, Schema, any_of

__all__ = ["CORE_ERROR", "ColumnsOf", "Followed", "blocks", "is_core_error", "parts_of"]

CORE_ERROR: Final = "core.errors.CoreError"

ColumnsOf = Callable[[CallExpr], tuple[str, Mapping[str, Schema]] | None]
"""The text of the statement that a call such as `statement.first("id")` asks for rows, and the columns of those rows.
"""

_AS_DICT: Final = frozenset(["attr.asdict", "attrs.asdict", "attr._funcs.asdict", "dataclasses.asdict"])
_CHANGES_A_DICT: Final = frozenset(["update", "pop", "setdefault", "clear", "popitem"])
_ONE_ROW: Final = re.compile(
    r"""\s*(?: (?:INSERT\s+INTO|REPLACE\s+INTO|INSERT\s+OR\s+REPLACE) (?!.*\b(?:ON\s+CONFLICT|SELECT)\b)
           |   SELECT\s+(?:COUNT|SUM|TOTAL|AVG|MIN|MAX)\s*\( (?!.*\b(?:GROUP\s+BY|HAVING|LIMIT|UNION)\b) )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
).match
"""Statements that have exactly one row, so that `first` finds one."""
_DEEPEST: Final = 20


class Followed:
    """The expressions of one function."""

    def __init__(
        self,
        node: FuncDef,
        types: Mapping[Expression, Type],
        schemas: Schemas,
        names: Mapping[FuncDef, str],
        is_program: Callable[[str], bool],
        columns_of: ColumnsOf,
    ) -> None:
        self.node = node
        self._types = types
        self._schemas = schemas
        self._names = names
        self._is_program = is_program
        self._columns_of = columns_of
        self._assigned: dict[Node, list[Expression | None]] = {}
        self._items: dict[Node, list[tuple[str, Expression, bool] | None]] = {}
        """The items put into a dict after it was made: the key, its value and whether it always is; None for items that
        cannot be told.
        """
        self._looped: dict[Node, Expression] = {}
        """The iterable that a name of a loop or a comprehension runs through."""
        self.never_none: set[Node] = set()
        """Names of which None was ruled out by a test that leaves the function."""
        self._collect(node.body, always=True)

    # -- the meanings of names

    def _collect(self, block: Block, *, always: bool) -> None:
        """Note every assignment first, so that a name that is assigned twice is known to be."""
        for statement in block.body:
            match statement:
                case AssignmentStmt():
                    for target in statement.lvalues:
                        self._target(target, statement.rvalue, always)
                case OperatorAssignmentStmt():
                    self._target(statement.lvalue, None, always)
                case DelStmt():
                    self._target(statement.expr, None, always)
                case ForStmt():
                    self._target(statement.index, None, always)
                    self._loop(statement.index, statement.expr)
                case WithStmt():
                    for given in statement.target:
                        if given is not None:
                            self._target(given, None, always)
                case _:
                    pass
            for expression in _expressions(statement):
                self._changed(expression)
            inside = always and isinstance(statement, Block | WithStmt)
            for inner in blocks(statement):
                self._collect(inner, always=inside)

    def _target(self, target: Expression, value: Expression | None, always: bool) -> None:
        match target:
            case NameExpr(node=node) if node is not None:
                self._assigned.setdefault(node, []).append(value)
            case IndexExpr(base=NameExpr(node=node), index=key) if node is not None:
                name = constant_fold_expr(key, "")
                known = isinstance(name, str) and value is not None
                self._items.setdefault(node, []).append((str(name), value, always) if known and value else None)
            case TupleExpr() | ListExpr():
                for part in target.items:
                    self._target(part, None, always)
            case StarExpr():
                self._target(target.expr, None, always)
            case _:
                pass

    def _changed(self, expression: Expression) -> None:
        """Note where a dict is changed by its methods, or handed to a function that may change it."""
        match expression:
            case CallExpr(callee=MemberExpr(expr=NameExpr(node=node), name=method)):
                if node is not None and method in _CHANGES_A_DICT:
                    self._items.setdefault(node, []).append(None)
            case _:
                pass
        for part in parts_of(expression):
            self._changed(part)

    def _loop(self, index: Expression, through: Expression) -> None:
        if isinstance(index, NameExpr) and index.node is not None:
            self._looped[index.node] = through

    def value(self, name: NameExpr) -> Expression | None:
        """Return the value of the only assignment to a name."""
        values = self._assigned.get(name.node, []) if name.node is not None else []
        return values[0] if len(values) == 1 and values[0] is not name else None

    # -- types and names of the program

    def type_of(self, expression: Expression) -> Type | None:
        """Return mypy's type of an expression."""
        return self._types.get(expression)

    def class_of(self, expression: Expression) -> str:
        """The full name of an expression's class; "" where it has no single one."""
        info = self.info_of(expression)
        return info.fullname if info is not None else ""

    def info_of(self, expression: Expression) -> TypeInfo | None:
        """The class of an expression's value; of an optional one, that of the value."""
        type_ = get_proper_type(self._types.get(expression)) if expression in self._types else None
        if isinstance(type_, UnionType):
            others = [item for item in map(get_proper_type, type_.items) if not isinstance(item, NoneType)]
            type_ = others[0] if len(others) == 1 else None
        return type_.type if isinstance(type_, Instance) else None

    def function(self, callee: Expression) -> str:
        """The full name of the program's function or method that a call goes to, "" for any other."""
        if isinstance(callee, RefExpr) and callee.node is not None:
            node = callee.node.func if isinstance(callee.node, Decorator) else callee.node
            if isinstance(node, FuncDef) and node in self._names:
                return self._names[node]
            if isinstance(node, FuncDef | OverloadedFuncDef):
                return node.fullname if self._is_program(node.fullname) else ""
        if isinstance(callee, MemberExpr):
            return self.method(self.info_of(callee.expr), callee.name)
        return self.method(self.info_of(callee), "__call__")

    def method(self, info: TypeInfo | None, name: str) -> str:
        """The full name of a class's method, as far as it is the program's."""
        found = info.get(name) if info is not None else None
        owner = next((base for base in info.mro if name in base.names), None) if info is not None else None
        if found is None or owner is None or not self._is_program(owner.fullname):
            return ""
        return f"{owner.fullname}.{name}" if isinstance(found.node, FuncDef | Decorator | OverloadedFuncDef) else ""

    def is_error(self, expression: Expression) -> bool:
        """Return True if an expression is an error for the client."""
        type_ = get_proper_type(self._types[expression]) if expression in self._types else None
        if isinstance(type_, UnionType):
            kinds = [get_proper_type(item) for item in type_.items]
            return all(isinstance(kind, Instance) and is_core_error(kind.type) for kind in kinds)
        return isinstance(type_, Instance) and is_core_error(type_.type)

    # -- values

    def structured(self, call: CallExpr) -> Schema:
        """Return the type that a request is read into: the T of `req.json(T)` and `req.query.parse(T)`."""
        asked = self._asked_for(call)
        return self._schemas.of(asked if asked is not None else self._types.get(call))

    def statuses(self, expression: Expression) -> tuple[int, ...] | None:
        """The statuses that an expression may have; None for that of the error at hand, () where it is not known."""
        match expression:
            case IntExpr():
                return (expression.value,)
            case ConditionalExpr():
                both = (self.statuses(expression.if_expr), self.statuses(expression.else_expr))
                if None in both:
                    return None
                return tuple(dict.fromkeys(status for part in both for status in part or ())) if all(both) else ()
            case MemberExpr(name="status") if self.is_error(expression.expr):
                return None
            case NameExpr():
                value = self.value(expression)
                if value is not None:
                    return self.statuses(value)
            case _:
                pass
        schema = self._schemas.of(self._types.get(expression))
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        known = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
        if not known and isinstance(folded := constant_fold_expr(expression, ""), int):
            known = [folded]
        return tuple(known) if len(known) >= len(values) else ()

    def schema(self, expression: Expression, depth: int = 0) -> Schema:
        """Return the JSON schema of an expression's value."""
        if depth > _DEEPEST:
            return self._schemas.of(self._types.get(expression))
        deeper = depth + 1
        match expression:
            case DictExpr():
                declared = self._schemas.of(self._types.get(expression))  # a TypedDict, where one is asked for
                return declared if "$class" in declared else self._dict(expression, deeper)
            case ListExpr() | SetExpr():
                items = [item.expr if isinstance(item, StarExpr) else item for item in expression.items]
                if any(isinstance(item, StarExpr) for item in expression.items):
                    return {"type": "array", "items": any_of(self._items_of(item, deeper) for item in expression.items)}
                return {"type": "array", "items": any_of(self.schema(item, deeper) for item in items) if items else {}}
            case TupleExpr() if not any(isinstance(item, StarExpr) for item in expression.items):
                parts = [self.schema(item, deeper) for item in expression.items]
                return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
            case ListComprehension() | SetComprehension():
                for index, through in zip(expression.generator.indices, expression.generator.sequences, strict=True):
                    self._loop(index, through)
                return {"type": "array", "items": self.schema(expression.generator.left_expr, deeper)}
            case DictionaryComprehension():
                for index, through in zip(expression.indices, expression.sequences, strict=True):
                    self._loop(index, through)
                return {"type": "object", "additionalProperties": self.schema(expression.value, deeper)}
            case ConditionalExpr():
                return any_of([self.schema(expression.if_expr, deeper), self.schema(expression.else_expr, deeper)])
            case AssignmentExpr():
                return self.schema(expression.value, deeper)
            case AwaitExpr():
                return self._call(expression, expression.expr, deeper)
            case CallExpr():
                return self._call(expression, expression, deeper)
            case MemberExpr(name=("body" | "message" | "status") as part) if self.is_error(expression.expr):
                return {ERROR_BODY: part}
            case MemberExpr() | IndexExpr():
                return self._part(expression, deeper)
            case NameExpr():
                return self._name(expression, deeper)
            case OpExpr(op="|"):
                both = [self.schema(expression.left, deeper), self.schema(expression.right, deeper)]
                if all("properties" in part or "$class" in part or ERROR_BODY in part for part in both):
                    return {"$merge": both}
            case OpExpr(op="or"):
                first = self.schema(expression.left, deeper)
                if "$unknown" not in first:
                    kept = [part for part in first.get("anyOf", [first]) if part != {"type": "null"}]
                    return any_of([*kept, self.schema(expression.right, deeper)])
            case _:
                pass
        return self._schemas.of(self._types.get(expression))

    def _items_of(self, item: Expression, depth: int) -> Schema:
        if not isinstance(item, StarExpr):
            return self.schema(item, depth)
        inner = self.schema(item.expr, depth)
        items: Schema = inner.get("items", {"$unknown": "the items of an unpacked value"})
        return items

    def _name(self, name: NameExpr, depth: int) -> Schema:
        plain = self._schemas.of(self._types.get(name))
        if not is_vague(plain):
            return plain
        value = self.value(name)
        if value is None:
            through = self._looped.get(name.node) if name.node is not None else None
            whole = self.schema(through, depth) if through is not None else {}
            items: Schema = whole.get("items", plain)
            return items
        followed = self.schema(value, depth)
        if name.node in self.never_none and "anyOf" in followed:
            followed = any_of(part for part in followed["anyOf"] if part != {"type": "null"})
        added = self._items.get(name.node, []) if name.node is not None else []
        if not added:
            return followed
        if "properties" not in followed or None in added:
            return plain
        properties: dict[str, Schema] = dict(followed["properties"])
        required: list[str] = list(followed["required"])
        for item in added:
            assert item is not None
            key, value, always = item
            schema = self.schema(value, depth)
            there = properties.get(key)
            if there is None and always and value.line < name.line:
                required.append(key)
            properties[key] = schema if there is None else any_of([there, schema])
        return {**followed, "properties": properties, "required": required}

    def _call(self, expression: Expression, call: Expression, depth: int) -> Schema:
        """The value of a call: the expression that the function returns, where its annotation says little."""
        plain = self._schemas.of(self._types.get(expression))
        if not isinstance(call, CallExpr):
            return plain
        name = call.callee.fullname if isinstance(call.callee, RefExpr) else ""
        if name in _AS_DICT and call.args:
            return self.schema(call.args[0], depth)
        if name in ("builtins.list", "builtins.sorted", "builtins.tuple") and call.args:
            inner = self.schema(call.args[0], depth)
            return {"type": "array", "items": inner["items"]} if "items" in inner and is_vague(plain) else plain
        if name == "builtins.dict" and call.args and all(kind == ARG_NAMED for kind in call.arg_kinds):
            properties = {
                str(key): self.schema(value, depth) for key, value in zip(call.arg_names, call.args, strict=True)
            }
            return {"type": "object", "properties": properties, "required": list(properties)}
        if name == "builtins.str" and call.args and self.is_error(call.args[0]):
            return {ERROR_BODY: "message"}
        if is_vague(plain):
            asked = self._asked_for(call)
            if asked is not None:
                return self._schemas.of(asked)
            row = self._rows(call) if isinstance(call.callee, MemberExpr) and call.callee.name == "first" else None
            if row is not None:
                return row
            target = self.function(call.callee)
            if target:
                return {"$returns": target, "$otherwise": plain}
        return plain

    def _origin(self, expression: Expression) -> CallExpr | None:
        """The call that an expression has its value of, through names and `await`."""
        for _ in range(_DEEPEST):
            if isinstance(expression, AwaitExpr):
                expression = expression.expr
            elif isinstance(expression, NameExpr):
                value = self.value(expression)
                if value is None:
                    return None
                expression = value
            else:
                return expression if isinstance(expression, CallExpr) else None
        return None

    def _asked_for(self, call: CallExpr) -> Type | None:
        """Return the type of `await req.json(T)` and the like, by the class that is handed in.

        Where the value is sent at once, mypy takes T for whatever `res.json` takes, which is anything.
        """
        forms = [get_proper_type(found) for given in call.args if (found := self._types.get(given)) is not None]
        wanted = [form.item for form in forms if isinstance(form, TypeType) and getattr(form, "is_type_form", False)]
        info = self.info_of(call.callee.expr) if isinstance(call.callee, MemberExpr) else None
        symbol = info.get(call.callee.name) if info is not None and isinstance(call.callee, MemberExpr) else None
        node = symbol.node if symbol is not None else None
        declared = get_proper_type(node.type) if isinstance(node, FuncDef | OverloadedFuncDef) else None
        if len(wanted) != 1 or not isinstance(declared, CallableType | Overloaded):
            return None
        for item in declared.items:
            for type_ in map(get_proper_type, item.arg_types):
                if isinstance(type_, TypeType) and isinstance(type_.item, TypeVarType):
                    returned = get_proper_type(expand_type(item.ret_type, {type_.item.id: wanted[0]}))
                    if isinstance(returned, Instance) and returned.type.fullname == "typing.Coroutine":
                        return returned.args[-1]
                    return returned
        return None

    def _rows(self, call: CallExpr) -> Schema | None:
        """Return the rows of a SQL statement: the column of `first("id")`, the row of `first()`, one row of `all()`."""
        if not isinstance(call.callee, MemberExpr) or call.callee.name not in ("first", "all", "run"):
            return None
        found = self._columns_of(call)
        if found is None:
            return None
        sql, columns = found
        row: Schema = {"type": "object", "properties": dict(columns), "required": list(columns)}
        if call.callee.name != "first":
            return row
        if call.args:
            name = constant_fold_expr(call.args[0], "")
            if not isinstance(name, str) or name not in columns:
                return None
            row = columns[name]
        return row if _ONE_ROW(sql) else any_of([row, {"type": "null"}])

    def _part(self, expression: MemberExpr | IndexExpr, depth: int) -> Schema:
        """`user["name"]` and `found.results`, of a value that is followed."""
        plain = self._schemas.of(self._types.get(expression))
        if not is_vague(plain):
            return plain
        if isinstance(expression, MemberExpr):
            call = self._origin(expression.expr) if expression.name == "results" else None
            row = self._rows(call) if call is not None else None
            return {"type": "array", "items": row} if row is not None else plain
        name = constant_fold_expr(expression.index, "")
        if not isinstance(name, str):
            return plain
        whole = self.schema(expression.base, depth)
        for part in whole.get("anyOf", [whole]):
            if name in part.get("properties", {}):
                found: Schema = part["properties"][name]
                return found
        return plain

    def _dict(self, expression: DictExpr, depth: int) -> Schema:
        parts: list[Schema] = []
        properties: dict[str, Schema] = {}
        others: list[Schema] = []
        for key, value in expression.items:
            if key is None:
                if properties:
                    parts.append({"type": "object", "properties": properties, "required": list(properties)})
                    properties = {}
                parts.append(self.schema(value, depth))
                continue
            name = constant_fold_expr(key, "")
            if isinstance(name, str):
                properties[name] = self.schema(value, depth)
            else:
                others.append(self.schema(value, depth))
        last: Schema = {"type": "object", "properties": properties, "required": list(properties)}
        if others:
            last["additionalProperties"] = any_of(others)
        if others and not properties:
            last = {"type": "object", "additionalProperties": last["additionalProperties"]}
        if properties or others or not parts:
            parts.append(last)
        return parts[0] if len(parts) == 1 else {"$merge": parts}


def _expressions(statement: Statement) -> Iterator[Expression]:
    """The expressions of a statement itself, without those of the blocks in it."""
    match statement:
        case ExpressionStmt() | AssertStmt() | ForStmt() | WhileStmt():
            yield statement.expr
        case AssignmentStmt() | OperatorAssignmentStmt():
            yield statement.rvalue
        case ReturnStmt() | RaiseStmt() if statement.expr is not None:
            yield statement.expr
        case IfStmt() | WithStmt():
            yield from statement.expr
        case MatchStmt():
            yield statement.subject
        case _:
            pass


def is_core_error(info: TypeInfo) -> bool:
    """Return True if a class is one of errors for the client."""
    return any(base.fullname == CORE_ERROR for base in info.mro)


def blocks(statement: Statement) -> Iterator[Block]:
    """The blocks inside a statement; those of functions and classes in it are theirs."""
    parts: Iterable[Block | None]
    match statement:
        case IfStmt():
            parts = [*statement.body, statement.else_body]
        case ForStmt() | WhileStmt():
            parts = [statement.body, statement.else_body]
        case WithStmt():
            parts = [statement.body]
        case TryStmt():
            parts = [statement.body, *statement.handlers, statement.else_body, statement.finally_body]
        case MatchStmt():
            parts = statement.bodies
        case Block():
            parts = [statement]
        case _:
            parts = []
    for part in parts:
        if part is not None:
            yield part


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expressions that an expression is made of."""
    match expression:
        case CallExpr():
            yield expression.callee
            yield from expression.args
        case MemberExpr() | AwaitExpr() | UnaryExpr() | StarExpr() | CastExpr():
            yield expression.expr
        case IndexExpr():
            yield expression.base
            yield expression.index
        case OpExpr():
            yield expression.left
            yield expression.right
        case ComparisonExpr():
            yield from expression.operands
        case ConditionalExpr():
            yield from (expression.cond, expression.if_expr, expression.else_expr)
        case ListExpr() | TupleExpr() | SetExpr():
            yield from expression.items
        case DictExpr():
            for name, value in expression.items:
                if name is not None:
                    yield name
                yield value
        case SliceExpr():
            for bound in (expression.begin_index, expression.end_index, expression.stride):
                if bound is not None:
                    yield bound
        case ListComprehension() | SetComprehension():
            yield from parts_of(expression.generator)
        case GeneratorExpr():
            yield expression.left_expr
            yield from expression.sequences
            for conditions in expression.condlists:
                yield from conditions
        case DictionaryComprehension():
            yield from (part for part in (expression.key, expression.value) if part is not None)
            yield from expression.sequences
            for conditions in expression.condlists:
                yield from conditions
        case AssignmentExpr():
            yield expression.value
        case YieldExpr() | YieldFromExpr():
            if expression.expr is not None:
                yield expression.expr
        case LambdaExpr():
            for statement in expression.body.body:
                if isinstance(statement, ReturnStmt) and statement.expr is not None:
                    yield statement.expr
        case _:
            pass
