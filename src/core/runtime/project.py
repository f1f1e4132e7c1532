"""A project as the commands for workerd see it: its configuration, its main file, its secrets, its plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from core.config.load import load
from core.config.model import Configuration
from core.config.nearest import discover
from core.config.secrets import read_local_secrets
from core.runtime.bundle import Migrations
from core.runtime.capnp import Plan
from core.runtime.plan import entry_of, plan_of, unsupported

__all__ = ["Project", "open_project"]


@attrs.frozen
class Project:
    """The files and settings to build and to run. `environment` is for workerd's process: this one's, and the local
    secrets, whose names are `local`. The plan is without them: they say nothing of the place where a bundle runs.
    """

    configuration: Configuration
    main: Path
    attribute: str | None
    plan: Plan
    environment: Mapping[str, str] = attrs.field(repr=False)
    local: Sequence[str] = ()
    without: tuple[str, ...] = ()

    @property
    def local_plan(self) -> Plan:
        """The plan on this machine, where a local secret wins over a variable."""
        return plan_of(self.configuration.worker, folder=self.folder, secrets=self.local)

    @property
    def folder(self) -> Path:
        """The folder of the configuration file."""
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
    worker = configuration.worker
    values = dict(os.environ)
    secrets = read_local_secrets(configuration.directory, environment=environment)
    values.update({name: value.reveal() for name, value in secrets.values.items()})
    main, attribute = entry_of(worker, configuration.directory)
    return Project(
        configuration=configuration,
        main=main,
        attribute=attribute,
        plan=plan_of(worker, folder=configuration.directory),
        environment=values,
        local=sorted(secrets.values),
        without=tuple(f"{name}: {reason}" for name, reason in unsupported(worker).items()),
    )
