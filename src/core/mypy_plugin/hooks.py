"""Which of mypy's hooks are used, and for what.

Hooks are found by names of functions and by the names of the receiver's own class, so a class is recognised through its
ancestors. Nothing is ever reported into another file than the one being checked, and no type is made up: the only type
that is changed is the one that `rate_limit(kv_binding="…")` gives, by a Literal as its argument.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from mypy.nodes import TypeInfo
from mypy.options import Options
from mypy.plugin import (
    ClassDefContext,
    FunctionContext,
    MethodContext,
    MethodSigContext,
    Plugin,
    ReportConfigContext,
)
from mypy.plugins.attrs import attr_class_makers, attr_dataclass_makers, attr_define_makers, attr_frozen_makers
from mypy.plugins.dataclasses import dataclass_makers
from mypy.plugins.default import DefaultPlugin
from mypy.types import FunctionLike, Type

import core.mypy_plugin
from core.config.routes import METHODS
from core.mypy_plugin import bindings, envs, params, queues, statements
from core.mypy_plugin.settings import Project
from core.mypy_plugin.types import has_base

__all__ = [
    "CorePlugin",
    "TARGETS",
]

TARGETS: Final = (
    "core.env.Bindings",
    "core.app.App",
    "core.app.App.queue",
    "core.bindings.d1.D1Database",
    "core.bindings.d1.D1Database.batch",
    "core.bindings.d1.D1Database.prepare",
    "core.bindings.d1.D1DatabaseSession",
    "core.bindings.d1.D1DatabaseSession.batch",
    "core.bindings.d1.D1DatabaseSession.prepare",
    "core.bindings.d1.D1PreparedStatement",
    "core.bindings.d1.D1PreparedStatement.all",
    "core.bindings.d1.D1PreparedStatement.bind",
    "core.bindings.d1.D1PreparedStatement.first",
    "core.bindings.d1.D1PreparedStatement.raw",
    "core.bindings.d1.D1PreparedStatement.run",
    "core.bindings.queue.MessageBatch",
    "core.handlers.BoundMiddleware",
    "core.middleware.logger.logger",
    "core.middleware.rate_limit.rate_limit",
    "core.middleware.request_id.request_id",
    "core.request.Params",
    "core.request.Request",
    "core.request.Request.params",
    "core.router.Router",
    *sorted(f"core.router.Router.{name}" for name in METHODS | {"on", "use"}),
)
"""Every name that the plugin goes by. Whoever moves one must change it here; a test proves that each is there."""

_MAKERS: Final = frozenset(
    {*attr_class_makers, *attr_define_makers, *attr_frozen_makers, *attr_dataclass_makers, *dataclass_makers}
)
_RUNS: Final = frozenset(["first", "all", "run", "raw"])
_REGISTERS: Final = METHODS | {"on", "use"}

# What a module must contain for an edit beside it to matter: only then do such edits make it stale.
_ENV: Final = re.compile(rb"\b(frozen|define|mutable|attrs?\.s|attributes|dataclass)\b")
_SQL: Final = re.compile(rb"\.prepare\(")
_PARAMS: Final = re.compile(rb"\bparams\b|\bLiteral\b")
_QUEUE: Final = re.compile(rb"\.queue\(")
_CLASSES: Final = re.compile(rb"^[ \t]*class\s+(\w+)", re.MULTILINE)


class CorePlugin(Plugin):
    """The plugin of one run of mypy, or of one worker of it."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.project: Project = Project(options.config_file)
        self.attrs: DefaultPlugin = DefaultPlugin(options)
        if "mypy.dmypy_server" in sys.modules:
            core.mypy_plugin.restart_daemon_on(self.project.digest())

    # -- caches

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """What lies beside a module and decides what is said about it, so that an edit there makes it stale."""
        if not ctx.path.endswith(".py") or "site-packages" in ctx.path:
            return None
        try:
            text = Path(ctx.path).read_bytes()
        except OSError:
            return None
        data: list[str] = []
        project = self.project
        if b"core" not in text and not _ENV.search(text):
            return None
        sql = _SQL.search(text) is not None
        if (env := _ENV.search(text) is not None and b"class " in text) or sql or _QUEUE.search(text):
            configured = project.configured_for(ctx.path)
            data += [repr(project.settings), configured.digest]
            if env or sql:
                data.append(project.migrations(configured))
            if env:
                own = {name.decode() for name in _CLASSES.findall(text)}
                data += sorted(own & project.sources.bases)
                data += [str(project.sources.complete), *sorted(project.entry_names(configured) or ())]
        if _PARAMS.search(text):
            data += [str(project.sources.complete), *sorted(project.sources.prefixes)]
        return hashlib.sha256("\0".join(data).encode()).hexdigest()[:16] if data else None

    # -- hooks

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        if fullname not in _MAKERS:
            return None
        own = self.attrs.get_class_decorator_hook_2(fullname)
        return None if own is None else partial(self._decorated, own)

    def _decorated(self, own: Callable[[ClassDefContext], bool], ctx: ClassDefContext) -> bool:
        """Let mypy work the class out; once it is done, check it if it is an Env."""
        done = own(ctx)
        if done:
            envs.check_class(self.project, ctx)
        return done

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        if fullname == "core.env.Bindings":
            return partial(envs.check_decorator, self.project)
        return None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname == "core.middleware.rate_limit.rate_limit":
            return partial(bindings.carry_name, self.lookup_fully_qualified)
        return None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        owner, _, name = fullname.rpartition(".")
        if name in _REGISTERS:
            if self._is(owner, "core.router.Router"):
                return partial(self._registered, name)
        elif name == "prepare":
            if self._is_database(owner):
                return partial(statements.prepared, self.project)
        elif name == "bind":
            if self._is(owner, "core.bindings.d1.D1PreparedStatement"):
                return partial(statements.bound, self.project)
        elif name == "batch":
            if self._is_database(owner):
                return partial(statements.batched, self.project)
        elif name == "__getitem__":
            if self._is(owner, "core.request.Params"):
                return partial(params.item, self.project)
        elif name == "queue" and self._is(owner, "core.app.App"):
            return partial(queues.consumed, self.project)
        return None

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        # Overloads are tried with their errors held back, so what is wrong is said here, before they are.
        owner, _, name = fullname.rpartition(".")
        if name in _RUNS and self._is(owner, "core.bindings.d1.D1PreparedStatement"):
            return partial(statements.run, self.project, name)
        return None

    def _registered(self, name: str, ctx: MethodContext) -> Type:
        bindings.check_names(self.project, ctx)
        params.check_registration(self.project, name, ctx)
        return ctx.default_return_type

    def _is_database(self, owner: str) -> bool:
        return self._is(owner, "core.bindings.d1.D1Database") or self._is(owner, "core.bindings.d1.D1DatabaseSession")

    def _is(self, owner: str, ancestor: str) -> bool:
        if owner == ancestor:
            return True
        if owner.startswith(("builtins.", "typing.", "collections.", "core.bindings.")):
            return False
        symbol = self.lookup_fully_qualified(owner)
        return symbol is not None and isinstance(symbol.node, TypeInfo) and has_base(symbol.node, ancestor)
