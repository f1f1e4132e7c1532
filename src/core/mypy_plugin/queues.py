"""Consumers of queues and handlers of crons against the configuration and the producers on Env (`core-queue`,
`core-env`).
"""

from __future__ import annotations

from mypy.nodes import CallExpr, FuncDef, TypeInfo
from mypy.plugin import MethodContext
from mypy.types import AnyType, CallableType, Instance, Type, get_proper_type

from core.analysis.events import cron_problem
from core.analysis.problems import queue_problem
from core.analysis.settings import Project
from core.mypy_plugin.envs import shape_of
from core.mypy_plugin.location import env_of, index_here, tell
from core.mypy_plugin.types import full_name, instance_of, shown

__all__ = ["consumed", "scheduled"]


def consumed(project: Project, ctx: MethodContext) -> Type:
    """`@app.queue("jobs")` over a function that takes a `MessageBatch[T]`."""
    _check(project, ctx)
    return ctx.default_return_type


def scheduled(project: Project, ctx: MethodContext) -> Type:
    """`@app.scheduled("0 * * * *")`: a cron that the configuration has."""
    call = ctx.context
    cron = index_here(ctx.api).string_of(call.args[0]) if isinstance(call, CallExpr) and call.args else None
    configurations = project.configured_for(ctx.api.path).configurations
    problem = cron_problem(cron, configurations) if cron is not None else None
    if problem is not None:
        tell(project, ctx.api, problem, call, "core-env")
    return ctx.default_return_type


def _check(project: Project, ctx: MethodContext) -> None:
    call = ctx.context
    if not isinstance(call, CallExpr) or not call.args:
        return
    index = index_here(ctx.api)
    name = index.string_of(call.args[0])
    if name is None:
        return
    registration = index.registration(call)
    function = registration.decorated if registration is not None else None
    type_ = function.type if isinstance(function, FuncDef) else None
    signature = get_proper_type(type_) if type_ is not None else None
    message: tuple[str, str] | None = None
    env = env_of(ctx.type)
    if isinstance(signature, CallableType):
        message = _message(signature)
        if env is None:
            env = _env(signature)
    configured = project.configured_for(ctx.api.path)
    shape = shape_of(project, env, ctx.api.path) if env is not None else None
    problem = queue_problem(name, message, shape, configured.configurations)
    if problem is not None:
        tell(project, ctx.api, problem, call, "core-queue")


def _message(signature: CallableType) -> tuple[str, str] | None:
    batch = instance_of(signature.arg_types[0], "core.bindings.queue.MessageBatch") if signature.arg_types else None
    if batch is None or not batch.args or isinstance(get_proper_type(batch.args[0]), AnyType):
        return None
    name = full_name(batch.args[0])
    return (name, shown(batch.args[0])) if name else None


def _env(signature: CallableType) -> TypeInfo | None:
    env = get_proper_type(signature.arg_types[1]) if len(signature.arg_types) > 1 else None
    return env.type if isinstance(env, Instance) else None
