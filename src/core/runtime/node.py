"""One node: a bundle, a plan and a folder of state, running in one workerd.

Common to `core dev`, `core serve` and the tests. It writes the configuration into the folder, readable by
its owner alone since a cluster's key is in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from core.hosts.workers.isolate import IP_HEADER_BINDING, ORIGIN_BINDING, RETRY_DELAYS_BINDING
from core.runtime.bundle import Bundle
from core.runtime.capnp import Cluster, External, Module, Plan, Socket, storage_folders, worker_config
from core.runtime.ending import memory_of
from core.runtime.process import Workerd, WorkerdError
from core.runtime.toolchain import Toolchain

if TYPE_CHECKING:
    from core.metrics import Snapshot

__all__ = [
    "Node",
    "ask_health",
    "ask_to_leave",
    "exchange",
    "open_node",
    "post_json",
    "start_node",
    "until_unwell",
]

CLOSED_BINDING = "CORE_CLOSED"


@attrs.define
class Node:
    """A running node. `port` is where it answers, `health_port` where it says whether it can, both on 127.0.0.1 unless
    another address was asked for. `numbers` are those that it gave last, where it counts.
    """

    workerd: Workerd
    state: Path
    port: int
    health_port: int
    numbers: Snapshot = attrs.field(factory=dict[str, Any])

    @property
    def pid(self) -> int:
        """The process id."""
        return self.workerd.pid

    async def measure(self) -> None:
        """Ask for its numbers. One that does not answer in time keeps those that it gave before."""
        answer = await post_json(self.health_port, "/metrics", {}, seconds=2.0)
        if "error" not in answer:
            self.numbers = answer


# One function: all files opened for the process are closed again wherever starting it fails.
async def start_node(
    toolchain: Toolchain,
    bundle: Bundle,
    plan: Plan,
    *,
    state: Path,
    address: str = "127.0.0.1:0",
    listener: socket.socket | None = None,
    cluster: Cluster | None = None,
    env: Mapping[str, str] | None = None,
    ip_header: str | None = None,
    proto_header: str | None = None,
    origin: str | None = None,
    lock: int | None = None,
    private_network: bool = False,
    closed: bool = False,
    sockets: Mapping[str, Socket] | None = None,
    bindings: Sequence[Mapping[str, Any]] = (),
    test_clock: bool = False,
    fronts: Mapping[str, str] | None = None,
    on_line: Callable[[str, str], None] = lambda stream, line: None,
) -> Node:
    """Start a node and return when it listens.

    `listener` is a socket that is open already, which several nodes may share; `address` is where to listen without
    one. `ip_header` names the request header whose word on the client's address is to be believed: give it only behind
    a proxy that sets it. So does `proto_header` on the scheme, and `origin` is scheme and host of every URL. `lock` is
    the lock of the state folder, which the process is to hold as well. With `closed` it listens and lets events wait,
    until it is told to let them in by `open_node`: a request that hangs would else come before the question whether the
    process is well. `env` is the environment of the process, with the secrets in it; `bindings` are further ones, in
    Cap'n Proto's form; `test_clock` and `fronts` are those of `worker_config`.
    """
    listening = {
        "http": Socket(address, proto_header=proto_header),
        "health": Socket("127.0.0.1:0", "Health"),
        **(sockets or {}),
    }
    extra = list(bindings)
    if ip_header is not None:
        extra.append({"name": IP_HEADER_BINDING, "text": ip_header})
    if origin is not None:
        extra.append({"name": ORIGIN_BINDING, "text": origin})
    if cluster is not None and plan.consumers:
        delays = {consumer.queue: consumer.settings.get("retryDelay", 0) for consumer in plan.consumers}
        extra.append({"name": RETRY_DELAYS_BINDING, "text": json.dumps(delays)})
    if closed:
        extra.append({"name": CLOSED_BINDING, "text": "1"})
    async with AsyncExitStack() as opened:
        buckets: Mapping[str, External] = {}
        if plan.r2:
            from core.runtime.r2 import R2Service

            names = set(plan.r2.values())
            if cluster is None:
                service = R2Service.of_folder(state, names)
            else:
                service = await R2Service.of_cluster(cluster, names, lambda line: on_line("stderr", line))
            await service.start()
            opened.push_async_callback(service.close)
            buckets = service.externals
        config = _prepare(
            state,
            storage_folders(plan, cluster),
            worker_config(
                plan,
                _modules_of(bundle),
                storage=_absolute(state),
                sockets=listening,
                cluster=cluster,
                buckets=buckets,
                extra_bindings=extra,
                private_network=private_network,
                test_clock=test_clock,
                fronts=fronts,
            ),
        )
        workerd = await Workerd.start(
            toolchain.workerd,
            config,
            sockets=len(listening),
            cwd=state,
            env=env,
            # Cap'n Proto looks for a file whose path begins with a slash below its import paths.
            arguments=["--import-path=/"],
            fds=None if listener is None else {"http": listener},
            inherited=() if lock is None else (lock,),
            on_line=on_line,
        )
        workerd.at_end(opened.pop_all().aclose)
    return Node(workerd, state, workerd.ports.get("http", 0), workerd.ports["health"])


def _modules_of(bundle: Bundle) -> list[Module]:
    """The modules by absolute paths: the configuration is not in the bundle's folder, which may be somebody else's."""
    folder = _absolute(bundle.folder)
    return [Module(module.name, module.kind, str(folder / module.path)) for module in bundle.modules]


def _absolute(folder: Path) -> Path:
    return folder.absolute()


def _prepare(state: Path, folders: Sequence[str], text: str) -> Path:
    """Make the folders and write the configuration."""
    for folder in folders:
        (state / folder).mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    config = state / "workerd.capnp"
    descriptor = os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return config


_SILENT = "it did not answer within"


async def ask_health(port: int, *, seconds: float | None = 60.0) -> str | None:
    """Return the reason why a node does not answer, or None.

    The first question has it load Python and the application.
    """
    try:
        status, body = await exchange(port, "GET", "/", b"", seconds)
    except TimeoutError:
        return f"{_SILENT} {seconds:g} s"
    except OSError as error:
        return f"it does not answer: {error}"
    if status == 200:
        return None
    try:
        return str(json.loads(body)["problems"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace") or "it closed the connection"


async def until_unwell(node: Node, *, patience: float, memory: int | None = None, every: float = 5.0) -> str:
    """Wait until a node has to be replaced, and say why. It may still be running.

    It has ended, has not answered its health endpoint for `patience` seconds (0: for as long as it likes), has said
    three times in a row, `every` seconds apart, that it cannot answer, although it could when it was started, or takes
    more than `memory` bytes.
    """
    # Never cancelled, since that would end the reading of the process's output.
    ended = asyncio.ensure_future(node.workerd.wait())
    failures = 0
    while True:
        await asyncio.wait({ended}, timeout=every)
        asking = asyncio.ensure_future(ask_health(node.health_port, seconds=patience or None))
        try:
            await asyncio.wait({ended, asking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()
        if ended.done():
            return f"ended with status {ended.result()}"
        problem = asking.result()
        failures = 0 if problem is None else failures + 1
        if problem is not None and (failures == 3 or problem.startswith(_SILENT)):
            return f"is not well: {problem}"
        if memory is not None and (taken := memory_of(node.workerd.pid)) > memory:
            return f"takes {taken >> 20} MiB, more than --memory allows"


async def open_node(node: Node) -> None:
    """Let in the events that wait at a node which was started `closed`. Raises WorkerdError if it does not answer."""
    answer = await post_json(node.health_port, "/open", {}, seconds=60.0)
    if "error" in answer:
        raise WorkerdError(str(answer["error"]))


async def ask_to_leave(node: Node, *, hold: bool = False, seconds: float = 2.0) -> None:
    """Have a node end its endless connections: it closes WebSockets with 1001, and ends streams of events.

    With `hold`, requests that arrive are held, for three quarters of `seconds` at most and beyond this call. Told to
    stop meanwhile, the node answers them with `Connection: close`, where it would have cut off their connections.

    One that hangs is not waited for longer than `seconds`.
    """
    await post_json(node.health_port, "/leave", {"hold": seconds * 750 if hold else 0}, seconds=seconds)


async def post_json(port: int, path: str, value: object, *, seconds: float = 300.0) -> dict[str, Any]:
    """Have a node do something that its health endpoint can, such as migrate a database."""
    try:
        _, body = await exchange(port, "POST", path, json.dumps(value).encode(), seconds)
        answer: dict[str, Any] = json.loads(body)
        return answer
    except (OSError, ValueError, TimeoutError) as error:
        return {"error": f"the node did not answer: {type(error).__name__} {error}"}


async def exchange(port: int, method: str, path: str, body: bytes, seconds: float | None) -> tuple[int, bytes]:
    """One request to 127.0.0.1, on a connection of its own: the status and the body."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: health\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
    top, _, content = answer.partition(b"\r\n\r\n")
    parts = top.split(b" ", 2)
    status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
    return status, _unchunked(content) if b"transfer-encoding: chunked" in top.lower() else content


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        # A process that ends while it answers leaves a piece of a chunk.
        length = int(size, 16) if size.isalnum() else 0
        if length == 0:
            break
        whole += rest[:length]
        body = rest[length + 2 :]
    return whole
