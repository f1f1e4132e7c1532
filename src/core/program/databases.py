"""Database expressions in plain syntax trees: the binding each one names, and the statements given to it.

Followed through annotations, `req.env`, names and the attributes of objects; the rules are in `core.program.queries`.
"""

from __future__ import annotations

import ast
import linecache
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import attrs

from core.config.model import Binding, Configuration
from core.program.annotations import arguments_of
from core.program.bodies import Bodies
from core.program.built import BuiltTexts
from core.program.entered import entered
from core.program.findings import Finding, Unread, is_wanted, level_of
from core.program.modules import ClassScope, FunctionScope, Local, Modules, Scope, own_class, placed
from core.program.places import place_in
from core.program.reader import Reader
from core.program.sources import Sources
from core.program.syntax import REQUESTS, Node, finding_at, option_with
from core.sql.interpolated import Interpolated, Text, check_values_in, texts_of
from core.sql.schema import Schema, blank_schema, schema_of
from core.sql.statement import Statement

_VERB: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\s", re.IGNORECASE)
_DEEPEST: Final = 20
_LONGEST: Final = 50
OBJECTS: Final = frozenset(["core.DurableObject", "core.bindings.durable_object.DurableObject"])


class _Asked(NamedTuple):
    """A `prepare` or an `exec`: its text, or all that it may be, the label and the schema of its database, and the
    statement, as far as they are known. `why` says what is not; nothing for a statement that was read, and for what is
    none.
    """

    texts: Sequence[Text] = ()
    label: str = ""
    statement: Statement = Statement()
    schema: Schema | None = None
    why: str = ""
    problem: str | None = None
    """The message about values that ought not to be in the text."""


_NOT_ASKED: Final = _Asked()

CallPlace: TypeAlias = "tuple[int, int, int | None, int | None]"
"""The line and the column of a call's begin and of its end, as syntax trees have them."""
RUNS: Final = frozenset(["first", "one", "all", "run", "raw", "as_"])
_CALLED: Final = RUNS | {"bind"}


class Behind(NamedTuple):
    """The statement behind an expression: the name of its database, its facts, and how many values were bound last,
    which is None where none were and -1 where they cannot be counted. `level` is that of findings about it.
    """

    label: str
    statement: Statement
    values: int | None
    level: str = "error"


class Databases:
    """The SQL databases of a configuration, and the statements of a program.

    An answer is None (or nothing) where something is not known for certain, and then nothing is reported.
    """

    def __init__(
        self, reader: Reader, bodies: Bodies, configurations: Sequence[Configuration], sources: Sources
    ) -> None:
        self.modules: Modules = reader.modules
        self.reader = reader
        self.bodies = bodies
        """The functions that are registered."""
        self.configurations = configurations
        self.sources = sources
        self._found: dict[str, tuple[Configuration, Binding]] = {}
        for configuration in configurations:
            for binding in configuration.bindings.values():
                if binding.kind == "d1":
                    self._found.setdefault(binding.name, (configuration, binding))
        self._schemas: dict[tuple[str | None, str], Schema] = {}
        self._built = BuiltTexts(self.reader)
        self._statements: dict[Node, _Asked] = {}
        self.read: int = 0
        """The number of statements that were read against their tables."""
        self.unread: list[Unread] = []
        """Those that were not."""
        self._calls: dict[str, dict[CallPlace, Node]] = {}

    def called(self, path: str, place: CallPlace) -> Behind | None:
        """The statement behind a `bind`, a `first` or their like in a file, for a type checker that knows more of its
        values.
        """
        if path not in self._calls:
            module = self.modules.add(Path(path))
            self._calls[path] = {
                (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): Node(node, scope)
                for scope in (module.scope.walk() if module is not None else ())
                for node in scope.nodes.of(ast.Call)
                if isinstance(node.func, ast.Attribute) and node.func.attr in _CALLED
            }
        call = self._calls[path].get(place)
        parts = call.method_call() if call is not None else None
        if call is None or parts is None:
            return None
        found = self.behind(call if parts.name == "bind" else parts.receiver)
        level = level_of("core-sql", self.configurations, path)
        return found._replace(level=level) if found is not None and level != "off" else None

    def behind(self, expression: Node) -> Behind | None:
        """The statement that an expression is, where its database is known."""
        chain = self.prepared(expression)
        asked = self._asked(chain[0]) if chain is not None else _NOT_ASKED
        if chain is None or not asked.texts:
            return None
        return Behind(asked.label, asked.statement, chain[1])

    def prepared(self, expression: Node) -> tuple[Node, int | None] | None:
        """The call of `prepare` that an expression begins with, through names, `bind` and `as_`, and how many values
        were bound last, as in `Behind`.
        """
        values: int | None = None
        for _ in range(_LONGEST):
            call = expression.method_call()
            if call is None:
                value = self.modules.value(*expression)
                kept = self.modules.of_self(*value) if value == expression else value
                if kept is None:
                    return None
                expression = Node(*kept)
                continue
            if call.name in ("prepare", "exec"):
                return expression, values
            if call.name not in ("bind", "as_"):
                return None
            if call.name == "bind" and values is None:
                values = len(call.arguments) if call.counted else -1
            expression = call.receiver
        return None

    def place_of(self, text: Node, at: int) -> Node:
        """The line of the source that has the character `at` of a string."""
        return place_in(self.modules, text, at, linecache.getlines(str(text.scope.module.path))) or text

    def scans_of(self, prepare: Node) -> Sequence[str]:
        """The tables that a statement reads without an index."""
        asked = self._asked(prepare)
        if asked.schema is None or not is_wanted("core-scan", self.configurations):
            return ()
        return list(dict.fromkeys(message for text in asked.texts for message in asked.schema.scans(text.text)))

    def _asked(self, prepare: Node) -> _Asked:
        if prepare not in self._statements:
            self._statements[prepare] = self._ask(prepare)
        return self._statements[prepare]

    def _ask(self, prepare: Node) -> _Asked:
        parts = prepare.method_call()
        if parts is None or len(parts.arguments) != 1:
            return _NOT_ASKED
        sql = self.modules.string(*parts.arguments[0])
        known, name = self._database(*parts.receiver)
        analyse = Schema.analyse_lines if parts.name == "exec" else Schema.analyse
        if not known:
            # A Durable Object's storage has an exec, too.
            asks = self._found and sql is not None and _VERB.match(sql) and parts.name != "exec"
            return _Asked(why="its database is not known") if asks else _NOT_ASKED
        found = [one for key, one in self._found.items() if name in (None, key)]
        label = found[0][1].name if len(found) == 1 else name or "SQL"
        texts: Sequence[Text] = [Text(sql)] if sql is not None else []
        counted = True
        if sql is None:
            built = self._built.parts(*parts.arguments[0])
            problem = check_values_in(built, self._built.straight)
            texts = texts_of(built) if self._built.straight and problem is None else []
            counted = not any(isinstance(part, Interpolated) and part.several for part in built)
            if not texts:
                return _Asked(label=label, why="its text is not known before it runs", problem=problem)
        asked = [self._against(one, texts, analyse, counted=counted) for one in found]
        fitting = [one for one in asked if not one.why and not one.statement.problems]
        if len(asked) == 1 or len({one.statement for one in fitting}) == 1:
            return (fitting or asked)[0]
        if asked and not (fitting or any(one.why for one in asked)):
            # It is wrong for all of them: the one that has its tables has the better reason.
            return min(asked, key=lambda one: any(problem.table for problem in one.statement.problems))
        statement = Statement.either({text: analyse(blank_schema(), text.text) for text in texts})
        which = "it may be for one database or another" if asked else "no configuration has its database"
        return _Asked(texts, label, statement, why=which)

    def _against(
        self,
        database: tuple[Configuration, Binding],
        texts: Sequence[Text],
        analyse: Callable[[Schema, str], Statement],
        *,
        counted: bool,
    ) -> _Asked:
        """A statement against the tables of one database. `counted`: its parameters are known."""
        label, schema = database[1].name, self.schema(*database)
        statement = Statement.either({text: analyse(schema, text.text) for text in texts})
        if not counted:
            statement = attrs.evolve(statement, takes=None, slots=())
        made = next((p.table for p in statement.problems if p.table in self.sources.tables), "")
        why = f"the table {made} is made by the program itself" if made else ""
        if statement.unknown:
            why = f"a migration of {label} that makes {statement.unknown} fails"
        elif statement.newer:
            has = f"it needs SQLite {statement.newer}, which the platform has. This Python has {sqlite3.sqlite_version}"
            why = f"{has}, and core dev and tests refuse it: use a newer Python, or write it otherwise"
        elif not schema.known:
            why = f"no migrations make the tables of {label}"
        return _Asked(texts, label, statement, schema, why)

    def count(self, prepare: Node) -> Iterator[Finding]:
        """Count a statement as read, or note why it was not; values in a text that is put together are a problem."""
        asked = self._asked(prepare)
        if asked.texts and not asked.why:
            self.read += 1
        if not asked.why:
            return
        self.note_unread(prepare, asked.why)
        if asked.problem is not None and isinstance(prepare.node, ast.Call):
            yield finding_at(prepare.node.args[0], prepare.scope, "core-sql", f"{asked.label}: {asked.problem}")

    def note_unread(self, call: Node, why: str) -> None:
        """Note a statement that was not read."""
        self.unread.append(Unread(str(call.scope.module.path), call.node.lineno, why))

    # -- functions

    def arguments(self, scope: Scope) -> Sequence[ast.arg]:
        """The parameters of a function that have a place, without those that it is bound to: `self` of a method."""
        if not isinstance(scope, FunctionScope):
            return ()
        served = self.bodies.served.get(scope.node)
        return placed(scope.node)[served.bound if served is not None else isinstance(scope.parent, ClassScope) :]

    def request_of(self, scope: Scope) -> str | None:
        """The name of a handler's request, if nothing else has that name."""
        arguments = self.arguments(scope)
        return arguments[0].arg if arguments and len(scope.names.get(arguments[0].arg, ())) == 1 else None

    # -- databases

    def schema(self, configuration: Configuration, binding: Binding) -> Schema:
        """The schema of a database in an environment; those with the same migrations share one."""
        key = configuration.environment, binding.name
        if key not in self._schemas:
            self._schemas[key] = schema_of(configuration.migrations_directory(binding.entry))
        return self._schemas[key]

    def columns(self) -> frozenset[str]:
        """The columns of every table; none where a table may have others than the migrations tell."""
        schemas = [self.schema(*database).migrated for database in self._found.values()]
        if self.sources.tables or not all(each.trusted and not each.unmade for each in schemas):
            return frozenset()
        return frozenset(column.name for each in schemas for table in each.tables.values() for column in table.columns)

    # -- which of them an expression is

    def _database(self, receiver: ast.expr, scope: Scope) -> tuple[bool, str | None]:
        """Return True if the receiver is certainly a database, and the name of its binding where that is known."""
        value, inner = self.modules.value(receiver, scope)
        if isinstance(value, ast.Attribute | ast.Call | ast.IfExp):
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
            case ast.Call(func=func):
                function = self.reader.function(func, scope)
                returns = function.node.returns if function is not None else None
                kind = self.reader.annotation(returns, function.parent).kind if function and returns is not None else ""
                return kind == "D1Database", None
            case ast.Attribute():
                kept = self.modules.of_self(value, scope)
                known = self._database(*kept) if kept is not None else (False, None)
                owner = self.class_of(value.value, scope) if not known[0] else None
                if owner is None:
                    return known
                is_env = self.reader.is_env(owner) or any(map(self.reader.is_protocol, self.reader.ancestors(owner)))
                attributes = self.reader.shape(owner).attributes if is_env else ()
                attribute = next((a for a in attributes if a.attribute == value.attr), None)
                if attribute is not None:
                    return attribute.kind == "D1Database", attribute.name
                declared = self._kept(owner, value.attr)
                return declared is not None and self.reader.annotation(*declared).kind == "D1Database", None
            case ast.IfExp(body=body, orelse=orelse):
                (first, name), (second, other) = self._database(body, scope), self._database(orelse, scope)
                return first and second, name if name == other else None
            case _:
                return False, None

    def _kept(self, class_: ClassScope, name: str) -> tuple[ast.expr, Scope] | None:
        """The annotation of an attribute: in the class, or of the parameter that `__init__` keeps under its name."""
        for owner in self.reader.ancestors(class_):
            for definition in owner.names.get(name, ()):
                node, annotation = definition.node, definition.annotation
                if isinstance(node, ast.FunctionDef) and node.decorator_list:  # a property
                    annotation = node.returns
                return (annotation, owner) if annotation is not None else None
            for value, annotation, scope in self.modules.given_to_self(owner, name):
                given = scope.names.get(value.id, ()) if isinstance(value, ast.Name) else ()
                annotation = annotation or (given[0].annotation if len(given) == 1 else None)
                if annotation is not None:
                    return annotation, scope
        return None

    def class_of(self, expression: ast.expr, scope: Scope, depth: int = 0) -> ClassScope | None:
        """The class of the program that an expression is an object of: `req.env`, what is annotated or made so, and
        what such objects keep.
        """
        resolved = self.modules.resolve(expression, scope) if isinstance(expression, ast.Name) else None
        if isinstance(resolved, Local) and resolved.definition.annotation is not None:
            declared = self.reader.class_of(resolved.definition.annotation, resolved.scope)
            if declared is not None:
                return declared
        value, scope = self.modules.value(expression, scope)
        given = entered(self.reader, value, scope)
        if depth > _DEEPEST:
            return None
        if given is not None:
            return given.class_ or (self.class_of(*given.value, depth + 1) if given.value is not None else None)
        match value:
            case ast.Name():
                return own_class(self.modules.resolve(value, scope))
            case ast.Call(func=func):
                function = self.reader.function(func, scope)
                if function is not None:
                    returns = function.node.returns
                    return self.reader.class_of(returns, function.parent) if returns is not None else None
                return self.reader.class_of(func, scope)
            case ast.Attribute(value=owner, attr=name):
                env = self._env_of(owner, scope) if name == "env" else None
                own = self.class_of(owner, scope, depth + 1) if env is None else None
                if own is None:
                    return env
                kept = self._kept(own, name)
                return self.reader.class_of(*kept) if kept is not None else self._env_of_object(own, name)
            case _:
                return None

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

    def _env_of_object(self, class_: ClassScope, name: str) -> ClassScope | None:
        """The type of `self.env` in a Durable Object."""
        for owner in self.reader.ancestors(class_) if name == "env" else ():
            if "env" in owner.names:
                return None
            for base in owner.node.bases:
                if isinstance(base, ast.Subscript) and self.modules.outside(base, owner.parent) in OBJECTS:
                    return self.reader.class_of(base.slice, owner.parent)
        return None
