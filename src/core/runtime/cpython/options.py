"""The options of `core serve --python`, as they travel from the supervisor to its processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from core.assembly.project import Place
from core.hosts.limits import Limits

if TYPE_CHECKING:
    from core.logs import LogFormat

__all__ = ["Front", "Job", "PythonOptions"]


@attrs.frozen
class Front:
    """The proxy in front, as far as it is believed.

    `ip_header` has the client's address, `proto_header` says `http` or `https`; `origin` is the one that clients know,
    such as https://example.com. None: nothing is believed.
    """

    ip_header: str | None = None
    proto_header: str | None = None
    origin: str | None = None


@attrs.frozen
class PythonOptions:
    """Options of serving. `stop_seconds` is how long stopping may take, `hang_seconds` how long a process may not
    answer before it is replaced (0: for as long as it likes), `memory` how many bytes it may take (None: as many as it
    likes). `limits` are those of each process. With `metrics` the health address has numbers too. `secrets` is a folder
    of secrets.
    """

    config: Path
    environment: str | None
    state: Path
    host: str = "127.0.0.1"
    port: int = 8787
    health: tuple[str, int] = ("127.0.0.1", 8788)
    workers: int = 1
    stop_seconds: float = 8.0
    hang_seconds: float = 60.0
    memory: int | None = None
    migrate: bool = True
    front: Front = Front()
    limits: Limits = attrs.field(factory=Limits)
    metrics: bool = False
    log_format: LogFormat = "text"
    secrets: str | None = None


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
    front: Front = Front()
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
