"""What expressions are, where the code is more precise than its type.

A dict that is written out keeps its fields although its type is `dict[str, object]`, a name that is assigned once is
the value assigned to it, a column of a statement has the type that the migrations give it, and an argument is what this
call hands over: a constant, a function, a type, an error. Everything else has the type that mypy gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

import attrs
from mypy.constant_fold import constant_fold_expr
from mypy.constraints import SUPERTYPE_OF, infer_constraints
from mypy.expandtype import expand_type
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_NAMED,
    ARG_STAR,
    ARG_STAR2,
    LDEF,
    AssertStmt,
    AssignmentExpr,
    AssignmentStmt,
    AwaitExpr,
    Block,
    CallExpr,
    CastExpr,
    ClassDef,
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
    MypyFile,
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
    SuperExpr,
    SymbolNode,
    TryStmt,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
    WhileStmt,
    WithStmt,
    YieldExpr,
    YieldFromExpr,
)
from mypy.patterns import AsPattern, ClassPattern, Pattern
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    ProperType,
    Type,
    TypeOfAny,
    TypeType,
    TypeVarId,
    TypeVarType,
    UninhabitedType,
    UnionType,
    get_proper_type,
    has_type_vars,
)

from core.errors import phrase_of
from core.mypy_plugin.types import attrs_fields
from core.openapi.facts import Held, Raise, classes_in, object_of
from core.openapi.failures import CORE_ERROR, INVALID, UNAUTHORIZED
from core.openapi.schemas import Schemas, constant, docstring, is_vague
from core.validation.schema import Schema, any_of, json_type

RESPONSE: Final = "core.response.Response"
REQUEST: Final = "core.request.Request"

_AS_DICT: Final = frozenset(["attr.asdict", "attrs.asdict", "attr._funcs.asdict", "dataclasses.asdict"])
_KEEPS_VALUES: Final = frozenset(["recurse", "retain_collection_types"])
"""The arguments of `asdict` that leave fields and values as they are."""
_CHANGES_A_DICT: Final = frozenset(["update", "pop", "setdefault", "clear", "popitem"])
_CHAINED: Final = frozenset(["status", "header", "append", "cookie", "delete_cookie"])
_ONE_ROW: Final = re.compile(
    r"""\s*(?: (?:INSERT\s+INTO|REPLACE\s+INTO|INSERT\s+OR\s+REPLACE) (?!.*\b(?:ON\s+CONFLICT|SELECT)\b)
           |   SELECT\s+(?:COUNT|SUM|TOTAL|AVG|MIN|MAX)\s*\( (?!.*\b(?:GROUP\s+BY|HAVING|LIMIT|UNION)\b) )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
).match
"""Statements that have exactly one row, so that `first` finds one."""
_DEEPEST: Final = 30
_T = TypeVar("_T")
_Question: TypeAlias = "Callable[[Followed, Expression, Frame], _T]"


@attrs.frozen(eq=False)
class Home:
    """Where a function is: its full name, its class, the function around it, and its module."""

    name: str
    owner: TypeInfo | None
    around: FuncDef | None
    module: MypyFile

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.module.path


class Notes:
    """What the text of one function, or of a module, says of its names."""

    def __init__(self, body: Block | None, statements: Sequence[Statement] = ()) -> None:
        self.assigned: dict[Node, list[Expression | None]] = {}
        self.items: dict[Node, list[tuple[str, Expression, bool] | None]] = {}
        """The items put into a dict after it was made: the key, its value and whether it always is; None for items that
        cannot be told.
        """
        self.looped: dict[Node, Expression] = {}
        """The iterable that a name of a loop or a comprehension runs through."""
        self.never_none: set[Node] = set()
        """Names of which None was ruled out by a test that leaves the function."""
        self.captured: dict[Node | None, list[MemberExpr]] = {}
        """The attributes that a pattern gives the name to. mypy has no types for these expressions."""
        self.returned: list[Expression] = []
        self.attributes: dict[str, list[Expression]] = {}
        """The values of `self.name`."""
        self.calls_above: list[CallExpr] = []
        """The calls `super().__init__(…)`."""
        self._collect(body.body if body is not None else statements, always=True)

    def _collect(self, statements: Iterable[Statement], *, always: bool) -> None:
        for statement in statements:
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
                    self.loop(statement.index, statement.expr)
                case WithStmt():
                    for given in statement.target:
                        if given is not None:
                            self._target(given, None, always)
                case ReturnStmt() if statement.expr is not None:
                    self.returned.append(statement.expr)
                case IfStmt(
                    expr=[
                        ComparisonExpr(
                            operators=["is"], operands=[NameExpr(node=node), NameExpr(fullname="builtins.None")]
                        )
                    ]
                ) if node is not None and _leaves(statement.body[0]):
                    self.never_none.add(node)
                case MatchStmt():
                    for pattern in statement.patterns:
                        self._capture(statement.subject, pattern)
                case _:
                    pass
            for expression in _expressions(statement):
                self._changed(expression)
            inside = always and isinstance(statement, Block | WithStmt)
            for inner in blocks(statement):
                self._collect(inner.body, always=inside)

    def _capture(self, subject: Expression, pattern: Pattern) -> None:
        """Note the attributes that `case CoreError(status=status)` gives names to."""
        if not isinstance(pattern, ClassPattern):
            return
        for attribute, inner in zip(pattern.keyword_keys, pattern.keyword_values, strict=True):
            if isinstance(inner, AsPattern) and inner.pattern is None and inner.name is not None:
                self.captured.setdefault(inner.name.node, []).append(MemberExpr(subject, attribute))

    def _target(self, target: Expression, value: Expression | None, always: bool) -> None:
        match target:
            case NameExpr(node=node) if node is not None:
                self.assigned.setdefault(node, []).append(value)
            case MemberExpr(name=name, expr=NameExpr(name="self")) if value is not None:
                self.attributes.setdefault(name, []).append(value)
            case IndexExpr(base=NameExpr(node=node), index=key) if node is not None:
                word = constant_fold_expr(key, "")
                known = (word, value, always) if isinstance(word, str) and value is not None else None
                self.items.setdefault(node, []).append(known)
            case TupleExpr() | ListExpr():
                for part in target.items:
                    self._target(part, None, always)
            case StarExpr():
                self._target(target.expr, None, always)
            case _:
                pass

    def _changed(self, expression: Expression) -> None:
        """Note where a dict is changed by its methods, and where the `__init__` above is called."""
        match expression:
            case CallExpr(callee=MemberExpr(expr=NameExpr(node=node), name=method)):
                if node is not None and method in _CHANGES_A_DICT:
                    self.items.setdefault(node, []).append(None)
            case CallExpr(callee=SuperExpr(name="__init__")):
                self.calls_above.append(expression)
            case AssignmentExpr(target=NameExpr(node=node), value=value) if node is not None:
                self.assigned.setdefault(node, []).append(value)
            case _:
                pass
        for part in parts_of(expression):
            self._changed(part)

    def loop(self, index: Expression, through: Expression) -> None:
        """Note what a name runs through."""
        if isinstance(index, NameExpr) and index.node is not None:
            self.looped[index.node] = through


@attrs.define(eq=False)
class Frame:
    """One call of a function: its arguments, the types that its type variables stand for, and the frame around it."""

    node: FuncDef | LambdaExpr | MypyFile | None
    notes: Notes
    outer: Frame | None = None
    values: dict[Node, Value] = attrs.Factory(dict[Node, "Value"])
    names: Mapping[str, Value] = attrs.Factory(dict[str, "Value"])
    """The variables around a function that the running application holds."""
    types: dict[TypeVarId, Type] = attrs.Factory(dict[TypeVarId, Type])
    errors: dict[Node, tuple[Raise, ...]] = attrs.Factory(dict[Node, tuple[Raise, ...]])
    """The errors that names stand for at the statement that is read."""

    def chain(self) -> Iterator[Frame]:
        """The frame, and those around it."""
        at: Frame | None = self
        while at is not None:
            yield at
            at = at.outer


@attrs.frozen(eq=False)
class Target:
    """A function that a call goes to, with the arguments that it has already. `rest` is the rest of a chain instead,
    which the reader of statements runs.
    """

    node: FuncDef | LambdaExpr | None
    frame: Frame | None = None
    given: tuple[Value, ...] = ()
    named: Mapping[str, Value] = attrs.Factory(dict[str, "Value"])
    rest: Callable[[Any], Any] | None = None

    @property
    def key(self) -> object:
        """What the effects of a call of it depend on."""
        around = self.frame.values if self.frame is not None else {}
        return (
            id(self.node if self.node is not None else self.rest),
            id(self.frame) if self.frame is not None and self.frame.names else 0,
            *((id(node), value.key) for node, value in around.items()),
            *(value.key for value in self.given),
            *((name, value.key) for name, value in self.named.items()),
        )


class Value:
    """What an argument or a variable is, worked out when it is asked for."""

    def __init__(
        self,
        followed: Followed,
        expression: Expression | None = None,
        frame: Frame | None = None,
        *,
        type: Type | None = None,
        targets: tuple[Target, ...] | None = (),
        errors: tuple[Raise, ...] = (),
        parts: tuple[Value, ...] | None = None,
        keys: Mapping[str, Value] | None = None,
        held: Held | None = None,
    ) -> None:
        self._followed = followed
        self.expression = expression
        self.frame = frame
        self.place: tuple[Expression, Frame] | None = (
            (expression, frame) if expression is not None and frame is not None else None
        )
        """Where it is written, to be worked out there."""
        self._type = type
        self._targets = targets
        self.errors = errors
        self.parts = parts
        """What `*args` has."""
        self.keys = keys
        """What `**kwargs` has."""
        self.held = held

    @cached_property
    def type(self) -> ProperType | None:
        """Its type."""
        return self._followed.type_of(*self.place) if self.place is not None else get_proper_type(self._type)

    @cached_property
    def schema(self) -> Schema:
        """Its JSON."""
        if self.held is not None and self.held.kind == "constant":
            # Its type alone, since another environment may start with another value.
            return {"type": json_type(self.held.constant)}
        return self._followed.schema(*self.place) if self.place is not None else self._followed.schemas.of(self._type)

    @cached_property
    def targets(self) -> tuple[Target, ...] | None:
        """The functions that a call of it goes to; None where that is not known."""
        return self._followed.targets(*self.place) if self.place is not None else self._targets

    @cached_property
    def key(self) -> object:
        """What the effects of a call that it is handed to depend on."""
        inner = [*(self.parts or ()), *(self.keys or {}).values()]
        if inner or self.held is not None:
            return id(self.held), *(each.key for each in inner)
        type_ = self.type
        errors = [(each.classes[:1], each.status, repr(each.message)) for each in self.errors]
        if type_ is None or isinstance(type_, CallableType):
            return str(type_), *(each.key for each in self.targets or ()), *errors
        if isinstance(type_, Instance) and self._followed.is_program(type_.type.fullname):
            made = self._followed.origin(*self.place) if self.place is not None else None
            return str(type_), id(made), *errors  # whose attributes were set where it was made
        plain = self._followed.schemas.of(type_)
        is_precise = is_vague(plain) or plain in ({"type": "string"}, {"type": "integer"})
        return str(type_), repr(self.schema) if is_precise else "", *errors

    def attribute(self, name: str) -> Value | None:
        """An attribute that was set where the object was made."""
        if self.held is not None:
            inner = self.held.holds.get(name)
            return self._followed.value_of(inner) if inner is not None else None
        expression, frame = self.expression, self.frame
        while isinstance(expression, AwaitExpr):
            expression = expression.expr
        if frame is None or not isinstance(expression, CallExpr):
            origin = self._followed.bound(expression, frame) if frame is not None else None
            return origin.attribute(name) if origin is not None and origin is not self else None
        made = expression.callee.node if isinstance(expression.callee, RefExpr) else None
        if not isinstance(made, TypeInfo):
            return None
        given, named = self._followed.arguments(expression, frame)
        init = made.get("__init__")
        if init is not None and isinstance(init.node, FuncDef) and init.node in self._followed.homes:
            inside = self._followed.enter(Target(init.node), (self, *given), named)
            values = inside.notes.attributes.get(name, [])
            return Value(self._followed, values[0], inside) if len(values) == 1 else None
        fields = list(attrs_fields(made))
        if name.lstrip("_") in named:
            return named[name.lstrip("_")]
        return given[fields.index(name)] if name in fields and fields.index(name) < len(given) else None


def _bounded(otherwise: _Question[Any]) -> Callable[[_Question[_T]], _Question[_T]]:
    """Answer a question about an expression with `otherwise` where one such leads to another without end."""

    def around(ask: _Question[_T]) -> _Question[_T]:
        def answer(followed: Followed, expression: Expression, frame: Frame) -> _T:
            if followed._depth > _DEEPEST:
                given: _T = otherwise(followed, expression, frame)
                return given
            followed._depth += 1
            try:
                return ask(followed, expression, frame)
            finally:
                followed._depth -= 1

        return answer

    return around


class Followed:
    """The expressions of a program, each in the frame of the call that it is read for."""

    def __init__(
        self,
        trees: Mapping[str, MypyFile],
        types: Mapping[Expression, Type],
        schemas: Schemas,
        columns_of: Callable[[CallExpr, MypyFile], tuple[str, Mapping[str, Schema]] | None],
        lookup: Callable[[str], TypeInfo | None],
    ) -> None:
        self._types = types
        self._columns_of = columns_of
        self.schemas = schemas
        self.lookup = lookup
        self.homes: dict[Node, Home] = {}
        self.named: dict[str, list[FuncDef]] = {}
        self.classes: list[TypeInfo] = []
        self._modules: dict[str, Frame] = {}
        self._notes: dict[Node, Notes] = {}
        self._held: dict[int, Value] = {}
        self._depth = 0
        for name, tree in sorted(trees.items()):
            self._modules[name] = Frame(tree, Notes(None, tree.defs))
            self._find(tree.defs, Home(name, None, None, tree))

    def _find(self, body: Iterable[Statement], home: Home) -> None:
        """Note every function and class of a body, those inside functions and classes too."""
        for statement in body:
            match statement:
                case FuncDef():
                    name = f"{home.name}.{statement.name}"
                    self.homes[statement] = attrs.evolve(home, name=name)
                    self.named.setdefault(name, []).append(statement)
                    within = Home(f"{name}.<locals>", None, statement, home.module)
                    self._find(statement.body.body, within)
                case Decorator():
                    self._find([statement.func], home)
                case OverloadedFuncDef():
                    self._find([statement.impl] if statement.impl is not None else statement.items, home)
                case ClassDef():
                    self.classes.append(statement.info)
                    made = {name for name, symbol in statement.info.names.items() if symbol.plugin_generated}
                    written = [part for part in statement.defs.body if getattr(part, "name", "") not in made]
                    name = f"{home.name}.{statement.name}"
                    self._find(written, attrs.evolve(home, name=name, owner=statement.info))
                case _:
                    for block in blocks(statement):
                        self._find(block.body, home)

    @cached_property
    def _extended(self) -> frozenset[str]:
        """The classes with subclasses in the program that have more fields: JSON has those of the instance."""
        return frozenset(
            base.fullname
            for info in self.classes
            for base in info.mro[1:]
            if attrs_fields(base) and attrs_fields(info).keys() - attrs_fields(base).keys()
        )

    def _may_have_more(self, schema: Schema) -> bool:
        """Return True if a value may have fields that the class of its type has not."""
        return any(name.partition("[")[0] in self._extended for name in classes_in(schema))

    def is_program(self, fullname: str) -> bool:
        """True for a name of the program's own."""
        while fullname:
            if fullname in self._modules:
                return True
            fullname = fullname.rpartition(".")[0]
        return False

    def docstring_of(self, name: str) -> str | None:
        """The docstring of a module or of a function."""
        if name in self._modules:
            tree = self._modules[name].node
            return docstring(tree.defs) if isinstance(tree, MypyFile) else None
        found = self.named.get(name)
        return docstring(found[0].body.body) if found else None

    def schema_of(self, held: Held) -> Schema:
        """The schema of a type of the running program."""
        return self.schemas.of(self.schemas.type_from(held, self.lookup))

    # -- values that the running application holds

    def value_of(self, held: Held) -> Value:
        """A value that the application holds."""
        if id(held) not in self._held:
            self._held[id(held)] = self._value_of(held)
        return self._held[id(held)]

    def _value_of(self, held: Held) -> Value:
        match held.kind:
            case "function":
                target = self._function(held)
                # Of a function elsewhere nothing is followed: it has none of the program's errors.
                unknown = None if self.is_program(held.name) else ()
                return Value(self, targets=(target,) if target is not None else unknown, held=held)
            case "type":
                type_ = self.schemas.type_from(held, self.lookup)
                return Value(self, type=TypeType(type_) if isinstance(type_, Instance) else None, held=held)
            case "object":
                info = self.lookup(held.name)
                value = Value(self, type=_instance(info) if info is not None else None, held=held)
                call = info.get("__call__") if info is not None else None
                if call is not None and isinstance(call.node, FuncDef | Decorator):
                    node = call.node.func if isinstance(call.node, Decorator) else call.node
                    if node in self.homes:
                        value._targets = (Target(node, given=(value,)),)
                return value
            case _:
                return Value(self, held=held)

    def target_of(self, held: Held) -> Target | None:
        """The function of the program that the application holds; None for one that is not in it."""
        found = self.value_of(held).targets
        return found[0] if found else None

    def _function(self, held: Held) -> Target | None:
        line = held.place[1]
        found = [node for node in self.named.get(held.name, ()) if node.line >= line]
        node = min(found, key=lambda each: each.line, default=None)
        if node is None:
            return None
        home = self.homes.get(node)
        names = {name: self.value_of(each) for name, each in held.holds.items()}
        given = tuple(map(self.value_of, held.given))
        parameters = {argument.variable.name for argument in node.arguments}
        named = {name: value for name, value in names.items() if name in parameters}
        outer = self._modules[home.module.fullname] if home is not None else None
        around = Frame(None, Notes(None), outer, names=names)
        for variable in _free(node):
            value = names.get(variable.name)
            if value is not None and value.type is not None and variable.type is not None:
                around.types.update(_solved(variable.type, value.type))
        return Target(node, around, given, named)

    # -- frames

    def notes(self, node: FuncDef | LambdaExpr) -> Notes:
        """What the text of a function says of its names."""
        if node not in self._notes:
            self._notes[node] = Notes(node.body)
        return self._notes[node]

    def home_of(self, frame: Frame) -> Home | None:
        """Where the function of a frame is, or for a lambda the one that it is in."""
        homes = (self.homes[at.node] for at in frame.chain() if at.node is not None and at.node in self.homes)
        return next(homes, None)

    def module_of(self, node: SymbolNode) -> Frame | None:
        """The frame of the module that a name is of."""
        return self._modules.get(node.fullname.rpartition(".")[0])

    def arguments(self, call: CallExpr, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
        """The arguments of a call, by position and by name."""
        given: list[Value] = []
        named: dict[str, Value] = {}
        for expression, kind, name in zip(call.args, call.arg_kinds, call.arg_names, strict=True):
            if kind == ARG_STAR:
                star = self.bound(expression, frame)
                given += star.parts if star is not None and star.parts is not None else []
            elif kind == ARG_STAR2:
                star = self.bound(expression, frame)
                named |= star.keys if star is not None and star.keys is not None else {}
            else:
                value = Value(self, expression, frame, errors=self.errors(expression, frame))
                if kind == ARG_NAMED and name is not None:
                    named[name] = value
                else:
                    given.append(value)
        return given, named

    def enter(self, target: Target, given: Sequence[Value], named: Mapping[str, Value]) -> Frame:
        """The frame of a call of a function."""
        node = target.node
        assert node is not None
        home = self.homes.get(node)
        outer = target.frame
        if outer is None and home is not None:
            outer = self._modules[home.module.fullname]
        frame = Frame(node, self.notes(node), outer, types=dict(outer.types) if outer is not None else {})
        positional = [*target.given, *given]
        keywords = {**target.named, **named}
        for argument in node.arguments:
            variable, kind = argument.variable, argument.kind
            value: Value | None = None
            if kind == ARG_STAR:
                value, positional = Value(self, parts=tuple(positional)), []
            elif kind == ARG_STAR2:
                value, keywords = Value(self, keys=keywords), {}
            elif kind.is_positional() and positional:
                value = positional.pop(0)
            elif variable.name in keywords:
                value = keywords.pop(variable.name)
            elif argument.initializer is not None and outer is not None:
                value = Value(self, argument.initializer, outer)
            if value is None:
                continue
            frame.values[variable] = value
            if value.errors:
                frame.errors[variable] = value.errors
            declared = variable.type
            if declared is not None and variable.is_self and isinstance(declared, Instance):
                own = value.type
                if isinstance(own, Instance) and own.type.has_base(declared.type.fullname):
                    above = map_instance_to_supertype(own, declared.type)
                    frame.types.update(
                        (variable_.id, type_)
                        for variable_, type_ in zip(declared.type.defn.type_vars, above.args, strict=False)
                        if isinstance(variable_, TypeVarType)
                    )
            elif declared is not None and has_type_vars(declared) and value.type is not None:
                frame.types.update(_solved(declared, value.type))
        return frame

    def bound(self, name: Expression | None, frame: Frame) -> Value | None:
        """The value of a name: of an argument, of its only assignment, of a variable around the function."""
        if not isinstance(name, NameExpr) or (node := name.node) is None:
            return None
        for at in frame.chain():
            assigned = at.notes.assigned.get(node)
            if node in at.values:
                return at.values[node] if assigned is None else None
            if assigned is not None:
                only = assigned[0] if len(assigned) == 1 else None
                return Value(self, only, at) if only is not None and only is not name else None
            if name.kind == LDEF and name.name in at.names:
                return at.names[name.name]
        home = self.module_of(node) if isinstance(node, Var) else None
        if home is not None and home is not frame and node not in frame.notes.assigned:
            assigned = home.notes.assigned.get(node, [])
            return Value(self, assigned[0], home) if len(assigned) == 1 and assigned[0] is not None else None
        return None

    # -- types and functions

    def type_of(self, expression: Expression, frame: Frame) -> ProperType | None:
        """The type of an expression: mypy's, with what this call says of type variables and of arguments."""
        type_ = self._types.get(expression)
        if type_ is not None and frame.types and has_type_vars(type_):
            type_ = expand_type(type_, frame.types)
        proper = get_proper_type(type_)
        loose = proper is None or isinstance(proper, AnyType | TypeVarType)
        if isinstance(expression, NameExpr | MemberExpr) and (
            loose or (isinstance(proper, Instance) and not proper.type.is_enum)
        ):
            value = self._given(expression, frame)
            own = value.type if value is not None else None
            if own is not None and loose:
                return own
            if isinstance(own, Instance) and isinstance(proper, Instance) and own.type is not proper.type:
                info = proper.type
                if info.fullname == "builtins.object" or info.is_protocol or info in own.type.mro:
                    return own
        return proper

    @_bounded(lambda self, expression, frame: None)
    def _given(self, expression: Expression, frame: Frame) -> Value | None:
        """The value of an argument, or of an attribute that was set where the object was made."""
        if isinstance(expression, MemberExpr):
            owner = self.bound(expression.expr, frame)
            return owner.attribute(expression.name) if owner is not None else None
        if isinstance(expression, NameExpr) and expression.node is not None:
            node, name = expression.node, expression.name
            if any(node in at.values or (expression.kind == LDEF and name in at.names) for at in frame.chain()):
                return self.bound(expression, frame)
        return None

    def class_of(self, expression: Expression, frame: Frame) -> str:
        """The full name of an expression's class; "" where it has no single one."""
        info = self.info_of(expression, frame)
        match expression:
            case CallExpr(callee=MemberExpr(expr=owner, name=name)) if info is None and name in _CHAINED:
                return self.class_of(owner, frame)  # in a function without annotations
            case _:
                return info.fullname if info is not None else ""

    def info_of(self, expression: Expression, frame: Frame) -> TypeInfo | None:
        """The class of an expression's value; of an optional one, that of the value."""
        type_ = self.type_of(expression, frame)
        if isinstance(type_, UnionType):
            others = [item for item in map(get_proper_type, type_.items) if not isinstance(item, NoneType)]
            type_ = others[0] if len(others) == 1 else None
        if isinstance(type_, TypeVarType):
            type_ = get_proper_type(type_.upper_bound)
        return type_.type if isinstance(type_, Instance) else None

    @_bounded(lambda self, callee, frame: None)
    def targets(self, callee: Expression, frame: Frame) -> tuple[Target, ...] | None:
        """The program's functions that a call goes to; () for those of others, None where that is not known."""
        node = callee.node if isinstance(callee, RefExpr) else None
        if isinstance(node, FuncDef | Decorator | OverloadedFuncDef):
            owner = self._owner(node)
            if owner is None or not isinstance(callee, MemberExpr):
                return self.defined(node, frame)
        match callee:
            case NameExpr():
                value = self.bound(callee, frame)
                if value is not None:
                    return value.targets
            case MemberExpr():
                return self._methods(callee, frame)
            case AwaitExpr() | CastExpr():
                return self.targets(callee.expr, frame)
            case LambdaExpr():
                return (Target(callee, frame),)
            case ConditionalExpr():
                return _joined(self.targets(part, frame) for part in (callee.if_expr, callee.else_expr))
            case OpExpr(op="or" | "and"):
                return _joined(self.targets(part, frame) for part in (callee.left, callee.right))
            case CallExpr():
                return self._returned_functions(callee, frame)
            case IndexExpr():
                kept = self.bound(callee.base, frame)
                if kept is not None and isinstance(kept.expression, DictExpr) and kept.frame is not None:
                    return _joined(self.targets(value, kept.frame) for _, value in kept.expression.items)
            case _:
                pass
        return self._by_type(callee, frame)

    def _by_type(self, callee: Expression, frame: Frame) -> tuple[Target, ...] | None:
        """The methods `__call__` of an object; None for a function that came from somewhere."""
        type_ = self.type_of(callee, frame)
        if isinstance(type_, Instance) and type_.type.get("__call__") is not None:
            return self.methods(type_.type, "__call__", Value(self, callee, frame))
        if isinstance(type_, CallableType | Overloaded):
            items = type_.items
            named = callee.node if isinstance(callee, RefExpr) else None
            if named is not None and not (
                isinstance(named, Var) and (named.fullname == named.name or self.is_program(named.fullname))
            ):
                return ()  # a function or class of a library
            return () if any(item.is_type_obj() for item in items) else None
        # A library without types is none of the program's; an argument may be a function of it.
        return None if isinstance(type_, AnyType) and isinstance(callee, NameExpr) and callee.kind == LDEF else ()

    def _owner(self, node: FuncDef | Decorator | OverloadedFuncDef) -> TypeInfo | None:
        inner = node.func if isinstance(node, Decorator) else node
        return inner.info or None

    def defined(
        self, node: SymbolNode, frame: Frame | None, given: tuple[Value, ...] = ()
    ) -> tuple[Target, ...] | None:
        """A function as it is after its decorators; `given` is the object that it is a method of."""
        if isinstance(node, OverloadedFuncDef):
            node = node.impl if node.impl is not None else node.items[0]
        decorators: Sequence[Expression] = []
        if isinstance(node, Decorator):
            decorators, node = node.original_decorators, node.func
        if not isinstance(node, FuncDef) or node not in self.homes:
            return ()
        home = self.homes[node]
        around: Frame | None = None
        if home.around is not None:
            around = next((at for at in frame.chain() if at.node is home.around), None) if frame is not None else None
        if node.is_static:
            given = ()
        found: tuple[Target, ...] = (Target(node, around),)
        for decorator in reversed(decorators):
            at = around if around is not None else self._modules[home.module.fullname]
            maker = decorator.callee if isinstance(decorator, CallExpr) else decorator
            if self.targets(maker, at) == ():
                continue  # a library's: it calls the function
            makers = self.targets(decorator, at)
            if makers is None:
                return None
            if makers:
                value = Value(self, targets=found, type=node.type)
                made = _joined(self._made(maker, [value], {}) for maker in makers)
                if made is None:
                    return None
                found = made
        return tuple(attrs.evolve(target, given=(*target.given, *given)) for target in found)

    def _made(self, maker: Target, given: Sequence[Value], named: Mapping[str, Value]) -> tuple[Target, ...] | None:
        """The functions that a function returns."""
        if maker.node is None:
            return None
        frame = self.enter(maker, given, named)
        returned = frame.notes.returned
        return _joined(self.targets(each, frame) for each in returned) if returned else None

    def _returned_functions(self, call: CallExpr, frame: Frame) -> tuple[Target, ...] | None:
        name = call.callee.fullname if isinstance(call.callee, RefExpr) else ""
        if name == "functools.partial" and call.args:
            inner = self.targets(call.args[0], frame)
            given, named = self.arguments(call, frame)
            added = tuple(given[1:])
            return (
                None
                if inner is None
                else tuple(
                    attrs.evolve(each, given=(*each.given, *added), named={**each.named, **named}) for each in inner
                )
            )
        if isinstance(call.callee, CallExpr) and getattr(call.callee.callee, "fullname", "") == "functools.wraps":
            return self.targets(call.args[0], frame)
        if isinstance(call.callee, RefExpr) and isinstance(call.callee.node, TypeInfo):
            return self._by_type(call, frame)
        makers = self.targets(call.callee, frame)
        if not makers:
            handed = [self.targets(each, frame) for each in call.args if self.is_function(each, frame)]
            # A library's decorator, such as a retry: it calls the function that it was handed.
            return _joined(handed) if handed else self._by_type(call, frame)
        given, named = self.arguments(call, frame)
        return _joined(self._made(maker, given, named) for maker in makers)

    def is_function(self, expression: Expression, frame: Frame) -> bool:
        """True for a function, and False for a class."""
        type_ = self.type_of(expression, frame)
        if isinstance(type_, Instance):
            return type_.type.fullname == "functools.partial"
        return isinstance(type_, CallableType) and not type_.is_type_obj()

    def _methods(self, callee: MemberExpr, frame: Frame) -> tuple[Target, ...] | None:
        if isinstance(callee.expr, RefExpr) and isinstance(callee.expr.node, TypeInfo | MypyFile):
            symbol = callee.expr.node.names.get(callee.name)
            if isinstance(callee.expr.node, TypeInfo) and symbol is None:
                symbol = callee.expr.node.get(callee.name)
            if symbol is not None and isinstance(symbol.node, FuncDef | Decorator | OverloadedFuncDef):
                bound = (Value(self, callee.expr, frame),) if getattr(symbol.node, "is_class", False) else ()
                return self.defined(symbol.node, frame, bound)
            if symbol is not None and isinstance(symbol.node, Var):
                home = self.module_of(symbol.node)
                assigned = home.notes.assigned.get(symbol.node, []) if home is not None else []
                if home is not None and len(assigned) == 1 and assigned[0] is not None:
                    return self.targets(assigned[0], home)
            return self._by_type(callee, frame)
        owner = Value(self, callee.expr, frame)
        set_ = owner.attribute(callee.name)
        if set_ is not None and set_.targets != ():
            return set_.targets
        info = self.info_of(callee.expr, frame)
        return self.methods(info, callee.name, owner) if info is not None else self._by_type(callee, frame)

    def methods(self, info: TypeInfo, name: str, owner: Value) -> tuple[Target, ...] | None:
        """The methods that a call on an object may go to: that of its class, and those of its subclasses, or of the
        classes that have what a Protocol asks for.
        """
        symbol = info.get(name)
        if symbol is None:
            return ()
        if isinstance(symbol.node, Var):
            return (
                None
                if self.is_program(info.fullname) and isinstance(get_proper_type(symbol.node.type), CallableType)
                else ()
            )
        found: list[Target] = []
        home = next((base for base in info.mro if name in base.names), info)
        others = [] if owner.held is not None else self._below(info)
        if self.is_program(home.fullname) and not (others and (info.is_protocol or _is_abstract(symbol.node))):
            own = self.defined(symbol.node, None, (owner,)) if symbol.node is not None else ()
            if own is None or (info.is_protocol and not others):
                return None
            found += own
        for cls in others:
            there = cls.get(name)
            if there is not None and there.node is not None and there.node is not symbol.node:
                inner = self.defined(there.node, None, (Value(self, type=_instance(cls)),))
                if inner is None:
                    return None
                found += [each for each in inner if all(each.node is not other.node for other in found)]
        return tuple(found)

    def _below(self, info: TypeInfo) -> list[TypeInfo]:
        if info.is_protocol and self.is_program(info.fullname):
            wanted = info.protocol_members
            return [
                cls for cls in self.classes if not cls.is_protocol and all(cls.get(name) is not None for name in wanted)
            ]
        return [cls for cls in self.classes if info in cls.mro[1:]]

    # -- errors

    @_bounded(lambda self, expression, frame: ())
    def errors(self, expression: Expression, frame: Frame) -> tuple[Raise, ...]:
        """The errors that an expression stands for, as far as they are known."""
        match expression:
            case NameExpr(node=TypeInfo() as made) if _is_exception(made):
                return self.made(None, made, frame)
            case NameExpr():
                for at in frame.chain():
                    if expression.node in at.errors:
                        return at.errors[expression.node]
                value = self.bound(expression, frame)
                found = value.errors if value is not None else ()
                if not found and value is not None and value.place is not None:
                    found = self.errors(*value.place)
                if found:
                    return found
            case CallExpr(callee=RefExpr(node=TypeInfo() as made)) if _is_exception(made):
                return self.made(expression, made, frame)
            case CallExpr(callee=MemberExpr(name="with_traceback" | "with_note", expr=inner)):
                return self.errors(inner, frame)
            case CallExpr() | AwaitExpr(expr=CallExpr()):
                call = expression.expr if isinstance(expression, AwaitExpr) else expression
                found = ()
                for each, inside in self.returned(call, frame) if isinstance(call, CallExpr) else ():
                    found += self.errors(each, inside)
                if found:
                    return found
            case ConditionalExpr():
                return self.errors(expression.if_expr, frame) + self.errors(expression.else_expr, frame)
            case OpExpr(op="or"):
                return self.errors(expression.left, frame) + self.errors(expression.right, frame)
            case _:
                pass
        return self.by_type(self.type_of(expression, frame))

    def by_type(self, type_: Type | None) -> tuple[Raise, ...]:
        """The errors of a type, of which only their classes are known."""
        if isinstance(type_, UnionType):
            return tuple(each for item in type_.items for each in self.by_type(get_proper_type(item)))
        if isinstance(type_, Instance) and _is_exception(type_.type):
            return (self._plain(type_.type),)
        return ()

    def made(self, call: CallExpr | None, made: TypeInfo, frame: Frame) -> tuple[Raise, ...]:
        """The error that a class makes of the arguments of a call."""
        classes = _classes(made)
        if not is_core_error(made):
            return (self._plain(made),)
        for base in made.mro:
            if "__init__" not in base.names:
                continue
            if base.fullname.startswith("core."):
                return (attrs.evolve(self._told(base.fullname, call, frame), classes=classes),)
            node = base.names["__init__"].node
            if not isinstance(node, FuncDef) or node not in self.homes:
                break
            given, named = self.arguments(call, frame) if call is not None else ([], {})
            inside = self.enter(Target(node), [Value(self, type=_instance(made)), *given], named)
            above = [each for each in base.mro[1:] if "__init__" in each.names]
            for each in inside.notes.calls_above:
                return tuple(attrs.evolve(one, classes=classes) for one in self.made(each, above[0], inside))
            break
        return (self._plain(made),)

    def _told(self, base: str, call: CallExpr | None, frame: Frame) -> Raise:
        """An error of the framework's own classes, by the arguments that it is made of."""
        given, named = self.arguments(call, frame) if call is not None else ([], {})
        headers: dict[str, Schema] = {}
        if (stated := named.pop("headers", None)) is not None and isinstance(stated.expression, DictExpr):
            for key, content in stated.expression.items:
                name = constant(key) if key is not None else None
                if name is not None and isinstance(name[0], str) and stated.frame is not None:
                    schema = self.schema(content, stated.frame)
                    headers[name[0]] = schema if "const" in schema else {"type": "string"}
        if base == "core.errors.AuthenticationError":
            challenge = given[0].schema if given else {"const": "Bearer"}
            return attrs.evolve(UNAUTHORIZED, headers={"WWW-Authenticate": challenge}, line=call.line if call else 0)
        if base == "core.errors.ValidationError":
            status = named.get("status")
            message = named["message"].schema if "message" in named else INVALID.message
            return attrs.evolve(
                INVALID,
                status=(422,) if status is None else self.whole_statuses(status),
                message=message,
                headers=headers,
            )
        statuses = self.whole_statuses(given[0]) if given else ()
        phrases: Schema = any_of({"const": phrase_of(each)} for each in statuses) if statuses else {"type": "string"}
        metadata = {name: value.schema for name, value in named.items()}
        for expression, kind in zip(call.args, call.arg_kinds, strict=True) if call is not None else ():
            if kind == ARG_STAR2 and self.bound(expression, frame) is None:
                metadata |= self.schema(expression, frame).get("properties", {})
        message = given[1].schema if len(given) > 1 else phrases
        return Raise(status=statuses, message=_without_null(message, phrases), metadata=metadata, headers=headers)

    def whole_statuses(self, value: Value) -> tuple[int, ...]:
        """The statuses that a value may be."""
        if value.place is not None:
            return self.statuses(*value.place)
        if value.held is not None and isinstance(value.held.constant, int):
            return (value.held.constant,)
        return _statuses_of(value.schema)

    def _plain(self, made: TypeInfo) -> Raise:
        """An error of which no more is known than its class, and what that gives all of its instances."""
        status, message = (self._class_constant(made, name) for name in ("status", "message"))
        return Raise(
            status=(status,) if isinstance(status, int) else (),
            message={"const": message} if isinstance(message, str) else {"type": "string"},
            classes=_classes(made),
        )

    def _error_constant(self, raised: Raise, name: str) -> object:
        """What the class of an error gives all of its instances."""
        info = self.lookup(raised.classes[0])
        return self._class_constant(info, name) if info is not None else None

    def _class_constant(self, info: TypeInfo, name: str) -> object:
        symbol = info.get(name)
        node = symbol.node if symbol is not None else None
        if not isinstance(node, Var) or node.type is None or not self.is_program(info.fullname):
            return None
        schema = self.schemas.of(node.type)
        if "const" in schema:
            return schema["const"]
        for base in info.mro:
            for statement in base.defn.defs.body:
                match statement:
                    case AssignmentStmt(lvalues=[NameExpr(name=own)], rvalue=value) if own == name:
                        found = constant(value)
                        return found[0] if found is not None else None
                    case _:
                        pass
        return None

    # -- values

    def structured(self, call: CallExpr, frame: Frame) -> Schema:
        """Return the type that a request is read into: the T of `req.json(T)` and `req.query.parse(T)`."""
        asked = self._asked_for(call, frame)
        return self.schemas.of(asked if asked is not None else self.type_of(call, frame))

    def statuses(self, expression: Expression, frame: Frame) -> tuple[int, ...]:
        """The statuses that an expression may have; () where they are not known."""
        parts: list[tuple[int, ...]] = []
        match expression:
            case IntExpr():
                return (expression.value,)
            case ConditionalExpr():
                parts = [self.statuses(part, frame) for part in (expression.if_expr, expression.else_expr)]
            case MemberExpr(name="status") if errors := self.errors(expression.expr, frame):
                parts = [each.status for each in errors]
            case MemberExpr() if errors := self.errors(expression.expr, frame):
                parts = [
                    (known,) if isinstance(known := self._error_constant(each, expression.name), int) else ()
                    for each in errors
                ]
            case MemberExpr() if (value := self._given(expression, frame)) is not None:
                return self.whole_statuses(value)
            case NameExpr():
                value = self.bound(expression, frame)
                if value is not None:
                    return self.whole_statuses(value)
                assigned: Sequence[Expression | None] = frame.notes.captured.get(expression.node, ())
                if not assigned and expression.node is not None:
                    assigned = frame.notes.assigned.get(expression.node, ())
                parts = [self.statuses(each, frame) if each is not None else () for each in assigned]
            case _:
                pass
        if parts:
            return tuple(dict.fromkeys(status for part in parts for status in part)) if all(parts) else ()
        known = _statuses_of(self.schemas.of(self.type_of(expression, frame)))
        if not known and isinstance(folded := constant_fold_expr(expression, ""), int):
            return (folded,)
        return known

    def returned(self, call: CallExpr, frame: Frame) -> list[tuple[Expression, Frame]]:
        """The expressions that the program's functions return to a call, in the frames of that call."""
        found: list[tuple[Expression, Frame]] = []
        for target in self.targets(call.callee, frame) or ():
            if isinstance(target.node, FuncDef | LambdaExpr):
                inside = self.enter(target, *self.arguments(call, frame))
                found += [(each, inside) for each in inside.notes.returned]
        return found

    @_bounded(lambda self, expression, frame: self.schemas.of(self.type_of(expression, frame)))
    def schema(self, expression: Expression, frame: Frame) -> Schema:
        """Return the JSON schema of an expression's value."""
        match expression:
            case DictExpr():
                declared = self.schemas.of(self.type_of(expression, frame))  # a TypedDict, where one is asked for
                return declared if "$class" in declared else self._dict(expression, frame)
            case ListExpr() | SetExpr():
                items = any_of(self._items_of(item, frame) for item in expression.items) if expression.items else {}
                return {"type": "array", "items": items}
            case TupleExpr() if not any(isinstance(item, StarExpr) for item in expression.items):
                parts = [self.schema(item, frame) for item in expression.items]
                return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
            case ListComprehension() | SetComprehension():
                for index, through in zip(expression.generator.indices, expression.generator.sequences, strict=True):
                    frame.notes.loop(index, through)
                return {"type": "array", "items": self.schema(expression.generator.left_expr, frame)}
            case DictionaryComprehension():
                for index, through in zip(expression.indices, expression.sequences, strict=True):
                    frame.notes.loop(index, through)
                return {"type": "object", "additionalProperties": self.schema(expression.value, frame)}
            case ConditionalExpr():
                return any_of([self.schema(expression.if_expr, frame), self.schema(expression.else_expr, frame)])
            case AssignmentExpr():
                return self.schema(expression.value, frame)
            case AwaitExpr():
                return self._call(expression, expression.expr, frame)
            case CallExpr():
                return self._call(expression, expression, frame)
            case MemberExpr() | IndexExpr():
                return self._part(expression, frame)
            case NameExpr():
                return self._name(expression, frame)
            case OpExpr(op="|"):
                both = [self.schema(expression.left, frame), self.schema(expression.right, frame)]
                if all("properties" in part or "$class" in part for part in both):
                    return self._merged(both)
            case OpExpr(op="or"):
                first = self.schema(expression.left, frame)
                if "$unknown" not in first:
                    return any_of([_without_null(first, first), self.schema(expression.right, frame)])
            case _:
                pass
        return self.schemas.of(self.type_of(expression, frame))

    def _items_of(self, item: Expression, frame: Frame) -> Schema:
        if not isinstance(item, StarExpr):
            return self.schema(item, frame)
        inner = self.schema(item.expr, frame)
        items: Schema = inner.get("items", {"$unknown": "the items of an unpacked value"})
        return items

    def _name(self, name: NameExpr, frame: Frame) -> Schema:
        plain = self.schemas.of(self.type_of(name, frame))
        node = name.node
        value = self.bound(name, frame)
        if value is not None and value.frame is not frame and plain.get("type") in ("string", "integer"):
            # An argument is the constant that this call hands over.
            return value.schema if {"const", "enum"} & value.schema.keys() else plain
        if node is None or not (is_vague(plain) or self._may_have_more(plain)):
            return plain
        found = self._assigned(name, node, value, plain, frame)
        return found if is_vague(plain) or not is_vague(found) else plain

    def _assigned(self, name: NameExpr, node: Node, value: Value | None, plain: Schema, frame: Frame) -> Schema:
        """What was assigned to a name, whose type says little."""
        if value is None:
            assigned = frame.notes.assigned.get(node, [])
            if len(assigned) > 1 and None not in assigned:
                return any_of(self.schema(each, frame) for each in assigned if each is not None)
            through = frame.notes.looped.get(node)
            whole = self.schema(through, frame) if through is not None else {}
            items: Schema = whole.get("items", plain)
            return items
        followed = value.schema
        notes = value.frame.notes if value.frame is not None else frame.notes
        if node in notes.never_none and "anyOf" in followed:
            followed = _without_null(followed, followed)
        added = notes.items.get(node, [])
        if not added:
            return followed
        if "properties" not in followed or None in added or value.frame is None:
            return plain
        properties: dict[str, Schema] = dict(followed["properties"])
        required: list[str] = list(followed["required"])
        for item in added:
            assert item is not None
            key, expression, always = item
            schema = self.schema(expression, value.frame)
            there = properties.get(key)
            if there is None and always and expression.line < name.line:
                required.append(key)
            properties[key] = schema if there is None else any_of([there, schema])
        return {**followed, "properties": properties, "required": required}

    def _call(self, expression: Expression, call: Expression, frame: Frame) -> Schema:
        """The value of a call: the expression that the function returns, where its annotation says little."""
        plain = self.schemas.of(self.type_of(expression, frame))
        if not isinstance(call, CallExpr):
            return plain
        name = call.callee.fullname if isinstance(call.callee, RefExpr) else ""
        if name in _AS_DICT and call.args and _KEEPS_VALUES.issuperset(call.arg_names[1:]):
            made = self.schema(call.args[0], frame)
            if not self.schemas.is_renamed(made):
                return made
        if name in ("builtins.list", "builtins.sorted", "builtins.tuple") and call.args:
            inner = self.schema(call.args[0], frame)
            return {"type": "array", "items": inner["items"]} if "items" in inner and is_vague(plain) else plain
        if name == "builtins.dict" and call.args and all(kind == ARG_NAMED for kind in call.arg_kinds):
            properties = {
                str(key): self.schema(value, frame) for key, value in zip(call.arg_names, call.args, strict=True)
            }
            return {"type": "object", "properties": properties, "required": list(properties)}
        if name == "builtins.str" and call.args and (errors := self._for_clients(call.args[0], frame)):
            return any_of(each.message for each in errors)
        match call.callee:
            case MemberExpr(name="get", expr=MemberExpr(name="metadata", expr=owner)) if call.args:
                if errors := self._for_clients(owner, frame):
                    key = constant(call.args[0])
                    otherwise = self.schema(call.args[1], frame) if len(call.args) > 1 else {"type": "null"}
                    return any_of(each.metadata.get(str(key[0] if key else ""), otherwise) for each in errors)
            case _:
                pass
        asked = self._asked_for(call, frame)
        if asked is not None:
            return self.schemas.of(asked)
        if is_vague(plain):
            row = (
                self._rows(call, frame) if isinstance(call.callee, MemberExpr) and call.callee.name == "first" else None
            )
            if row is not None:
                return row
        if is_vague(plain) or self._may_have_more(plain):
            returned = self.returned(call, frame)
            if returned and not (isinstance(call.callee, RefExpr) and isinstance(call.callee.node, TypeInfo)):
                found = any_of(self.schema(each, inside) for each, inside in returned)
                return found if is_vague(plain) or not is_vague(found) else plain
            if isinstance(call.callee, MemberExpr) and call.callee.name in ("get", "pop") and call.args:
                values = self._values(call.callee.expr, frame)
                if values and not any(map(is_vague, values)):
                    otherwise = self.schema(call.args[1], frame) if len(call.args) > 1 else {"type": "null"}
                    return any_of([*values, otherwise])
        return plain

    def _for_clients(self, expression: Expression, frame: Frame) -> tuple[Raise, ...]:
        errors = self.errors(expression, frame)
        return errors if errors and all(CORE_ERROR in each.classes for each in errors) else ()

    def origin(self, expression: Expression, frame: Frame) -> CallExpr | None:
        """The call that an expression has its value of."""
        found = self._origin(expression, frame)
        return found[0] if found is not None else None

    def _origin(self, expression: Expression, frame: Frame) -> tuple[CallExpr, Frame] | None:
        """The call that an expression has its value of, through names and `await`."""
        for _ in range(_DEEPEST):
            if isinstance(expression, AwaitExpr):
                expression = expression.expr
            elif isinstance(expression, NameExpr):
                value = self.bound(expression, frame)
                if value is None or value.place is None:
                    return None
                expression, frame = value.place
            else:
                return (expression, frame) if isinstance(expression, CallExpr) else None
        return None

    def _asked_for(self, call: CallExpr, frame: Frame) -> Type | None:
        """Return the type of `await req.json(T)` and the like, by the class that is handed in.

        Where the value is sent at once, mypy takes T for whatever `res.json` takes, which is anything.
        """
        forms = [self.type_of(given, frame) for given in call.args]
        wanted: list[Type] = [form.item for form in forms if isinstance(form, TypeType)]
        wanted += [form.items[0].ret_type for form in forms if isinstance(form, CallableType) and form.is_type_obj()]
        info = self.info_of(call.callee.expr, frame) if isinstance(call.callee, MemberExpr) else None
        symbol = info.get(call.callee.name) if info is not None and isinstance(call.callee, MemberExpr) else None
        node = symbol.node if symbol is not None else None
        declared = get_proper_type(node.type) if isinstance(node, FuncDef | OverloadedFuncDef | Decorator) else None
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

    def has_one_row(self, call: CallExpr, frame: Frame) -> bool:
        """Return True if the statement that a call runs has exactly one row: an INSERT, a count."""
        home = self.home_of(frame)
        found = self._columns_of(call, home.module) if home is not None else None
        return found is not None and bool(_ONE_ROW(found[0]))

    def _rows(self, call: CallExpr, frame: Frame) -> Schema | None:
        """Return the rows of a SQL statement: the column of `first("id")`, the row of `first()`, one row of `all()`."""
        if not isinstance(call.callee, MemberExpr) or call.callee.name not in ("first", "all", "run"):
            return None
        home = self.home_of(frame)
        found = self._columns_of(call, home.module) if home is not None else None
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

    def _part(self, expression: MemberExpr | IndexExpr, frame: Frame) -> Schema:
        """`user["name"]`, `found.results` and `err.body`, of a value that is followed."""
        part = _PARTS.get(expression.name) if isinstance(expression, MemberExpr) else None
        if isinstance(expression, MemberExpr) and part is not None:
            errors = self._for_clients(expression.expr, frame)
            if errors:
                return any_of(map(part, errors))
        if isinstance(expression, MemberExpr) and (raised := self.errors(expression.expr, frame)):
            known = [self._error_constant(each, expression.name) for each in raised]
            if all(isinstance(each, str | int) for each in known):
                return any_of({"const": each} for each in known)
        plain = self.schemas.of(self.type_of(expression, frame))
        if not is_vague(plain):
            return self._item(expression, plain, frame) if self._may_have_more(plain) else plain
        if isinstance(expression, MemberExpr):
            call = self._origin(expression.expr, frame) if expression.name == "results" else None
            row = self._rows(*call) if call is not None else None
            if row is not None:
                return {"type": "array", "items": row}
            value = self._given(expression, frame)
            return value.schema if value is not None else plain
        name = constant_fold_expr(expression.index, "")
        if not isinstance(name, str):
            return plain
        match expression.base:
            case MemberExpr(name="metadata", expr=owner) if errors := self._for_clients(owner, frame):
                return any_of(each.metadata.get(name, {"$unknown": f"metadata without {name}"}) for each in errors)
            case _:
                pass
        whole = self.schema(expression.base, frame)
        for part in whole.get("anyOf", [whole]):
            if name in part.get("properties", {}):
                found: Schema = part["properties"][name]
                return found
        return plain

    def _item(self, expression: MemberExpr | IndexExpr, plain: Schema, frame: Frame) -> Schema:
        """A part of a value whose class has subclasses: any of the values that were put there, where that is seen."""
        if isinstance(expression, MemberExpr):
            value = self._given(expression, frame)
            found = [value.schema] if value is not None else []
        else:
            found = self._values(expression.base, frame)
        return any_of(found) if found and not any(map(is_vague, found)) else plain

    def _values(self, container: Expression, frame: Frame) -> list[Schema]:
        """The schemas of everything in a list or dict."""
        whole = self.schema(container, frame)
        found: list[Schema] = [*whole.get("properties", {}).values()]
        return found + [whole[key] for key in ("additionalProperties", "items") if key in whole]

    def _dict(self, expression: DictExpr, frame: Frame) -> Schema:
        parts: list[Schema] = []
        properties: dict[str, Schema] = {}
        others: list[Schema] = []
        for key, value in expression.items:
            if key is None:
                if properties:
                    parts.append({"type": "object", "properties": properties, "required": list(properties)})
                    properties = {}
                parts.append(self.schema(value, frame))
                continue
            known = self.schema(key, frame)
            name = constant_fold_expr(key, "") if "const" not in known else known["const"]
            if isinstance(name, str):
                properties[name] = self.schema(value, frame)
            else:
                others.append(self.schema(value, frame))
        last: Schema = {"type": "object", "properties": properties, "required": list(properties)}
        if others:
            last["additionalProperties"] = any_of(others)
        if others and not properties:
            last = {"type": "object", "additionalProperties": last["additionalProperties"]}
        if properties or others or not parts:
            parts.append(last)
        return self._merged(parts)

    def _merged(self, parts: Sequence[Schema]) -> Schema:
        """Several objects as one; of two properties of one name the later counts, as in Python."""
        if len(parts) == 1:
            return parts[0]
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: list[Schema] = []
        for part in parts:
            alternatives = [self._whole(each) for each in part.get("anyOf", [part])]
            for each in alternatives:
                extra = each.get("additionalProperties")
                if extra is None and "properties" not in each and each != {"type": "null"}:
                    extra = each if "$unknown" in each else {"$unknown": "the value unpacked here"}
                certain = set[str](each.get("required", ()) if len(alternatives) == 1 else ())
                for name, schema in each.get("properties", {}).items():
                    earlier = properties.get(name)
                    properties[name] = schema if earlier is None or name in certain else any_of([earlier, schema])
                    if name in certain and name not in required:
                        required.append(name)
                if extra is not None:
                    others.append(extra)
                    for name in properties.keys() - each.get("properties", {}).keys():
                        properties[name] = any_of([properties[name], extra])
        result: Schema = {"type": "object", "properties": properties, "required": required}
        if others:
            result["additionalProperties"] = any_of(others)
        return result

    def _whole(self, schema: Schema) -> Schema:
        facts = self.schemas.classes.get(schema.get("$class", ""))
        return object_of(facts) if facts is not None else schema


def _body_of(error: Raise) -> Schema:
    own = {**error.metadata, "error": error.message}
    own = {"error": error.message, **own}
    return {"type": "object", "properties": own, "required": list(own)}


_PARTS: Final[Mapping[str, Callable[[Raise], Schema]]] = {
    "body": _body_of,
    "message": lambda error: error.message,
    "status": lambda error: any_of({"const": each} for each in error.status) if error.status else {"type": "integer"},
}


def _statuses_of(schema: Schema) -> tuple[int, ...]:
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    known = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return tuple(known) if len(known) == len(values) else ()


def _without_null(schema: Schema, otherwise: Schema) -> Schema:
    parts = [part for part in schema.get("anyOf", [schema]) if part != {"type": "null"}]
    return any_of(parts) if parts else otherwise


def _joined(found: Iterable[tuple[Target, ...] | None]) -> tuple[Target, ...] | None:
    result: tuple[Target, ...] = ()
    for each in found:
        if each is None:
            return None
        result += each
    return result


def _solved(declared: Type, given: Type) -> dict[TypeVarId, Type]:
    """What type variables stand for, by one argument."""
    found: dict[TypeVarId, Type] = {}
    for each in infer_constraints(declared, given, SUPERTYPE_OF):
        if not isinstance(get_proper_type(each.target), TypeVarType | UninhabitedType):
            found.setdefault(each.type_var, each.target)
    return found


def _free(node: FuncDef | LambdaExpr) -> Iterator[Var]:
    """The variables that the text of a function names."""

    def inside(expression: Expression) -> Iterator[Var]:
        if isinstance(expression, NameExpr) and expression.kind == LDEF and isinstance(expression.node, Var):
            yield expression.node
        for part in parts_of(expression):
            yield from inside(part)

    def among(statements: Iterable[Statement]) -> Iterator[Var]:
        for statement in statements:
            for expression in _expressions(statement):
                yield from inside(expression)
            for block in blocks(statement):
                yield from among(block.body)

    return among(node.body.body)


def _instance(info: TypeInfo) -> Instance:
    return Instance(info, [AnyType(TypeOfAny.explicit)] * len(info.defn.type_vars))


def _is_abstract(node: SymbolNode | None) -> bool:
    inner = node.func if isinstance(node, Decorator) else node
    return isinstance(inner, FuncDef) and bool(inner.abstract_status)


def _is_exception(info: TypeInfo) -> bool:
    return any(base.fullname == "builtins.BaseException" for base in info.mro)


def _classes(info: TypeInfo) -> tuple[str, ...]:
    return tuple(base.fullname for base in info.mro)


def _leaves(block: Block) -> bool:
    """Return True if a block ends the function."""
    last = block.body[-1] if block.body else None
    if isinstance(last, IfStmt):
        return last.else_body is not None and _leaves(last.else_body) and all(map(_leaves, last.body))
    return isinstance(last, ReturnStmt | RaiseStmt)


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
