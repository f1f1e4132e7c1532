"""The classes that rows are read as, by the statements of a program: fields that are missing, and types that do not
fit.

`core.sql` decides the type of a column, the program's own names where the class is. A field whose type fits is its
author's, and so are its order, its default, its validators and the text beside it. What is written is laid out as a
formatter would.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

from core.program.classes import Field
from core.program.databases import Databases
from core.program.findings import Finding
from core.program.generate import LineEdit, added, cut, edited, is_keyword_only, with_attrs
from core.program.modules import ClassScope, FunctionScope, Module, Scope
from core.program.queries import TYPED
from core.program.reader import Reader
from core.program.rows import NONE, class_fields, inner_class, row_kinds
from core.program.syntax import finding_at
from core.sql.classes import check_row, groups_of, inside, is_absent
from core.sql.rows import RowField, field_type, misfit
from core.sql.statement import Column, Statement


class Use(NamedTuple):
    """One statement whose rows become a class. `inner`: a part of each row does, which columns with a dot fill."""

    module: Module
    node: ast.expr
    label: str
    statement: Statement
    inner: bool = False

    def finding(self, message: str) -> Finding:
        """A finding where the class is asked for."""
        return finding_at(self.node, self.module.scope, "core-sql", f"{self.label}: {message}")


class Retyped(NamedTuple):
    """An annotation that does not fit. `optional`: it fits but for NULL."""

    annotation: ast.expr
    type: str
    optional: bool


class AddedFields(NamedTuple):
    """Fields that a class lacks, as they are written."""

    class_: ast.ClassDef
    fields: Sequence[str]


class NewClass(NamedTuple):
    """A class that is nowhere yet. `before` is the statement of the module that it is above; None for the end."""

    name: str
    fields: Sequence[str]
    before: ast.stmt | None


Edit = Retyped | AddedFields | NewClass


class _Missing(NamedTuple):
    """A name that no class has, and the module that ought to define it."""

    module: Module
    name: str


class _Inner(NamedTuple):
    """The class of a group of columns. `name`: of one that a new field has. `absent`: None has to be added to the
    field's type.
    """

    name: str
    optional: bool
    absent: bool


class RowClasses:
    """The edits that a program's statements need in its classes, by file, and the `problems` that no class can
    solve.
    """

    def __init__(self, databases: Databases, modules: Sequence[Module], files: Collection[Path] | None = None) -> None:
        self.databases: Databases = databases
        self.reader: Reader = databases.reader
        self.edits: dict[Path, list[Edit]] = {}
        self.problems: list[Finding] = []
        self.classes: int = 0
        self._wanted: dict[ClassScope | _Missing, list[Use]] = {}
        self._inner: dict[tuple[ClassScope | _Missing, str], _Inner] = {}
        self._above: dict[_Missing, ast.stmt] = {}
        for use, scope in self._uses(modules):
            target = self.reader.class_of(use.node, scope) or self._missing(use.node, scope)
            if target is not None:
                self._wanted.setdefault(target, []).append(use)
        for owner, uses in [(owner, list(uses)) for owner, uses in self._in_order()]:
            self._find_inner(owner, uses)
        for owner, uses in self._in_order():
            if files is not None and not any(use.module.path in files for use in uses):
                continue
            columns = self._columns(uses)
            if columns is not None and isinstance(owner, _Missing):
                self._write(owner, uses, columns)
            elif columns is not None and isinstance(owner, ClassScope):
                self._update(owner, uses, columns)

    def _in_order(self) -> list[tuple[ClassScope | _Missing, list[Use]]]:
        """The classes that are there before those that are not."""
        return sorted(self._wanted.items(), key=lambda item: isinstance(item[0], _Missing))

    def _uses(self, modules: Sequence[Module]) -> Iterator[tuple[Use, Scope]]:
        for module in modules:
            for scope in module.scope.walk():
                if not isinstance(scope, FunctionScope):
                    continue
                for node in scope.nodes.of(ast.Call):
                    match node:
                        case ast.Call(
                            func=ast.Attribute(value=owner, attr=name),
                            args=[ast.Name() | ast.Attribute() as wanted, *_],
                        ) if name in TYPED and (found := self.databases.behind(owner, scope)) is not None:
                            yield Use(module, wanted, found.label, found.statement), scope
                        case _:
                            pass

    def _missing(self, expression: ast.expr, scope: Scope) -> _Missing | None:
        """The module that ought to define a name: the one that it is imported from, or the one that uses it."""
        if not isinstance(expression, ast.Name) or self.databases.modules.resolve(expression, scope) is not None:
            return None
        name, module = expression.id, scope.module
        home = scope.home_of(name)
        if home is not None:
            base, name = home.names[name][0].alias or ("", "")
            source = self.databases.modules.find(base)
            if source is None or name in source.scope.names:
                return None  # a variable, or something that cannot be followed
            module = source
        return _Missing(module, name) if not module.scope.stars else None

    # -- classes in classes

    def _find_inner(self, owner: ClassScope | _Missing, uses: Sequence[Use]) -> None:
        """Find the classes that groups of columns fill: those of fields that are there, and new ones."""
        for name in dict.fromkeys(name for use in uses for name in groups_of(use.statement)):
            some = [use for use in uses if name in groups_of(use.statement)]
            field = self._field(owner, name)
            target: ClassScope | _Missing | None = None
            optional = False
            if field is not None:
                target = inner_class(self.reader, field.annotation, field.owner)
                optional = "none" in row_kinds(self.reader, field.annotation, field.owner)
            elif len(some) == len(uses):
                target = self._inner_target(owner, name)
            if target is None:
                continue
            written = _title(target) if field is None else ""
            before = self._inner.get((owner, name))
            absent = not optional and any(is_absent(use.statement, name) for use in some)
            absent = absent or (before is not None and before.absent)
            self._inner[owner, name] = _Inner(written, optional or absent, absent)
            inner = [
                use._replace(statement=inside(use.statement, name, optional=optional or absent), inner=True)
                for use in some
            ]
            self._wanted.setdefault(target, []).extend(inner)
            statement = self._statement_of(owner, uses)
            if statement is not None and isinstance(target, _Missing):
                self._above.setdefault(target, statement)
            self._find_inner(target, inner)

    def _field(self, owner: ClassScope | _Missing, name: str) -> Field | None:
        fields = self.reader.fields(owner) if isinstance(owner, ClassScope) else ()
        return next((field for field in fields if field.name == name), None)

    def _inner_target(self, owner: ClassScope | _Missing, name: str) -> ClassScope | _Missing | None:
        """The class for a field that is not there: one of its name, or a new one."""
        if not _can_be_field(name):
            return None
        module, title = owner.module, _title(owner)
        own = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        for candidate in (own, f"{title}{own}"):
            if candidate not in module.scope.names:
                return _Missing(module, candidate)
            class_ = self.reader.class_of(ast.Name(candidate), module.scope)
            if class_ is not None and class_ != owner and self.reader.is_structured(class_):
                return class_
        return None

    def _statement_of(self, owner: ClassScope | _Missing, uses: Sequence[Use]) -> ast.stmt | None:
        """The statement of a module that a class is in, or is going to be above."""
        if isinstance(owner, _Missing):
            return self._place_of(owner, uses)
        line = owner.node.lineno
        body = owner.module.tree.body
        return next((one for one in body if one.lineno <= line <= (one.end_lineno or one.lineno)), None)

    # -- a class that is there

    def _update(self, class_: ClassScope, uses: Sequence[Use], columns: Mapping[str, Sequence[Column]]) -> None:
        read = class_fields(self.reader, class_)
        if read is None:
            return
        title, fields, whole = read
        self.classes += 1
        inner = {name: self._inner[owner, name] for owner, name in self._inner if owner == class_}
        fields = [
            field._replace(kinds=field.kinds | NONE) if field.name in inner and inner[field.name].absent else field
            for field in fields
        ]
        named = {field.name: field for field in fields}
        written = {field.name: field for field in self.reader.fields(class_)}
        for use in uses:
            for field, message in check_row(use.statement, title, fields, whole) if not use.inner else ():
                if use.statement.column(field) is None and not self._is_added(class_, field):
                    self.problems.append(use.finding(message))
        for name, one in inner.items():
            if name in written and one.absent:
                self._edit(written[name].owner.module, Retyped(written[name].annotation, "", True))
        for name, given in columns.items():
            if name in named:
                self._retype(named[name], written[name], given)
        new = self._lines(class_, {name: given for name, given in columns.items() if name not in named}, title, uses)
        # No field without a default may follow one with a default that a base has.
        inherited = any(field.has_default and field.owner != class_ for field in written.values())
        if new and (not inherited or is_keyword_only(class_.node) or self.reader.is_typed_dict(class_)):
            self._edit(class_.module, AddedFields(class_.node, new))
        elif new:
            message = (
                f"{title} lacks {', '.join(new)}, which cannot stand behind a field with a default of its base. "
                "Make the class kw_only, or write the field with a default"
            )
            self.problems.append(uses[0].finding(message))

    def _is_added(self, owner: ClassScope, path: str) -> bool:
        """True if a field is going to be added to a class, or to one in it, or if that is refused by itself."""
        first, _, rest = path.partition(".")
        field = self._field(owner, first)
        target = inner_class(self.reader, field.annotation, field.owner) if field is not None else None
        if rest:
            return target is not None and self._is_added(target, rest)
        return field is None and ((owner, first) in self._inner or not _can_be_field(first))

    def _retype(self, field: RowField, written: Field, given: Sequence[Column]) -> None:
        wrong = [misfit(column, field) for column in given]
        if any(wrong):
            # An annotation is written once, in the class that has the field.
            kinds = row_kinds(self.reader, written.annotation, written.owner)
            rest = RowField(field.name, field.shown, kinds | NONE)
            optional = not any(misfit(column, rest) for column in given)
            edits = self.edits.get(written.owner.module.path, ())
            if not any(isinstance(edit, Retyped) and edit.annotation is written.annotation for edit in edits):
                type_ = field_type(given, optional="none" in kinds)
                self._edit(written.owner.module, Retyped(written.annotation, type_, optional))

    # -- a class that is not

    def _write(self, target: _Missing, uses: Sequence[Use], columns: Mapping[str, Sequence[Column]]) -> None:
        self.classes += 1
        lines = self._lines(target, columns, target.name, uses)
        if not lines:
            return
        # A class comes after those in it, which are found later.
        new = NewClass(target.name, lines, self._place_of(target, uses))
        self.edits.setdefault(target.module.path, []).insert(0, new)

    def _place_of(self, target: _Missing, uses: Sequence[Use]) -> ast.stmt | None:
        """The statement that a new class is put above; None for the end of the module."""
        own = [use for use in uses if use.module is target.module]
        places = [_first_with(target.module.tree, target.name) if own else None, self._above.get(target)]
        return min((place for place in places if place is not None), key=lambda place: place.lineno, default=None)

    def _lines(
        self, owner: ClassScope | _Missing, columns: Mapping[str, Sequence[Column]], title: str, uses: Sequence[Use]
    ) -> list[str]:
        """The fields for columns, as they are written; a class of a group has its place once."""
        groups = {name for use in uses for name in groups_of(use.statement)}
        lines: dict[str, str] = {}
        for name, given in columns.items():
            first = name.partition(".")[0]
            if name != first and first in groups:
                inner = self._inner.get((owner, first))
                if inner is not None and inner.name:
                    lines[first] = f"{first}: {inner.name}{' | None' if inner.optional else ''}"
                if inner is not None or self._field(owner, first) is not None:
                    continue
            if _can_be_field(name):
                lines[name] = f"{name}: {field_type(given)}"
            else:
                message = f'"{name}" cannot be the name of a field of {title}. Give the column another, with AS'
                self.problems.append(uses[0].finding(message))
        return list(lines.values())

    def _columns(self, uses: Sequence[Use]) -> Mapping[str, Sequence[Column]] | None:
        """The columns that all the statements give, each as each gives it; None where one of them is not known."""
        bad = False
        for use in uses:
            if use.statement.problems:
                self.problems.append(use.finding(use.statement.problems[0].message))
                bad = True
            elif use.statement.columns is None:
                bad = True
            elif not use.statement.columns:
                message = f"{ast.unparse(use.node)} is read from rows, but the statement gives none. Add RETURNING, or call run()"
                self.problems.append(use.finding(message))
                bad = True
        if bad:
            return None
        given: dict[str, list[Column]] = {}
        for use in uses:
            for name in dict.fromkeys(column.name for column in use.statement.columns or ()):
                column = use.statement.column(name)
                if column is not None:
                    given.setdefault(name, []).append(column)
        return {name: columns for name, columns in given.items() if len(columns) == len(uses)}

    def _edit(self, module: Module, edit: Edit) -> None:
        self.edits.setdefault(module.path, []).append(edit)


def _title(owner: ClassScope | _Missing) -> str:
    return owner.name if isinstance(owner, _Missing) else owner.node.name


def _can_be_field(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)


def _first_with(tree: ast.Module, name: str) -> ast.stmt | None:
    """The first statement of a module that names something and does not import it."""
    for statement in tree.body:
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            return statement
    return None


# The text of a module -------------------------------------------------------------------------------------------------


def with_rows(text: str, edits: Sequence[Edit]) -> str:
    """The text of a module after the edits."""
    lines = text.split("\n")
    made: list[LineEdit] = []
    above: list[LineEdit] = []
    behind: list[str] = []
    for edit in edits:
        match edit:
            case Retyped():
                made.append(_retyped(edit, lines))
            case AddedFields(class_, fields):
                made.append(added(class_, fields, lines))
            case NewClass(name, fields, before):
                written = ["@attrs.frozen", f"class {name}:", *(f"    {field}" for field in fields)]
                if before is None:
                    behind += ["", "", *written]
                    continue
                at = _above(before, lines)
                end = _end(lines[:at])
                is_first = at not in (one[0] for one in above)
                blank = [""] * (2 - at + end) if end and is_first else []
                above.append((at, at, [*blank, *written, "", ""]))
    if behind:
        end = _end(lines)
        above.append((end, len(lines), [*(behind if end else behind[2:]), ""]))
    new = edited(lines, [*made, *above])  # a class that ends where a new one begins has its fields before it
    return with_attrs(new) if above else new


def _end(lines: Sequence[str]) -> int:
    """The number of lines up to the last one that is not blank."""
    return next((at for at in range(len(lines), 0, -1) if lines[at - 1].strip()), 0)


def _above(statement: ast.stmt, lines: Sequence[str]) -> int:
    """The line of a statement with its decorators and the comments right above it."""
    at: int = min(one.lineno for one in (statement, *getattr(statement, "decorator_list", ()))) - 1
    while at and lines[at - 1].startswith("#"):
        at -= 1
    return at


def _retyped(edit: Retyped, lines: Sequence[str]) -> LineEdit:
    old = edit.annotation
    first, last = old.lineno - 1, (old.end_lineno or old.lineno) - 1
    start, end = cut(lines[first], old.col_offset), cut(lines[last], old.end_col_offset or 0)
    if not edit.optional:
        return first, last + 1, [lines[first][:start] + edit.type + lines[last][end:]]
    # Inside the quotes of an annotation that is quoted.
    place = end - 1 if isinstance(old, ast.Constant) and isinstance(old.value, str) else end
    return last, last + 1, [lines[last][:place] + " | None" + lines[last][place:]]
