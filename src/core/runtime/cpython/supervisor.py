"""`core serve --python`: its processes, what each has to do, and the sockets between them.

The parts that exist once (Durable Objects, consumers of queues, crons) are in one process, `state`; the others, `web`,
answer requests, and call the objects over a Unix socket. Each socket is opened here, once, and never closed while we
serve, so that whoever connects while a process is replaced waits instead of being refused. Every other binding is
SQLite, which several processes share.

A new version loads first, and where it cannot, the old one stays. Two `state` processes overlap safely: an object, a
consumer or a moment of a cron belongs to whoever holds its lock.
"""

from __future__ import annotations

import os
import socket
import tempfile
from typing import Final

import attrs

from core.config.load import load as load_configuration
from core.config.model import Configuration
from core.hosts.limits import raise_descriptors
from core.runtime.cpython.process import ASKED_SECONDS, Child
from core.runtime.keeper import Keeper, Kind
from core.runtime.listening import ASK_UVICORN, open_listener
from core.runtime.logs import ServiceLog
from core.runtime.options import Job, PythonOptions
from core.runtime.secrets import check_folder
from core.runtime.state_folder import lock_state

_STATE: Final = "state"


async def serve_python(options: PythonOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    configuration = load_configuration(options.config, environment=options.environment)
    check_folder(options.secrets)
    log = ServiceLog(options.log_format)
    room = raise_descriptors(options.limits.connections)
    if room < options.limits.connections:
        log.warn(
            f"each process takes {room} connections instead of {options.limits.connections}: the limit of open files is too "
            "low. Raise it (ulimit -Hn, LimitNOFILE= of systemd), or name fewer with --max-connections"
        )
        options = attrs.evolve(options, limits=attrs.evolve(options.limits, connections=room))
    with open_listener(options.host, options.port) as listener:
        lock = lock_state(options.state)
        with tempfile.TemporaryDirectory(prefix="core-serve-") as folder:
            objects = _open_objects(f"{folder}/objects.sock") if _has_state(configuration) else None
            names = [*[_STATE] * (objects is not None), *(f"web {index}" for index in range(options.workers))]

            async def start(name: str, files: None, migrate: bool) -> Child:
                control, theirs = socket.socketpair()
                control.setblocking(False)
                ours = objects if name == _STATE else None
                job = Job(
                    name=name,
                    role="web" if ours is None else _STATE,
                    options=attrs.evolve(options, migrate=migrate),
                    control=theirs.fileno(),
                    listener=(ours or listener).fileno(),
                    parent=os.getpid(),
                    objects_at=None if ours or objects is None else objects.getsockname(),
                )
                with theirs:
                    return await Child.start(job, control, theirs, lock=lock, log=log)

            kind = Kind(
                titles=dict(zip(names, names, strict=True)),
                start=start,
                next_version=_as_they_are,
                question=ASK_UVICORN,
                asked_seconds=ASKED_SECONDS,
                behind=_STATE,
            )
            return await Keeper(kind, None, options, listener, log, place="cpython").run()


def _has_state(configuration: Configuration) -> bool:
    """Return True if something of the configuration exists once."""
    worker = configuration.worker
    queues = worker.queues
    return bool(worker.durable_objects.bindings or queues.consumers or queues.producers or worker.triggers.crons)


async def _as_they_are() -> None:
    """The next version is that of the files as each process finds them."""


def _open_objects(path: str) -> socket.socket:
    """Listen at the Unix socket of the process with what exists once."""
    opened = socket.socket(socket.AF_UNIX)
    opened.bind(path)
    opened.listen(2048)
    opened.setblocking(False)
    return opened
