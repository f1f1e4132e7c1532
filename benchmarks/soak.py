"""A cluster of three `core serve` under mixed load, while one process after the other is killed.

    python -m benchmarks.soak --seconds 600

Prints what was acknowledged and is there, what was answered meanwhile, how many messages became dead letters, and how
much memory each process took over time. The exit code is 1 when something acknowledged is missing, a number was given
twice, or an answer was neither 200 nor 503. A message in the dead letter queue is not missing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

from core.runtime.process import memory_of

NODES = 3
CLIENTS = 6
CREDENTIALS = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
ENVIRONMENT = {
    "CORE_CLUSTER_KEY": "0123456789abcdef0123456789abcdef",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "bbbbbbbbbbbbbbbbbbbb",
    "AWS_EC2_METADATA_DISABLED": "true",
}
MAIN = dedent("""
    import attrs
    from core import (
        Bindings, D1Database, DurableObject, DurableObjectNamespace, KVNamespace, MessageBatch, Queue, Request, Response,
        create_app,
    )

    class Counter(DurableObject["Env"]):
        async def add(self) -> int:
            count = (await self.ctx.storage.get("count") or 0) + 1
            await self.ctx.storage.put("count", count)
            return count

    @attrs.frozen
    class Env(Bindings):
        KV: KVNamespace
        DB: D1Database
        JOBS: Queue
        COUNTERS: DurableObjectNamespace[Counter]

    app = create_app(Env)

    @app.post("/kv/:id")
    async def put(req: Request[Env], res: Response) -> None:
        await req.env.KV.put(req.params["id"], "there")
        res.json(True)

    @app.post("/counters/:id")
    async def add(req: Request[Env], res: Response) -> None:
        res.json(await req.env.COUNTERS.get_by_name(req.params["id"]).add())

    @app.post("/rows/:id")
    async def insert(req: Request[Env], res: Response) -> None:
        await req.env.DB.prepare("INSERT OR IGNORE INTO rows VALUES (?)").bind(req.params["id"]).run()
        res.json(True)

    @app.post("/jobs/:id")
    async def send(req: Request[Env], res: Response) -> None:
        await req.env.JOBS.send(req.params["id"])
        res.json(True)

    @app.queue("jobs")
    async def work(batch: MessageBatch[str], env: Env, ctx: object) -> None:
        for message in batch.messages:
            await env.KV.put(f"job:{message.body}", "there")

    @app.queue("dead")
    async def bury(batch: MessageBatch[str], env: Env, ctx: object) -> None:
        insert = env.DB.prepare("INSERT OR IGNORE INTO dead VALUES (?)")
        await env.DB.batch([insert.bind(message.body) for message in batch.messages])

    @app.get("/kv/:id")
    async def get(req: Request[Env], res: Response) -> None:
        res.json(await req.env.KV.get(req.params["id"]) is not None)

    @app.get("/rows")
    async def rows(req: Request[Env], res: Response) -> None:
        found = await req.env.DB.prepare("SELECT id FROM rows").all()
        res.json([row["id"] for row in found.results])

    @app.get("/dead")
    async def dead(req: Request[Env], res: Response) -> None:
        found = await req.env.DB.prepare("SELECT id FROM dead").all()
        res.json([row["id"] for row in found.results])
""")
CONFIGURATION: dict[str, Any] = {
    "name": "soak",
    "main": "main.py",
    "compatibility_date": "2026-04-01",
    "kv_namespaces": [{"binding": "KV", "id": "kv"}],
    "d1_databases": [{"binding": "DB", "database_name": "db", "database_id": "db"}],
    "queues": {
        "producers": [{"binding": "JOBS", "queue": "jobs"}],
        "consumers": [
            {"queue": "jobs", "max_batch_timeout": 0, "dead_letter_queue": "dead"},
            {"queue": "dead", "max_batch_timeout": 0, "max_retries": 100, "retry_delay": 5},
        ],
    },
    "durable_objects": {"bindings": [{"name": "COUNTERS", "class_name": "Counter"}]},
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
}


class Node:
    """One `core serve`, and what it says."""

    def __init__(self, folder: Path, bucket: str, index: int) -> None:
        command = [sys.executable, "-u", "-m", "core", "serve", str(folder / "dist"), "--port", "0"]
        command += [
            "--health",
            "127.0.0.1:0",
            "--state",
            str(folder / f"state{index}"),
            "--cluster",
            "s3://cluster/soak",
        ]
        command += ["--cluster-endpoint", bucket, "--cluster-region", "us-east-1"]
        self.process = subprocess.Popen(
            command, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE, text=True, cwd=folder
        )
        self.said: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"serving on http://[^:]+:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("a node did not start:\n" + "".join(self.said))
        threading.Thread(target=lambda: self.said.extend(self.process.stderr or ()), daemon=True).start()

    def child(self) -> int | None:
        """The process id of its workerd, or None while it has none."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        return int(children[0]) if children else None


class Soak:
    """The load, and what became of it."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.acknowledged: dict[str, list[str]] = {"kv": [], "rows": [], "jobs": []}
        self.counts: dict[str, list[int]] = {}
        self.statuses: Counter[str] = Counter()
        # By node and process: the seconds at which it was looked at, and MiB.
        self.memory: dict[tuple[int, int], list[tuple[float, int]]] = {}
        self.dead: list[str] = []
        self.kills = 0
        self.ended = threading.Event()

    def client(self, number: int) -> None:
        """Ask one node after the other for one thing after the other."""
        turn = 0
        while not self.ended.is_set():
            turn += 1
            kind = ("kv", "counters", "rows", "jobs")[turn % 4]
            name = f"{number}-{turn % 5}" if kind == "counters" else f"{number}-{turn}"
            status, body = ask(self.nodes[turn % NODES].port, "POST", f"/{kind}/{name}")
            self.statuses[status] += 1
            if status == "200" and kind == "counters":
                self.counts.setdefault(name, []).append(int(body))
            elif status == "200":
                self.acknowledged[kind].append(name)

    def watch(self, seconds: float, every: float) -> None:
        """Kill a process now and then, and note the memory of all."""
        began = time.monotonic()
        end, kill = began + seconds, began + every
        while time.monotonic() < end:
            time.sleep(2)
            for index, node in enumerate(self.nodes):
                if (child := node.child()) is not None:
                    taken = memory_of(child) >> 20
                    self.memory.setdefault((index, child), []).append((time.monotonic() - began, taken))
            # The last one is long enough ago for everything to be back when it is counted.
            if time.monotonic() > kill and time.monotonic() < end - 30:
                kill += every
                child = self.nodes[random.randrange(NODES)].child()
                if child is not None:
                    os.kill(child, signal.SIGKILL)
                    self.kills += 1
        self.ended.set()

    def missing(self) -> list[str]:
        """Everything acknowledged that is not there. Messages that have still to be delivered are waited for."""
        rows = set(json.loads(asked_until(self.nodes, "/rows")))
        lost = [f"row {name}" for name in self.acknowledged["rows"] if name not in rows]
        lost += [f"kv {name}" for name in self.acknowledged["kv"] if asked_until(self.nodes, f"/kv/{name}") != b"true"]
        end = time.monotonic() + 120
        waiting = self.acknowledged["jobs"]
        while waiting and time.monotonic() < end:
            self.dead = json.loads(asked_until(self.nodes, "/dead"))
            buried = set(self.dead)
            waiting = [
                name for name in waiting if name not in buried and asked_until(self.nodes, f"/kv/job:{name}") != b"true"
            ]
        lost += [f"job {name}" for name in waiting]
        return lost + [
            f"counter {name} gave a number twice" for name, all_ in self.counts.items() if len(set(all_)) != len(all_)
        ]


def ask(port: int, method: str, path: str) -> tuple[str, bytes]:
    """One request: its status, or the kind of failure, and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return str(response.status), response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"connection lost ({type(error).__name__})", b""
    finally:
        connection.close()


def asked_until(nodes: list[Node], path: str) -> bytes:
    """Ask until there is an answer, for a minute at most."""
    end = time.monotonic() + 60
    while True:
        status, body = ask(nodes[0].port, "GET", path)
        if status == "200":
            return body
        if time.monotonic() > end:
            raise SystemExit(f"{path} is still {status} {body!r}")
        time.sleep(0.2)


def start_bucket() -> tuple[subprocess.Popen[bytes], str]:
    """An S3 service with a bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.support.moto", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        time.sleep(0.2)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("PUT", "/cluster", headers={"Authorization": CREDENTIALS})
            connection.getresponse()
            return process, f"http://127.0.0.1:{port}"
        except OSError:
            continue
        finally:
            connection.close()


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: %(default)s)")
    parser.add_argument("--kill-every", type=float, default=45.0, help="seconds between kills (default: %(default)s)")
    parser.add_argument("--retries", type=int, default=3, help="max_retries of the consumer (default: %(default)s)")
    parser.add_argument("--retry-delay", type=int, help="retry_delay of the consumer, in seconds (default: none)")
    args = parser.parse_args()
    consumer = CONFIGURATION["queues"]["consumers"][0]
    consumer["max_retries"] = args.retries
    if args.retry_delay is not None:
        consumer["retry_delay"] = args.retry_delay
    with tempfile.TemporaryDirectory(prefix="core-soak-") as name:
        folder = Path(name)
        (folder / "main.py").write_text(MAIN)
        (folder / "wrangler.json").write_text(json.dumps(CONFIGURATION))
        (folder / "migrations").mkdir()
        (folder / "migrations" / "0001_rows.sql").write_text(
            "CREATE TABLE rows (id TEXT PRIMARY KEY); CREATE TABLE dead (id TEXT PRIMARY KEY);"
        )
        subprocess.run([sys.executable, "-m", "core", "build"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        bucket, address = start_bucket()
        nodes: list[Node] = []
        try:
            for index in range(NODES):
                nodes.append(Node(folder, address, index))
            return report(nodes, args.seconds, args.kill_every)
        finally:
            for node in nodes:
                node.process.terminate()
            for node in nodes:
                node.process.wait(30)
            bucket.terminate()
            bucket.wait(10)


def report(nodes: list[Node], seconds: float, every: float) -> int:
    """Load the nodes, and print what came of it."""
    soak = Soak(nodes)
    clients = [threading.Thread(target=soak.client, args=(number,)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    soak.watch(seconds, every)
    for client in clients:
        client.join()
    lost = soak.missing()
    print(f"{seconds:.0f} s, {soak.kills} kills, answers {dict(soak.statuses)}")
    counted = {kind: len(names) for kind, names in soak.acknowledged.items()}
    print(
        f"acknowledged {counted} and {sum(map(len, soak.counts.values()))} counts; lost or twice: {lost or 'nothing'}"
    )
    print(f"{len(soak.dead)} messages became dead letters")
    for (index, pid), taken in soak.memory.items():
        lived = taken[-1][0] - taken[0][0]
        shown = [mib for _, mib in taken[:: max(1, len(taken) // 10)]]
        print(f"node {index}, process {pid}, {lived:.0f} s: MiB {' '.join(map(str, shown))}")
    strange = [
        status for status in soak.statuses if status not in ("200", "503") and not status.startswith("connection")
    ]
    return 1 if lost or strange else 0


if __name__ == "__main__":
    sys.exit(main())
