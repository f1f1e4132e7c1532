"""The classes that rows are read as, by the statements of a program: fields that are missing, and types that do not
fit.

`core.sql` decides the type of a column, the program's own names where the class is. A field whose type fits is its
author's, and so are its order, its default, its validators and the text beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

from core.program.classes import ClassRef, Field
from core.program.databases import Databases
from core.program.findings import Finding
from core.program.generate import is_keyword_only
from core.program.modules import Module, Scope
from core.program.nodes import parents_of, scopes_in
from core.program.queries import TYPED
from core.program.reader import Reader
from core.program.rows import NONE, class_fields, row_kinds
from core.program.syntax import Node
from core.sql.classes import check_row
from core.sql.rows import RowField, field_type, misfit
from core.sql.statement import Column, Statement


class Use(NamedTuple):
    """One statement whose rows become a class."""

    module: Module
    node: ast.expr
    label: str
    statement: Statement

    def finding(self, message: str) -> Finding:
        """A finding where the class is asked for."""
        place = self.node
        return Finding(
            "core-sql", f"{self.label}: {message}", str(self.module.path), place.lineno, place.col_offset + 1
        )


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
        known: dict[ClassRef, list[Use]] = {}
        missing: dict[_Missing, list[Use]] = {}
        for use, scope in self._uses(modules):
            class_ = self.reader.class_of(use.node, scope)
            if class_ is not None:
                known.setdefault(class_, []).append(use)
            elif (target := self._missing(use.node, scope)) is not None:
                missing.setdefault(target, []).append(use)
        for class_, uses in known.items():
            if _within(uses, files):
                self._update(class_, uses)
        for target, uses in missing.items():
            if _within(uses, files):
                self._write(target, uses)

    def _uses(self, modules: Sequence[Module]) -> Iterator[tuple[Use, Scope]]:
        for module in modules:
            for scope in scopes_in(module.scope):
                if not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                for node in parents_of(scope):
                    call = self.databases.trees.method_call(Node(node, scope)) if isinstance(node, ast.Call) else None
                    if call is None or call.name not in TYPED or not call.arguments:
                        continue
                    wanted = call.arguments[0].node
                    found = self.databases.behind(call.receiver)
                    if found is not None and isinstance(wanted, ast.Name | ast.Attribute):
                        yield Use(module, wanted, found.label, found.statement), scope

    def _missing(self, expression: ast.expr, scope: Scope) -> _Missing | None:
        """The module that ought to define a name: the one that it is imported from, or the one that uses it."""
        if not isinstance(expression, ast.Name) or self.databases.modules.resolve(expression, scope) is not None:
            return None
        name, module = expression.id, scope.module
        current: Scope | None = scope
        while current is not None:
            for definition in current.names.get(name, ()):
                source = self.databases.modules.find(definition.alias[0]) if definition.alias is not None else None
                if source is None or definition.alias is None or definition.alias[1] in source.scope.names:
                    return None  # a variable, or something that cannot be followed
                return _Missing(source, definition.alias[1]) if not source.scope.stars else None
            current = current.parent
        return _Missing(module, name) if not module.scope.stars else None

    # -- a class that is there

    def _update(self, class_: ClassRef, uses: Sequence[Use]) -> None:
        read = class_fields(self.reader, class_)
        columns = self._columns(uses)
        if read is None or columns is None:
            return
        title, fields, _ = read
        self.classes += 1
        named = {field.name: field for field in fields}
        written = {field.name: field for field in self.reader.fields(class_)}
        for use in uses:
            for field, message in check_row(use.statement, title, fields):
                if use.statement.column(field) is None:
                    self.problems.append(use.finding(message))
        for name, given in columns.items():
            if name in named:
                self._retype(named[name], written[name], given)
        new = self._lines({name: given for name, given in columns.items() if name not in named}, title, uses)
        if new and self._takes_more(class_, written.values()):
            self._edit(class_.module, AddedFields(class_.node, new))
        elif new:
            message = (
                f"{title} lacks {', '.join(new)}, which cannot stand behind a field with a default of its base. "
                "Make the class kw_only, or write the field with a default"
            )
            self.problems.append(uses[0].finding(message))

    def _takes_more(self, class_: ClassRef, fields: Collection[Field]) -> bool:
        """True unless a base has a field with a default, which no field without one may follow."""
        inherited = any(field.has_default and field.owner != class_ for field in fields)
        return not inherited or is_keyword_only(class_.node) or self.reader.is_typed_dict(class_)

    def _retype(self, field: RowField, written: Field, given: Sequence[Column]) -> None:
        wrong = [misfit(column, field) for column in given]
        if any(wrong):
            # An annotation is written once, in the class that has the field.
            kinds = row_kinds(self.reader, written.annotation, written.owner.body)
            rest = RowField(field.name, field.shown, kinds | NONE)
            optional = not any(misfit(column, rest) for column in given)
            edits = self.edits.get(written.owner.module.path, ())
            if not any(isinstance(edit, Retyped) and edit.annotation is written.annotation for edit in edits):
                type_ = field_type(given, optional="none" in kinds)
                self._edit(written.owner.module, Retyped(written.annotation, type_, optional))

    # -- a class that is not

    def _write(self, target: _Missing, uses: Sequence[Use]) -> None:
        columns = self._columns(uses)
        if columns is None:
            return
        self.classes += 1
        lines = self._lines(columns, target.name, uses)
        if not lines:
            return
        own = [use for use in uses if use.module is target.module]
        before = _first_with(target.module.tree, target.name) if own else None
        self._edit(target.module, NewClass(target.name, lines, before))

    def _lines(self, columns: Mapping[str, Sequence[Column]], title: str, uses: Sequence[Use]) -> list[str]:
        """The fields for columns, as they are written."""
        for name in columns:
            if not _can_be_field(name):
                message = f'"{name}" cannot be the name of a field of {title}. Give the column another, with AS'
                self.problems.append(uses[0].finding(message))
        return [f"{name}: {field_type(given)}" for name, given in columns.items() if _can_be_field(name)]

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


def _within(uses: Sequence[Use], files: Collection[Path] | None) -> bool:
    return files is None or any(use.module.path in files for use in uses)


def _can_be_field(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)


def _first_with(tree: ast.Module, name: str) -> ast.stmt | None:
    """The first statement of a module that names something and does not import it."""
    for statement in tree.body:
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            return statement
    return None
