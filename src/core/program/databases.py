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
from core.program.bodies import Bodies
from core.program.built import BuiltTexts
from core.program.findings import Finding, Unread, is_wanted, level_of
from core.program.modules import Modules
from core.program.reader import Reader
from core.program.receivers import Receivers
from core.program.sources import Sources
from core.program.syntax import Node, finding_at
from core.sql.interpolated import Interpolated, Text, check_values_in, texts_of
from core.sql.schema import Schema, blank_schema, schema_of
from core.sql.statement import Statement

_VERB: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\s", re.IGNORECASE)
_LONGEST: Final = 50
_LITERAL: Final = re.compile(
    r"""#[^\n]*|(?P<kind>[a-zA-Z]*)(?P<quote>\"""|'{3}|"|')(?P<body>(?:\\.|(?!(?P=quote)).)*)(?P=quote)""", re.DOTALL
)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPE: Final = re.compile(r"\\(?:[0-7]{1,3}|x..|u.{4}|U.{8}|N\{[^}]*\}|(?P<line>\n)|.)", re.DOTALL)
_HOLE: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{[^{}]*\}")


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
                assigned = self.modules.of_self(*value) if value == expression else value
                if assigned is None:
                    return None
                expression = Node(*assigned)
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
        kind, name = self.binding(*parts.receiver)
        analyse = Schema.analyse_lines if parts.name == "exec" else Schema.analyse
        if kind != "D1Database":
            # A Durable Object's storage has an exec, too.
            asks = self._found and sql is not None and _VERB.match(sql) and parts.name != "exec"
            return _Asked(why="its database is not known") if asks else _NOT_ASKED
        found = [one for key, one in self._found.items() if name in ("", key)]
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


def place_in(modules: Modules, text: Node, at: int, lines: Sequence[str]) -> Node | None:
    """The line of the character `at` of a string, as an expression up to the end of the literal that has it.

    None where another module has it, and for a text of one line by its name: that is found by the name. `lines` are
    those of the module.
    """
    value, scope = modules.value(*text)
    if scope.module is not text.scope.module or (value is not text.node and value.lineno == value.end_lineno):
        return None
    match value:
        case ast.BinOp(left=left, right=right):
            size = len(modules.string(left, scope) or "")
            one = Node(left if at < size else right, scope)
            return place_in(modules, one, at if at < size else at - size, lines) or one
        case ast.Constant():
            holes: list[int] = []
        case ast.JoinedStr(values=values):
            holes = [
                len(modules.string(one.value, scope) or "") for one in values if isinstance(one, ast.FormattedValue)
            ]
        case _:
            return None
    line = next((line for line, end in _ends(value, holes, lines) if at < end), value.lineno)
    column = value.col_offset if line == value.lineno else 0
    place = ast.Constant("", lineno=line, col_offset=column, end_lineno=value.end_lineno)
    return Node(place, scope)


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
