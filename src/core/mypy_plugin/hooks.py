"""The hooks of mypy that are used, and their purposes.

The imports of the checks are made by the first that is run: most runs of mypy have nothing to check.

Hooks are found by names of functions and by the names of the receiver's own class, so a class is recognised through its
ancestors. Nothing is ever reported into another file than the one being checked, and no type is made up: the only type
that is changed is the one that `rate_limit(kv_binding="…")` gives, by a Literal as its argument.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from mypy.nodes import AssignmentStmt, CallExpr, DictExpr, Expression, ListExpr, SetExpr, TypeInfo
from mypy.options import Options
from mypy.plugin import (
    AttributeContext,
    ClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    MethodSigContext,
    Plugin,
    ReportConfigContext,
)
from mypy.plugins.attrs import attr_class_makers, attr_dataclass_makers, attr_define_makers, attr_frozen_makers
from mypy.plugins.dataclasses import dataclass_makers
from mypy.plugins.default import DefaultPlugin
from mypy.types import FunctionLike, Type

from core.analysis import METHODS
from core.analysis.kept import Kept, is_foreign
from core.mypy_plugin import codes  # noqa: F401  # pyright: ignore[reportUnusedImport]  # so that mypy knows their names in its options

if TYPE_CHECKING:
    from core.analysis.results import Results
    from core.analysis.settings import Project

__all__ = ["CorePlugin"]

_MAKERS: Final = frozenset(
    {*attr_class_makers, *attr_define_makers, *attr_frozen_makers, *attr_dataclass_makers, *dataclass_makers}
)
_FOREIGN: Final = ("builtins.", "typing.", "collections.", "core.bindings.")
_FIXED: Final = ("builtins.", "typing.", "collections.", "core.")
"""The prefixes of names of classes that a daemon does not see change."""

_OWN: Final = frozenset(f"core.bindings.durable_object.DurableObject.{name}" for name in ("ctx", "env"))
_RUNS: Final = frozenset(["first", "one", "all", "run", "raw"])
_REGISTERS: Final = METHODS | {"on", "use"}
_METHODS: Final = _REGISTERS | {
    "prepare",
    "bind",
    "as_",
    "__call__",
    "__getitem__",
    "json",
    "parse",
    "queue",
    "scheduled",
    "url_for",
}


AttributeHook: TypeAlias = Callable[[AttributeContext], Type]
MethodHook: TypeAlias = Callable[[MethodContext], Type]
SignatureHook: TypeAlias = Callable[[MethodSigContext], FunctionLike]


class _Hooks(dict[str, object]):
    """The hooks of one kind by full names, each found when it is first asked for."""

    def __init__(self, find: Callable[[str], object], lasts: bool) -> None:
        super().__init__()
        self._find = find
        self._lasts = lasts

    def __missing__(self, fullname: str) -> object:
        hook = self._find(fullname)
        if self._lasts or fullname.startswith(_FIXED):
            self[fullname] = hook
        return hook


class CorePlugin(Plugin):
    """The plugin of one run of mypy, or of one worker of it."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.attrs: DefaultPlugin = DefaultPlugin(options)
        self._started = time.time_ns()
        asked = [options.config_file, options.mypy_path]
        is_daemon = "mypy.dmypy_server" in sys.modules
        self._keeps: bool = options.incremental and options.cache_dir != os.devnull and not is_daemon
        self._kept = Kept(options.cache_dir, asked) if self._keeps else None
        self._objects: dict[str, bool] = {}
        # A class stays the same for as long as a run lasts, but not for a daemon.
        self._lasts: bool = not options.fine_grained_incremental
        finders: Mapping[str, Callable[[str], object]] = {
            "get_function_hook": self.find_function_hook,
            "get_function_signature_hook": self.find_function_signature_hook,
            "get_method_hook": self.find_method_hook,
            "get_method_signature_hook": self.find_method_signature_hook,
            "get_attribute_hook": self.find_attribute_hook,
        }
        for name, find in finders.items():
            # mypy asks for the hooks of every call and of every attribute: a dict answers in a tenth of the time.
            setattr(self, name, _Hooks(find, self._lasts).__getitem__)
        if is_daemon:
            from core.mypy_plugin.version import restart_daemon_on

            restart_daemon_on(self.project.digest())
        elif self._kept is None or not self._kept.read():
            self._read_anew()
        else:
            sys.modules["core.mypy_plugin"].__version__ = self._kept.version  # type: ignore[attr-defined]  # a module's own

    # -- caches

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """Return the files beside a module that decide its findings, so that an edit there makes it stale."""
        path = os.path.abspath(ctx.path)
        if self._kept is not None and (path in self._kept.data or is_foreign(path)):
            return self._kept.data.get(path)
        return self.project.data_for(path)

    @cached_property
    def project(self) -> Project:
        """The files of the project, read when the first of them is asked for."""
        from core.analysis.settings import Project

        results: Results | None = None
        if self._keeps:
            from core.analysis.results import Results

            results = Results(self.options.cache_dir, sys.modules["core.mypy_plugin"].__version__)
        return Project(self.options.config_file, self.options.mypy_path, results)

    def _read_anew(self) -> None:
        """Find out the data of all modules, and keep it for the next run."""
        version = self._kept.version if self._kept is not None else ""
        if not version:
            from core.mypy_plugin.version import MADE_OF, OWN_VERSION

            version = OWN_VERSION
            if self._kept is not None:
                self._kept.version, self._kept.made_of = OWN_VERSION, MADE_OF
        sys.modules["core.mypy_plugin"].__version__ = version  # type: ignore[attr-defined]  # a module's own
        found = self.project.all_data() if self._kept is not None else None
        if self._kept is None or found is None:
            self._kept = None
            return
        self._kept.data, files, folders = found
        self._kept.write(files, folders, self._started)
        self.project.keep_sources(self._started)

    # -- hooks

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        if fullname not in _MAKERS:
            return None
        own = self.attrs.get_class_decorator_hook_2(fullname)
        return None if own is None else partial(self._decorated, own)

    def _decorated(self, own: Callable[[ClassDefContext], bool], ctx: ClassDefContext) -> bool:
        """Let mypy work the class out; once it is done, check it if it is an Env."""
        done = own(ctx)
        if done and any(isinstance(s, AssignmentStmt) and _is_shared(s.rvalue) for s in ctx.cls.defs.body):
            from core.mypy_plugin import defaults

            defaults.check_defaults(self.project, ctx)
        if done and self._may_be_env(ctx.cls.info):
            from core.mypy_plugin import envs

            envs.check_class(self.project, ctx)
        return done

    def _may_be_env(self, info: TypeInfo) -> bool:
        return self.project.settings.env is not None or _has_base(info, "core.env.Bindings")

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        if fullname == "core.env.Bindings":
            from core.mypy_plugin import envs

            return partial(envs.check_decorator, self.project)
        return None

    def find_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """The hook for a call of a function: of one that takes the name of a binding."""
        from core.analysis.extensions import declared

        if fullname in declared().named:
            from core.mypy_plugin import bindings

            return partial(bindings.carry_name, self.lookup_fully_qualified)
        return None

    def find_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """The hook for the signature of a function."""
        # By the signature, because mypy holds back the messages of a function hook about one of several overloads.
        if fullname == "core.app.create_app":
            from core.mypy_plugin import envs

            return partial(envs.made, self.project)
        return None

    def find_method_hook(self, fullname: str) -> MethodHook | None:
        """The hook for a call of a method."""
        owner, _, name = fullname.rpartition(".")
        hook = self._named_method_hook(owner, name) if name in _METHODS else None
        if hook is None and self._is_object(owner):
            from core.mypy_plugin import stubs

            return partial(stubs.called, self.project)
        return hook

    def _named_method_hook(self, owner: str, name: str) -> MethodHook | None:
        if name in _REGISTERS:
            if self._is(owner, "core.router.Router"):
                from core.mypy_plugin import params

                return partial(params.registered, self.project, name)
        elif name == "prepare":
            if self._is_database(owner):
                from core.mypy_plugin import statements

                return partial(statements.prepared, self.project)
        elif name == "bind":
            if self._is(owner, "core.bindings.d1.D1PreparedStatement"):
                from core.mypy_plugin import statements

                return partial(statements.bound, self.project)
        elif name == "as_":
            if self._is(owner, "core.bindings.d1.D1PreparedStatement"):
                from core.mypy_plugin import statements

                return partial(statements.typed, self.project)
        elif name == "__getitem__":
            if self._is(owner, "core.request.Params"):
                from core.mypy_plugin import params

                return partial(params.item, self.project)
        elif name == "parse":
            if self._is(owner, "core.request.Params"):
                from core.mypy_plugin import params

                return partial(params.parsed, self.project)
        elif name == "url_for":
            if self._is(owner, "core.app.App") or self._is(owner, "core.request.Request"):
                from core.mypy_plugin import params

                return partial(params.linked, self.project)
        elif name == "__call__":
            if owner == "core.shapes.Next":
                from core.mypy_plugin import awaits

                return partial(awaits.follows, self.project)
        elif name == "json":
            if owner == "core.response.Response":
                from core.mypy_plugin import awaits

                return partial(awaits.sent, self.project)
        elif name == "queue" and self._is(owner, "core.app.App"):
            from core.mypy_plugin import queues

            return partial(queues.consumed, self.project)
        elif name == "scheduled" and self._is(owner, "core.app.App"):
            from core.mypy_plugin import queues

            return partial(queues.scheduled, self.project)
        return None

    def find_method_signature_hook(self, fullname: str) -> SignatureHook | None:
        """The hook for the signature of a method."""
        # Overloads are tried with their errors held back, so mistakes are reported here, before they are.
        owner, _, name = fullname.rpartition(".")
        if name in _RUNS and self._is(owner, "core.bindings.d1.D1PreparedStatement"):
            from core.mypy_plugin import statements

            return partial(statements.run, self.project)
        if name == "batch" and self._is_database(owner):
            from core.mypy_plugin import statements

            return partial(statements.batched, self.project)
        return None

    def find_attribute_hook(self, fullname: str) -> AttributeHook | None:
        """The hook for an attribute that is read."""
        if fullname in _OWN or self._is_object(fullname.rpartition(".")[0]):
            return self._object_attribute
        return None

    def _object_attribute(self, ctx: AttributeContext) -> Type:
        """Check an attribute of a Durable Object, elsewhere than in the framework, which every program makes mypy
        read.
        """
        if cast("Any", ctx.api).tree.fullname.startswith("core."):
            return ctx.default_attr_type
        from core.mypy_plugin import stubs

        return stubs.attribute(self.project, ctx)

    def _is_object(self, owner: str) -> bool:
        """Return True if a class of the program is that of a Durable Object."""
        if owner.startswith(_FIXED):
            return False
        found = self._objects.get(owner)
        if found is None or not self._lasts:
            found = self._objects[owner] = self._is(owner, "core.bindings.durable_object.DurableObject")
        return found

    def _is_database(self, owner: str) -> bool:
        return self._is(owner, "core.bindings.d1.D1Database") or self._is(owner, "core.bindings.d1.D1DatabaseSession")

    def _is(self, owner: str, ancestor: str) -> bool:
        if owner == ancestor:
            return True
        if owner.startswith(_FOREIGN):
            return False
        symbol = self.lookup_fully_qualified(owner)
        return symbol is not None and isinstance(symbol.node, TypeInfo) and _has_base(symbol.node, ancestor)


def _is_shared(value: Expression) -> bool:
    """Return True for a value that may be a list, a dict or a set: written out, or a call without arguments."""
    return isinstance(value, DictExpr | ListExpr | SetExpr) or (isinstance(value, CallExpr) and not value.args)


def _has_base(info: TypeInfo, fullname: str) -> bool:
    return any(base.fullname == fullname for base in info.mro)
