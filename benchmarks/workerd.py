"""The framework's own time inside workerd, beside a bare "hello" on the same pyodide in the same run.

    python -m benchmarks.workerd [--rounds 7] [--requests 2000] [--memory 10000] [--warm-up 10000]

Cold start (process start to first answer, with and without a memory snapshot), a plain request, a body of 100 kB, a
KV and a D1 read beside the same calls written by hand, bundle size, and resident memory over requests that work with
KV and D1. Cold starts alternate, and the median counts, so that what else
the machine does falls on both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from core.program.entry import Entry
from core.runtime.build_worker import ask, prepare
from core.runtime.bundle import HOST, Bundle, PackageSize, write_bundle
from core.runtime.collect import collect
from core.runtime.make import Build, make_bundle
from core.runtime.node import Node, start_node
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain, toolchain

BARE = b"""
import js

def start(main):
    pass

def fetch(request, env, ctx):
    return js.Response.new("hello")
"""

BY_HAND = b"""
import json

import js

def start(main):
    pass

async def fetch(request, env, ctx):
    url = request.url
    if url.endswith("/body"):
        return js.Response.new(str(len(await request.text())))
    if url.endswith("/kv"):
        value = await env.KV.get("name")
        if not value:
            await env.KV.put("name", "Ada")
        return js.Response.new(value)
    row = await env.DB.prepare("SELECT 7 AS id, ? AS text").bind("text").first()
    return js.Response.new(json.dumps({"id": row.id, "text": row.text}))
"""

BARE_ENTRY = """
import { WorkerEntrypoint } from 'cloudflare:workers';
import { start } from './boot.mjs';
let started;
export class Health extends WorkerEntrypoint {
  async fetch() {
    await (started ??= start());
    return Response.json({ status: 'ok' });
  }
}
export default {
  async fetch(request, env, ctx) {
    const { host } = await (started ??= start());
    return host.fetch(request, env, ctx);
  },
};
"""

APPLICATION = """
import attrs
from core import Bindings, D1Database, KVNamespace, Request, Response, create_app


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database


app = create_app(Env)


@app.get("/")
async def hello(req: Request[Env], res: Response) -> None:
    res.text("hello")


@app.get("/work/:number")
async def work(req: Request[Env], res: Response) -> None:
    number = int(req.params["number"])
    key = f"work:{number % 50}"
    await req.env.KV.put(key, str(number), metadata={"number": number})
    value = await req.env.KV.get(key)
    rows = await req.env.DB.prepare("SELECT ? + 1 AS next, ? AS text").bind(number, "text").all()
    res.json({"value": value, "row": rows.results[0]})


@app.post("/body")
async def body(req: Request[Env], res: Response) -> None:
    res.text(str(len(await req.text())))


@app.get("/kv")
async def kv(req: Request[Env], res: Response) -> None:
    value = await req.env.KV.get("name")
    if value is None:
        await req.env.KV.put("name", "Ada")
    res.text(value or "")


@app.get("/d1")
async def d1(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare("SELECT 7 AS id, ? AS text").bind("text").first())
"""

JAVASCRIPT = """
import { WorkerEntrypoint } from 'cloudflare:workers';
export class Health extends WorkerEntrypoint {}
export default {
  async fetch(request, env) {
    const number = Number(new URL(request.url).pathname.split('/')[2]);
    const key = `work:${number % 50}`;
    await env.KV.put(key, String(number), { metadata: { number } });
    const value = await env.KV.get(key);
    const rows = await env.DB.prepare('SELECT ? + 1 AS next, ? AS text').bind(number, 'text').all();
    return Response.json({ value, row: rows.results[0] });
  },
};
"""

_STARTS = 5
PLAN = Plan(name="bench", kv={"KV": "kv"}, d1={"DB": "db"})


class Target:
    """A bundle to measure."""

    def __init__(self, name: str, bundle: Bundle) -> None:
        self.name = name
        self.bundle = bundle
        self.cold: list[float] = []
        self.plain: list[float] = []


async def make_targets(tools: Toolchain, folder: Path) -> dict[str, Target]:
    """Bare and with the framework, each with and without a snapshot."""
    project = folder / "project"
    project.mkdir()
    main = project / "main.py"
    main.write_text(APPLICATION)
    await prepare(tools)
    found: dict[str, Target] = {}
    image = await ask(tools, "/snapshot", {"bare.py": BARE}, plan=Plan(name="bench"), host="bare")

    def without_framework(name: str, source: bytes, snapshot: bytes | None) -> Bundle:
        bare = write_bundle(
            folder / name,
            tools,
            plan=PLAN,
            main="",
            files={"bare.py": source},
            host="bare",
            snapshot=snapshot,
        )
        (bare.folder / "modules" / "entry.mjs").write_text(BARE_ENTRY)
        return bare

    found["by hand"] = Target("by hand", without_framework("by-hand", BY_HAND, None))
    for snapshot in (False, True):
        label = "snapshot" if snapshot else "no snapshot"
        bare = without_framework(f"bare-{snapshot}", BARE, image if snapshot else None)
        build = Build(Entry(str(project), "main", "app", ""), project, PLAN, tools)
        ours = await make_bundle(build, folder / f"ours-{snapshot}", snapshot=snapshot)
        found[f"bare, {label}"] = Target(f"bare, {label}", bare)
        found[f"core, {label}"] = Target(f"core, {label}", ours)
    return found


async def cold_start(tools: Toolchain, target: Target, state: Path) -> None:
    """One start in an empty folder, up to the first answer."""
    began = time.perf_counter()
    node = await start_node(tools, target.bundle, state=state)
    await asyncio.to_thread(_get, node.ports["http"], "/")
    target.cold.append(time.perf_counter() - began)
    await node.kill()


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body
    finally:
        connection.close()


def _many(port: int, paths: list[str], sent: bytes | None = None) -> float:
    """Mean time of requests one after the other on one connection, in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    began = time.perf_counter()
    for path in paths:
        connection.request("GET" if sent is None else "POST", path, sent)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
    took = time.perf_counter() - began
    connection.close()
    return took * 1000 / len(paths)


def resident(node: Node) -> float:
    """Resident memory of the process, in MB."""
    for line in Path(f"/proc/{node.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise AssertionError("no VmRSS")


def framework_size(packages: Sequence[PackageSize]) -> int:
    """The size of the framework and its dependencies among a bundle's compressed Python files, in bytes."""
    ours = {"core-edge", "attrs", "cattrs", "typing_extensions", "typing-extensions"}
    return sum(package.compressed for package in packages if package.name in ours)


async def plain_requests(tools: Toolchain, targets: list[Target], folder: Path, requests: int) -> None:
    """A plain request on each target, in turns, in several processes: V8 compiles each a little differently."""
    for start in range(_STARTS):
        nodes = [
            await start_node(tools, target.bundle, state=folder / f"plain{start}-{number}")
            for number, target in enumerate(targets)
        ]
        for node in nodes:
            await asyncio.to_thread(_many, node.ports["http"], ["/"] * 2000)
        for _ in range(6):
            for node, target in zip(nodes, targets, strict=True):
                target.plain.append(await asyncio.to_thread(_many, node.ports["http"], ["/"] * (requests // 6)))
        for node in nodes:
            await node.kill()


async def calls(tools: Toolchain, targets: list[Target], folder: Path, requests: int) -> dict[str, list[float]]:
    """The processor's time of a request that reads 100 kB, a key or a row: by hand, with core, and their ratio."""
    nodes = [
        await start_node(tools, target.bundle, state=folder / f"calls-{number}")
        for number, target in enumerate(targets)
    ]
    found: dict[str, list[float]] = {}
    for path, body in (("/body", b"x" * 100_000), ("/kv", None), ("/d1", None)):
        rounds: list[list[float]] = []
        for _ in range(6):
            rounds.append([])
            for node in nodes:
                before = _processor(node)
                await asyncio.to_thread(_many, node.ports["http"], [path] * (requests // 6), body)
                rounds[-1].append((_processor(node) - before) * 1000 / (requests // 6))
        rounds = rounds[1:]  # past what V8 compiles first
        means = [statistics.median(each) for each in zip(*rounds, strict=True)]
        ratio = statistics.median(ours / by_hand for by_hand, ours in rounds)
        found[path] = [*(round(mean, 3) for mean in means), round(ratio, 3)]
    for node in nodes:
        await node.kill()
    return found


def _processor(node: Node) -> float:
    """The processor's seconds of a process so far."""
    fields = Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def memory(
    tools: Toolchain, bundle: Bundle, state: Path, requests: int, warm_up: int
) -> tuple[float, list[float]]:
    """Resident memory at first, and after the warm-up and each tenth of the requests after it.

    The warm-up is workerd's: its services for KV and D1 fill a few hundred MB before it collects what they leave, as
    they do for the same work in a worker without any Python.
    """
    node = await start_node(tools, bundle, state=state)
    await asyncio.to_thread(_many, node.ports["http"], ["/work/1"] * 50)
    first = resident(node)
    await asyncio.to_thread(_many, node.ports["http"], [f"/work/{number}" for number in range(warm_up)])
    told = [resident(node)]
    step = max(requests // 10, 1)
    for done in range(0, requests, step):
        await asyncio.to_thread(_many, node.ports["http"], [f"/work/{number}" for number in range(done, done + step)])
        told.append(resident(node))
    await node.kill()
    return first, told


def javascript(folder: Path, template: Bundle) -> Bundle:
    """The same work without any Python."""
    (folder / "modules").mkdir(parents=True)
    (folder / "modules" / "entry.mjs").write_text(JAVASCRIPT)
    modules = [{"name": "entry.mjs", "kind": "esModule", "path": "modules/entry.mjs"}]
    return Bundle(folder, {**template.manifest, "modules": modules})


async def run(rounds: int, requests: int, memory_requests: int, warm_up: int) -> dict[str, object]:
    """Measure everything and give the figures."""
    tools = toolchain()
    with tempfile.TemporaryDirectory(prefix="core-bench-") as place:
        folder = Path(place)
        targets = await make_targets(tools, folder)
        by_hand = targets.pop("by hand")
        for number in range(rounds):
            for name, target in targets.items():
                await cold_start(tools, target, folder / f"cold-{name}-{number}")
        pair = [targets["bare, snapshot"], targets["core, snapshot"]]
        await plain_requests(tools, pair, folder, requests)
        ours = targets["core, snapshot"].bundle
        bindings = await calls(tools, [by_hand, targets["core, snapshot"]], folder, requests)
        plainest = javascript(folder / "javascript", ours)
        flat = {
            name: await memory(tools, bundle, folder / f"memory-{name}", memory_requests, warm_up)
            for name, bundle in (("core", ours), ("JavaScript", plainest))
        }
        packages = collect(folder / "project", project=folder / "project").packages
        cold = {name: statistics.median(target.cold) for name, target in targets.items()}
        plain = {target.name: statistics.median(target.plain) for target in pair}
        return {
            "cold start, s": {name: round(value, 3) for name, value in cold.items()},
            "cold start, core / bare": {
                label: round(cold[f"core, {label}"] / cold[f"bare, {label}"], 3)
                for label in ("snapshot", "no snapshot")
            },
            "plain request, ms": {name: round(value, 3) for name, value in plain.items()},
            "plain request, core / bare": round(
                statistics.median(ours / bare for bare, ours in zip(*(target.plain for target in pair), strict=True)), 3
            ),
            "processor, ms: by hand, core, core / by hand": bindings,
            "bundle, compressed kB": _sizes(targets, framework_size(packages)),
            f"memory, MB over {memory_requests} requests with KV and D1 after {warm_up} to warm up": {
                name: {"at first": round(first), "warm": round(told[0]), "then": [round(size) for size in told[1:]]}
                for name, (first, told) in flat.items()
            },
            "host": HOST,
        }


def _sizes(targets: dict[str, Target], framework: int) -> dict[str, int]:
    from core.runtime.bundle import compressed_size

    found = {}
    for name, target in targets.items():
        modules = [(target.bundle.folder / module.path).read_bytes() for module in target.bundle.modules]
        found[name] = sum(map(compressed_size, modules)) // 1000
    return {**found, "the framework and what it needs": framework // 1000}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="cold starts of each bundle")
    parser.add_argument("--requests", type=int, default=2000, help="plain requests to each bundle")
    parser.add_argument("--memory", type=int, default=10_000, help="requests with KV and D1")
    parser.add_argument("--warm-up", type=int, default=10_000, help="such requests before those that count")
    args = parser.parse_args()
    print(json.dumps(asyncio.run(run(args.rounds, args.requests, args.memory, args.warm_up)), indent=2))


if __name__ == "__main__":
    main()
