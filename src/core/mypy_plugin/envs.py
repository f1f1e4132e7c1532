"""Env classes against their configuration file (`core-env`), each at the attribute's own line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mypy.nodes import ARG_POS, AssignmentStmt, CallExpr, ClassDef, MemberExpr, NameExpr, RefExpr, TypeAlias, TypeInfo
from mypy.plugin import ClassDefContext, FunctionSigContext
from mypy.types import FunctionLike, Instance, get_proper_type

from core.analysis.envs import EnvShape, check_env, migration_problems
from core.analysis.problems import names_nothing, no_env, not_bindings
from core.analysis.settings import Configured, Project
from core.config.model import Binding, Configuration
from core.mypy_plugin.location import at, tell
from core.mypy_plugin.types import BINDINGS, env_shape, has_base
from core.mypy_plugin.variables import json_type

if TYPE_CHECKING:
    from core.sql.schema import Schema

__all__ = ["check_class", "check_decorator", "made", "shape_of"]


class _Checked(Mapping[TypeInfo, bool]):
    """True if a class is an Env that is checked against its configuration by itself."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def __getitem__(self, info: TypeInfo, /) -> bool:
        if self._project.settings.env is not None:
            return self._project.settings.names(info.fullname)
        return has_base(info, BINDINGS) and info.fullname != BINDINGS

    def __iter__(self) -> Iterator[TypeInfo]:
        return iter(())

    def __len__(self) -> int:
        return 0


def shape_of(project: Project, info: TypeInfo, path: str, *, partial: bool = False) -> EnvShape:
    """A class as an Env."""
    return env_shape(info, path, is_env=_Checked(project), inside=json_type, partial=partial)


def check_decorator(project: Project, ctx: ClassDefContext) -> None:
    """An Env with attributes of its own needs a decorator that makes them fields."""
    cls = ctx.cls
    own = any(isinstance(s, AssignmentStmt) and s.unanalyzed_type is not None for s in cls.defs.body)
    if own and not cls.decorators and not _is_protocol(cls) and _Checked(project)[cls.info]:
        tree = ctx.api.modules.get(ctx.api.cur_mod_id)
        message = f"{cls.name} has attributes of its own but no decorator. Put @attrs.frozen above it"
        tell(project, ctx.api, message, cls, "core-env", path=tree.path if tree is not None else "")


def _is_protocol(cls: ClassDef) -> bool:
    return cls.info.is_protocol or bool(cls.metaclass)


def check_class(project: Project, ctx: ClassDefContext) -> None:
    """Compare a class with its configuration, if it is an Env."""
    info = ctx.cls.info
    checked = _Checked(project)[info]
    tree = ctx.api.modules.get(ctx.api.cur_mod_id)
    if tree is None or not (checked or has_base(info, BINDINGS)):
        return
    for problem in _unmatched(project, tree.path, info):
        tell(project, ctx.api, f"{info.name}: {problem}", ctx.cls, "core-env", path=tree.path)
    if not checked:
        return
    configured = project.configured_for(tree.path)
    for problem in (*project.settings.problems, *configured.problems):
        tell(project, ctx.api, f"{info.name}: {problem}", ctx.cls, "core-env", path=tree.path)
    if not configured.configurations:
        return
    named = project.settings.env is not None
    sources = project.sources
    partial = not named and (not sources.complete or info.name in sources.bases)
    shape = shape_of(project, info, tree.path, partial=partial)
    for finding in check_env(shape, configured.configurations, entry_names=project.entry_names(configured)):
        tell(
            project,
            ctx.api,
            finding.message,
            at(finding.line, max(finding.column - 1, 0)),
            finding.code,
            path=tree.path,
        )
    _check_migrations(project, configured, shape, tree.path, ctx)


def _unmatched(project: Project, path: str, info: TypeInfo) -> list[str]:
    """Yield problems of names in the options that no class has, beside a class that may be meant."""
    option = f"{project.settings.where} env"
    unmatched = project.unmatched(path, info.module_name) if project.settings.env else ()
    return [names_nothing(option, name, [info.fullname]) for name in unmatched]


def made(project: Project, ctx: FunctionSigContext) -> FunctionLike:
    """`create_app(Env)`: over a class that is an Env, wherever there are bindings to compare with."""
    call = ctx.context
    if isinstance(call, CallExpr) and isinstance(call.callee, NameExpr | MemberExpr):
        for code, problem in project.unhandled(ctx.api.path, call.line, call.column):
            tell(project, ctx.api, problem, call, code)
        given = call.args[0] if call.args and call.arg_kinds[0] is ARG_POS else None
        info = _class(given) if isinstance(given, RefExpr) else None
        if given is None:
            if project.settings.env is None and "Bindings" not in project.sources.bases:
                message = no_env(project.configured_for(ctx.api.path).configurations)
                if message is not None:
                    tell(project, ctx.api, message, call, "core-env")
        elif info is not None and not has_base(info, BINDINGS) and not info.fallback_to_any:
            if project.settings.env is None:
                tell(project, ctx.api, not_bindings(f"{call.callee.name}({info.name})", info.name), given, "core-env")
            elif not _Checked(project)[info]:
                for problem in _unmatched(project, ctx.api.path, info):
                    tell(project, ctx.api, f"{info.name}: {problem}", given, "core-env")
    return ctx.default_signature


def _class(expression: RefExpr) -> TypeInfo | None:
    """The class that a name means, or an alias of one."""
    node = expression.node
    target = get_proper_type(node.target) if isinstance(node, TypeAlias) else None
    if isinstance(target, Instance):
        return target.type
    return node if isinstance(node, TypeInfo) else None


def _check_migrations(
    project: Project, configured: Configured, shape: EnvShape, path: str, ctx: ClassDefContext
) -> None:
    def schema(configuration: Configuration, database: Binding) -> Schema:
        return project.schema(configuration.migrations_directory(database.entry))

    # Several environments may have the same database.
    for place, message in dict.fromkeys(migration_problems(shape, configured.configurations, schema)):
        tell(project, ctx.api, message, at(place.line, max(place.column - 1, 0)), "core-sql", path=path)
