"""Database expressions in plain syntax trees: the binding each one names, and the statements given to it.

Followed through annotations, `req.env`, names and the attributes of objects; the rules are in `core.program.queries`.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import attrs

from core.config.checks import Severity
from core.config.model import Binding, Configuration
from core.program.bodies import Bodies
from core.program.built import BuiltTexts
from core.program.findings import Unread, level_of
from core.program.modules import Modules, Scope
from core.program.reader import Reader
from core.program.receivers import Receivers
from core.program.sources import Sources
from core.sql.interpolated import Interpolated, check_values_in, texts_of
from core.sql.schema import Schema, blank_schema, schema_of
from core.sql.statement import Statement, Text

_VERB: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\s", re.IGNORECASE)
_LONGEST: Final = 50
_LITERAL: Final = re.compile(
    r"""#[^\n]*|(?P<kind>[a-zA-Z]*)(?P<quote>\"""|'{3}|"|')(?P<body>(?:\\.|(?!(?P=quote)).)*)(?P=quote)""", re.DOTALL
)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPE: Final = re.compile(r"\\(?:[0-7]{1,3}|x..|u.{4}|U.{8}|N\{[^}]*\}|(?P<line>\n)|.)", re.DOTALL)
_HOLE: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{[^{}]*\}")


CallPlace: TypeAlias = "tuple[int, int, int | None, int | None]"
"""The line and the column of a call's begin and of its end, as syntax trees have them."""
RUNS: Final = frozenset(["first", "one", "all", "run", "raw", "as_"])
_CALLED: Final = RUNS | {"bind"}


class Behind(NamedTuple):
    """The statement behind an expression: its text, or all that it may be, the label and the schema of its database,
    and its facts, as far as they are known. `why` says what is not; nothing for a statement that was read, and for what
    is none. `values` is how many were bound last: None where none were, -1 where they cannot be counted. `level` is
    that of findings about it.
    """

    texts: Sequence[Text] = ()
    label: str = ""
    statement: Statement = Statement()
    schema: Schema | None = None
    why: str = ""
    problem: str | None = None
    """The message about values that ought not to be in the text."""
    values: int | None = None
    level: Severity = "error"


_NOTHING: Final = Behind()


class Databases(Receivers):
    """The SQL databases of a configuration, and the statements of a program.

    An answer is None (or nothing) where something is not known for certain, and then nothing is reported.
    """

    def __init__(
        self, reader: Reader, bodies: Bodies, configurations: Sequence[Configuration], sources: Sources
    ) -> None:
        super().__init__(reader, bodies, configurations)
        self.sources = sources
        self._found: dict[str, tuple[Configuration, Binding]] = {}
        for configuration in configurations:
            for binding in configuration.bindings.values():
                if binding.kind == "d1":
                    self._found.setdefault(binding.name, (configuration, binding))
        self._schemas: dict[tuple[str | None, str], Schema] = {}
        self._built = BuiltTexts(self)
        self._statements: dict[ast.expr, Behind] = {}
        self.read: int = 0
        """The number of statements that were read against their tables."""
        self.unread: list[Unread] = []
        """Those that were not."""
        self._calls: dict[str, dict[CallPlace, tuple[ast.expr, Scope]]] = {}

    def called(self, path: str, place: CallPlace) -> Behind | None:
        """The statement behind a `bind`, a `first` or their like in a file, for a type checker that knows more of its
        values.
        """
        if path not in self._calls:
            module = self.modules.add(Path(path))
            self._calls[path] = {
                (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset): (
                    call if call.func.attr == "bind" else call.func.value,
                    scope,
                )
                for scope in (module.scope.walk() if module is not None else ())
                for call in scope.nodes.of(ast.Call)
                if isinstance(call.func, ast.Attribute) and call.func.attr in _CALLED
            }
        expression = self._calls[path].get(place)
        found = self.behind(*expression) if expression is not None else None
        level = level_of("core-sql", self.configurations, path)
        if found is None or level == "off":
            return None
        return found._replace(level="error" if level == "error" else "warning")

    def behind(self, expression: ast.expr, scope: Scope) -> Behind | None:
        """The statement that an expression is, where its database is known."""
        chain = self.prepared(expression, scope)
        asked = self.asked(*chain[:2]) if chain is not None else _NOTHING
        return asked._replace(values=chain[2]) if chain is not None and asked.texts else None

    def prepared(self, expression: ast.expr, scope: Scope) -> tuple[ast.Call, Scope, int | None] | None:
        """The call of `prepare` that an expression begins with, through names, `bind` and `as_`, and how many values
        were bound last, as in `Behind`.
        """
        values: int | None = None
        for _ in range(_LONGEST):
            match expression:
                case ast.Call(func=ast.Attribute(attr="prepare" | "exec")):
                    return expression, scope, values
                case ast.Call(func=ast.Attribute(value=owner, attr="bind" | "as_" as name), args=given, keywords=named):
                    if name == "bind" and values is None:
                        values = -1 if named or any(isinstance(one, ast.Starred) for one in given) else len(given)
                    expression = owner
                case ast.Call(func=ast.Attribute()):
                    return None
                case _:
                    value = self.modules.value(expression, scope)
                    assigned = self.modules.of_self(*value) if value == (expression, scope) else value
                    if assigned is None:
                        return None
                    expression, scope = assigned
        return None

    def asked(self, prepare: ast.Call, scope: Scope) -> Behind:
        """The statement of a `prepare` or an `exec`."""
        if prepare not in self._statements:
            self._statements[prepare] = self._ask(prepare, scope)
        return self._statements[prepare]

    def _ask(self, prepare: ast.Call, scope: Scope) -> Behind:
        match prepare:
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[text, *others]):
                pass
            case _:
                return _NOTHING
        sql = self.modules.string(text, scope)
        kind, name, _ = self.value_of(owner, scope)
        analyse = Schema.analyse_lines if method == "exec" else Schema.analyse
        if kind != "D1Database":
            # A Durable Object's storage has an exec, too.
            asks = self._found and sql is not None and _VERB.match(sql) and method != "exec"
            return Behind(why="its database is not known") if asks else _NOTHING
        if others:
            return Behind(why=f"{method}() is given more than its text")
        found = [one for key, one in self._found.items() if name in ("", key)]
        label = found[0][1].name if len(found) == 1 else name or "SQL"
        texts: Sequence[Text] = [Text(sql)] if sql is not None else []
        counted = True
        if sql is None:
            built = self._built.parts(text, scope)
            problem = check_values_in(built, self._built.straight)
            texts = texts_of(built) if self._built.straight and problem is None else []
            counted = not any(isinstance(part, Interpolated) and part.several for part in built)
            if not texts:
                return Behind(label=label, why="its text is not known before it runs", problem=problem)
        asked = [self._against(one, texts, analyse, counted=counted) for one in found]
        fitting = [one for one in asked if not one.why and not one.statement.problems]
        if len(asked) == 1 or len({one.statement for one in fitting}) == 1:
            return (fitting or asked)[0]
        if asked and not (fitting or any(one.why for one in asked)):
            # It is wrong for all of them: the one that has its tables has the better reason.
            return min(asked, key=lambda one: any(problem.table for problem in one.statement.problems))
        statement = Statement.either({text: analyse(blank_schema(), text.text) for text in texts})
        which = "it may be for one database or another" if asked else "no configuration has its database"
        return Behind(texts, label, statement, why=which)

    def _against(
        self,
        database: tuple[Configuration, Binding],
        texts: Sequence[Text],
        analyse: Callable[[Schema, str], Statement],
        *,
        counted: bool,
    ) -> Behind:
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
        elif not schema.migrated.trusted:
            why = f"no migrations make the tables of {label}"
        return Behind(texts, label, statement, schema, why)

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


# Lines of strings ----------------------------------------------------------------------------------------------------


def place_in(modules: Modules, text: ast.expr, scope: Scope, at: int, lines: Sequence[str]) -> ast.expr | None:
    """The line of the character `at` of a string, as an expression up to the end of the literal that has it.

    None where another module has it, and for a text of one line by its name: that is found by the name. `lines` are
    those of the module.
    """
    value, home = modules.value(text, scope)
    if home.module is not scope.module or (value is not text and value.lineno == value.end_lineno):
        return None
    match value:
        case ast.BinOp(left=left, right=right):
            size = len(modules.string(left, home) or "")
            one, at = (left, at) if at < size else (right, at - size)
            return place_in(modules, one, home, at, lines) or one
        case ast.Constant():
            holes: list[int] = []
        case ast.JoinedStr(values=values):
            holes = [
                len(modules.string(one.value, home) or "") for one in values if isinstance(one, ast.FormattedValue)
            ]
        case _:
            return None
    line = next((line for line, end in _ends(value, holes, lines) if at < end), value.lineno)
    column = value.col_offset if line == value.lineno else 0
    return ast.Constant("", lineno=line, col_offset=column, end_lineno=value.end_lineno)


def _ends(literal: ast.expr, holes: list[int], lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each line of a literal, with the number of characters of its value up to there. `holes` are the sizes of the
    values in an f-string.
    """
    first, last = literal.lineno, literal.end_lineno or literal.lineno
    written = [line.encode() for line in lines[first - 1 : last]]
    written[-1] = written[-1][: literal.end_col_offset]
    written[0] = written[0][literal.col_offset :]
    source = b"".join(written).decode()
    before = 0
    for match in _LITERAL.finditer(source):
        if match["quote"] is None:
            continue
        kind = match["kind"].lower()
        line = first + source.count("\n", 0, match.start("body"))
        for piece in _LINE.findall(match["body"]):
            if "r" not in kind:
                piece = _ESCAPE.sub(lambda escape: "" if escape["line"] else "_", piece)
            if "f" in kind:
                before += sum(holes.pop(0) for hole in _HOLE.finditer(piece) if not hole["brace"] and holes)
                piece = _HOLE.sub(lambda hole: "_" if hole["brace"] else "", piece)
            before += len(piece)
            yield line, before
            line += 1
