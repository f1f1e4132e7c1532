"""The functions of a program that a call goes to: through names, decorators, factories, methods, Protocols and tables.

Where a call goes to functions of libraries alone there are none; where it is not known, that is said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from mypy.nodes import (
    LDEF,
    AssignmentExpr,
    AwaitExpr,
    CallExpr,
    CastExpr,
    ConditionalExpr,
    Decorator,
    DictExpr,
    Expression,
    FuncDef,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    OpExpr,
    OverloadedFuncDef,
    RefExpr,
    SetExpr,
    StarExpr,
    SymbolNode,
    TupleExpr,
    TypeInfo,
    Var,
)
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    ProperType,
    TypeType,
    UnionType,
    get_proper_type,
)

from core.openapi.facts import Held
from core.openapi.frames import Frames
from core.openapi.solving import attrs_fields, info_in, instance_of, member
from core.openapi.trees import CONTEXT, Notes, bare, called, constant, everything, is_made_up, within
from core.openapi.values import Frame, Place, Target, Value, bounded, once
from core.validation.schema import Schema


class Calls(Frames, ABC):
    """The functions behind the expressions of a program."""

    @abstractmethod
    def schema_of(self, value: Value, /) -> Schema:
        """The JSON of a value."""

    @once
    def targets_of(self, value: Value) -> tuple[Target, ...] | None:
        """The functions that a call of a value goes to, as `targets` of an expression."""
        if value.place is not None:
            return self.targets(*value.place)
        held = value.held
        if held is not None and held.kind == "function":
            if (found := self.function_of(held)) is not None:
                return (self._closed(*found, held),)
            # Of a function elsewhere nothing is followed: it has none of the program's errors.
            return None if self.is_program(held.name) else ()
        info = self.lookup(held.name) if held is not None and held.kind == "object" else None
        call = member(info, "__call__")
        return self.defined(call, None, (value,)) if call is not None else value.targets

    def target_of(self, held: Held) -> Target | None:
        """The function of the program that the application holds; None for one that is not in it."""
        found = self.targets_of(self.value_of(held))
        return found[0] if found else None

    def _closed(self, node: FuncDef | LambdaExpr, home: Frame, held: Held) -> Target:
        """A function with the variables around it, and the arguments that it has already."""
        names = {name: self.value_of(each) for name, each in held.holds.items()}
        parameters = {argument.variable.name for argument in node.arguments}
        named = {name: value for name, value in names.items() if name in parameters}
        around = Frame(None, Notes(None), home)
        for part in everything(node.body):
            if isinstance(part, NameExpr) and part.kind == LDEF and isinstance(part.node, Var) and part.name in names:
                self.give(around, part.node, names[part.name])
        return Target(node, around, tuple(map(self.value_of, held.given)), named)

    @bounded(None)
    def targets(self, callee: Expression, frame: Frame) -> tuple[Target, ...] | None:
        """The program's functions that a call goes to; () for those of others, None where that is not known."""
        node = callee.node if isinstance(callee, RefExpr) else None
        is_method = isinstance(callee, MemberExpr)
        if isinstance(node, FuncDef | Decorator | OverloadedFuncDef) and not (is_method and node.info):
            return self.defined(node, frame)
        match callee:
            case MemberExpr():
                return self._methods(callee, frame)
            case LambdaExpr():
                return (Target(callee, frame),)
            case CallExpr(callee=RefExpr(fullname="functools.partial"), args=[function, *_]):
                inner, (given, named) = self.targets(function, frame), self.arguments(callee, frame)
                return inner and tuple(each.with_arguments(given[1:], named) for each in inner)
            case _ if ways := self.ways(callee, frame):
                return _joined(map(self.targets_of, ways))
            case CallExpr(callee=RefExpr(node=TypeInfo())):
                pass
            case CallExpr() if handed := [each for each in callee.args if self.is_function(each, frame)]:
                # A library's decorator, such as a retry: it calls the function that it was handed.
                return _joined(self.targets(each, frame) for each in handed)
            case _:
                pass
        return self._by_type(callee, frame)

    def ways(self, expression: Expression, frame: Frame) -> list[Value]:
        """What an expression may stand for, one step behind it: the value of a name, each branch, what a call returns.
        Nothing where it stands for itself alone, or where not all of it is known.
        """
        found: list[Place] = []
        match expression:
            case AwaitExpr(expr=inner) | CastExpr(expr=inner) | AssignmentExpr(value=inner):
                found = [(inner, frame)]
            case ConditionalExpr(if_expr=one, else_expr=other) | OpExpr(op="or" | "and", left=one, right=other):
                found = [(one, frame), (other, frame)]
            case NameExpr():
                value = self.bound(expression, frame)
                return [value] if value is not None else self._given(expression, frame)
            case StarExpr(expr=several):
                if items := self.members(several, frame):
                    return items
                found = self.yielded(several, frame)
            case CallExpr(callee=MemberExpr(expr=manager)) if is_made_up(expression):
                found = self._given_by(manager, frame)
            case IndexExpr(base=whole, index=key):
                found = self._taken(whole, key, frame)
            case MemberExpr():
                found = self._returned(self.getters(expression, frame))
                if not found and (value := self.given(expression, frame)) is not None:
                    return [value]
                found = found or self._class_variables(expression, frame)
            case CallExpr(callee=MemberExpr(expr=whole, name="get"), args=[key, *otherwise]):
                found = self._taken(whole, key, frame)
                others = [(each, frame) for each in otherwise]
                found = [*found, *others] if found else self.returned(expression, frame)
            case CallExpr():
                found = self.returned(expression, frame)
            case _:
                pass
        return [Value(*each) for each in found]

    def _by_type(self, callee: Expression, frame: Frame) -> tuple[Target, ...] | None:
        """The methods `__call__` of an object; None for a function that came from somewhere."""
        type_ = self.type_of(callee, frame)
        items = [get_proper_type(item) for item in type_.items] if isinstance(type_, UnionType) else [type_]
        return _joined(self._of_type(item, callee, frame) for item in items if not isinstance(item, NoneType))

    def _of_type(self, type_: ProperType | None, callee: Expression, frame: Frame) -> tuple[Target, ...] | None:
        named = callee.node if isinstance(callee, RefExpr) else None
        match type_:
            case Instance() if type_.type.get("__call__") is not None:
                return self.methods(type_.type, "__call__", Value(callee, frame))
            case CallableType() | Overloaded() if not any(item.is_type_obj() for item in type_.items):
                is_own = isinstance(named, Var) and (named.fullname == named.name or self.is_program(named.fullname))
                return None if is_own or named is None else ()  # a function or class of a library
            case AnyType() if isinstance(callee, NameExpr) and callee.kind == LDEF:
                return None  # a library without types is none of the program's; an argument may be a function of it
            case _:
                return ()

    def defined(
        self, node: SymbolNode, frame: Frame | None, given: tuple[Value, ...] = ()
    ) -> tuple[Target, ...] | None:
        """A function as it is after its decorators; `given` is the object that it is a method of."""
        if isinstance(node, OverloadedFuncDef):
            node = node.impl if node.impl is not None else node.items[0]
        decorators: Sequence[Expression] = []
        others = self.registered.get(node, ())
        if isinstance(node, Decorator):
            decorators, node = node.original_decorators, node.func
        if not isinstance(node, FuncDef) or node not in self.homes:
            return ()
        home = self.homes[node]
        outer = frame.chain() if frame is not None and home.around is not None else ()
        around = next((at for at in outer if at.node is home.around), None)
        at = around if around is not None else home.module
        found: tuple[Target, ...] = (Target(node, around), *(Target(other, around) for other in others))
        for decorator in reversed(decorators):
            maker = decorator.callee if isinstance(decorator, CallExpr) else decorator
            if self.targets(maker, at) == ():
                continue  # a library's: it calls the function
            makers = self.targets(decorator, at)
            if makers == ():
                continue
            returned = self._returned(makers, [Value(targets=found, type=node.type)])
            made = _joined(self.targets(*each) for each in returned) if returned else None
            if made is None:
                return None
            found = made
        return tuple(target.with_arguments(() if node.is_static else given) for target in found)

    def is_function(self, expression: Expression, frame: Frame) -> bool:
        """True for a function, and False for a class."""
        type_ = self.type_of(expression, frame)
        if isinstance(type_, Instance):
            return type_.type.fullname == "functools.partial"
        return isinstance(type_, CallableType) and not type_.is_type_obj()

    def _methods(self, callee: MemberExpr, frame: Frame) -> tuple[Target, ...] | None:
        named = bare(callee.expr)
        home = named.node if isinstance(named, RefExpr) else None
        if isinstance(home, TypeInfo | MypyFile):
            symbol = home.names.get(callee.name) if isinstance(home, MypyFile) else home.get(callee.name)
            node = symbol.node if symbol is not None else None
            if isinstance(node, FuncDef | Decorator | OverloadedFuncDef):
                bound = (Value(callee.expr, frame),) if getattr(node, "is_class", False) else ()
                return self.defined(node, frame, bound)
            value = self.constant(node) if isinstance(node, Var) else None
            return self.targets_of(value) if value is not None else self._by_type(callee, frame)
        owner = Value(callee.expr, frame)
        set_ = self.given(callee, frame)
        found = self.targets_of(set_) if set_ is not None else ()
        if found != () or (set_ is not None and set_.held is not None and set_.held.kind in ("function", "type")):
            return found  # none for a class, and for a function of a library
        type_ = self.type_of(callee.expr, frame)
        info = info_in(type_.item) if isinstance(type_, TypeType) else None
        infos = [info] if info is not None else self.infos_of(callee.expr, frame)
        return (
            _joined(self.methods(each, callee.name, owner) for each in infos) if infos else self._by_type(callee, frame)
        )

    def methods(self, info: TypeInfo, name: str, owner: Value) -> tuple[Target, ...] | None:
        """The methods that a call on an object may go to: that of its class, and those of its subclasses, or of the
        classes that have what a Protocol asks for.
        """
        node = member(info, name)
        if node is None:
            return ()
        if isinstance(node, Var):
            type_ = get_proper_type(node.type)
            is_function = isinstance(type_, CallableType) and not type_.is_type_obj()
            return None if is_function and self.is_program(info.fullname) else ()
        home = next((base for base in info.mro if name in base.names), info)
        made = self.origin(owner)
        others = [] if made.held is not None else self._below(info)
        found = {node: owner}
        for cls in others:
            if (there := member(cls, name)) is not None:
                found.setdefault(there, Value(type=instance_of(cls)))
        if info.is_protocol and self.is_program(home.fullname) and not others:
            return None
        return _joined(self.defined(each, None, (of,)) for each, of in found.items())

    def _below(self, info: TypeInfo) -> list[TypeInfo]:
        if info.is_protocol and self.is_program(info.fullname):
            classes = [cls for cls in self.classes if not cls.is_protocol]
            return [cls for cls in classes if all(cls.get(name) is not None for name in info.protocol_members)]
        return [cls for cls in self.classes if info in cls.mro[1:]]

    def class_variable(self, info: TypeInfo, name: str) -> Place | None:
        """What a class of the program assigns to a name, for all of its instances."""
        node = member(info, name)
        home = self.modules.get(node.info.module_name) if isinstance(node, Var) and node.info else None
        if not isinstance(node, Var) or home is None:
            return None
        only = self.notes_of(node.info.defn.defs).only(node)
        return (only, home) if only is not None else None

    def _class_variables(self, attribute: MemberExpr, frame: Frame) -> list[Place]:
        """What the classes that an object may be of assign to an attribute which no function sets."""
        named = attribute.expr.node if isinstance(attribute.expr, RefExpr) else None
        info = named if isinstance(named, TypeInfo) else self.info_of(attribute.expr, frame)
        if info is None or attribute.name in self.attributes_set:
            return []
        owner = self.origin(Value(attribute.expr, frame))
        callee = owner.expression.callee if isinstance(owner.expression, CallExpr) else None
        is_made_here = isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo)
        if not is_made_here and owner.held is None and attribute.name in attrs_fields(info):
            return []  # its default: an object that was made elsewhere may have been given another value
        classes = [info] if owner.held is not None else [info, *self._below(info)]
        found = [self.class_variable(each, attribute.name) for each in classes]
        return [each for each in found if each is not None] if None not in found else []

    @bounded(())
    def _wholes(self, several: Expression, frame: Frame) -> list[Value]:
        """The containers that an expression may be, of those that stay as they are."""
        whole = self.origin(Value(several, frame), fixed=True)
        match whole.place:
            case (NameExpr(node=name) | MemberExpr(name=name), _) if name in self.filled:
                return []
            case (NameExpr() | MemberExpr() | CallExpr() | IndexExpr(), _) as place if ways := self.ways(*place):
                return [self.origin(each, fixed=True) for each in ways]
            case _:
                return [whole]

    def members(self, several: Expression, frame: Frame) -> list[Value]:
        """The items of a tuple, list or set, or the keys of a dict, that is written out or that the application holds,
        and that stays as it is.
        """
        wholes = self._wholes(several, frame)
        whole = wholes[0] if len(wholes) == 1 else Value()
        match whole.place:
            case (TupleExpr(items=items) | ListExpr(items=items) | SetExpr(items=items), at):
                return [Value(item, at) for item in items]
            case (CallExpr(args=[inner]) as call, at) if called(call) in ("builtins.frozenset", "builtins.set"):
                return self.members(inner, at)
            case _:
                held = whole.held
                return [*map(self.value_of, held.given)] if held is not None and held.kind == "object" else []

    def _taken(self, several: Expression, key: Expression, frame: Frame) -> list[Place]:
        """What a dict or a tuple has under a key, or each item where that varies, of one that is written out and stays
        as it is; none where one that it may be is not known.
        """
        found: list[Place] = []
        for whole in self._wholes(several, frame):
            items: list[tuple[tuple[object] | None, Expression]] = []
            match whole.place:
                case (DictExpr(items=pairs), at) if all(name is not None for name, _ in pairs):
                    items += [(constant(name), value) for name, value in pairs if name is not None]
                case (TupleExpr(items=values), at) if not any(isinstance(each, StarExpr) for each in values):
                    items += [((number,), value) for number, value in enumerate(values)]
                case _:
                    return []
            keys = self.constants(Value(key, frame))
            found += [(value, at) for known, value in items if not keys or known in (None, *keys)]
        return found

    @bounded(())
    def constants(self, value: Value) -> tuple[tuple[object], ...]:
        """The constants that a value may be, each alone in a tuple; () where one of them is not known."""
        origin = self.origin(value)
        if origin.held is not None and origin.held.kind == "constant":
            return ((origin.held.constant,),)
        if origin.place is not None:
            if (known := constant(origin.place[0])) is not None:
                return (known,)
            parts = [*map(self.constants, self.ways(*origin.place))]
            if parts and all(parts):
                return tuple(each for part in parts for each in part)
        schema = self.schema_of(value)
        return tuple((each,) for each in schema.get("enum", [schema["const"]] if "const" in schema else ()))

    def _given(self, name: NameExpr, frame: Frame) -> list[Value]:
        """What a name may be that is given several values, or parts of others; none where one is not known, or is made
        of the name.
        """
        node = name.node
        at = next((at for at in frame.chain() if node in at.notes.assigned), None)
        if node is None or at is None or node in self.changed:
            return []
        found = [at.values[node]] if node in at.values else []
        for each in at.notes.assigned[node]:
            if each is None or any(getattr(part, "node", None) is node for part in (each, *within(each))):
                return []
            is_part = isinstance(each, StarExpr | CallExpr) or isinstance(getattr(each, "index", None), IntExpr)
            # mypy has no type for the part itself.
            parts = self.ways(each, at) if is_part and is_made_up(each) else [Value(each, at)]
            if not parts:
                return []
            found += parts
        return found

    def _given_by(self, manager: Expression, frame: Frame) -> list[Place]:
        """What a context manager gives the name of its `with`: what its function yields, or its method returns."""
        if found := self.yielded(manager, frame):
            return found
        info, owner = self.info_of(manager, frame), Value(manager, frame)
        methods = [each for way in CONTEXT[:2] if info is not None for each in self.methods(info, way, owner) or ()]
        return self._returned(methods)

    def yielded(self, expression: Expression, frame: Frame) -> list[Place]:
        """What the program's functions yield to the call behind an expression."""
        made = self.made(Value(expression, frame))
        inside = self.entered(*made) if made is not None else ()
        return [(each, at) for at in inside for each in at.notes.yielded]

    def entered(self, call: CallExpr, frame: Frame) -> list[Frame]:
        """The frames of the program's functions that a call goes to."""
        targets = self.targets(call.callee, frame) or ()
        given, named = self.arguments(call, frame)
        return [self.enter(each.with_arguments(given, named)) for each in targets if each.node is not None]

    def returned(self, call: CallExpr, frame: Frame) -> list[Place]:
        """The expressions that the program's functions return to a call, in the frames of that call."""
        return [(each, inside) for inside in self.entered(call, frame) for each in inside.notes.returned]

    def _returned(self, targets: Iterable[Target] | None, given: Sequence[Value] = ()) -> list[Place]:
        frames = [self.enter(each.with_arguments(given)) for each in targets or () if each.node is not None]
        return [(each, frame) for frame in frames for each in frame.notes.returned]

    def getters(self, attribute: MemberExpr, frame: Frame) -> tuple[Target, ...] | None:
        """The program's functions behind an attribute that is a property."""
        info = self.info_of(attribute.expr, frame)
        node = member(info, attribute.name)
        if info is None or not isinstance(node, Decorator) or not node.var.is_property:
            return ()
        return self.methods(info, attribute.name, Value(attribute.expr, frame))


def _joined(found: Iterable[tuple[Target, ...] | None]) -> tuple[Target, ...] | None:
    each = [*found]
    return None if None in each else tuple(target for targets in each for target in targets or ())
