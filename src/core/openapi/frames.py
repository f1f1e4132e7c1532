"""Names and types: what a name stands for in one call of a function, and what type that has there.

A name that is assigned once is the value assigned to it, an argument is what the call hands over, and an attribute is
what was set where the object was made. All else has the type that mypy gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, Final

from mypy.expandtype import expand_type
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    AwaitExpr,
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    FuncDef,
    LambdaExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OverloadedFuncDef,
    RefExpr,
    Statement,
    TypeInfo,
    Var,
)
from mypy.subtypes import is_same_type
from mypy.typeops import map_type_from_supertype
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    ProperType,
    Type,
    TypeType,
    TypeVarId,
    TypeVarType,
    UnionType,
    get_proper_type,
    has_type_vars,
)

from core.openapi.facts import Held
from core.openapi.schemas import Schemas
from core.openapi.solving import UNKNOWN, attrs_fields, info_in, member, returned_for, solved, without
from core.openapi.trees import Notes, changed, docstring, everything, filled_elsewhere, parts_of
from core.openapi.values import DEEPEST, Frame, Home, Rows, Target, Value, bounded

_CHAINED: Final = frozenset(["status", "header", "append", "cookie", "delete_cookie"])


class Frames:
    """The functions of a program by their names, and the frames of their calls."""

    def __init__(
        self,
        trees: Mapping[str, MypyFile],
        types: Mapping[Expression, Type],
        schemas: Schemas,
        lookup: Callable[[str], TypeInfo | None],
        rows_of: Callable[[CallExpr, MypyFile], Rows | None],
    ) -> None:
        self._types = types
        self.schemas = schemas
        self.lookup = lookup
        self.rows_of = rows_of
        """The rows of the SQL statement that a call runs; None where they are not known."""
        self.homes: dict[FuncDef, Home] = {}
        self.named: dict[str, list[FuncDef]] = {}
        self.registered: dict[Node, list[FuncDef]] = {}
        """The functions that `@shown.register` adds to one of `functools.singledispatch`."""
        self.classes: list[TypeInfo] = []
        self.modules: dict[str, Frame] = {}
        self.depth = 0
        """How many questions about expressions wait for each other."""
        self.answers: dict[object, Any] = {}
        """What is known of values: see `once`."""
        self.notes_of: Callable[[FuncDef | LambdaExpr | Block], Notes] = cache(Notes)
        """What the text of a function says of its names."""
        self._held: dict[int, Value] = {}
        for name, tree in sorted(trees.items()):
            self.modules[name] = Frame(tree, Notes(tree))
            self._find(tree.defs, name, Home(None, self.modules[name]))
        notes = [*(frame.notes for frame in self.modules.values()), *map(self.notes_of, self.homes)]
        self.attributes_set: frozenset[str] = frozenset(name for each in notes for name in each.sets)
        """The names of attributes that are given values."""
        self.changed: frozenset[Node | str] = changed((node, self.notes_of(node)) for node in self.homes)
        """The variables and the names of attributes that are set by others than who made them."""
        self.filled_elsewhere: frozenset[Node | str] = filled_elsewhere(self.homes, notes)
        """The variables of what gets items under another name, or in a function that it is handed to, and the names of
        attributes that get items.
        """
        self.filled: frozenset[Node | str] = self.filled_elsewhere | {
            node for each in notes for node in (*each.items, *each.appended)
        }
        """The same, and the variables that get items under their own name."""

    def _find(self, body: Iterable[Statement], outer: str, home: Home) -> None:
        """Note every function and class of a body, those inside functions and classes too."""
        for statement in body:
            match statement:
                case FuncDef():
                    self.homes[statement] = home
                    self.named.setdefault(f"{outer}.{statement.name}", []).append(statement)
                    within = f"{outer}.{statement.name}.<locals>"
                    self._find(statement.body.body, within, Home(statement, home.module))
                case Decorator():
                    self._find([statement.func], outer, home)
                    for decorator in statement.original_decorators:
                        match decorator.callee if isinstance(decorator, CallExpr) else decorator:
                            case MemberExpr(name="register", expr=RefExpr(node=Decorator() as dispatching)):
                                self.registered.setdefault(dispatching, []).append(statement.func)
                            case _:
                                pass
                case OverloadedFuncDef():
                    self._find([statement.impl] if statement.impl is not None else statement.items, outer, home)
                case ClassDef():
                    self.classes.append(statement.info)
                    made = {name for name, symbol in statement.info.names.items() if symbol.plugin_generated}
                    written = [part for part in statement.defs.body if getattr(part, "name", "") not in made]
                    self._find(written, f"{outer}.{statement.name}", home)
                case _:
                    self._find((part for part in parts_of(statement) if isinstance(part, Statement)), outer, home)

    @cached_property
    def _lambdas(self) -> dict[tuple[str, int], set[LambdaExpr]]:
        """The lambdas of the program, by their module and their line."""
        found: dict[tuple[str, int], set[LambdaExpr]] = {}
        for name, frame in self.modules.items():
            for node in everything(frame.module):
                if isinstance(node, LambdaExpr):
                    found.setdefault((name, node.line), set()).add(node)
        return found

    def is_program(self, fullname: str) -> bool:
        """True for a name of the program's own."""
        while fullname and fullname not in self.modules:
            fullname = fullname.rpartition(".")[0]
        return bool(fullname)

    def docstring_of(self, name: str) -> str | None:
        """The docstring of a module or of a function."""
        if name in self.modules:
            return docstring(self.modules[name].module.defs)
        found = self.named.get(name)
        return docstring(found[0].body.body) if found else None

    # -- values

    def value_of(self, held: Held) -> Value:
        """A value that the running application holds."""
        if id(held) not in self._held:
            type_: Type | None = None
            match held.kind:
                case "type":
                    own = self.schemas.type_from(held, self.lookup)
                    type_ = TypeType(own) if isinstance(own, Instance) else None
                case "object" if (info := self.lookup(held.name)) is not None:
                    type_ = self._object_of(info, held)
                case "function" if (found := self.function_of(held)) is not None:
                    type_ = self._signature_of(found[0], held)
                case _:
                    pass
            self._held[id(held)] = Value(type=type_, held=held)
        return self._held[id(held)]

    def function_of(self, held: Held) -> tuple[FuncDef | LambdaExpr, Frame] | None:
        """The function of the program that the application holds, and its module; None for one that is not in it, and
        where two lambdas share a line.
        """
        if held.name.endswith(".<lambda>"):
            homes = [name for name in self.modules if held.name.startswith(f"{name}.")]
            home = max(homes, key=len, default="")
            written = self._lambdas.get((home, held.place[1]), set())
            return (next(iter(written)), self.modules[home]) if len(written) == 1 else None
        found = [node for node in self.named.get(held.name, ()) if node.line >= held.place[1]]
        node = min(found, key=lambda each: each.line, default=None)
        return (node, self.homes[node].module) if node is not None else None

    def _object_of(self, info: TypeInfo, held: Held) -> Type:
        """An object as a type. What the variables of its class stand for is what `Pages[User](…)` said where it was
        made, or what the functions, types and generic objects say that it was made with. An attribute that is a `T`
        itself may be of a subclass, and says nothing.
        """
        alias = held.holds.get("__orig_class__")
        if alias is not None and isinstance(made := self.schemas.type_from(alias, self.lookup), Instance):
            return made
        found: dict[TypeVarId, Type] = {}
        for name, attribute in held.holds.items() if info.defn.type_vars else ():
            variable = member(info, name)
            if not isinstance(variable, Var) or variable.type is None:
                continue
            declared = map_type_from_supertype(variable.type, info, variable.info)
            own = self.type_in(self.value_of(attribute))
            if own is None or (attribute.kind == "object" and not isinstance(get_proper_type(declared), Instance)):
                continue
            for each, type_ in solved(declared, own).items():
                agrees = each not in found or is_same_type(found[each], type_)
                found[each] = type_ if agrees else UNKNOWN
        return Instance(info, [found.get(each.id, UNKNOWN) for each in info.defn.type_vars])

    def _signature_of(self, node: FuncDef | LambdaExpr, held: Held) -> Type | None:
        """The type of a function without the arguments that a bound method or a partial gives."""
        declared = get_proper_type(self._types.get(node) if isinstance(node, LambdaExpr) else node.type)
        if not isinstance(declared, CallableType):
            return None
        types: dict[TypeVarId, Type] = {}
        for argument, given in zip(node.arguments, held.given, strict=False):
            types.update(self._solved(argument.variable, self.value_of(given)))
        return expand_type(without(declared, len(held.given), held.holds), types)

    def arguments(self, call: CallExpr | None, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
        """The arguments of a call, by position and by name; none without a call."""
        given, named = list[Value](), dict[str, Value]()
        written = zip(call.args, call.arg_kinds, call.arg_names, strict=True) if call is not None else ()
        for expression, kind, name in written:
            value = self.bound(expression, frame) if kind.is_star() else Value(expression, frame)
            if value is not None and kind.is_star():
                given += value.parts or ()
                named |= value.keys or {}
            elif value is not None and name is not None:
                named[name] = value
            elif value is not None:
                given.append(value)
        return given, named

    def enter(self, target: Target) -> Frame:
        """The frame of a call of a function, with all of its arguments."""
        node = target.node
        assert node is not None
        outer = target.frame
        if outer is None and isinstance(node, FuncDef) and node in self.homes:
            outer = self.homes[node].module
        frame = Frame(node, self.notes_of(node), outer, types=dict(outer.types) if outer is not None else {})
        positional, keywords = [*target.given], {**target.named}
        for argument in node.arguments:
            variable, kind = argument.variable, argument.kind
            if kind == ARG_STAR:
                value, positional = Value(parts=tuple(positional)), []
            elif kind == ARG_STAR2:
                value, keywords = Value(keys=keywords), {}
            elif kind.is_positional() and positional:
                value = positional.pop(0)
            elif variable.name in keywords:
                value = keywords.pop(variable.name)
            elif argument.initializer is not None and outer is not None:
                value = Value(argument.initializer, outer)
            else:
                continue
            self.give(frame, variable, value)
        return frame

    def give(self, frame: Frame, variable: Var, value: Value) -> None:
        """Let a variable be a value in a frame."""
        frame.values[variable] = value
        frame.types.update(self._solved(variable, value))

    def _solved(self, variable: Var, value: Value) -> dict[TypeVarId, Type]:
        declared, own = variable.type, self.type_in(value)
        return solved(declared, own) if declared is not None and has_type_vars(declared) and own is not None else {}

    def bound(self, name: Expression | None, frame: Frame) -> Value | None:
        """The value of a name: of an argument, of its only assignment, of a variable around the function."""
        if not isinstance(name, NameExpr) or (node := name.node) is None or node in self.changed:
            return None
        for at in frame.chain():
            is_assigned = node in at.notes.assigned
            if node in at.turn:
                return at.turn[node]
            if node in at.values:
                return at.values[node] if not is_assigned else None
            if is_assigned:
                only = at.notes.only(node)
                return Value(only, at) if only is not None and only is not name else None
        return self.constant(node) if isinstance(node, Var) else None

    def constant(self, variable: Var) -> Value | None:
        """The value of a variable of a module that is assigned once."""
        home = self.modules.get(variable.fullname.rpartition(".")[0])
        only = home.notes.only(variable) if home is not None and variable not in self.changed else None
        return Value(only, home) if only is not None else None

    def origin(self, value: Value, *, fixed: bool = False) -> Value:
        """The value behind names and `await`; with `fixed` none behind a name that gets items."""
        for _ in range(DEEPEST):
            match value.place:
                case (AwaitExpr(expr=inner), at):
                    value = Value(inner, at)
                case (NameExpr(node=node), _) if fixed and node in self.filled:
                    break
                case (NameExpr() as name, at) if (bound := self.bound(name, at)) is not None:
                    value = bound
                case _:
                    break
        return value

    def _made_with(self, made: Value, name: str) -> Value | None:
        """What was set under a name where an object was made."""
        if made.held is not None:
            inner = made.held.holds.get(name)
            return self.value_of(inner) if inner is not None else None
        match made.place:
            case (CallExpr(callee=RefExpr(node=TypeInfo() as cls)) as call, frame):
                given, named = self.arguments(call, frame)
            case _:
                return None
        init = member(cls, "__init__")
        if isinstance(init, FuncDef) and init in self.homes:
            inside = self.enter(Target(init, None, (made, *given), named))
            values = inside.notes.attributes.get(name, [])
            return Value(values[0], inside) if len(values) == 1 else None
        return named.get(name.lstrip("_"), dict(zip(attrs_fields(cls), given, strict=False)).get(name))

    def made(self, value: Value) -> tuple[CallExpr, Frame] | None:
        """The call behind names and `await`."""
        match self.origin(value).place:
            case (CallExpr() as call, at):
                return call, at
            case _:
                return None

    @bounded(None)
    def given(self, expression: Expression, frame: Frame) -> Value | None:
        """The value of an argument, of a variable of a module, or of an attribute that was set in making the object."""
        match expression:
            case MemberExpr(expr=RefExpr(node=MypyFile()), node=Var() as variable):
                return self.constant(variable)
            case MemberExpr(expr=inner, name=name) if name not in self.changed:
                return self._made_with(self.origin(Value(inner, frame)), name)
            case NameExpr(node=node) if any(node in at.values for at in frame.chain()):
                return self.bound(expression, frame)
            case _:
                return None

    # -- types

    def type_in(self, value: Value) -> ProperType | None:
        """The type of a value."""
        return self.type_of(*value.place) if value.place is not None else get_proper_type(value.type)

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
            value = self.given(expression, frame)
            own = self.type_in(value) if value is not None else None
            if own is not None and loose:
                return own
            if isinstance(own, Instance) and isinstance(proper, Instance) and own.type is not proper.type:
                info = proper.type
                if info.fullname == "builtins.object" or info.is_protocol or info in own.type.mro:
                    return own
        return proper

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
        infos = self.infos_of(expression, frame)
        return infos[0] if len(infos) == 1 else None

    def infos_of(self, expression: Expression, frame: Frame) -> list[TypeInfo]:
        """The classes that a value may be of, None left out; none where one of them is not known."""
        type_ = self.type_of(expression, frame)
        items = [get_proper_type(item) for item in type_.items] if isinstance(type_, UnionType) else [type_]
        infos = [info_in(item) for item in items if not isinstance(item, NoneType)]
        return [info for info in infos if info is not None] if None not in infos else []

    def item_of(self, several: Expression, frame: Frame, base: str) -> ProperType | None:
        """The type of each item of a value, by the class that has the items of all such values."""
        type_, info = self.type_of(several, frame), self.lookup(base)
        if info is None or not isinstance(type_, Instance) or info not in type_.type.mro:
            return None
        return get_proper_type(map_instance_to_supertype(type_, info).args[0])

    def asked_for(self, call: CallExpr, frame: Frame) -> Type | None:
        """Return the type of `await req.json(T)` and the like, by the class that is handed in.

        Where the value is sent at once, mypy takes T for whatever `res.json` takes, which is anything.
        """
        classes = [_instance_of(self.type_of(given, frame)) for given in call.args]
        wanted = [each for each in classes if each is not None]
        callee = call.callee
        node = member(self.info_of(callee.expr, frame), callee.name) if isinstance(callee, MemberExpr) else None
        declared = get_proper_type(node.type) if isinstance(node, FuncDef | OverloadedFuncDef | Decorator) else None
        if len(wanted) != 1 or not isinstance(declared, CallableType | Overloaded):
            return None
        return returned_for(declared, wanted[0])


def _instance_of(form: ProperType | None) -> Type | None:
    """The type of what a class makes, or one of several classes; None for a value that is no class."""
    match form:
        case TypeType():
            return form.item
        case CallableType() if form.is_type_obj():
            return form.ret_type
        case UnionType():
            made = [_instance_of(get_proper_type(item)) for item in form.items]
            return UnionType([each for each in made if each is not None]) if None not in made else None
        case _:
            return None
