"""A bundle in production: its processes, what happens when one ends, what the load balancer is told, how it stops."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from core.errors import DeveloperError, UsageError
from core.hosts.workers.isolate import LOG_FORMAT_BINDING, METRICS_BINDING
from core.runtime.bundle import Bundle
from core.runtime.capnp import Cluster, Plan
from core.runtime.cluster_key import prove_key
from core.runtime.health import start_health
from core.runtime.listening import open_listener
from core.runtime.logs import LogReader
from core.runtime.node import (
    Node,
    ask_health,
    open_node,
    post_json,
    start_node,
    until_unwell,
)
from core.runtime.process import WorkerdError
from core.runtime.secrets import check_secrets
from core.runtime.state_folder import lock_state
from core.runtime.toolchain import Toolchain

if TYPE_CHECKING:
    from core.hosts.output import LineReader
    from core.logs import LogFormat
    from core.runtime.totals import Totals

__all__ = ["ClusterOptions", "PAUSES", "ServeOptions", "WELL", "apply_migrations", "make_ready", "serve"]

KEY_VARIABLE = "CORE_CLUSTER_KEY"
# What waits between two starts of a process that keeps ending, in seconds.
PAUSES = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
# One that ran this long was well: the next start does not wait.
WELL = 60.0


@attrs.frozen
class ClusterOptions:
    """The addresses of the processes. `address` is the first process's; the next ports are the others'. With `new_key` the
    key becomes the cluster's, whatever it was before.
    """

    bucket: str
    address: tuple[str, int]
    key: str = attrs.field(repr=False)
    options: Sequence[str] = ()
    divisor: int = 1
    new_key: bool = False

    @classmethod
    def checked(
        cls,
        *,
        bucket: str,
        address: str,
        endpoint: str | None = None,
        region: str | None = None,
        divisor: int = 1,
        new_key: bool = False,
    ) -> ClusterOptions:
        """The options, with the key from the environment. Raises DeveloperError for what cannot be."""
        if not bucket.startswith(("s3://", "gs://")):
            raise UsageError(f"--cluster {bucket} is not a bucket. Write s3://bucket/prefix or gs://bucket/prefix")
        key = os.environ.get(KEY_VARIABLE, "")
        if len(key) < 32:
            raise DeveloperError(
                f"a cluster needs a secret that its nodes share, at least 32 characters long. Set {KEY_VARIABLE} to the "
                "same on every node, for example to the output of `openssl rand -hex 32`"
            )
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--cluster-address {address} is not HOST:PORT, for example 10.0.0.1:7000")
        if bucket.startswith("s3://") and not (
            os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_CREDENTIALS_FILE")
        ):
            raise DeveloperError(
                f"{bucket} needs credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_CREDENTIALS_FILE"
            )
        named = {"aws_endpoint": endpoint, "aws_region": region or ("auto" if endpoint else None)}
        return cls(
            bucket=bucket,
            address=(host, int(port)),
            key=key,
            options=[f"{name}={value}" for name, value in named.items() if value],
            divisor=divisor,
            new_key=new_key,
        )

    def cluster(self, index: int, stop_seconds: float) -> Cluster:
        """The cluster as process `index` is told of it."""
        host, port = self.address
        return Cluster(
            bucket=self.bucket,
            key=self.key,
            address=f"{host}:{port + index if port else 0}",
            options=self.options,
            stop_timeout_ms=round(stop_seconds * 1000),
            divisor=self.divisor,
        )


@attrs.frozen
class ServeOptions:
    """Options of serving. `stop_seconds` is how long stopping may take, `hang_seconds` how long a process may not answer its
    health endpoint before it is replaced (0: for as long as it likes), `memory` how many bytes it may take. `ip_header`,
    `proto_header` and `origin` say how far a proxy in front is believed: see `start_node`.
    """

    host: str
    port: int
    health: tuple[str, int]
    state: Path
    processes: int = 1
    stop_seconds: float = 8.0
    hang_seconds: float = 60.0
    migrate: bool = True
    ip_header: str | None = None
    proto_header: str | None = None
    origin: str | None = None
    memory: int | None = None
    private_network: bool = False
    cluster: ClusterOptions | None = None
    metrics: bool = False
    log_format: LogFormat = "text"


async def serve(toolchain: Toolchain, bundle: Bundle, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    plan = bundle.plan
    if options.processes > 1 and options.cluster is None and plan.keeps_state:
        raise DeveloperError(
            f"{options.processes} processes side by side would each have a state of their own, and this application "
            "keeps state (KV, D1, queues, Durable Objects or cron). Give them one with --cluster s3://bucket/prefix"
        )
    check_secrets([*plan.secrets], os.environ)
    listener = open_listener(options.host, options.port)
    # It is freed when this process has ended, and every workerd that was given it.
    lock = lock_state(options.state)
    if options.cluster is not None:
        cluster = options.cluster.cluster(0, options.stop_seconds)
        if await prove_key(toolchain, cluster, replace=options.cluster.new_key):
            _say(f"CORE_CLUSTER_KEY is the key of {cluster.bucket} from now on")
    service = _Service(toolchain, bundle, plan, options, listener, lock)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stopping.set)
    try:
        return await service.run()
    finally:
        listener.close()


class _Service:
    """The processes of one `core serve`."""

    def __init__(
        self,
        toolchain: Toolchain,
        bundle: Bundle,
        plan: Plan,
        options: ServeOptions,
        listener: socket.socket,
        lock: int,
    ) -> None:
        self._toolchain = toolchain
        self._bundle = bundle
        self._plan = plan
        self._options = options
        self._listener = listener
        self._lock = lock
        self._nodes: dict[int, Node] = {}
        self._totals: Totals | None = None
        if options.metrics:
            from core.runtime.totals import Totals

            self._totals = Totals("workerd", bundle.name)
        self.stopping = asyncio.Event()

    async def run(self) -> int:
        options = self._options
        health = await start_health(options.health, self._report, None if self._totals is None else self._numbers)
        try:
            # One after the other: the first finds the mistakes, and applies the migrations for all.
            for index in range(options.processes):
                await self._start(index, first=index == 0)
                if self.stopping.is_set():
                    return 0
            host, port = self._listener.getsockname()[:2]
            _say(f"serving on http://{host}:{port}, health on http://{options.health[0]}:{_port_of(health)}")
            keepers = [asyncio.create_task(self._keep(index)) for index in range(options.processes)]
            asked = asyncio.create_task(self.stopping.wait())
            # A keeper ends only by a mistake of ours: better to end, and be started anew, than to serve unwatched.
            await asyncio.wait({asked, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            failed = [keeper for keeper in keepers if keeper.done()]
            _say("stopping")
            for task in (asked, *keepers):
                task.cancel()
            await asyncio.gather(asked, *keepers, return_exceptions=True)
            for keeper in failed:
                keeper.result()
            return 0
        finally:
            self.stopping.set()
            # A cluster hands its objects over one node after the other's turn; each has the whole time.
            await asyncio.gather(
                *(node.workerd.stop(seconds=options.stop_seconds + 4) for node in self._nodes.values())
            )
            health.close()

    async def _start(self, index: int, *, first: bool = False) -> None:
        options = self._options
        state = options.state if options.processes == 1 else options.state / str(index)
        label = "" if options.processes == 1 else f"[{index}] "
        reader: LineReader | LogReader
        bindings: list[Mapping[str, str]] = [{"name": METRICS_BINDING, "text": "1"}] if options.metrics else []
        if options.log_format == "json":
            from core.hosts.output import LineReader

            reader = LineReader(_say, "workerd", extra={"process": index} if label else None)
            bindings.append({"name": LOG_FORMAT_BINDING, "text": "json"})
        else:
            reader = LogReader(lambda line: _say(f"{label}{line}"), self._bundle.root)
        cluster = None if options.cluster is None else options.cluster.cluster(index, options.stop_seconds)
        node = await start_node(
            self._toolchain,
            self._bundle,
            self._plan,
            state=state,
            listener=self._listener,
            cluster=cluster,
            env=os.environ,
            ip_header=options.ip_header,
            proto_header=options.proto_header,
            origin=options.origin,
            private_network=options.private_network,
            lock=self._lock,
            closed=True,
            bindings=bindings,
            on_line=lambda stream, line: reader.line(line),
        )
        self._nodes[index] = node
        try:
            for line in await make_ready(node, self._bundle, migrate=first and options.migrate):
                _say(line)
        except BaseException:
            await node.workerd.kill()
            raise

    async def _keep(self, index: int) -> None:
        """Start the process again whenever it ends, hangs, or can answer no more."""
        failures = 0
        while True:
            began = time.monotonic()
            reason = await until_unwell(
                self._nodes[index], patience=self._options.hang_seconds, memory=self._options.memory
            )
            if "memory" in reason:
                await self._nodes[index].workerd.stop(seconds=self._options.stop_seconds)
            # Never two on one state: what is left of it is gone before the next one starts. It does not heed SIGTERM.
            await self._nodes[index].workerd.kill()
            if self._totals is not None:
                self._totals.keep(self._nodes[index])
                self._totals.restarted(str(index))
            failures = 0 if time.monotonic() - began > WELL else failures
            pause = PAUSES[min(failures, len(PAUSES) - 1)]
            _say(f"process {index} {reason}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            failures += 1
            try:
                await self._start(index)
            except (DeveloperError, OSError) as error:
                _say(f"process {index} did not start: {error}")

    async def _report(self) -> tuple[int, Mapping[str, Any]]:
        if self.stopping.is_set():
            return 503, {"status": "stopping"}
        nodes = dict(self._nodes)
        answers = await asyncio.gather(
            *(
                ask_health(node.health_port, seconds=10)
                if node.workerd.returncode is None
                else _result(f"it ended with status {node.workerd.returncode}")
                for node in nodes.values()
            )
        )
        told = {str(index): answer or "ok" for index, answer in zip(nodes, answers, strict=True)}
        well = any(answer is None for answer in answers)
        return (200 if well else 503), {"status": "ok" if well else "failing", "processes": told}

    async def _numbers(self) -> str:
        assert self._totals is not None
        return await self._totals.text(
            {str(index): (node, node.workerd.returncode is None) for index, node in self._nodes.items()}
        )


async def make_ready(node: Node, bundle: Bundle, *, migrate: bool) -> list[str]:
    """Have a node that was started `closed` load the application, apply migrations where asked to, and open it.

    Returns what was done, in lines. Raises WorkerdError where it cannot answer, DeveloperError for a wrong migration.
    """
    problem = await ask_health(node.health_port)
    if problem is not None:
        raise WorkerdError(f"the application cannot answer:\n{problem}")
    done = await apply_migrations(node, bundle) if migrate else []
    await open_node(node)
    return done


async def apply_migrations(node: Node, bundle: Bundle) -> list[str]:
    """Apply what is pending of the bundle's SQL migrations; what was done, in lines. Raises DeveloperError."""
    done: list[str] = []
    for binding, migrations in bundle.migrations.items():
        answer = await post_json(
            node.health_port,
            "/migrate",
            {"binding": binding, **attrs.asdict(migrations)},
        )
        if "error" in answer:
            raise DeveloperError(f"{binding}: {answer['error']}. Put the migration right and start again")
        done += [f"{binding}: applied {name}" for name in answer["applied"]]
        done += [
            f"{binding}: {name} was changed since it was applied. Write the change as a migration of its own"
            for name in answer["changed"]
        ]
    return done


async def _result(value: str) -> str | None:
    return value


def _port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
