"""Database expressions in plain syntax trees: the binding each one names, and the statements given to it.

Followed through annotations, `req.env`, names and the attributes of objects; the rules are in `core.analysis.queries`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from core.analysis.classes import ClassRef
from core.analysis.entered import entered
from core.analysis.findings import is_wanted
from core.analysis.front_end import MethodCall, Problem
from core.analysis.modules import External, Local, Modules, Scope
from core.analysis.nodes import own_class, request_parameter
from core.analysis.queries import RUNS, batch_problems, bind_problems, prepare_problems, run_problems, value_of_row
from core.analysis.reader import Reader
from core.analysis.rows import given_value, row_fields, row_kinds
from core.analysis.sources import Sources
from core.analysis.syntax import REQUESTS, Node, SyntaxTrees
from core.config.model import Binding, Configuration
from core.sql.parameters import Given
from core.sql.rows import Kind, RowField, check_value
from core.sql.schema import Schema, blank_schema, schema_of
from core.sql.statement import Statement

__all__ = ["Databases"]

_OBJECTS: Final = frozenset(["core.DurableObject", "core.bindings.durable_object.DurableObject"])


class Databases:
    """The SQL databases of a configuration, and the statements of a program: a `QueryFrontEnd` for the rules."""

    def __init__(self, trees: SyntaxTrees, configurations: Sequence[Configuration], sources: Sources) -> None:
        self.trees = trees
        self.modules: Modules = trees.modules
        self.reader: Reader = trees.reader
        self.configurations = configurations
        self.sources = sources
        self.string_of: Callable[[Node], str | None] = trees.string_of
        self.value_of: Callable[[Node], Node | None] = trees.value_of
        self.method_call: Callable[[Node], MethodCall[Node] | None] = trees.method_call
        self.items_of: Callable[[Node], Sequence[Node]] = trees.items_of
        self._schemas: dict[Path, Schema] = {}
        self._texts: dict[Node, tuple[str, tuple[Configuration, Binding]]] = {}
        """The texts given to `prepare` of a database that the configuration has."""
        self._statements: dict[Node, tuple[str, Statement] | None] = {}

    @property
    def compared(self) -> int:
        """The number of statements that were read."""
        return sum(statement is not None for statement in self._statements.values())

    def problems(self, call: Node) -> Iterator[Problem[Node]]:
        """Everything that is wrong with one call, if it is one of a database or of a statement."""
        parts = self.method_call(call)
        match parts.name if parts is not None else "":
            case "prepare":
                yield from prepare_problems(self, call, self.sources)
            case "bind":
                yield from bind_problems(self, call)
            case "batch":
                for argument in parts.arguments if parts is not None else ():
                    yield from batch_problems(self, argument)
            case name if name in RUNS:
                yield from run_problems(self, call)
            case _:
                pass

    def value_problem(self, statement: Node) -> Problem[Node] | None:
        """`name: int = await statement.first("name")`, and the same behind `return`:
        the column against the annotation.
        """
        match statement.node:
            case ast.AnnAssign(annotation=annotation, value=ast.Await(value=call)):
                pass
            case ast.Return(value=ast.Await(value=call)):
                function = statement.scope.node
                returns = function.returns if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else None
                if returns is None:
                    return None
                annotation = returns
            case _:
                return None
        found = value_of_row(self, Node(call, statement.scope))
        if found is None:
            return None
        label, read, method, name = found
        kinds = row_kinds(self.reader, annotation, statement.scope)
        message = check_value(read, method, name, ast.unparse(annotation), kinds)
        return Problem("core-sql", f"{label}: {message}", Node(call, statement.scope)) if message is not None else None

    # -- the interface of `core.analysis.front_end`

    def statement_of(self, prepare: Node, /) -> tuple[str, Statement] | None:
        """Return the binding's name of a `prepare("…")`, and its statement."""
        if prepare not in self._statements:
            self._statements[prepare] = self._read(prepare)
        return self._statements[prepare]

    def _read(self, prepare: Node) -> tuple[str, Statement] | None:
        parts = self.method_call(prepare)
        if parts is None or len(parts.arguments) != 1:
            return None
        sql = self.string_of(parts.arguments[0])
        receiver = parts.receiver.node
        known, name = self._database(receiver, prepare.scope) if isinstance(receiver, ast.expr) else (False, None)
        if sql is None or not known:
            return None
        found = self.database(name)
        if found is not None:
            self._texts[prepare] = sql, found
        if found is None:
            return name or "SQL", blank_schema().analyse(sql)
        return found[1].name, self.schema(*found).analyse(sql)

    def scans_of(self, prepare: Node, /) -> Sequence[str]:
        """The tables that a statement reads without an index."""
        known = self._texts.get(prepare)
        if known is None or not is_wanted("core-scan", self.configurations):
            return ()
        sql, found = known
        return self.schema(*found).scans(sql)

    def row_of(self, node: Node, /) -> tuple[str, Sequence[RowField]] | None:
        """The class that rows become and its fields."""
        return row_fields(self.reader, node.node, node.scope) if isinstance(node.node, ast.expr) else None

    def given_of(self, node: Node, /) -> Given | None:
        """The values that an argument of `bind` may have: a literal's own, or those of a parameter's annotation."""
        return given_value(self.reader, node.node, node.scope) if isinstance(node.node, ast.expr) else None

    def scalar_of(self, node: Node, /) -> tuple[str, frozenset[Kind]] | None:
        """Another type that a column becomes."""
        expression, scope = node
        if not isinstance(expression, ast.Name | ast.Attribute):
            return None
        resolved = self.modules.resolve(expression, scope)
        if not isinstance(resolved, External) or not resolved.name.startswith("builtins."):
            return None
        return resolved.name.removeprefix("builtins."), row_kinds(self.reader, expression, scope)

    # -- databases

    def database(self, attribute: str | None) -> tuple[Configuration, Binding] | None:
        """The SQL database under a binding's name; of an unknown one, the only database there is."""
        only: dict[str, tuple[Configuration, Binding]] = {}
        for configuration in self.configurations:
            for binding in configuration.bindings.values():
                if binding.kind == "d1":
                    if binding.name == attribute:
                        return configuration, binding
                    only.setdefault(binding.name, (configuration, binding))
        return next(iter(only.values())) if attribute is None and len(only) == 1 else None

    def schema(self, configuration: Configuration, binding: Binding) -> Schema:
        """The schema of a database."""
        folder = configuration.migrations_directory(binding.entry)
        schema = self._schemas.get(folder)
        if schema is None:
            schema = self._schemas[folder] = schema_of(folder)
        return schema

    # -- which of them an expression is

    def _database(self, receiver: ast.expr, scope: Scope) -> tuple[bool, str | None]:
        """Return True if the receiver is certainly a database, and the name of its binding where that is known."""
        value, inner = self.modules.value(receiver, scope)
        if isinstance(value, ast.Attribute | ast.Call):
            known, name = self._read_database(value, inner)
            if known:
                return known, name
        given = entered(self.reader, value, inner)
        if given is not None:
            known, name = self._database(*given.value) if given.value is not None else (False, None)
            of_type = given.annotation is not None and self.reader.annotation(*given.annotation).kind == "D1Database"
            return known or of_type, name
        if isinstance(receiver, ast.Name):
            resolved = self.modules.resolve(receiver, scope)
            if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                kind = self.reader.annotation(resolved.definition.annotation, resolved.scope).kind
                return kind == "D1Database", None
        return False, None

    def _read_database(self, value: ast.expr, scope: Scope) -> tuple[bool, str | None]:
        """The same, of an expression that is not a name."""
        match value:
            case ast.Call(func=ast.Attribute(value=database, attr="with_session")):
                return self._database(database, scope)
            case ast.Attribute():
                env = self.env_class(value.value, scope)
                if env is None:
                    kept = self.modules.of_self(value, scope)
                    known = self._database(*kept) if kept is not None else (False, None)
                    return known if known[0] else self._kept_database(value, scope)
                attributes = self.reader.shape(env).attributes
                attribute = next((a for a in attributes if (a.attribute or a.name) == value.attr), None)
                if attribute is None or attribute.kind != "D1Database":
                    return False, None
                return True, value.attr.lstrip("_")
            case _:
                return False, None

    def _kept_database(self, attribute: ast.Attribute, scope: Scope) -> tuple[bool, str | None]:
        """A database that an object keeps: `self.db`, declared as one or given one by `__init__`."""
        own = self._object(attribute.value, scope)
        if own is None:
            return False, None
        declared = self._kept(own, attribute.attr)
        if declared is None:
            return False, None
        return self.reader.annotation(*declared).kind == "D1Database", None

    def _object(self, expression: ast.expr, scope: Scope) -> ClassRef | None:
        """The class of the program that an expression is an object of: `self`, one made here, or given by a `with`."""
        resolved = self.modules.resolve(expression, scope)
        if isinstance(resolved, Local):
            made = resolved.definition.value
            return (
                self.reader.class_of(made.func, resolved.scope) if isinstance(made, ast.Call) else own_class(resolved)
            )
        given = entered(self.reader, expression, scope)
        return given.class_ if given is not None else None

    def _kept(self, class_: ClassRef, name: str) -> tuple[ast.expr, Scope] | None:
        """The annotation of an attribute: in the class, or of the parameter that `__init__` keeps under its name."""
        for owner in self.reader.ancestors(class_):
            for definition in owner.body.names.get(name, ()):
                return (definition.annotation, owner.body) if definition.annotation is not None else None
            for value, annotation, scope in self.modules.given_to_self(owner.body, name):
                given = scope.names.get(value.id, ()) if isinstance(value, ast.Name) else ()
                annotation = annotation or (given[0].annotation if len(given) == 1 else None)
                if annotation is not None:
                    return annotation, scope
        return None

    def env_class(self, expression: ast.expr, scope: Scope) -> ClassRef | None:
        """The class of an expression that is an Env: `req.env`, or a name that is annotated so."""
        if isinstance(expression, ast.Name):
            resolved = self.modules.resolve(expression, scope)
            if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                declared = self.reader.class_of(resolved.definition.annotation, resolved.scope)
                if declared is not None:
                    return declared
        value, scope = self.modules.value(expression, scope)
        given = entered(self.reader, value, scope)
        if given is not None:
            return given.class_ or (self.env_class(*given.value) if given.value is not None else None)
        if isinstance(value, ast.Attribute) and value.attr == "env":
            resolved = self.modules.resolve(value.value, scope)
            if not isinstance(resolved, Local) or resolved.definition.value is not None:
                own = self._object(value.value, scope)
                return self._kept_env(own) if own is not None else None
            if not isinstance(resolved.definition.node, ast.arg):
                return None
            annotation = resolved.definition.annotation
            if annotation is None:
                own = own_class(resolved)
                if own is not None:
                    return self._kept_env(own)
                registrations = self.trees.routes.get(resolved.scope.node, ())
                envs = {self.trees.env_of(registration.on) for registration in registrations}
                first = request_parameter(resolved.scope) == resolved.definition.node.arg
                return envs.pop() if first and len(envs) == 1 else None
            annotation, where = self.reader.written_out(annotation, resolved.scope)
            if not isinstance(annotation, ast.Subscript):
                return None
            request = self.modules.resolve(annotation.value, where)
            if not isinstance(request, External) or request.name not in REQUESTS:
                return None
            inside = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            return self.reader.class_of(inside, where)
        if isinstance(value, ast.Name):
            resolved = self.modules.resolve(value, scope)
            if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                return self.reader.class_of(resolved.definition.annotation, resolved.scope)
        return None

    def _kept_env(self, class_: ClassRef) -> ClassRef | None:
        """Return the type of `self.env`: as declared, as `__init__` was given it, or as a Durable Object has it."""
        reader = self.reader
        declared = self._kept(class_, "env")
        if declared is not None:
            return reader.class_of(*declared)
        for owner in reader.ancestors(class_):
            if "env" in owner.body.names:
                return None
            for base in owner.node.bases:
                if isinstance(base, ast.Subscript):
                    resolved = self.modules.resolve(base.value, owner.scope)
                    if isinstance(resolved, External) and resolved.name in _OBJECTS:
                        return reader.class_of(base.slice, owner.scope)
        return None
