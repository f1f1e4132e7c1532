"""The findings of `core check` in every program below the folder of mypy's configuration, reported by mypy at their
lines, and what mypy's types add to them.

Most runs of mypy find the project as the last one left it: then the findings come from the cache, and nothing of the
checks is imported.

A module's findings are its data for mypy's cache, so that mypy checks a module again where they have changed. mypy's
types are asked for in two places: the values that are bound to a statement, and the column that `first("name")` gives.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from mypy.errorcodes import ErrorCode, error_codes
from mypy.nodes import CallExpr, Context, MypyFile, TypeInfo
from mypy.options import Options
from mypy.plugin import ClassDefContext, MethodContext, MethodSigContext, Plugin, ReportConfigContext
from mypy.plugins.default import DefaultPlugin
from mypy.types import FunctionLike, Instance, NoneType, Type, UnionType, get_proper_type

from core.config.checks import CHECKS, Code
from core.config.nearest import FILE_NAMES
from core.program.cache import Cache, own_version, python_of_now
from core.program.findings import Finding
from core.program.settings import Settings, read_settings
from core.program.table import is_set

if TYPE_CHECKING:
    from core.program.databases import Behind, CallPlace

_ALL: Final = ErrorCode("core", "Check the framework's rules in a program", "Core")

ERROR_CODES: Final[Mapping[Code, ErrorCode]] = {
    code: ErrorCode(code, check.title, "Core", sub_code_of=_ALL)
    for code, check in CHECKS.items()
    if check.title is not None
}
"""The error codes as mypy knows them: each can be ignored and disabled by its name, and `core` disables them all."""

SignatureHook: TypeAlias = Callable[[MethodSigContext], FunctionLike]
_real: Final = lru_cache(None)(os.path.realpath)  # asked for each call that has a statement
_STATEMENT: Final = "core.bindings.d1.D1PreparedStatement"


class _Proven(NamedTuple):
    """The findings of all programs by file, the files that they were made from, and the variables: no files where there
    is no program, or where not all are known. `called` are their statements.
    """

    found: Mapping[str, Sequence[Finding]]
    files: Collection[str]
    environ: Sequence[tuple[str, str]]
    called: Sequence[Callable[[str, CallPlace], Behind | None]]


class Findings:
    """The findings of one run of mypy. `python` is the interpreter of the project, which starts its programs."""

    def __init__(self, config_file: str | None, root: Path, python: str) -> None:
        self._config_file = config_file
        self._python = python
        self._settings = read_settings(config_file) if config_file is not None else Settings(root)

    @cached_property
    def by_file(self) -> Mapping[str, Sequence[Finding]]:
        """The findings by real path: those of the last run, where everything is as it was then."""
        since = time.time_ns()
        cache = Cache(self._settings.root)
        key = [self._config_file, self._python, python_of_now()]
        cached: Any = cache.read("mypy", key)
        if cached is not None and is_set(cached["environ"]):
            return {path: [Finding(*one) for one in found] for path, found in cached["found"].items()}
        proven = self._proven
        if proven.files:
            cache.write(
                "mypy", key, {"found": proven.found, "environ": proven.environ}, files=proven.files, since=since
            )
        return proven.found

    @property
    def files(self) -> Collection[str]:
        """The files and folders that all of it is made from; none where not all of them are known."""
        return self._proven.files

    def called(self, path: str, place: CallPlace) -> Behind | None:
        """The statement of a call in a file."""
        found = (called(path, place) for called in self._proven.called)
        return next((one for one in found if one is not None), None)

    @cached_property
    def _proven(self) -> _Proven:
        from core.program.extensions import declared
        from core.program.module_rules import Memory, without_collecting
        from core.program.projects import programs
        from core.program.proof import Options, prove

        found: dict[str, dict[tuple[int, str], Finding]] = {}
        called: list[Callable[[str, CallPlace], Behind | None]] = []
        files: set[str] = set()
        environ: set[tuple[str, str]] = set()
        repeats = True
        problems = [*self._settings.problems, *declared().problems]
        for program in programs(self._settings):
            options = Options.of(self._settings, program.sources, [*problems, *program.problems], self._python)
            memory = Memory(Cache(program.path.parent) if program.configurations and program.path else None)
            with without_collecting():
                proof = prove(program.configurations, options, memory)
            called.append(proof.called)
            for one in (*proof.findings, *proof.ignored):
                if CHECKS[one.code].title is not None:
                    found.setdefault(os.path.realpath(one.file), {}).setdefault((one.line, one.message), one)
            repeats = repeats and bool(proof.files or not program.configurations)
            environ |= {*proof.environ}
            files |= proof.files
            files |= {str(path) for path in (program.path, *program.sources) if program.path is not None}
        if files:
            folders = (self._settings.root, *self._settings.root.parents)
            files |= {*map(os.path.dirname, files), *(str(folder / name) for folder in folders for name in FILE_NAMES)}
            files |= {self._config_file} if self._config_file is not None else set()
        by_file = {
            file: sorted(by_place.values(), key=lambda one: (one.line, one.column, one.message))
            for file, by_place in found.items()
        }
        return _Proven(by_file, files if repeats else set(), sorted(environ), called)


class TypesOfQueries(Plugin):
    """The type of the value that `first("name")` gives. `root` is the folder of the project."""

    def __init__(self, options: Options, root: Path | None = None) -> None:
        super().__init__(options)
        self.findings: Findings = Findings(
            options.config_file, root or Path.cwd(), options.python_executable or sys.executable
        )

    def get_method_signature_hook(self, fullname: str) -> SignatureHook | None:
        owner, _, name = fullname.rpartition(".")
        return self._value_of_row if name in ("first", "one") and self._is_statement(owner) else None

    def _is_statement(self, owner: str) -> bool:
        if owner == _STATEMENT:
            return True
        symbol = None if owner.startswith(("builtins.", "typing.")) else self.lookup_fully_qualified(owner)
        return symbol is not None and isinstance(symbol.node, TypeInfo) and symbol.node.has_base(_STATEMENT)

    def called(self, path: str, call: Context) -> Behind | None:
        """The statement of a call in a file."""
        if not isinstance(call, CallExpr):
            return None
        return self.findings.called(_real(path), (call.line, call.column, call.end_line, call.end_column))

    def _value_of_row(self, ctx: MethodSigContext) -> FunctionLike:
        """`first("name")`, with the type of the statement's column, where that is known, in the place of Any."""
        from core.sql.rows import value_kinds

        api: Any = ctx.api
        signature = ctx.default_signature
        first = get_proper_type(signature.arg_types[0]) if signature.arg_types else None
        returned = get_proper_type(signature.ret_type)
        given = next((one for some in ctx.args for one in some), None)
        name = getattr(given, "value", None)
        call: Any = ctx.context
        if not isinstance(first, Instance) or first.type.fullname != "builtins.str" or not isinstance(name, str):
            return signature
        found = self.called(api.path, call)
        if found is None or not isinstance(returned, Instance) or not returned.args:
            return signature
        kinds = value_kinds(found.statement, name, one=call.callee.name == "one")
        if kinds is None:
            return signature
        types: list[Type] = [api.named_generic_type(f"builtins.{kind}", []) for kind in sorted(kinds - {"none"})]
        if "none" in kinds:
            types.append(NoneType())
        result = Instance(returned.type, [*returned.args[:-1], UnionType.make_union(types)])
        untyped: Any = signature  # its method has no types
        changed: FunctionLike = untyped.copy_modified(ret_type=result)
        return changed


class CorePlugin(TypesOfQueries):
    """The plugin of one run of mypy, or of one worker of it."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._default = DefaultPlugin(options)
        self._reported: dict[str, MypyFile] = {}
        version = own_version()
        if "mypy.dmypy_server" in sys.modules:
            # A daemon asks no plugin about changed data, only for its version: with another one it starts anew.
            version += hashlib.sha256(repr(sorted(self.findings.by_file.items())).encode()).hexdigest()
        elif "mypy.build_worker.worker" not in sys.modules:
            _ = self.findings.by_file  # by which every worker finds them in the cache
        sys.modules["core.mypy_plugin"].__version__ = version  # type: ignore[attr-defined]  # a module's own

    def found(self, path: str) -> Sequence[Finding]:
        """The findings in a file."""
        by_file = self.findings.by_file
        return by_file.get(_real(path), ()) if by_file else ()

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """Return a digest of the findings of a module, so that mypy checks it again where they have changed."""
        found = self.found(ctx.path)
        return hashlib.sha256(repr(found).encode()).hexdigest() if found else None

    def _report(self, api: object, tree: MypyFile) -> None:
        """Report the findings of the module that is being checked, once for each time that it was read."""
        if self._reported.get(tree.path) is not tree:
            self._reported[tree.path] = tree
            for one in self.found(tree.path):
                if not one.typed or not _errors(api).is_error_code_enabled(error_codes[one.typed]):
                    self._tell(api, one)

    def _tell(self, api: object, one: Finding) -> None:
        errors = _errors(api)
        # While mypy tries overloads it holds messages back; and a daemon takes those of a function back with it.
        watchers, scope, errors._watchers, errors.scope = errors._watchers, errors.scope, [], None
        try:
            severity = "error" if one.severity == "error" else "note"
            code, lines = ERROR_CODES[one.code], range(one.line, max(one.line, one.end_line) + 1)
            column = max(one.column - 1, 0)  # mypy counts from 0
            errors.report(one.line, column, one.message, code=code, severity=severity, origin_span=lines)
        finally:
            errors._watchers, errors.scope = watchers, scope

    def _wrapped(self, own: Any, result: str, ctx: Any) -> Any:
        self._report(ctx.api, ctx.api.tree)
        return own(ctx) if own is not None else getattr(ctx, result)

    def _hook(self, name: str, result: str, fullname: str) -> object:
        # Without findings mypy is left alone. With some, the first call, attribute or class of a module reports them.
        if not self.findings.by_file:
            return None
        return partial(self._wrapped, getattr(self._default, name)(fullname), result)

    def get_function_hook(self, fullname: str) -> Any:
        return self._hook("get_function_hook", "default_return_type", fullname)

    def get_attribute_hook(self, fullname: str) -> Any:
        return self._hook("get_attribute_hook", "default_attr_type", fullname)

    def get_class_attribute_hook(self, fullname: str) -> Any:
        return self._hook("get_class_attribute_hook", "default_attr_type", fullname)

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return self._based if self.findings.by_file else None

    def _based(self, ctx: ClassDefContext) -> None:
        api: Any = ctx.api
        self._report(api, api.cur_mod_node)

    def get_method_hook(self, fullname: str) -> Any:
        owner, _, name = fullname.rpartition(".")
        if name == "bind" and self._is_statement(owner):
            return self._bound
        return self._hook("get_method_hook", "default_return_type", fullname)

    def _bound(self, ctx: MethodContext) -> Type:
        """`.bind(…)`: each value can be where it is, as far as its type tells, and a starred tuple has as many as are
        missing.
        """
        from core.mypy_plugin.types import given_value, items_of
        from core.sql.rows import check_parameter, check_values

        api: Any = ctx.api
        self._report(api, api.tree)
        found = self.called(api.path, ctx.context)
        if found is None or not found.statement.takes or found.values not in (found.statement.takes, -1):
            return ctx.default_return_type
        already = {(one.line, one.message) for one in self.found(api.path)}
        given: list[tuple[Context, Type]] = []
        for argument, type_, kind in zip(chain(*ctx.args), chain(*ctx.arg_types), chain(*ctx.arg_kinds), strict=True):
            # A starred tuple is here once for each of its items.
            items = items_of(type_) if kind.is_star() else [type_]
            if items is None:
                return ctx.default_return_type
            given.append((argument, items[sum(place is argument for place, _ in given)]))
        problems = [(ctx.context, check_values(found.statement, len(given)))]
        if problems[0][1] is None:
            values = ((number, place, given_value(type_)) for number, (place, type_) in enumerate(given, 1))
            problems = [
                (place, check_parameter(number, found.statement.slots, value))
                for number, place, value in values
                if value is not None
            ]
        for place, problem in problems:
            message = f"{found.label}: {problem}"
            if problem is not None and (place.line, message) not in already:
                at, end = (api.path, place.line, place.column + 1), place.end_line or 0
                self._tell(api, Finding("core-sql", message, *at, found.level, end_line=end))
        return ctx.default_return_type


def _errors(api: Any) -> Any:
    """mypy's collection of errors, which neither of its interfaces for plugins names."""
    return api.msg.errors if hasattr(api, "msg") else api.errors
