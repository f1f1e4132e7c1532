"""A bundle in production: its processes, their restarts, the answers to the load balancer, and the way it stops.

The processes run a copy of the bundle, so that a process which has to be started again is of the build that the others
are of. A new build comes with SIGHUP, and only once it has shown that it can answer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import DeveloperError
from core.hosts.limits import Limits, raise_descriptors
from core.hosts.workers.isolate import LOG_FORMAT_BINDING, METRICS_BINDING, SPANS_BINDING
from core.runtime.bundle import Bundle
from core.runtime.capnp import Plan
from core.runtime.cluster_key import prove_key
from core.runtime.health import ASK_WORKERD, ask_listener, start_health
from core.runtime.listening import accept_with_request, open_listener, turn_away
from core.runtime.logs import LogReader
from core.runtime.node import (
    Node,
    ask_health,
    ask_to_leave,
    post_json,
    start_node,
    until_unwell,
)
from core.runtime.options import ServeOptions
from core.runtime.ready import make_ready, try_bundle
from core.runtime.secrets import read_secrets
from core.runtime.service_log import ServiceLog, new_mark
from core.runtime.spans import are_collected, collect_spans, send_spans
from core.runtime.state_folder import BUILDS, lock_state
from core.runtime.toolchain import Toolchain
from core.runtime.totals import Totals

if TYPE_CHECKING:
    from core.hosts.output import LineReader

__all__ = ["PAUSES", "serve"]

# The pauses before the next start of a process, in seconds: after so many starts that failed, one after the other. One
# that ended after it had begun to serve is started again at once, however often that happens.
PAUSES = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
# How long an answer to the question for health may take, in seconds.
_ASKED_SECONDS = 10.0


async def serve(toolchain: Toolchain, bundle: Bundle, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    log = ServiceLog(options.log_format)
    _check(bundle.plan, options, log)
    raise_descriptors(Limits().connections)
    listener = open_listener(options.host, options.port)
    accept_with_request(listener)
    # It is freed when this process has ended, and every workerd that was given it.
    lock = lock_state(options.state)
    if options.cluster is not None:
        cluster = options.cluster.cluster(0, options.stop_seconds)
        if await prove_key(toolchain, cluster, replace=options.cluster.new_key):
            log.say(f"CORE_CLUSTER_KEY is the key of {cluster.bucket} from now on")
    shutil.rmtree(options.state / BUILDS, ignore_errors=True)
    service = _Service(toolchain, bundle, options, listener, lock, log)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stopping.set)
    loop.add_signal_handler(signal.SIGHUP, service.rolling.set)
    loop.add_signal_handler(signal.SIGUSR1, service.tell_where)
    try:
        return await service.run()
    finally:
        listener.close()


def _check(plan: Plan, options: ServeOptions, log: ServiceLog) -> None:
    """Raise DeveloperError where a bundle cannot be served this way."""
    if options.processes > 1 and options.cluster is None and plan.keeps_state:
        raise DeveloperError(
            f"{options.processes} processes side by side would each have a state of their own, and this application "
            "keeps state (KV, D1, R2, queues, Durable Objects or cron). Give them one with --cluster s3://bucket/prefix"
        )
    _secrets_of(plan, options, warn=log.warn_once)


def _secrets_of(
    plan: Plan, options: ServeOptions, warn: Callable[[str], None] = lambda line: None
) -> Mapping[str, str]:
    return read_secrets(plan.secrets, os.environ, options.secrets, optional=plan.optional_secrets, warn=warn)


class _Service:
    """The processes of one `core serve`."""

    def __init__(
        self,
        toolchain: Toolchain,
        bundle: Bundle,
        options: ServeOptions,
        listener: socket.socket,
        lock: int,
        log: ServiceLog,
    ) -> None:
        self._log = log
        self._toolchain = toolchain
        self._source = bundle.folder
        self._options = options
        self._builds = 0
        self._bundle = self._taken()
        self._listener = listener
        self._lock = lock
        self._nodes: dict[int, Node] = {}
        self._totals = Totals("workerd", bundle.name)
        self._traced = are_collected()
        # One at a time ends or starts a process: its keeper, or the change to a new build.
        self._changing = asyncio.Lock()
        self.stopping = asyncio.Event()
        self.rolling = asyncio.Event()

    def _taken(self) -> Bundle:
        """A copy of the bundle as it is now: a later build in its place counts only when it is asked for."""
        self._builds += 1
        copy = self._options.state / BUILDS / str(self._builds)
        Bundle.read(self._source)  # its error names the mistake
        shutil.copytree(self._source, copy, dirs_exist_ok=True)
        return Bundle.read(copy)

    async def run(self) -> int:
        options = self._options
        health = await start_health(options.health, self._report, self._numbers if options.metrics else None)
        try:
            # One after the other: the first finds the mistakes, and applies the migrations for all.
            for index in range(options.processes):
                self._nodes[index] = await self._start(index, first=index == 0)
                if self.stopping.is_set():
                    return 0
            host, port = self._listener.getsockname()[:2]
            at = health.sockets[0].getsockname()[1]
            self._log.say(f"serving on http://{host}:{port}, health on http://{options.health[0]}:{at}")
            keepers = [asyncio.create_task(self._keep(index)) for index in range(options.processes)]
            keepers.append(asyncio.create_task(self._roll()))
            if self._traced:
                keepers.append(asyncio.create_task(collect_spans(self._nodes.values)))
            asked = asyncio.create_task(self.stopping.wait())
            # A keeper ends only by a mistake of ours: better to end, and be started anew, than to serve unwatched.
            await asyncio.wait({asked, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            failed = [keeper for keeper in keepers if keeper.done()]
            self._log.say("stopping")
            for task in (asked, *keepers):
                task.cancel()
            await asyncio.gather(asked, *keepers, return_exceptions=True)
            for keeper in failed:
                keeper.result()
            return 0
        finally:
            self.stopping.set()
            await self._end(*self._nodes.values(), last=True)
            health.close()

    def tell_where(self) -> None:
        """Have every process write its requests in flight."""
        self._telling = [asyncio.ensure_future(self._tell_where(*node)) for node in self._nodes.items()]

    async def _tell_where(self, index: int, node: Node) -> None:
        told = await post_json(node.health_port, "/where", {}, seconds=5.0)
        where = told.get("where") or "it does not answer, and workerd has no stacks to show from outside"
        self._log.warn(f"process {index} (process id {node.pid}):\n{where}")

    async def _end(self, *nodes: Node, last: bool = False) -> None:
        """End processes within the time that stopping may take: first endless connections, then requests in flight.

        With `last` no other process takes over: connections that arrive from then on are turned away.
        """
        options = self._options
        deadline = time.monotonic() + options.stop_seconds
        asked = min(2.0, options.stop_seconds / 2)

        async def told(node: Node) -> asyncio.Task[int]:
            await ask_to_leave(node, hold=True, seconds=asked)
            # Requests are held for a while only: nothing is waited for between, and no other node.
            return asyncio.create_task(node.workerd.stop(seconds=max(0.1, deadline - time.monotonic())))

        traced = nodes if self._traced else ()
        sending = asyncio.gather(*(send_spans(node, last=True, seconds=2 * asked) for node in traced))
        ending = await asyncio.gather(*map(told, nodes))
        if last:
            # A node of a cluster goes on accepting for some seconds, since load balancers take a while.
            accepting = 0.0 if options.cluster is None else min(5.0, options.stop_seconds * 0.75)
            if not ending or (await asyncio.wait(ending, timeout=accepting))[1]:
                away = await turn_away(self._listener)
                await asyncio.gather(*ending)
                away.close()
        else:
            await asyncio.gather(*ending)
        await sending

    def _environment(self, bundle: Bundle) -> dict[str, str]:
        return {**os.environ, **_secrets_of(bundle.plan, self._options)}

    async def _start(self, index: int, *, first: bool = False) -> Node:
        options = self._options
        state = options.state if options.processes == 1 else options.state / str(index)
        label = "" if options.processes == 1 else f"[{index}] "
        reader: LineReader | LogReader
        bindings: list[Mapping[str, str]] = [{"name": METRICS_BINDING, "text": "1"}] if options.metrics else []
        if self._traced:
            bindings.append({"name": SPANS_BINDING, "text": "1"})
        if self._log.is_json:
            mark = new_mark()
            reader = self._log.reader("workerd", {"process": index} if label else None, mark=mark)
            bindings.append({"name": LOG_FORMAT_BINDING, "text": mark})
        else:
            reader = LogReader(lambda line: self._log.write(f"{label}{line}"), self._bundle.root)
        cluster = None if options.cluster is None else options.cluster.cluster(index, options.stop_seconds)
        node = await start_node(
            self._toolchain,
            self._bundle,
            self._bundle.plan,
            state=state,
            listener=self._listener,
            cluster=cluster,
            env=self._environment(self._bundle),
            ip_header=options.ip_header,
            proto_header=options.proto_header,
            origin=options.origin,
            private_network=options.private_network,
            lock=self._lock,
            closed=True,
            bindings=bindings,
            on_line=lambda stream, line: reader.line(line),
        )
        try:
            for line in await make_ready(node, self._bundle, migrate=first and options.migrate):
                self._log.say(line)
        except BaseException:
            await node.workerd.kill()
            raise
        return node

    async def _keep(self, index: int) -> None:
        """Start the process again whenever it ends, hangs, or can answer no more."""
        failures = 0
        while True:
            node = self._nodes[index]
            reason = await until_unwell(node, patience=self._options.hang_seconds, memory=self._options.memory)
            async with self._changing:
                if self._nodes[index] is not node:
                    continue  # a new build has taken over
                if "memory" in reason:
                    await self._end(node)
                # Never two on one state: the rest of it is gone before the next one starts. It does not heed SIGTERM.
                await node.workerd.kill()
                self._totals.keep(node)
                self._totals.restarted(str(index))
            pause = PAUSES[min(failures, len(PAUSES) - 1)]
            tell = self._log.warn if "memory" in reason else self._log.fail
            tell(f"process {index} {reason}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            async with self._changing:
                if self._nodes[index] is node:
                    try:
                        self._nodes[index] = await self._start(index)
                        failures = 0
                    except (DeveloperError, OSError) as error:
                        failures += 1
                        self._log.fail(f"process {index} did not start: {error}")

    async def _roll(self) -> None:
        """Change to the build that is in the bundle's folder, as often as it is asked for."""
        while True:
            await self.rolling.wait()
            self.rolling.clear()
            self._log.say("replacing the processes")
            async with self._changing:
                before = self._bundle
                try:
                    new = self._taken()
                    await self._try(new)
                    for index in self._nodes:
                        await self._replace(index, new, before, first=index == 0)
                except (DeveloperError, OSError) as error:
                    self._log.fail(f"the new build does not serve; the old one goes on: {error}")
                    outcome, unused = "refused", self._builds
                else:
                    self._log.say("replaced the processes")
                    outcome, unused = "replaced", int(before.folder.name)
                shutil.rmtree(self._options.state / BUILDS / str(unused), ignore_errors=True)
                self._totals.reloaded(outcome)

    async def _try(self, bundle: Bundle) -> None:
        """Have a build answer, with a state of its own, before it gets anybody's. Raises DeveloperError."""
        _check(bundle.plan, self._options, self._log)
        await try_bundle(
            self._toolchain,
            bundle,
            state=self._options.state / BUILDS / "tried",
            env=self._environment(bundle),
            lock=self._lock,
        )

    async def _replace(self, index: int, new: Bundle, before: Bundle, *, first: bool) -> None:
        """Have a process of `new` take over.

        Never two on one state: but for an application without any, connections wait.
        """
        old = self._nodes[index]
        alone = new.plan.keeps_state or before.plan.keeps_state
        if alone:
            await self._end(old)
        self._bundle = new
        try:
            self._nodes[index] = await self._start(index, first=first)
        except BaseException:
            self._bundle = before
            if alone:
                self._nodes[index] = await self._start(index)
            raise
        if not alone:
            await self._end(old)
        self._totals.keep(old)

    async def _report(self) -> tuple[int, Mapping[str, Any]]:
        if self.stopping.is_set():
            return 503, {"status": "stopping"}
        nodes = dict(self._nodes)
        outside, *answers = await asyncio.gather(
            ask_listener(self._listener, ASK_WORKERD, seconds=_ASKED_SECONDS), *map(_problem_of, nodes.values())
        )
        told = {str(index): answer or "ok" for index, answer in zip(nodes, answers, strict=True)}
        well = outside is None and any(answer is None for answer in answers)
        report: dict[str, Any] = {"status": "ok" if well else "failing", "processes": told}
        return (200 if well else 503), report if outside is None else {**report, "address": outside}

    async def _numbers(self) -> str:
        return await self._totals.text(
            {str(index): (node, node.workerd.returncode is None) for index, node in self._nodes.items()}
        )


async def _problem_of(node: Node) -> str | None:
    if node.workerd.returncode is not None:
        return f"it ended with status {node.workerd.returncode}"
    return await ask_health(node.health_port, seconds=_ASKED_SECONDS)
