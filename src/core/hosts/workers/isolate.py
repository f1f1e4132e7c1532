"""One isolate of a bundle: the application, its Env, and an answer to each event of the worker.

`worker.mjs` calls the functions below. They return at once when nothing had to be waited for, which spares the event
loop a turn, and a task otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from core.app import App
from core.context import ScheduledEvent
from core.errors import BindingError, DeveloperError, EnvError
from core.hosts.application import find_app, secrets_asked
from core.hosts.workers.context import Given, WorkersContext, entered
from core.hosts.workers.request import WorkersRequest
from core.hosts.workers.response import answer

if TYPE_CHECKING:
    from types import ModuleType

    from core.backends.workerd.queue import WorkerdMessageBatch
    from core.telemetry.metrics import Meter

# The text bindings that the supervisor gives an isolate, and a build (`PLACEHOLDERS_BINDING`).
IP_HEADER_BINDING = "CORE_CLIENT_ADDRESS_HEADER"  # the header which a trusted proxy writes the client's address into
ORIGIN_BINDING = "CORE_ORIGIN"  # scheme and host as clients know them
# Asks for log records as lines of JSON. Its text begins each of them, so that no other line is taken for one.
LOG_FORMAT_BINDING = "CORE_LOG_FORMAT"
# For a look at the application: secrets have placeholders for values, if it says so, and those that only the Env names
# have none yet.
PLACEHOLDERS_BINDING = "CORE_PLACEHOLDERS"
METRICS_BINDING = "CORE_METRICS"  # asks for numbers
SPANS_BINDING = "CORE_SPANS"  # asks for spans
RETRY_DELAYS_BINDING = "CORE_RETRY_DELAYS"  # in a cluster, the configured retry delay of each queue: a JSON object

_LONGEST_WAIT: Final = 300


class _Isolate:
    """The values kept between events."""

    app: App[Any]  # there from the start on
    main: ModuleType | None = None
    env: object = None
    has_env = False
    ip_header: str | None = None
    meter: Meter | None = None


_isolate = _Isolate()


def start(main: str) -> None:
    """Import the application, `module:name`, unless it is there already, out of a snapshot."""
    if _isolate.main is not None:
        return
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    module, _, name = main.partition(":")
    _isolate.main = import_module(module)
    _isolate.app = find_app(_isolate.main, name or "app")
    _isolate.app.check()


def preload() -> None:
    """Load what the first event needs, for a memory snapshot to have it."""
    from core.backends.workerd.env import preload as preload_bindings

    with suppress(ImportError):  # of cattrs, where it was left out
        from core.validation.converters import preload as preload_converters

        preload_converters()
    env_class = _isolate.app.env_class
    if env_class is not None:
        with suppress(EnvError):  # which `problems` reports
            preload_bindings(env_class)


def problems(env: object) -> str | None:
    """The error that keeps this isolate from answering, or None."""
    secrets: dict[str, str] = {}
    try:
        if hasattr(env, PLACEHOLDERS_BINDING):
            asked = _secrets_asked() or {}
            secrets = {name: "placeholder" for name, needed in asked.items() if needed and not hasattr(env, name)}
        _env(env, secrets)
    except EnvError as error:
        # Only what the Env's own converters and validators raise has a cause, and a placeholder is none.
        if error.__cause__ is not None and (secrets or getattr(env, PLACEHOLDERS_BINDING, None)):
            return None
        return str(error)
    return None


def _secrets_asked() -> dict[str, bool] | None:
    env_class = _isolate.app.env_class
    # An application without an Env is asked for any name.
    return None if env_class is None or env_class is Any else secrets_asked(env_class)


def asked(question: str, env: object, text: str) -> object:
    """Answer a question of the supervisor's, whose `text` is JSON, and so is the answer."""
    return _run(_asked(question, env, text))


async def _asked(question: str, env: object, text: str) -> str:
    import json

    answer: Mapping[str, object] = {}
    match question:
        case "where":  # the requests in flight, and what they wait in
            from core.hosts.in_flight import requests_in_flight

            answer = {"where": requests_in_flight(asyncio.get_running_loop())}
        case "spans":  # those that ended since they were last asked for
            from core.backends.workerd.spans import IsolateTracer

            tracer = IsolateTracer.current
            answer = {"spans": [] if tracer is None else tracer.taken()}
        case "metrics":
            own, meter = _env(env), _isolate.meter
            if meter is not None:
                from core.telemetry.metrics import measure_queues

                await measure_queues(own, meter)
                answer = meter.snapshot()
        case _:
            answer = await _migrate(env, json.loads(text))
    return json.dumps(answer)


async def _migrate(env: object, job: Mapping[str, Any]) -> Mapping[str, object]:
    """Apply a database's pending migrations, and tell of those applied."""
    from core.backends.workerd.migrations import apply
    from core.errors import D1Error

    try:
        applied, changed = await apply(getattr(env, job["binding"]), job["table"], job["files"], job["hashes"])
        return {"applied": applied, "changed": changed}
    except D1Error as error:
        return {"error": str(error)}


def go_away() -> object:
    """End all endless connections: the process is about to stop. Returns the ids of objects that have WebSockets."""
    from core.backends.workerd.conversion import bridge
    from core.backends.workerd.leaving import leave

    return bridge().to_js(leave())


def _env(env: object, secrets: Mapping[str, str] | None = None) -> object:
    if not _isolate.has_env:
        from core.backends.workerd.env import build_env

        app = _isolate.app
        header = getattr(env, IP_HEADER_BINDING, None)
        _isolate.ip_header = header.lower() if isinstance(header, str) else None
        origin = getattr(env, ORIGIN_BINDING, None)
        WorkersRequest.public_origin = origin if isinstance(origin, str) else None
        _isolate.env = build_env(app.env_class, env, secrets)
        _isolate.has_env = True
        if hasattr(env, LOG_FORMAT_BINDING):
            from core.telemetry.logs import JsonFormatter

            formatter = JsonFormatter(mark=str(getattr(env, LOG_FORMAT_BINDING)))
            for handler in logging.getLogger().handlers:
                handler.setFormatter(formatter)
        if hasattr(env, SPANS_BINDING):
            from core.backends.workerd.spans import IsolateTracer
            from core.telemetry.tracing import trace, trace_bindings

            IsolateTracer.current = IsolateTracer()
            trace(app, IsolateTracer.current)
            trace_bindings(_isolate.env)
        if hasattr(env, METRICS_BINDING):
            from core.telemetry.metrics import Meter, measure

            _isolate.meter = Meter()
            measure(app, _isolate.env, _isolate.meter)
    return _isolate.env


def _run(work: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine up to its first pause: its result when there was none, else the task that goes on."""
    task: asyncio.Task[object] = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)  # type: ignore[call-arg,unused-ignore]  # 3.12
    return task.result() if task.done() else task


def fetch(given: Any, method: str, url: str) -> object:
    """Answer the request of `given`, which has the runtime's `request`, `env` and `ctx`."""
    own = _isolate.env if _isolate.has_env else _env(given.env)
    req = WorkersRequest(given, method, url, own, WorkersContext(given), _isolate.ip_header)
    app = req._app = _isolate.app
    return _run(answer(app, req))


def queue(batch: object, env: object, ctx: object) -> object:
    """Consume a batch. An error of the consumer has the runtime retry it."""
    from core.backends.workerd.queue import WorkerdMessageBatch

    own, context, came = _env(env), WorkersContext(Given(ctx)), WorkerdMessageBatch(batch)
    delays = getattr(env, RETRY_DELAYS_BINDING, None)
    work = _isolate.app.consume(came, own, context) if delays is None else _consume(came, own, context, str(delays))
    return _run(entered(_isolate.app, work, own, context))


async def _consume(batch: WorkerdMessageBatch, env: object, ctx: WorkersContext, delays: str) -> None:
    """Consume a batch, and put it off where a binding was away: attempts at once would be used up before it is back."""
    try:
        await _isolate.app.consume(batch, env, ctx)
    except BindingError as error:
        if error.retryable:
            import json

            attempts = max(message.attempts for message in batch.messages)
            # 5 + 10 + 20 s are longer than a lease of the cluster, so three retries are enough for it.
            batch.retry_all(max(json.loads(delays)[batch.queue], min(5 * 2 ** (attempts - 1), _LONGEST_WAIT)))
        raise


def scheduled(event: Any, env: object, ctx: object) -> object:
    """Run the handlers scheduled for a cron trigger."""
    came = ScheduledEvent(str(event.cron), float(event.scheduledTime) / 1000)
    own, context = _env(env), WorkersContext(Given(ctx))
    return _run(entered(_isolate.app, _isolate.app.trigger(came, own, context), own, context))


def durable_object(name: str, ctx: object, env: object) -> object:
    """A new instance of a Durable Object class of the main module; or the Error that JavaScript throws instead."""
    try:
        from core.backends.workerd.durable_object import WorkerdDurableObjectState
        from core.bindings.durable_object import object_class

        cls = object_class(getattr(_isolate.main, name, None))
        if cls is None:
            raise DeveloperError(
                f"{getattr(_isolate.main, '__name__', 'the main module')} has no class {name}, which the configuration "
                "binds as a Durable Object. Define it there or import it there"
            )
        return cls(WorkerdDurableObjectState(ctx), _env(env))
    except Exception as error:
        from core.hosts.workers.durable import not_made

        return not_made(name, error)


def durable_object_call(instance: object, method: str, *args: object) -> object:
    """Call a method of a Durable Object for its stub, or one of its events."""
    from core.hosts.workers.durable import call_method_or_tell

    return _run(call_method_or_tell(instance, method, args, _isolate.app.instruments))


def report(env: object) -> dict[str, object]:
    """Return what a build wants to know: the Durable Object classes of the application, its secrets, missing parts."""
    from core.bindings.durable_object import object_class
    from core.hosts.workers.durable import method_names

    classes = {
        name: method_names(cls)
        for name, value in vars(_isolate.main).items()
        if (cls := object_class(value)) is not None
    }
    return {"classes": classes, "problems": problems(env), "secrets": _secrets_asked()}
