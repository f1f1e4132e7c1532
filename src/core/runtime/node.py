"""One node: a bundle, a plan and a folder of state, running in one workerd; its health, its output and its spans.

Common to `core dev`, `core serve` and the tests. It writes the configuration into the folder, readable by
its owner alone since a cluster's key is in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

import attrs

from core.errors import DeveloperError
from core.hosts.output import LineReader
from core.hosts.workers.isolate import (
    IP_HEADER_BINDING,
    LOG_FORMAT_BINDING,
    METRICS_BINDING,
    ORIGIN_BINDING,
    RETRY_DELAYS_BINDING,
    SPANS_BINDING,
)
from core.http.json import JsonObject
from core.runtime.bundle import Bundle
from core.runtime.capnp import make_folders, worker_config
from core.runtime.keeper import SILENT, ServiceProcess
from core.runtime.logs import LogReader, ServiceLog
from core.runtime.options import NO_PROXY, Front
from core.runtime.plan import Cluster, External, Socket
from core.runtime.process import Workerd, WorkerdError, exchange
from core.runtime.toolchain import Toolchain

CLOSED_BINDING = "CORE_CLOSED"
ASKED_SECONDS = 10.0
"""The time that an answer to the question for health may take."""
_SPANS_EVERY = 1.0


class Node(Workerd, ServiceProcess):
    """A workerd with an application, which is ready once that is loaded and migrated."""

    async def post(self, path: str, value: object, *, seconds: float = 300.0) -> JsonObject:
        """Have it do something that its health endpoint can, such as migrate a database."""
        try:
            _, body = await exchange(self.ports["health"], "POST", path, json.dumps(value).encode(), seconds)
            answer: JsonObject = json.loads(body)
            return answer
        except (OSError, ValueError) as error:
            return {"error": f"the node did not answer: {type(error).__name__} {error}"}

    async def measure(self) -> None:
        answer = await self.post("/metrics", {}, seconds=2.0)
        if "error" not in answer:
            self.numbers = answer

    async def answers(self, seconds: float | None = 60.0) -> str | None:
        """Return the reason why it does not answer, or None. The first question has it load the application."""
        try:
            status, body = await exchange(self.ports["health"], "GET", "/", b"", seconds)
        except TimeoutError:
            return f"{SILENT} {seconds:g} s"
        except OSError as error:
            return f"it does not answer: {error}"
        if status == 200:
            return None
        try:
            return str(json.loads(body)["problems"])
        except (ValueError, KeyError, TypeError):
            return body.decode("utf-8", "replace") or "it closed the connection"

    async def condition(self) -> str | None:
        return await self.answers(ASKED_SECONDS)

    async def where(self) -> str:
        answer = await self.post("/where", {}, seconds=5.0)
        return answer.get("where") or "it does not answer, and workerd has no stacks to show from outside"

    async def leave(self, deadline: float) -> asyncio.Future[int]:
        """End it by `deadline`: first endless connections, WebSockets with 1001, then requests in flight."""
        left = deadline - time.monotonic()
        sending = asyncio.ensure_future(send_spans(self, last=True, seconds=left))
        # Requests that arrive are held, also beyond this call, for three quarters of these seconds, without the time in
        # which Python is busy. Told to stop meanwhile, the node answers them with `Connection: close`, where it would
        # have cut off their connections.
        seconds = min(2.0, left / 2)
        await self.post("/leave", {"hold": seconds * 750}, seconds=seconds)

        async def end() -> int:
            # Requests are held for a while only: nothing is waited for between, and no other node.
            status = await self.stop(seconds=max(0.1, deadline - time.monotonic()))
            await sending
            return status

        return asyncio.ensure_future(end())


async def start_node(
    toolchain: Toolchain,
    bundle: Bundle,
    *,
    state: Path,
    listener: socket.socket | None = None,
    cluster: Cluster | None = None,
    env: Mapping[str, str] | None = None,
    front: Front = NO_PROXY,
    lock: int | None = None,
    private_network: bool = False,
    brief: bool = False,
    closed: bool = False,
    sockets: Mapping[str, Socket] | None = None,
    bindings: Sequence[Mapping[str, object]] = (),
    adjust: Callable[[Sequence[Mapping[str, object]]], None] = lambda services: None,
    on_line: Callable[[str], object] = lambda line: None,
) -> Node:
    """Start a node and return when it listens.

    `listener` is a socket that is open already, which several nodes may share; without one it takes a free port.
    `front` is the proxy whose headers are to be believed: give it only behind one that sets them. `lock` is the lock of
    the state folder, which the process is to hold as well. With `closed` it listens and lets events wait, until it is
    told to let them in by `make_ready`: a request that hangs would else come before the question whether the process is
    well. `env` is the environment of the process, with the secrets in it; `bindings` are further ones, in Cap'n Proto's
    form; `brief` and `adjust` are those of `worker_config`.
    """
    listening = {
        "http": Socket("127.0.0.1:0", proto_header=front.proto_header),
        "health": Socket("127.0.0.1:0", "Health"),
        **(sockets or {}),
    }
    plan = bundle.plan
    delays = {queue: settings.get("retryDelay", 0) for queue, settings in plan.consumers.items()}
    texts = {
        IP_HEADER_BINDING: front.ip_header,
        ORIGIN_BINDING: front.origin,
        RETRY_DELAYS_BINDING: json.dumps(delays) if cluster is not None and delays else None,
        CLOSED_BINDING: "1" if closed else None,
    }
    own = [{"name": name, "text": text} for name, text in texts.items() if text is not None]
    async with AsyncExitStack() as opened:
        buckets: Mapping[str, External] = {}
        if plan.r2:
            from core.runtime.r2 import serve_buckets

            serving = serve_buckets(set(plan.r2.values()), state, cluster, on_line)
            buckets = (await opened.enter_async_context(serving)).externals
        make_folders(state, plan, cluster)
        text = worker_config(
            plan,
            # By absolute paths: the configuration is not in the bundle's folder, which may be somebody else's.
            [attrs.evolve(one, path=str(bundle.folder.absolute() / one.path)) for one in bundle.modules],
            storage=state.absolute(),  # noqa: ASYNC240  # asks no disk
            sockets=listening,
            cluster=cluster,
            buckets=buckets,
            extra_bindings=[*bindings, *own],
            private_network=private_network,
            brief=brief,
            adjust=adjust,
        )
        node = await Node.start(
            toolchain.workerd,
            state / "workerd.capnp",
            text,
            sockets=len(listening),
            cwd=state,
            env=env,
            fds=None if listener is None else {"http": listener},
            inherited=() if lock is None else (lock,),
            on_line=on_line,
        )
        node.at_end(opened.pop_all().aclose)
    return node


def node_output(
    log: ServiceLog, root: Path, *, process: str | None = None, metrics: bool = False
) -> tuple[Callable[[str], None], Sequence[Mapping[str, str]]]:
    """Return what takes the lines of a node whose application is in `root`, and the bindings that tell it what to give.

    Lines and records name the `process`, where there are several.
    """
    texts = {METRICS_BINDING: "1"} if metrics else {}
    if are_collected():
        texts[SPANS_BINDING] = "1"
    if log.is_json:
        # Before each of its own records: nobody whose text it prints can know it.
        mark = f"{secrets.token_hex(16)} "
        texts[LOG_FORMAT_BINDING] = mark
        extra = {} if process is None else {"process": int(process)}
        line: Callable[[str], None] = LineReader(log.write, "workerd", extra=extra, mark=mark).line
    else:
        label = "" if process is None else f"[{process}] "
        line = LogReader(lambda line: log.write(f"{label}{line}"), root).line
    return line, [{"name": name, "text": text} for name, text in texts.items()]


async def try_bundle(
    toolchain: Toolchain,
    bundle: Bundle,
    *,
    state: Path,
    env: Mapping[str, str],
    lock: int | None = None,
    bindings: Sequence[Mapping[str, object]] = (),
) -> None:
    """The trial of a bundle, before a new build takes over, and before `core build` says that one is made.

    It starts, applies its migrations to a `state` of its own, and answers its health; the folder is removed. No request
    reaches the application, and no lifespan of it begins. Raises DeveloperError where it cannot answer.
    """
    try:
        node = await start_node(
            toolchain, bundle, state=state, env=env, lock=lock, brief=True, closed=True, bindings=bindings
        )
        try:
            await make_ready(node, bundle, migrate=True, opened=False)
        finally:
            await node.kill()
    finally:
        shutil.rmtree(state, ignore_errors=True)


async def make_ready(
    node: Node, bundle: Bundle, *, migrate: bool, opened: bool = True, say: Callable[[str], object] = lambda line: None
) -> None:
    """Have a node that was started `closed` load the application, apply migrations where asked to, and open it.

    One that is not to be `opened` answers nothing but its health. `say` is told the steps done. Raises WorkerdError
    where it cannot answer, DeveloperError for a wrong migration.
    """
    problem = await node.answers()
    if problem is not None:
        raise WorkerdError(f"the application cannot answer:\n{problem}")
    for binding, migrations in bundle.migrations.items() if migrate else ():
        answer = await node.post("/migrate", {"binding": binding, **attrs.asdict(migrations)})
        if "error" in answer:
            raise DeveloperError(f"{binding}: {answer['error']}. Put the migration right and start again")
        for name in answer["applied"]:
            say(f"{binding}: applied {name}")
        for name in answer["changed"]:
            say(f"{binding}: {name} was changed since it was applied. Write the change as a migration of its own")
    if opened and "error" in (answer := await node.post("/open", {}, seconds=60.0)):
        raise WorkerdError(str(answer["error"]))


def are_collected() -> bool:
    """Return True where `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Raises MissingExtraError without the extra `otel`."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return False
    import_module("core.hosts.otel")
    return True


async def collect_spans(nodes: Callable[[], Iterable[Node]]) -> None:
    """Send the spans of the nodes that run to the collector, again and again."""
    while True:
        await asyncio.sleep(_SPANS_EVERY)
        await send_spans(*nodes())


async def send_spans(*nodes: Node, last: bool = False, seconds: float = 2.0) -> None:
    """Send those that have ended since the last time. One that does not answer has them ready for the next.

    With `last` nodes answer once they have been asked to leave, so that nothing has to wait for it: a process that is
    told to stop ends its requests, this one included.
    """
    if not are_collected():
        return
    from core.hosts.otel import send

    running = [node for node in nodes if node.returncode is None]
    asked = (node.post("/spans", {"last": last}, seconds=seconds) for node in running)
    for answer in await asyncio.gather(*asked):
        send(answer.get("spans", ()))
