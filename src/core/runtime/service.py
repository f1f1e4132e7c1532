"""A bundle in production: the nodes that are started of it, how they become ready, leave and take over.

They run a copy of the bundle, so that a process which has to be started again is of the build that the others are of. A
new build comes with SIGHUP, and only once it has shown that it can answer.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import socket
from collections.abc import Iterable

from core.errors import DeveloperError
from core.hosts.limits import Limits, raise_descriptors
from core.runtime.bundle import Bundle
from core.runtime.cluster_key import prove_key
from core.runtime.keeper import Keeper
from core.runtime.listening import ASK_WORKERD, open_listener
from core.runtime.logs import ServiceLog
from core.runtime.node import (
    ASKED_SECONDS,
    Node,
    are_collected,
    collect_spans,
    make_ready,
    node_output,
    start_node,
    try_bundle,
)
from core.runtime.options import ServeOptions
from core.runtime.plan import Plan
from core.runtime.secrets import read_secrets
from core.runtime.state_folder import BUILDS, lock_state
from core.runtime.toolchain import Toolchain


async def serve(toolchain: Toolchain, bundle: Bundle, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    log = ServiceLog(options.log_format)
    _environment(bundle.plan, options, log)
    raise_descriptors(Limits().connections)
    listener = open_listener(options.host, options.port)
    # workerd cuts a connection without a request off when it stops. One that was not accepted yet waits for the next
    # process; one whose client says nothing is accepted all the same, after 30 seconds.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
    # It is freed when this process has ended, and every workerd that was given it.
    lock = lock_state(options.state)
    cluster = options.cluster
    if cluster is not None and await prove_key(toolchain, cluster, replace=options.new_cluster_key):
        log.say(f"CORE_CLUSTER_KEY is the key of {cluster.bucket} from now on")
    shutil.rmtree(options.state / BUILDS, ignore_errors=True)
    nodes = _Nodes(toolchain, bundle, options, listener, lock, log)
    with listener:
        return await nodes.run(*[functools.partial(collect_spans, nodes.processes.values)] * are_collected())


def _environment(plan: Plan, options: ServeOptions, log: ServiceLog) -> dict[str, str]:
    """The environment of a node. Raises DeveloperError where an application cannot be served this way."""
    if options.processes > 1 and options.cluster is None and plan.keeps_state:
        raise DeveloperError(
            f"{options.processes} processes side by side would each have a state of their own, and this application "
            "keeps state (KV, D1, R2, queues, Durable Objects or cron). Give them one with --cluster s3://bucket/prefix"
        )
    environ, folder = dict(os.environ), options.secrets_dir
    return environ | read_secrets(plan.secrets, environ, folder, optional=plan.optional_secrets, warn=log.warn_once)


class _Nodes(Keeper[Node, Bundle]):
    """The nodes of a bundle, each of a copy of what its folder had."""

    question = ASK_WORKERD
    asked_seconds = ASKED_SECONDS

    def __init__(
        self,
        toolchain: Toolchain,
        bundle: Bundle,
        options: ServeOptions,
        listener: socket.socket,
        lock: int,
        log: ServiceLog,
    ) -> None:
        self._toolchain = toolchain
        self._source = bundle.folder
        self._options = options
        self._lock = lock
        self._builds = 0
        if options.cluster is not None:
            # Since load balancers take a while.
            self.accepting = min(5.0, options.stop_timeout * 0.75)
        titles = {str(index): f"process {index}" for index in range(options.processes)}
        super().__init__(titles, self._copy(), options, listener, log, place="workerd", build=bundle.plan.name)

    def alone(self, old: Bundle, new: Bundle) -> bool:
        # Never two on one state: but for an application without any, connections wait.
        return old.plan.keeps_state or new.plan.keeps_state

    def _copy(self) -> Bundle:
        """A copy of the bundle as it is now: a later build in its place counts only when it is asked for."""
        self._builds += 1
        copy = self._options.state / BUILDS / str(self._builds)
        Bundle.read(self._source)  # its error names the mistake
        try:
            shutil.copytree(self._source, copy, dirs_exist_ok=True)
        except OSError as error:
            # shutil.Error lists every file, of which the first says why.
            why = error.args[0][0][2] if isinstance(error, shutil.Error) else error
            raise DeveloperError(
                f"{copy}: the bundle cannot be copied there: {why}. Make room, or choose another folder with --state"
            ) from error
        return Bundle.read(copy)

    async def start(self, name: str, version: Bundle, migrate: bool) -> Node:
        options, several = self._options, self._options.processes > 1
        process = name if several else None
        on_line, bindings = node_output(self.log, version.root, process=process, metrics=options.metrics)
        node = await start_node(
            self._toolchain,
            version,
            state=options.state / name if several else options.state,
            listener=self.listener,
            cluster=None if options.cluster is None else options.cluster.of_process(int(name)),
            env=_environment(version.plan, options, self.log),
            front=options.front,
            private_network=options.private_network,
            lock=self._lock,
            closed=True,
            bindings=bindings,
            on_line=on_line,
        )
        node.ready = node.takes_over = asyncio.ensure_future(
            make_ready(node, version, migrate=migrate, say=self.log.say)
        )
        return node

    async def next_version(self) -> Bundle:
        """Have the build of this moment answer, with a state of its own, before it gets anybody's."""
        bundle = self._copy()
        env = _environment(bundle.plan, self._options, self.log)
        await try_bundle(
            self._toolchain, bundle, state=self._options.state / BUILDS / "tried", env=env, lock=self._lock
        )
        return bundle

    def keep_only(self, versions: Iterable[Bundle]) -> None:
        used = {bundle.folder for bundle in versions}
        for folder in (self._options.state / BUILDS).iterdir():
            if folder not in used:
                shutil.rmtree(folder, ignore_errors=True)
