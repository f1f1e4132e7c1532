"""Env classes against their configuration file (`core-env`), each at the attribute's own line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mypy.nodes import AssignmentStmt, ClassDef, TypeInfo
from mypy.plugin import ClassDefContext

from core.config.check import EnvShape, check_env
from core.config.migrations import problem_text
from core.mypy_plugin.codes import ENV, SQL, code_of
from core.mypy_plugin.place import at
from core.mypy_plugin.settings import Configured, Project
from core.mypy_plugin.types import BINDINGS, env_shape, has_base

__all__ = ["check_class", "check_decorator", "shape_of"]


class _Checked(Mapping[TypeInfo, bool]):
    """Whether a class is an Env that is checked against its configuration by itself."""

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
    return env_shape(info, path, is_env=_Checked(project), partial=partial)


def check_decorator(project: Project, ctx: ClassDefContext) -> None:
    """An Env with attributes of its own needs a decorator that makes them fields."""
    cls = ctx.cls
    own = any(isinstance(s, AssignmentStmt) and s.unanalyzed_type is not None for s in cls.defs.body)
    if own and not cls.decorators and not _is_protocol(cls) and _Checked(project)[cls.info]:
        ctx.api.fail(
            f"{cls.name} has attributes of its own but no decorator. Put @attrs.frozen above it", cls, code=ENV
        )


def _is_protocol(cls: ClassDef) -> bool:
    return cls.info.is_protocol or bool(cls.metaclass)


def check_class(project: Project, ctx: ClassDefContext) -> None:
    """Compare a class with its configuration, if it is an Env."""
    info = ctx.cls.info
    if not _Checked(project)[info]:
        return
    tree = ctx.api.modules.get(ctx.api.cur_mod_id)
    if tree is None:
        return
    configured = project.configured_for(tree.path)
    for problem in (*project.settings.problems, *configured.problems):
        ctx.api.fail(f"{info.name}: {problem}", ctx.cls, code=ENV)
    if not configured.configurations:
        return
    named = project.settings.env is not None
    sources = project.sources
    partial = not named and (not sources.complete or info.name in sources.bases)
    shape = shape_of(project, info, tree.path, partial=partial)
    for finding in check_env(shape, configured.configurations, entry_names=project.entry_names(configured)):
        ctx.api.fail(finding.message, at(finding.line, max(finding.column - 1, 0)), code=code_of(finding.code))
    _check_migrations(project, configured, shape, ctx)


def _check_migrations(project: Project, configured: Configured, shape: EnvShape, ctx: ClassDefContext) -> None:
    """A migration that fails is told where the database stands on the Env."""
    told: set[str] = set()
    for attribute in shape.attributes:
        if attribute.kind != "D1Database" or attribute.inherited:
            continue
        for configuration in configured.configurations:
            binding = configuration.bindings.get(attribute.name)
            if binding is None or binding.kind != "d1":
                continue
            for problem in project.schema(configuration, binding).problems:
                message = f"{shape.name}.{attribute.attribute}: {problem_text(problem, configuration.directory)}"
                if message not in told:
                    told.add(message)
                    place = attribute.location
                    ctx.api.fail(message, at(place.line, max(place.column - 1, 0)), code=SQL)
