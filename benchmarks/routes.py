"""The cost of 10, 100, 1,000 and 10,000 routes: one request, and building them in time and memory.

Three tables are asked. `plain` is like the API of a large site: texts, one and several parameters. `overlapping` has
what makes tables slow: a literal beside a parameter in every place, wildcards, and routers mounted in routers with
middleware on each. `patterns` has parameters with regular expressions, two of them in one place, optional segments and
wildcards inside. The requests are to the first, the middle and the last route, to a path without parameters and to
one that is not there; what follows the route's own texts differs from request to request.

    python -m benchmarks.routes [--rounds 40] [--peers hayate,falcon,starlette,blacksheep]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import subprocess
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.in_process import Application, ask, batch, best_tenth, load
from benchmarks.workloads import Workload
from core import App, Next, Request, Response, create_app
from core.hosts.asgi import asgi

SIZES = (10, 100, 1_000, 10_000)
KINDS = ("first", "middle", "last", "static", "miss")
OWN = ("core", "overlapping", "patterns")


def plain_routes(size: int) -> list[str]:
    """Paths as in the API of a large site: five to a resource."""
    routes: list[str] = []
    for number in range((size + 4) // 5):
        name = f"/resource{number}"
        routes += [name, f"{name}/:id", f"{name}/:id/items", f"{name}/:id/items/:item", f"{name}/search/latest"]
    return routes[:size]


def requests_for(size: int) -> dict[str, Workload]:
    """The requests for the plain table."""
    last = (size + 4) // 5 - 1
    middle = last // 2

    def asked(name: str, template: str, status: int = 200) -> Workload:
        return Workload(name, "GET", [template.format(number) for number in range(512)], status)

    return {
        "first": asked("first", "/resource0/{}"),
        "middle": asked("middle", f"/resource{middle}/{{0}}/items/{{0}}"),
        "last": asked("last", f"/resource{last}/{{0}}/items/{{0}}"),
        "static": asked("static", f"/resource{middle}/search/latest"),
        "miss": asked("miss", "/nothing/{}/here", 404),
    }


def overlapping(size: int) -> App[Any]:
    """A table in which every path might be several routes, with middleware on two levels of mounts."""
    app = create_app()

    async def answer(req: Request, res: Response) -> None:
        res.json({"message": "hello"})

    async def outer(req: Request, res: Response, next: Next) -> None:
        await next()

    async def inner(req: Request, res: Response, next: Next) -> None:
        await next()

    for number in range((size + 4) // 5):
        router = app.Router()
        router.use(outer)
        router.get("/me", answer)
        router.get("/:id", answer)
        nested = app.Router()
        nested.use(inner)
        nested.get("/:item", answer)
        nested.get("/:item/:part", answer)
        nested.get("/files/*", answer)
        router.use("/:id/items", nested)
        app.use(f"/resource{number}", router)
    return app


def overlapping_requests(size: int) -> dict[str, Workload]:
    """The requests for the overlapping table."""
    last = (size + 4) // 5 - 1
    middle = last // 2

    def asked(name: str, template: str, status: int = 200) -> Workload:
        return Workload(name, "GET", [template.format(number) for number in range(512)], status)

    return {
        "first": asked("first", "/resource0/{}"),
        "middle": asked("middle", f"/resource{middle}/{{0}}/items/{{0}}/{{0}}"),
        "last": asked("last", f"/resource{last}/{{0}}/items/files/{{0}}/a/b"),
        "static": asked("static", f"/resource{middle}/me"),
        "miss": asked("miss", "/nothing/{}/here", 404),
    }


def patterns(size: int) -> App[Any]:
    """A table of regular expressions, optional segments and wildcards inside: five routes to a resource."""
    app = create_app()

    async def answer(req: Request, res: Response) -> None:
        res.json({"message": "hello"})

    for number in range((size + 4) // 5):
        name = f"/resource{number}"
        for path in ("/:id{[0-9]+}", "/:name{[a-z]+}", "/:id{[0-9]+}/items/:item?", "/*/raw", "/search/latest"):
            app.get(name + path, answer)
    return app


def patterns_requests(size: int) -> dict[str, Workload]:
    """The requests to the table of patterns."""
    last = (size + 4) // 5 - 1
    middle = last // 2

    def asked(name: str, template: str, status: int = 200) -> Workload:
        return Workload(name, "GET", [template.format(number) for number in range(512)], status)

    return {
        "first": asked("first", "/resource0/{}"),
        "middle": asked("middle", f"/resource{middle}/{{0}}/items/{{0}}"),
        "last": asked("last", f"/resource{last}/x{{0}}/raw"),
        "static": asked("static", f"/resource{middle}/search/latest"),
        "miss": asked("miss", "/nothing/{}/here", 404),
    }


async def costs(apps: dict[tuple[str, int], Application], rounds: int) -> dict[tuple[str, int, str], float]:
    """Microseconds by table, size and kind of request."""
    logging.disable(logging.CRITICAL)
    asked: dict[tuple[str, int, str], Workload] = {}
    for name, size in apps:
        workloads = {"overlapping": overlapping_requests, "patterns": patterns_requests}.get(name, requests_for)(size)
        for kind, workload in workloads.items():
            status, _, body = await ask(apps[name, size], workload, workload.paths[7])
            assert status == workload.status, (name, size, kind, status, body)
            asked[name, size, kind] = workload
    gc.collect()
    gc.freeze()
    times: dict[tuple[str, int, str], list[float]] = {}
    for number in range(rounds):
        for (name, size, kind), workload in asked.items():
            count = 300 if name in OWN else 100 if size <= 100 else 10
            spent = await batch(apps[name, size], workload, count, number)
            times.setdefault((name, size, kind), []).append(spent)
    return {key: best_tenth(values) * 1e6 for key, values in times.items()}


BUILD = """
import sys, json, resource, gc
from time import perf_counter
from benchmarks import routes
from importlib import import_module
peer, size = sys.argv[1], int(sys.argv[2])
paths = routes.plain_routes(size)
if peer in ("overlapping", "patterns"):
    make = lambda: routes.asgi(getattr(routes, peer)(size))
else:
    module = import_module("benchmarks.peers." + peer + "_app")
    make = lambda: module.build(paths)
def resident():
    # Of now: the highest there ever was is inherited from the process that started this one.
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20
gc.collect()
before = resident()
begin = perf_counter()
app = make()
built = perf_counter() - begin
import asyncio
from benchmarks.in_process import ask
from benchmarks.workloads import Workload
one = Workload("first", "GET", ["/resource0/7"], 200)
begin = perf_counter()
if peer in routes.OWN:
    assert asyncio.run(ask(app, one, one.paths[0]))[0] == 200
first = perf_counter() - begin
print(json.dumps([built, first, resident() - before]))
"""


def building(peer: str, size: int) -> tuple[float, float, float]:
    """Seconds to build, seconds to the first answer after that, and megabytes, in a fresh process;
    the best of three.
    """
    best: tuple[float, float, float] | None = None
    for _ in range(3):
        try:
            done = subprocess.run(
                [sys.executable, "-c", BUILD, peer, str(size)], capture_output=True, text=True, timeout=60, check=True
            )
        except subprocess.TimeoutExpired:
            return (float("inf"), 0.0, 0.0)
        built, first, megabytes = json.loads(done.stdout)
        if best is None or built + first < best[0] + best[1]:
            best = (built, first, megabytes)
    assert best is not None
    return best


def bytes_per_route(size: int = 10_000) -> float:
    """The memory that a route keeps, by tracemalloc: built, and with its tables compiled by a first request."""
    from benchmarks.peers import core_app

    paths = plain_routes(size)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    app = asgi(core_app.application(paths))
    asyncio.run(ask(app, Workload("first", "GET", ["/"], 200), "/"))
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept / size


async def _run(rounds: int, peers: list[str]) -> dict[str, dict[str, dict[int, float]]]:
    apps: dict[tuple[str, int], Application] = {}
    for size in SIZES:
        apps["core", size] = await load("core", plain_routes(size))
        apps["overlapping", size] = asgi(overlapping(size))
        apps["patterns", size] = asgi(patterns(size))
        for peer in peers:
            if size <= 1_000 or peer != "hayate":
                apps[peer, size] = await load(peer, plain_routes(size))
    found = await costs(apps, rounds)
    results: dict[str, dict[str, dict[int, float]]] = {}
    for (name, size, kind), cost in found.items():
        results.setdefault(name, {}).setdefault(kind, {})[size] = cost
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--peers", default="hayate,falcon,starlette,blacksheep")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    peers = [peer for peer in options.peers.split(",") if peer]

    async def run() -> dict[str, dict[str, dict[int, float]]]:
        results = await _run(options.rounds, peers)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return results

    begin = perf_counter()
    results = asyncio.run(run())
    print(f"| µs per request | routes | {' | '.join(KINDS)} |")
    print(f"| --- | ---: |{' ---: |' * len(KINDS)}")
    for name, kinds in results.items():
        for size in SIZES:
            if size in kinds["first"]:
                cells = [f"{kinds[kind][size]:.2f}" for kind in KINDS]
                print(f"| {name} | {size:,} | {' | '.join(cells)} |")
    print("\n| building 10,000 routes | s | first answer, s | MB |\n| --- | ---: | ---: | ---: |")
    built: dict[str, tuple[float, float, float]] = {}
    for peer in (*OWN, *[peer for peer in peers if peer != "hayate"]):
        built[peer] = building(peer, 10_000)
        seconds, first, megabytes = built[peer]
        print(
            f"| {peer} | {seconds:.2f} | {first:.2f} | {megabytes:.0f} |" if seconds < 60 else f"| {peer} | >60 | | |"
        )
    kept = bytes_per_route()
    print(f"\ncore keeps {kept:.0f} bytes per route. ({perf_counter() - begin:.0f} s)")
    if options.json:
        Path(options.json).write_text(json.dumps({"costs": results, "built": built, "kept": kept}), encoding="utf-8")


if __name__ == "__main__":
    main()
