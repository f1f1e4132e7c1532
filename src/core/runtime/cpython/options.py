"""The options of `core serve --python`, as they travel from the supervisor to its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs
from cattrs.preconf.json import make_converter

from core.hosts.limits import Limits
from core.runtime.options import Serving

ASKED = b"?"
"""The question where a process is, at its socket for `reports`."""

_converter = make_converter()


@attrs.frozen(kw_only=True)
class PythonOptions(Serving):
    """Options of serving with so many processes, `workers`, that answer requests. `limits` are those of each.

    They are a `Place`: the application to load.
    """

    config: Path
    environment: str | None
    workers: int = 1
    limits: Limits = attrs.field(factory=Limits)

    @property
    def state_folder(self) -> Path:
        """The folder in which the embedded bindings keep their state."""
        return self.state


@attrs.frozen
class Job:
    """The job of one process, by the `options` of the service. `name` is the supervisor's for it; the others are
    descriptors and paths that it inherits.

    `listener` is the socket to serve at: TCP for `web`, Unix for `state`. `objects_at` is where the Durable Objects
    are, for `web`. `control` is the socket to the supervisor, whose process id is `parent`; at `reports` it asks where
    the process is, and reads the answer. `records` takes log records as lines of JSON, None for lines of text.
    """

    name: str
    role: Literal["web", "state"]
    options: PythonOptions
    control: int
    listener: int
    parent: int
    reports: int = -1
    records: int | None = None
    objects_at: str | None = None

    def dumped(self) -> str:
        """The job as an argument of a command."""
        return _converter.dumps(self)

    @classmethod
    def loaded(cls, text: str) -> Job:
        """The job that `dumped` wrote."""
        return _converter.loads(text, cls)
