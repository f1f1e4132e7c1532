"""From a configuration file to an application with its embedded bindings, for `core dev` and `core serve --python`.

The application is found and imported as `core.program.entry` says. Its work that no request starts is here too. When a
batch goes and when a cron comes up is decided by the embedded queues and schedule; here they are handed over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
from typing_extensions import Unpack

from core.app import App
from core.assembly.embedded import EmbeddedBindings, Embedding, d1_name, embed
from core.backends.embedded import migrations
from core.backends.embedded.cron import CronSchedule
from core.backends.embedded.queue import ConsumerSettings, broker_of
from core.backends.embedded.store import Store
from core.bindings.queue import MessageBatch, QueueMetrics
from core.config.model import Configuration
from core.context import ExecutionContext, ScheduledEvent
from core.env import inject
from core.errors import EnvError
from core.hosts.application import find_app
from core.program.entry import entry_of, import_main
from core.sql.migrations import Migration, read_migrations

if TYPE_CHECKING:
    from core.telemetry.metrics import Meter

_TAKE_OVER: Final = 300
"""Tenths of a second that a process waits for the one before it to give up the Durable Objects."""


@attrs.frozen
class Loaded:
    """An application, its bindings on their store, and the notes about them for a developer."""

    root: Path
    configuration: Configuration
    app: App[Any]
    env: object
    store: Store
    bindings: EmbeddedBindings
    notices: Sequence[str]

    @property
    def crons(self) -> list[str]:
        """The cron expressions of the configuration."""
        return list(self.configuration.worker.triggers.crons)

    async def start(self, *, replaces: bool = True) -> None:
        """Take up the work that was going on. Waits while a process that this one replaces has the Durable Objects."""
        from core.errors import DurableObjectError

        for pause in (*(0.1,) * (_TAKE_OVER if replaces else 0), None):
            try:
                for namespace in self.bindings.namespaces.values():
                    namespace.start()
                break
            except DurableObjectError:
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        await self.app.startup(self.env)

    async def close(self) -> None:
        """Leave the lifespans of the application, and give the state back."""
        await self.app.shutdown(self.env)
        for namespace in self.bindings.namespaces.values():
            await namespace.close()
        self.store.close()


async def load(
    config: Path,
    folder: Path,
    *,
    environment: str | None = None,
    migrate: bool = True,
    read_secrets: Callable[[Configuration, type | None], Mapping[str, str]] | None = None,
    **given: Unpack[Embedding],
) -> Loaded:
    """Read the configuration, import the application, open the bindings, apply migrations and build the Env.

    `config` is the file of the configuration, `folder` where the embedded bindings are kept. `read_secrets` gives
    the values of the secrets, by the configuration and the class of the Env; `given` is as for `open_bindings`. Raises
    DeveloperError, and whatever the application's own modules raise.
    """
    from core.config.load import load as load_configuration

    configuration = load_configuration(config, environment=environment)
    entry = entry_of(configuration)
    module = import_main(entry)
    app = find_app(module, entry.attribute, entry.config)
    app.check()
    given["classes"] = vars(module)
    if read_secrets is not None:
        given["secrets"] = read_secrets(configuration, cast("type | None", app.env_class))
    store, bindings = open_bindings(folder, configuration, **given)
    try:
        notices = [f"{name}: {reason}" for name, reason in bindings.absent.items()]
        assets = configuration.worker.assets
        if assets is not None and assets.directory is not None:
            notices.append(
                f"{configuration.path.name}:{configuration.line_of('assets')} [assets]: the platform answers with the files of "
                f"{assets.directory} ahead of the worker, and nothing does here. Use `static(directory=…)` of "
                "`core.middleware.static` for them"
            )
        notices += await _migrate(configuration, bindings, apply=migrate)
        env = _inject(app, bindings)
        for namespace in bindings.namespaces.values():
            namespace.objects.env = env
    except BaseException:
        store.close()
        raise
    return Loaded(configuration.directory, configuration, app, env, store, bindings, notices)


def _inject(app: App[Any], bindings: EmbeddedBindings) -> object:
    """Build the Env. An EnvError is given the line of the first field that it names, or that of the class."""
    import inspect

    try:
        return inject(app.env_class, bindings.values)
    except EnvError as error:
        with contextlib.suppress(OSError, TypeError):
            lines, first = inspect.getsourcelines(cast("type", app.env_class))
            field = error.problems[0].partition(":")[0].rpartition(".")[2]
            offset = next((n for n, line in enumerate(lines) if line.split(":")[0].strip() == field), 0)
            error.location = inspect.getfile(cast("type", app.env_class)), first + offset
        raise


def open_bindings(
    folder: Path, configuration: Configuration, **given: Unpack[Embedding]
) -> tuple[Store, EmbeddedBindings]:
    """The embedded bindings on a state folder. Close the store when done.

    Without `secrets` they are the values of `.dev.vars` and `.env`; without `classes` all but the Durable Objects is
    there.
    """
    from core.config.secrets import read_local_secrets

    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    store = Store(folder)
    try:
        if given.get("secrets") is None:
            local = read_local_secrets(configuration.directory, configuration.environment)
            given["secrets"] = {name: secret.value.reveal() for name, secret in local.items()}
        return store, embed(configuration, store, **given)
    except BaseException:
        store.close()
        raise


async def _migrate(configuration: Configuration, bindings: EmbeddedBindings, *, apply: bool) -> list[str]:
    said: list[str] = []
    for name, binding in configuration.bindings.items():
        if binding.kind != "d1":
            continue
        database: Any = bindings.values[name]
        files = migrations_of(configuration, name)
        table = binding.entry.migrations_table
        for file, last in await migrations.late(database, files, table=table):
            said.append(late_note(name, file, last))
        if apply:
            done = await migrations.apply(database, files, table=table)
            if done:
                said.append(f"{name}: applied {', '.join(file.name for file in done)}")
        else:
            left = await migrations.pending(database, files, table=table)
            if left:
                names = ", ".join(file.name for file in left)
                said.append(f"{name}: pending {names}. Apply with `core migrate apply`")
        differing = migrations.changed(database.engine.database.path, files, table=table)
        if differing:
            said.append(changed_note(name, differing))
    return said


def late_note(name: str, file: Migration, last: str) -> str:
    """Return a note about a migration that comes after a later one, to the database `name`."""
    return (
        f"{name}: {file.path.parent.name}/{file.name}:1 is numbered before {last}, which is applied already. A new database "
        "applies them the other way round. Give it the next number (`core migrate new`)"
    )


def changed_note(name: str, files: Sequence[Migration]) -> str:
    """Return a note about migrations that were edited after they had been applied to the database `name`."""
    return (
        f"{name}: changed since applied: {', '.join(file.name for file in files)}. The database is as they were then. Write "
        "the change as a migration of its own (`core migrate new`), or begin with empty local databases (`core migrate reset`)"
    )


def changed_locally(configuration: Configuration) -> list[str]:
    """`changed_note` for each local database, as far as there is one. Opens nothing for writing."""
    store = Store(configuration.directory / configuration.worker.core.state)
    said: list[str] = []
    for name, binding in configuration.bindings.items():
        if binding.kind == "d1":
            file = store.file("d1", d1_name(binding.entry))
            table = binding.entry.migrations_table
            differing = migrations.changed(file, migrations_of(configuration, name), table=table)
            if differing:
                said.append(changed_note(name, differing))
    return said


def migrations_of(configuration: Configuration, name: str) -> list[Migration]:
    """The migrations of a database by its binding's name; none where it has no folder of them."""
    folder = configuration.migrations_directory(configuration.bindings[name].entry)
    return read_migrations(folder) if folder.is_dir() else []


def consumers_of(loaded: Loaded) -> dict[str, ConsumerSettings]:
    """The queues that the configuration or the application consumes, with their settings."""
    names = [field.name for field in attrs.fields(ConsumerSettings)]
    settings = {
        consumer.queue: ConsumerSettings(**{name: getattr(consumer, name) for name in names})
        for consumer in loaded.configuration.worker.queues.consumers
        if consumer.type == "worker"
    }
    for name in loaded.app.queues:
        settings.setdefault(name, ConsumerSettings())
    return settings


# Work that no request starts -----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Background:
    """Drives the consumers and crons of one loaded application, and has its alarms counted and traced."""

    _loaded: Loaded
    _context: ExecutionContext
    _schedule: CronSchedule | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        """Begin. Call it with the event loop running."""
        loaded = self._loaded
        broker = broker_of(loaded.store)
        for name, settings in consumers_of(loaded).items():
            if name in loaded.app.queues:
                broker.consume(name, self.consume, settings)
        for namespace in loaded.bindings.namespaces.values():
            namespace.objects.around_alarm = self.alarm
        if loaded.crons and loaded.app.crons:
            self._schedule = CronSchedule(loaded.store, loaded.crons, self.come_up)
            self._schedule.start()

    async def stop(self) -> None:
        """End: the batches and crons that run are waited for, no other begins."""
        if self._schedule is not None:
            await self._schedule.close()
        await broker_of(self._loaded.store).close()

    def next_times(self) -> dict[str, float]:
        """Return the next time of each cron, in seconds since 1970."""
        return {} if self._schedule is None else self._schedule.next_times()

    async def consume(self, batch: MessageBatch[Any]) -> None:
        """Hand a batch to its consumer. Its error goes to the broker, which retries the batch."""
        await self._loaded.app.consume(batch, self._loaded.env, self._context)

    async def come_up(self, event: ScheduledEvent) -> None:
        """Hand an event to the handlers of its cron. Their errors go to the schedule, which logs it."""
        await self._loaded.app.trigger(event, self._loaded.env, self._context)

    async def alarm(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run the alarm of a Durable Object of the class `name`. Its error goes to the object, which tries it again."""
        for instrument in self._loaded.app.instruments:
            run = instrument.alarm(name, run)
        await run()


def measure_state(loaded: Loaded, meter: Meter) -> None:
    """Count the work of the consumers, crons and Durable Objects, and what waits for them or is alive."""
    from core.telemetry.metrics import measure, set_queue

    measure(loaded.app, loaded.env, meter)
    broker = broker_of(loaded.store)
    broker.on_dead = lambda queue, count: meter.add("core_queue_dead_letters", queue, by=count)
    consumers = consumers_of(loaded)
    for queue in consumers:
        meter.add("core_queue_dead_letters", queue, by=0)
    queues = {*consumers, *(producer.queue for producer in loaded.configuration.worker.queues.producers)}

    def set_gauges() -> None:
        backlogs = broker.backlogs()
        for queue in {*queues, *backlogs}:
            set_queue(meter, queue, backlogs.get(queue, QueueMetrics()), broker.now() / 1000)
        for namespace in loaded.bindings.namespaces.values():
            meter.set("core_durable_objects_alive", namespace.objects.name, to=namespace.objects.alive)

    meter.gauges.append(set_gauges)
