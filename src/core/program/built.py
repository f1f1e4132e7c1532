"""The text of a statement that is put together: its parts, and whether the values in it are constants.

A value is a constant, not known, or open: anybody may have chosen it. Open are requests, what is read of them, and
parameters, unless their type, or a test of membership beside them, leaves only constants. Places for parameters
(`", ".join("?" * n)`), numbers, and names out of a dict of constants are constants.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Formatter
from typing import Final, TypeAlias

from core.program.modules import ClassScope, Definition, FunctionScope, Local, Modules, Scope, own_class
from core.program.reader import Reader, arguments_of, arms
from core.program.receivers import Receivers
from core.program.rows import enum_values
from core.program.syntax import REQUESTS
from core.sql.interpolated import FIXED, OPEN, UNKNOWN, Interpolated
from core.statements.tokens import words

_CONSTANT: Final = words("bool float hash id int len ord range round sum typing.get_args typing_extensions.get_args")
"""Functions of which nobody chooses the text: numbers, and the arguments of a Literal."""
_HOW: Final = words("key reverse start strict")
_RECORDS: Final = words("attr.asdict attrs.asdict dataclasses.asdict")
_TYPES: Final[Mapping[str, int]] = {
    **dict.fromkeys(["builtins.bool", "builtins.float", "builtins.int"], FIXED),
    **dict.fromkeys(["typing.LiteralString", "typing_extensions.LiteralString"], FIXED),
    **dict.fromkeys(["builtins.str", "builtins.bytes", "builtins.object", "typing.Any", *REQUESTS], OPEN),
}
_TESTS: Final = frozenset(["fullmatch", "isalnum", "isalpha", "isdigit", "isidentifier"])
_FORMAT: Final = re.compile(r"%(?:\((?P<key>\w+)\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%]")
_Bound: TypeAlias = "Mapping[str, int]"
"""The variables of comprehensions around an expression, and what they are."""
_NONE: Final[_Bound] = {}
_DEEPEST: Final = 8


class BuiltTexts:
    """The texts of one program that are put together."""

    def __init__(self, receivers: Receivers) -> None:
        self.receivers = receivers
        self.reader: Reader = receivers.reader
        self.modules: Modules = receivers.modules
        self._asked: set[tuple[str, Scope]] = set()
        self._busy: set[ast.expr] = set()
        self._testing: set[Scope] = set()
        self.straight: bool = True

    def parts(self, text: ast.expr, scope: Scope) -> Sequence[str | Interpolated]:
        """The parts of a text; nothing where no part of it is known."""
        self.straight = True
        parts = list(self._parts(text, scope, whole=True))
        return parts if any(isinstance(part, str) or part.choices for part in parts) else ()

    def _value(self, value: ast.expr, scope: Scope, *, plain: bool = True) -> Interpolated:
        state = self._state(value, scope)
        choices = self._choices(value, scope) if plain and state == FIXED else ()
        return Interpolated(_shown(value), state, choices=choices)

    def _choices(self, value: ast.expr, scope: Scope, depth: int = 0) -> tuple[str, ...]:
        """The texts that a constant may be, as far as they are written out."""
        known = self.modules.string(value, scope)
        if known is not None or depth > _DEEPEST:
            return (known,) if known is not None else ()
        value, scope = self.modules.value(value, scope)
        found: list[tuple[str, ...]] = []
        match value:
            case ast.Constant(value=int() as number):
                return (str(number),)
            case ast.IfExp(body=body, orelse=other):
                found = [self._choices(one, scope, depth + 1) for one in (body, other)]
            case ast.Subscript(value=owner) | ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[_, _]):
                grown = isinstance(owner, ast.Name) and any(True for _ in self._put_in(owner.id, scope, "values"))
                owner, where = self.modules.value(owner, scope)
                if isinstance(owner, ast.Dict) and not grown:
                    found = [self._choices(one, where, depth + 1) for one in owner.values]
                    others = value.args[1:] if isinstance(value, ast.Call) else ()
                    found += [self._choices(one, scope, depth + 1) for one in others]
            case ast.Call(func=ast.Attribute(attr="join"), args=[items]):
                match items:
                    case ast.BinOp(left=ast.List(elts=[one]), op=ast.Mult()) | ast.BinOp(left=one, op=ast.Mult()):
                        return self._choices(one, scope, depth + 1)
                    case ast.GeneratorExp(elt=ast.Constant() as one) | ast.ListComp(elt=ast.Constant() as one):
                        return self._choices(one, scope, depth + 1)
                    case _:
                        return ()
            case ast.Name():
                resolved = self.modules.resolve(value, scope)
                if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                    read = self.reader.annotation(resolved.definition.annotation, resolved.scope)
                    if read.kind == "Literal":
                        return () if read.optional else tuple(map(str, read.literals))
            case _:
                pass
        return tuple(text for each in found for text in each) if found and all(found) else self._members(value, scope)

    def _members(self, value: ast.expr, scope: Scope) -> tuple[str, ...]:
        """The texts of an enum's members, of `kind.value` or of a `StrEnum` itself."""
        inner = value.value if isinstance(value, ast.Attribute) and value.attr == "value" else value
        class_ = self.receivers.class_of(inner, scope)
        if class_ is None or (inner is value and "enum.StrEnum" not in self.reader.outside(class_)):
            return ()
        given = enum_values(self.reader, class_)
        texts = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        return tuple(texts) if len(texts) == len(given) else ()

    def _parts(self, text: ast.expr, scope: Scope, *, whole: bool = False) -> Iterator[str | Interpolated]:
        """The parts of a text, or of one that is put into it; of a `whole` one that is not known at all, nothing."""
        known = self.modules.string(text, scope)
        if known is not None:
            yield known
            return
        definitions = self.modules.definitions(text, scope)
        if isinstance(text, ast.Name) and any(map(_given, definitions)):
            asked = (text.id, scope) in self._asked
            self.straight = self.straight and len(definitions) == 1 and not asked
            if asked:
                return  # what it had before
            self._asked.add((text.id, scope))
            for definition in definitions:
                value = _given(definition)
                state = UNKNOWN if value is not None else self._defined(*definition, text.id, "keys")
                first = whole and not isinstance(definition[0].node, ast.AugAssign)
                found = (
                    [Interpolated(text.id, state)] if value is None else self._parts(value, definition[1], whole=first)
                )
                yield from _one_of(found, whole=first) if len(definitions) > 1 else found
            self._asked.remove((text.id, scope))
            return
        text, scope = self.modules.value(text, scope)
        match text:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self._parts(left, scope)
                yield from self._parts(right, scope)
            case ast.JoinedStr(values=values):
                for one in values:
                    plain = isinstance(one, ast.FormattedValue) and one.conversion == -1 and one.format_spec is None
                    yield from self._parts(one.value if isinstance(one, ast.FormattedValue) and plain else one, scope)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                yield from self._formatted(left, right, scope)
            case ast.Call(func=ast.Attribute(value=left, attr="format"), args=args, keywords=keywords):
                form = self.modules.string(left, scope)
                given = {str(at): arg for at, arg in enumerate(args)} | {k.arg or "": k.value for k in keywords}
                numbers = map(str, range(len(args)))
                try:
                    fields = list(Formatter().parse(form or ""))
                except ValueError:
                    fields = []  # it cannot be formatted
                for before, name, spec, conversion in fields:
                    yield before
                    if name is not None:
                        value = given.get(re.split(r"[.\[]", name)[0] or next(numbers, ""), text)
                        plain = not (spec or conversion or "." in name or "[" in name) and value is not text
                        yield self._value(value, scope, plain=plain)
            case ast.Call(func=ast.Attribute(value=between, attr="join"), args=[ast.List() | ast.Tuple() as items]):
                for at, item in enumerate(items.elts):
                    if at:
                        yield from self._parts(between, scope)
                    yield from self._parts(item, scope)
            case ast.Call(func=ast.Attribute(attr="join"), args=[items]):
                yield self._value(text, scope)._replace(shown=_shown(items), several=True)
            case ast.Call(func=ast.Attribute(value=inner, attr="strip" | "rstrip" | "lstrip"), args=[]):
                yield from self._parts(inner, scope)
            case ast.Call(args=[inner]) if self.modules.outside(text.func, scope) == "textwrap.dedent":
                yield from self._parts(inner, scope)
            case ast.IfExp(body=body, orelse=other) if self._state(text, scope) != FIXED:
                self.straight = False
                for one in (body, other):
                    yield from _one_of(self._parts(one, scope, whole=whole), whole=whole)
            case ast.FormattedValue(value=inner):
                yield self._value(inner, scope, plain=False)
            case _:
                yield self._value(text, scope)

    def _formatted(self, left: ast.expr, right: ast.expr, scope: Scope) -> Iterator[str | Interpolated]:
        """The parts of `"…%s…" % (value,)`."""
        form = self.modules.string(left, scope)
        if form is None:
            yield self._value(ast.BinOp(left, ast.Add(), right), scope)
            return
        keys = (
            {self.modules.string(k, scope): v for k, v in zip(right.keys, right.values, strict=True)}
            if isinstance(right, ast.Dict)
            else {}
        )
        values = iter(right.elts if isinstance(right, ast.Tuple) else [right])
        end = 0
        for match in _FORMAT.finditer(form):
            yield form[end : match.start()]
            end = match.end()
            if match[0] == "%%":
                yield "%"
                continue
            value = keys.get(match["key"]) if match["key"] else next(values, None)
            yield self._value(
                value if value is not None else right, scope, plain=match[0][-2] in "%)" and match[0][-1] == "s"
            )
        yield form[end:]

    # -- what a value is

    def _state(self, value: ast.expr, scope: Scope, bound: _Bound = _NONE, of: str = "keys") -> int:
        """What a value is, and what is in it: of a dict its `keys` or its `values`, of its items what is at a place."""
        if value in self._busy:
            return FIXED  # it is made of itself
        self._busy.add(value)
        state = self._unguarded(value, scope, bound, of)
        self._busy.remove(value)
        return FIXED if state == OPEN and self._is_tested(value, scope, bound) else state

    def _unguarded(self, value: ast.expr, scope: Scope, bound: _Bound, of: str) -> int:
        parts: Sequence[ast.expr] = ()
        match value:
            case ast.Name(id=name):
                return bound[name] if name in bound else self._variable(value, scope, of)
            case ast.Constant() | ast.UnaryOp() | ast.Compare():
                return FIXED
            case ast.BinOp(left=left, op=op, right=right):
                both = self._state(left, scope, bound, of), self._state(right, scope, bound, of)
                if isinstance(op, ast.Sub):
                    return both[0]
                return max(both) if isinstance(op, ast.Add | ast.Mod | ast.BitOr) else min(both)  # "?" * n
            case ast.Attribute():
                return self._attribute(value, scope, bound, of)
            case ast.Subscript(value=owner):
                return self._state(owner, scope, bound, "values")
            case ast.Call():
                return self._call(value, scope, bound, of)
            case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
                return self._placed(item, scope, self._targets(value, scope, bound), of)
            case ast.DictComp(key=key, value=item):
                return self._state(item if of == "values" else key, scope, self._targets(value, scope, bound))
            case ast.JoinedStr(values=parts) | ast.BoolOp(values=parts):
                pass
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return max((self._placed(one, scope, bound, of) for one in items), default=FIXED)
            case ast.FormattedValue() | ast.Await() | ast.NamedExpr() | ast.Starred():
                parts = [value.value]
            case ast.IfExp(body=body, orelse=other):
                parts = [body, other]
            case ast.Dict(keys=keys, values=values):
                # What is unpacked into it has keys and values of its own.
                parts = values if of == "values" else [key or own for key, own in zip(keys, values, strict=True)]
            case _:
                return UNKNOWN
        return max((self._state(one, scope, bound, of) for one in parts), default=FIXED)

    def _placed(self, item: ast.expr, scope: Scope, bound: _Bound, of: str) -> int:
        """The state of an item: of its part at a place, where it is written as a tuple; else of all that is in it."""
        if not of.isdigit():
            return self._state(item, scope, bound, of)
        match item:
            case ast.Starred(value=items):
                return self._state(items, scope, bound, of)
            case ast.Tuple(elts=parts) if len(parts) > int(of) and not any(isinstance(p, ast.Starred) for p in parts):
                return self._state(parts[int(of)], scope, bound)
            case _:
                return max(self._state(item, scope, bound, side) for side in ("keys", "values"))

    def _variable(self, name: ast.Name, scope: Scope, of: str) -> int:
        """The state of all the values that a variable is given, and of those that are put into it."""
        definitions = self.modules.definitions(name, scope)
        if not definitions:
            value, where = self.modules.value(name, scope)
            return UNKNOWN if isinstance(value, ast.Name) else self._state(value, where, of=of)
        if (name.id, scope) in self._asked:
            return FIXED  # what it had before
        self._asked.add((name.id, scope))
        found = [self._defined(definition, where, name.id, of) for definition, where in definitions]
        found += self._put_in(name.id, definitions[0][1], of)
        self._asked.remove((name.id, scope))
        return max(found)

    def _defined(self, definition: Definition, scope: Scope, name: str, of: str) -> int:
        match definition.node:
            case ast.arg() as parameter:
                own = own_class(Local(definition, scope)) is not None
                return UNKNOWN if own else self._annotated(parameter.annotation, scope)
            case ast.For(target=target, iter=items) | ast.AsyncFor(target=target, iter=items):
                return self._item(target, items, name, scope, _NONE)
            case ast.AugAssign(value=value) | ast.Assign(value=value):
                return self._state(value, scope, of=of)
            case ast.AnnAssign(annotation=annotation, value=value):
                declared = self._annotated(annotation, scope)
                return min(declared, self._state(value, scope, of=of)) if value is not None else FIXED
            case node:
                named = [one for one in ast.walk(node) if isinstance(one, ast.NamedExpr) and one.target.id == name]
                return max((self._state(one.value, scope, of=of) for one in named), default=UNKNOWN)

    def _item(self, target: ast.expr, items: ast.expr, name: str, scope: Scope, bound: _Bound) -> int:
        """The state of a variable of a loop."""
        parts = target.elts if isinstance(target, ast.Tuple) else []
        starred = any(isinstance(one, ast.Starred) for one in parts)
        names = [] if starred else [getattr(one, "id", "") for one in parts]
        return self._state(items, scope, bound, str(names.index(name)) if name in names else "keys")

    def _put_in(self, name: str, scope: Scope, of: str) -> Iterator[int]:
        """The states of values that are put into a list or a dict after it was made."""
        for node in scope.nodes.of(ast.Call, ast.Assign):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=own), attr="append" | "add" | "insert"), args=[*_, put]
                ) if own == name:
                    yield self._placed(put, scope, _NONE, of)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=own), attr="extend" | "update"), args=[*_, put]) if (
                    own == name
                ):
                    yield self._state(put, scope, of=of)
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=own), slice=key)], value=put) if own == name:
                    if of == "keys":
                        yield self._state(key, scope)
                    if of != "keys" or not self._is_dict(name, scope):
                        yield self._placed(put, scope, _NONE, of)
                case _:
                    pass

    def _is_dict(self, name: str, scope: Scope) -> bool:
        """False where a variable is a list as it is written."""
        made = [each.value for each in scope.names.get(name, ())]
        return not any(isinstance(one, ast.List | ast.ListComp) for one in made)

    def _annotated(self, annotation: ast.expr | None, scope: Scope) -> int:
        """The state of a value of a type, or of what is in it."""
        if annotation is None:
            return OPEN
        annotation, scope = self.reader.written_out(annotation, scope)
        if isinstance(annotation, ast.BinOp):
            some = [self._annotated(arm, scope) for arm in arms(annotation) if not isinstance(arm, ast.Constant)]
            return max(some, default=UNKNOWN)
        read = self.reader.annotation(annotation, scope)
        if read.kind == "Literal":
            return FIXED
        if read.class_ is not None:
            return FIXED if self._is_enum(read.class_) else UNKNOWN
        name = self.modules.outside(annotation, scope)
        if name in ("typing.ClassVar", "typing_extensions.ClassVar"):
            return UNKNOWN  # what the classes of the program say
        if isinstance(annotation, ast.Subscript) and name not in REQUESTS:
            inside = [one for one in arguments_of(annotation) if not isinstance(one, ast.Constant)]
            return max((self._annotated(one, scope) for one in inside), default=FIXED)
        return _TYPES.get(name, UNKNOWN)

    def _is_enum(self, class_: ClassScope | None) -> bool:
        return class_ is not None and any(name.startswith("enum.") for name in self.reader.outside(class_))

    def _attribute(self, value: ast.Attribute, scope: Scope, bound: _Bound, of: str) -> int:
        known, where = self.modules.value(value, scope)
        if known is not value:
            return self._state(known, where, of=of)
        assigned = self.modules.of_self(value, scope)
        if assigned is not None:
            return min(UNKNOWN, self._state(*assigned, of=of))
        owner = self.receivers.class_of(value.value, scope)
        if value.attr == "env" or (owner is not None and self.reader.is_env(owner)):
            return UNKNOWN  # as it is configured
        if value.attr == "value" and self._is_enum(owner):
            return FIXED
        if owner is not None:
            fields = [field for field in self.reader.fields(owner) if field.name == value.attr]
            return self._annotated(fields[0].annotation, fields[0].owner) if fields else UNKNOWN
        return self._state(value.value, scope, bound)

    def _call(self, call: ast.Call, scope: Scope, bound: _Bound, of: str) -> int:
        name = self.modules.outside(call.func, scope)
        own = name.removeprefix("builtins.")
        is_number = own in _CONSTANT or (own, of) == ("enumerate", "0")
        if is_number or (own in _RECORDS and of == "keys") or self._is_enum(self.reader.class_of(call.func, scope)):
            return FIXED
        # How a function of Python's own goes about it is no part of its result, and a name is a constant key of a dict.
        left_out = (
            [] if own == name else [one for one in call.keywords if one.arg in _HOW or (own, of) == ("dict", "keys")]
        )
        given = [*call.args, *(one.value for one in call.keywords if one not in left_out or one.arg is None)]
        unpacked = any(isinstance(one, ast.Starred) for one in call.args)
        if of.isdigit() and own in ("enumerate", "zip"):
            of, place = "keys", 0 if own == "enumerate" else int(of)
            given = given if unpacked else given[place:][:1]
        states = [self._state(one, scope, bound, of) for one in given[own == "map" :]]
        match call.func:
            case ast.Attribute(value=owner, attr="keys" | "values" as which) if not given:
                return self._state(owner, scope, bound, which)
            case ast.Attribute(value=owner, attr="items") if not given:
                sides = {"0": ["keys"], "1": ["values"]}.get(of, ["keys", "values"])
                return max(self._state(owner, scope, bound, side) for side in sides)
            case ast.Attribute(attr="join", value=between) if len(given) == 1:
                return max(self._state(between, scope, bound), *states)
            case _ if name:
                return max([*states, FIXED if name.startswith(("builtins.", "textwrap.")) else UNKNOWN])
            case ast.Attribute(attr="get" | "pop" | "setdefault", value=owner):
                return max([self._state(owner, scope, bound, "values"), *states[1:]])
            case ast.Attribute(value=owner) if self.modules.resolve(call.func, scope) is None:
                return max([self._state(owner, scope, bound, of), *states])
            case _:
                return UNKNOWN

    def _targets(
        self, made: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope, bound: _Bound
    ) -> _Bound:
        """The variables of a comprehension."""
        inside = dict(bound)
        for one in made.generators:
            names = {node.id for node in ast.walk(one.target) if isinstance(node, ast.Name)}
            inside |= {name: self._item(one.target, one.iter, name, scope, inside) for name in names}
            tested = {ast.unparse(node) for test in one.ifs for node in self._tested(test, scope)}
            inside |= dict.fromkeys(names & tested, FIXED)
        return inside

    def _is_tested(self, value: ast.expr, scope: Scope, bound: _Bound) -> bool:
        """True where a function asks whether a value is one of constants, or made of letters."""
        if bound or not isinstance(scope, FunctionScope) or scope in self._testing:
            return False
        self._testing.add(scope)
        shown = ast.unparse(value)
        found = any(ast.unparse(one) == shown for node in scope.nodes.parents for one in self._tested(node, scope))
        self._testing.remove(scope)
        return found

    def _tested(self, test: ast.AST, scope: Scope) -> Sequence[ast.expr]:
        match test:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[among]):
                return [left] if self._state(among, scope) == FIXED else ()
            case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args) if attr in _TESTS:
                return [owner, *args]
            case ast.BoolOp(op=ast.And(), values=values):
                return [one for value in values for one in self._tested(value, scope)]
            case _:
                return ()


def _shown(node: ast.expr) -> str:
    """A value as it is bound: of one that is made for the text, what it is made of."""
    match node:
        case ast.GeneratorExp(generators=[one]) | ast.ListComp(generators=[one]):
            return _shown(one.iter)
        case ast.Call(func=ast.Name(id="map"), args=[_, items]) | ast.Call(func=ast.Name(id="str"), args=[items]):
            return _shown(items)
        case _:
            return ast.unparse(node).replace("'", '"')


def _given(definition: tuple[Definition, Scope]) -> ast.expr | None:
    node = definition[0].node
    return node.value if isinstance(node, ast.AugAssign) else definition[0].value


def _one_of(parts: Iterable[str | Interpolated], *, whole: bool) -> Iterator[str | Interpolated]:
    """The parts of one of several texts; nothing where it is a whole one of which nothing is known."""
    found = list(parts)
    if not whole or any(isinstance(part, str) for part in found):
        yield from found
        yield " "
