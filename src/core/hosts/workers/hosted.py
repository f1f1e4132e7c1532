"""The classes that the hosted platform looks for in the main module of a Python worker.

    app = create_app(Env)
    ...
    Default = entrypoint(app)
    Counter = durable_object(Counter)

They are the classes that `workers-runtime-sdk` expects: a `WorkerEntrypoint` with `fetch`, `queue` and `scheduled`, and
`DurableObject`s. Outside the platform, where that package is missing, the same lines do no harm: a bundle of our own
and `core dev` use the application itself.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from core.app import App
from core.backends.workerd.conversion import unwrap
from core.bindings.durable_object import DurableObject
from core.context import ScheduledEvent
from core.hosts.workers.context import Given, WorkersContext, entered
from core.hosts.workers.request import WorkersRequest
from core.hosts.workers.response import answer

E = TypeVar("E")


def entrypoint(app: App[Any], /) -> type[Any]:
    """The class `Default` for `app`. Name it so in the main module: the platform asks for that name."""
    made: list[object] = []

    def env_of(env: object) -> object:
        # Every event brings the same bindings, so the Env is built by the first.
        if not made:
            from core.backends.workerd.env import build_env

            made.append(build_env(app.env_class, env))
        return made[0]

    class Default(_base("WorkerEntrypoint")):  # type: ignore[misc]  # which base it is, is known at run time
        async def fetch(self, request: Any) -> Any:
            own = unwrap(request)
            given = Given(self.ctx, own)
            req = WorkersRequest(given, own.method, own.url, env_of(self.env), WorkersContext(given))
            req._app = app
            return await answer(app, req)

        async def queue(self, batch: object, env: object = None, ctx: object = None) -> None:
            from core.backends.workerd.queue import WorkerdMessageBatch

            own, context = env_of(self.env), WorkersContext(Given(self.ctx))
            await entered(app, app.consume(WorkerdMessageBatch(batch), own, context), own, context)

        async def scheduled(self, event: Any, env: Any = None, ctx: Any = None) -> None:
            came = unwrap(event)
            due = ScheduledEvent(str(came.cron), float(came.scheduledTime) / 1000)
            own, context = env_of(self.env), WorkersContext(Given(self.ctx))
            await entered(app, app.trigger(due, own, context), own, context)

    Default.app = app
    return Default


def durable_object(cls: type[DurableObject[E]], /, env_class: type[E] | None = None) -> type[Any]:
    """The platform's class for one of the application's Durable Object classes, under the same name.

    `env_class` is the class of `self.env`; without it, every binding is there, unchecked. It may have the name that the
    configuration binds: `core dev` and bundles of our own find `cls` in it.
    """
    from core.hosts.workers.durable import WEB_SOCKET_EVENTS, call_method, method_names

    def __init__(self: Any, ctx: object, env: object) -> None:
        from core.backends.workerd.durable_object import WorkerdDurableObjectState
        from core.backends.workerd.env import build_env

        cast("Any", super(made, self)).__init__(ctx, env)
        self._core_object = cls(WorkerdDurableObjectState(ctx), build_env(env_class, env))

    def method(name: str) -> object:
        async def call(self: Any, *args: Any) -> object:
            return await call_method(self._core_object, name, args)

        call.__name__ = name
        return call

    members: dict[str, object] = {
        name: method(name) for name in method_names(cls) if name not in WEB_SOCKET_EVENTS.values()
    }
    members |= {event: method(name) for event, name in WEB_SOCKET_EVENTS.items()}
    made: Any = type(cls.__name__, (_base("DurableObject"),), {**members, "__init__": __init__, "__core_class__": cls})
    result: type[Any] = made
    return result


def _base(name: str) -> type[Any]:
    """A base class of the platform's SDK, or an empty one where that is not installed."""
    try:
        import workers
    except ImportError:
        return _Bare
    base: type[Any] = getattr(workers, name)
    return base


class _Bare:
    """Stands for a class of the SDK outside the platform: it keeps its arguments."""

    def __init__(self, ctx: object = None, env: object = None) -> None:
        self.ctx = ctx
        self.env = env
