"""The options of `core serve --python`, as they travel from the supervisor to its processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from core.assembly.project import Place
from core.hosts.limits import Limits
from core.runtime.options import NO_PROXY, Front, Serving

ASKED = b"?"
"""The question where a process is, at its socket for `reports`."""


@attrs.frozen(kw_only=True)
class PythonOptions(Serving):
    """Options of serving with so many processes, `workers`, that answer requests. `limits` are those of each."""

    config: Path
    environment: str | None
    workers: int = 1
    limits: Limits = attrs.field(factory=Limits)


@attrs.frozen
class Loadable:
    """An application and its state folder: a `Place`."""

    config: Path
    environment: str | None
    state_folder: Path
    migrate: bool


@attrs.frozen
class Job:
    """The job of one process. `name` is the supervisor's for it, `role` is `web` or `state`; the others are descriptors
    and paths that it inherits.

    `listener` is the socket to serve at: TCP for `web`, Unix for `state`. `objects_at` is where the Durable Objects
    are, for `web`. `control` is the socket to the supervisor, whose process id is `parent`; at `reports` it asks where
    the process is, and reads the answer. `records` takes log records as lines of JSON, None for lines of text.
    """

    name: str
    role: str
    config: str
    environment: str | None
    state: str
    migrate: bool
    control: int
    listener: int
    parent: int
    reports: int = -1
    records: int | None = None
    objects_at: str | None = None
    front: Front = NO_PROXY
    limits: Limits = attrs.field(factory=Limits)
    metrics: bool = False
    secrets: str | None = None

    @property
    def place(self) -> Place:
        """The application to load, and its state folder."""
        return Loadable(Path(self.config), self.environment, Path(self.state), self.migrate)

    def dumped(self) -> str:
        """The job as an argument of a command."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def loaded(cls, text: str) -> Job:
        """The job that `dumped` wrote."""
        data: dict[str, Any] = json.loads(text)
        front, limits = Front(**data.pop("front")), Limits(**data.pop("limits"))
        return cls(**data, front=front, limits=limits)
