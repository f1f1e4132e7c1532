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
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs

from core.errors import DeveloperError
from core.hosts.limits import Limits, raise_descriptors
from core.runtime.bundle import Bundle
from core.runtime.cluster_key import prove_key
from core.runtime.keeper import Keeper, Kind
from core.runtime.listening import ASK_WORKERD, accept_with_request, open_listener
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
    _check(bundle.plan, options, log)
    raise_descriptors(Limits().connections)
    listener = open_listener(options.host, options.port)
    accept_with_request(listener)
    # It is freed when this process has ended, and every workerd that was given it.
    lock = lock_state(options.state)
    cluster = options.cluster
    if cluster is not None and await prove_key(toolchain, cluster, replace=options.new_cluster_key):
        log.say(f"CORE_CLUSTER_KEY is the key of {cluster.bucket} from now on")
    shutil.rmtree(options.state / BUILDS, ignore_errors=True)
    builds = _Builds(toolchain, bundle.folder, options, listener, lock, log)
    kind = Kind(
        titles={str(index): f"process {index}" for index in range(options.processes)},
        start=builds.start,
        next_version=builds.next,
        # Never two on one state: but for an application without any, connections wait.
        alone=lambda old, new: old.plan.keeps_state or new.plan.keeps_state,
        used=builds.keep_only,
        question=ASK_WORKERD,
        asked_seconds=ASKED_SECONDS,
        # A node of a cluster goes on accepting for some seconds, since load balancers take a while.
        accepting=0.0 if options.cluster is None else min(5.0, options.stop_seconds * 0.75),
    )
    keeper = Keeper(kind, builds.copy(), options, listener, log, place="workerd", build=bundle.name)
    with listener:
        return await keeper.run(*[functools.partial(collect_spans, keeper.processes.values)] * are_collected())


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


@attrs.define
class _Builds:
    """Copies of the bundle in the folder `source`, and the nodes that are started of each."""

    _toolchain: Toolchain
    _source: Path
    _options: ServeOptions
    _listener: socket.socket
    _lock: int
    _log: ServiceLog
    _builds: int = 0

    def copy(self) -> Bundle:
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

    async def start(self, name: str, bundle: Bundle, migrate: bool) -> Node:
        """Start a node, which is ready some time later."""
        options, several = self._options, self._options.processes > 1
        on_line, bindings = node_output(
            self._log,
            bundle.root,
            label=f"[{name}] " if several else "",
            extra={"process": int(name)} if several else None,
            metrics=options.metrics,
        )
        node = await start_node(
            self._toolchain,
            bundle,
            bundle.plan,
            state=options.state / name if several else options.state,
            listener=self._listener,
            cluster=None if options.cluster is None else options.cluster.of_process(int(name)),
            env=self._environment(bundle),
            front=options.front,
            private_network=options.private_network,
            lock=self._lock,
            closed=True,
            bindings=bindings,
            on_line=on_line,
        )
        node.ready = node.takes_over = asyncio.ensure_future(
            make_ready(node, bundle, migrate=migrate, say=self._log.say)
        )
        return node

    async def next(self) -> Bundle:
        """Have the build of this moment answer, with a state of its own, before it gets anybody's."""
        bundle = self.copy()
        _check(bundle.plan, self._options, self._log)
        await try_bundle(
            self._toolchain,
            bundle,
            state=self._options.state / BUILDS / "tried",
            env=self._environment(bundle),
            lock=self._lock,
        )
        return bundle

    def keep_only(self, bundles: Iterable[Bundle]) -> None:
        """Remove all other copies."""
        used = {bundle.folder for bundle in bundles}
        for folder in (self._options.state / BUILDS).iterdir():
            if folder not in used:
                shutil.rmtree(folder, ignore_errors=True)

    def _environment(self, bundle: Bundle) -> dict[str, str]:
        return {**os.environ, **_secrets_of(bundle.plan, self._options)}
