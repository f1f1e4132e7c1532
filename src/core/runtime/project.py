"""A project as the commands for workerd see it: its configuration, main file and secrets, and its plan for workerd."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from core.backends.workerd.conversion import js_name
from core.bindings.kinds import KINDS
from core.config.load import load
from core.config.model import Configuration
from core.config.nearest import discover
from core.config.secrets import read_local_secrets
from core.http.json import JsonObject
from core.program.entry import Entry, entry_of
from core.runtime.bundle import Migrations
from core.runtime.plan import Plan


@attrs.frozen
class Project:
    """The files and settings to build and to run. `environment` is for workerd's process: this one's, and the local
    secrets, whose names are `local`. The plan is without them: they say nothing of the place where a bundle runs.
    """

    configuration: Configuration
    entry: Entry
    plan: Plan
    environment: Mapping[str, str] = attrs.field(repr=False)
    local: Sequence[str] = ()
    without: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.configuration.directory

    @property
    def migrations(self) -> Mapping[str, Migrations]:
        """The SQL migrations of each D1 binding that has a folder of them."""
        from core.sql.migrations import read_migrations

        found: dict[str, Migrations] = {}
        for table in self.configuration.worker.d1_databases:
            folder = self.configuration.migrations_directory(table)
            if folder.is_dir():
                read_files = read_migrations(folder)
                files = [(file.name, [piece.text for _, piece in file.statements]) for file in read_files]
                hashes = {file.name: file.digest for file in read_files}
                found[table.binding] = Migrations(table.migrations_table, files, hashes)
        return found

    @property
    def state(self) -> Path:
        """The directory in which a node on this machine keeps its state."""
        return self.folder / ".core" / "workerd"


def open_project(start: Path, *, environment: str | None = None) -> Project:
    """The project that `start` is in, or whose configuration file it is.

    The values of `.dev.vars` and `.env` come before those of this process's environment. Raises ConfigurationError.
    """
    configuration = load(discover(start), environment=environment)
    values = dict(os.environ)
    secrets = read_local_secrets(configuration.directory, environment=environment)
    values.update({name: secret.value.reveal() for name, secret in secrets.items()})
    return Project(
        configuration=configuration,
        entry=entry_of(configuration),
        plan=plan_of(configuration),
        environment=values,
        local=sorted(secrets),
        without=tuple(f"{name}: {reason}" for name, reason in unsupported(configuration).items()),
    )


_DEFAULT_DATE = "2026-04-01"
# The oldest date under which the bundled services and pyodide were tried.
_OLDEST_DATE = "2024-09-23"
# Flags that CPython, its sockets and the errors of objects need, and the dates from which each is on by itself.
_NEEDED_FLAGS = {
    "handle_cross_request_promise_resolution": "2024-10-14",
    "enable_weak_ref": "2025-05-05",
    "enhanced_error_serialization": "2026-04-21",
}
_CONSUMER = [
    "max_batch_size",
    "max_batch_timeout",
    "max_retries",
    "retry_delay",
    "dead_letter_queue",
    "max_concurrency",
]


def plan_of(configuration: Configuration, secrets: Iterable[str] = ()) -> Plan:
    """The plan for an environment, with its required secrets and those named `secrets`."""
    worker = configuration.worker
    required = () if worker.secrets is None else worker.secrets.required
    variables: JsonObject = dict(worker.vars)
    if worker.version_metadata is not None:
        variables[worker.version_metadata.binding] = {"id": "local", "tag": "", "timestamp": ""}
    served, assets = None, worker.assets
    if assets is not None and assets.directory is not None:
        settings = attrs.asdict(assets, filter=lambda field, _: field.name not in ("binding", "directory"))
        served = (assets.binding or "", str(configuration.directory / assets.directory), settings)
    own = worker.name or "app"
    if own in ("internet", "do-storage") or own.startswith("core-"):
        own = f"app-{own}"  # services of the runtime have such names
    date = max(str(worker.compatibility_date or _DEFAULT_DATE), _OLDEST_DATE)
    flags = [flag for flag in worker.compatibility_flags if not flag.startswith("python_")]
    flags += [flag for flag, since in _NEEDED_FLAGS.items() if date < since and flag not in flags]
    return Plan(
        name=own,
        compatibility_date=date,
        compatibility_flags=flags,
        vars={name: value for name, value in variables.items() if name not in secrets},
        secrets=list(dict.fromkeys((*required, *secrets))),
        kv={table.binding: table.id or table.binding for table in worker.kv_namespaces},
        d1={table.binding: table.database_id or table.database_name or table.binding for table in worker.d1_databases},
        r2={table.binding: table.bucket_name or table.binding for table in worker.r2_buckets},
        queues={table.binding: table.queue for table in worker.queues.producers},
        consumers={
            table.queue: {js_name(key): value for key in _CONSUMER if (value := getattr(table, key)) is not None}
            for table in worker.queues.consumers
            if table.type == "worker"
        },
        durable_objects={
            table.name: table.class_name for table in worker.durable_objects.bindings if table.script_name is None
        },
        crons=list(worker.triggers.crons),
        services={table.binding: own for table in worker.services if table.service == worker.name},
        # A database is an address and not only methods: there is nothing to put in its place.
        absent={
            name: reason
            for name, reason in unsupported(configuration).items()
            if configuration.bindings[name].kind != "hyperdrive"
        },
        assets=served,
    )


_ELSEWHERE = "`core dev` has an embedded one where there is one, and the hosted platform has the real one"
_INSTEAD = {
    KINDS["rate_limit"].title: "Count with the middleware rate_limit, in a KV namespace (kv_binding=…) or exactly in a "
    "Durable Object (store=DurableObjectStore(…)), which it has",
}


def unsupported(configuration: Configuration) -> dict[str, str]:
    """The bindings of a configuration that workerd by itself has no service for, one sentence each."""
    lacking: dict[str, str] = {}
    for name, binding in configuration.bindings.items():
        kind, entry = KINDS[binding.kind], binding.entry
        missing = "" if kind.alone else kind.title
        if kind.name == "service" and entry.service != configuration.worker.name:
            missing = "service binding to another worker"
        elif kind.name == "durable_object" and entry.script_name is not None:
            missing = "Durable Object class of another worker"
        if kind.name == "hyperdrive":
            lacking[name] = (
                "a client of a database opens sockets, which Python has not in workerd, so no asyncpg and no other driver "
                "connects there. Run the worker on CPython: `core serve --python`"
            )
        elif missing:
            lacking[name] = f"workerd alone has no service for this {missing}. {_INSTEAD.get(missing, _ELSEWHERE)}"
    return lacking
