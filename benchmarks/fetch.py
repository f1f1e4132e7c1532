"""`http.Request` made, `app.fetch`, body read: what a test costs,
and `app.fetch` of a ready request beside Hono on Node.

The first is a ratio to `raw` behind ASGI, as in `in_process`; hayate is asked in its own way beside it. The second is
in microseconds, since nothing under both languages is the same: both are warmed up, both answer the same seven.

    python -m benchmarks.fetch [--rounds 40] [--hono FOLDER]

FOLDER holds `node_modules/hono`: `npm install --prefix FOLDER hono`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.in_process import BATCH_SECONDS, batch, best_tenth, load
from benchmarks.peers import core_app
from benchmarks.workloads import HEADERS, ORIGIN, WORKLOADS, Workload
from core import http

Ask = Callable[[Workload, str], Awaitable[tuple[int, bytes]]]
Ready = Callable[[Workload, list[str]], Awaitable[float]]
NAMED = {name.decode(): value.decode() for name, value in HEADERS if name != b"host"}


class Context:
    """An execution context that starts nothing."""

    def wait_until(self, awaitable: Awaitable[Any], /) -> None: ...
    def pass_through_on_exception(self) -> None: ...


def url(workload: Workload, path: str) -> str:
    """The absolute URL."""
    return f"{ORIGIN}{path}{'?' + workload.query if workload.query else ''}"


def core_ways() -> tuple[dict[bool, Ask], dict[bool, Ready]]:
    """Ask core with a request made here, and with ready ones. The key says whether the four middleware are there."""
    context = Context()
    asking: dict[bool, Ask] = {}
    readying: dict[bool, Ready] = {}
    for four in (False, True):
        app = core_app.application([], four)

        async def ask(workload: Workload, path: str, app: Any = app) -> tuple[int, bytes]:
            request = http.Request(
                url(workload, path), method=workload.method, headers=NAMED, body=workload.body or None
            )
            response = await app.fetch(request, None, context)
            return response.status, await response.bytes()

        async def ready(workload: Workload, paths: list[str], app: Any = app) -> float:
            requests = [
                http.Request(url(workload, path), method=workload.method, headers=NAMED, body=workload.body or None)
                for path in paths
            ]
            begin = perf_counter()
            for request in requests:
                await app.fetch(request, None, context)
            return (perf_counter() - begin) / len(paths)

        asking[four], readying[four] = ask, ready
    return asking, readying


def hayate_way() -> dict[bool, Ask] | None:
    """The same of hayate, where it is installed."""
    try:
        from hayate import Request

        from benchmarks.peers import hayate_app
    except ImportError:
        return None
    ways: dict[bool, Ask] = {}
    for four in (False, True):
        app = hayate_app.build([], four)

        async def ask(workload: Workload, path: str, app: Any = app) -> tuple[int, bytes]:
            request = Request(url(workload, path), method=workload.method, headers=NAMED, body=workload.body or None)
            response = await app.fetch(request)
            return response.status, (await response.text()).encode()

        ways[four] = ask
    return ways


async def measure(rounds: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Ratios to raw by workload and framework, and microseconds of a ready request."""
    logging.disable(logging.CRITICAL)
    raw = await load("raw")
    asking, ready = core_ways()
    ways = {"core": asking}
    hayate = hayate_way()
    if hayate is not None:
        ways["hayate"] = hayate
    times: dict[tuple[str, str], list[float]] = {}
    for workload in WORKLOADS:
        four = workload.name == "full"
        for name, way in ways.items():
            status, body = await way[four](workload, workload.paths[0])
            answer = body.decode() if workload.name == "plaintext" else json.loads(body)
            assert (status, answer) == (workload.status, workload.expected(0)), (name, workload.name, status, body)
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        for workload in WORKLOADS:
            four = workload.name == "full"
            count = max(20, int(BATCH_SECONDS / 12e-6))
            paths = (workload.paths * (count // len(workload.paths) + 1))[:count]
            times.setdefault((workload.name, "raw"), []).append(await batch(raw, workload, count, number))
            times.setdefault((workload.name, "ready"), []).append(await ready[four](workload, paths))
            for name, way in ways.items():
                ask = way[four]
                begin = perf_counter()
                for path in paths:
                    await ask(workload, path)
                times.setdefault((workload.name, name), []).append((perf_counter() - begin) / count)
    best = {key: best_tenth(values) * 1e6 for key, values in times.items()}
    ratios = {
        workload.name: {"raw": best[workload.name, "raw"], **{name: best[workload.name, name] for name in ways}}
        for workload in WORKLOADS
    }
    return ratios, {workload.name: best[workload.name, "ready"] for workload in WORKLOADS}


def hono(folder: Path, rounds: int) -> dict[str, float]:
    """Microseconds of a ready request through Hono's `app.fetch`."""
    script = Path(__file__).with_name("peers") / "hono_app.mjs"
    done = subprocess.run(
        ["node", str(script), str(folder.resolve()), str(rounds)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    from benchmarks.in_process import table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--hono", type=Path)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    ratios, ready = asyncio.run(measure(options.rounds))
    print(
        table(ratios).replace("| core |", "| core, made, fetched, read |").replace("| hayate |", "| hayate, likewise |")
    )
    names = [workload.name for workload in WORKLOADS]
    print(f"\n| ready request, µs | {' | '.join(names)} |\n| --- |{' ---: |' * len(names)}")
    print(f"| core | {' | '.join(f'{ready[name]:.2f}' for name in names)} |")
    theirs: dict[str, float] = {}
    if options.hono is not None:
        theirs = hono(options.hono, options.rounds)
        print(f"| Hono on Node | {' | '.join(f'{theirs[name]:.2f}' for name in names)} |")
    if options.json:
        Path(options.json).write_text(json.dumps({"ratios": ratios, "ready": ready, "hono": theirs}), encoding="utf-8")


if __name__ == "__main__":
    main()
