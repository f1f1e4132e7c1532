"""The seven workloads in process, without a server: every peer's time as a ratio to a hand-written ASGI application.

Rounds are interleaved, so that whatever else the machine does meets all peers alike; what counts is the mean of
each one's best tenth. A request is what a server makes of it: a new scope, a new `receive`, a new `send` that
collects. Every peer's answers are verified before anything is measured.

    python -m benchmarks.in_process [--rounds 60] [--peers core,starlette] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from time import perf_counter
from typing import Any

from benchmarks.workloads import SECURE_HEADERS, WORKLOADS, Workload, scope_of

PEERS = ("raw", "core", "hayate", "blacksheep", "falcon", "starlette", "litestar", "fastapi")
Application = Callable[[Any, Any, Any], Awaitable[None]]
# Shorter than the slice of time that a system gives to one of several processes, so that most batches are undisturbed.
BATCH_SECONDS = 0.0012


async def load(peer: str, routes: list[str] | None = None, four: bool = False) -> Application:
    """A peer's application, started as a server would start it."""
    module = import_module(f"benchmarks.peers.{'raw' if peer == 'raw' else f'{peer}_app'}")
    app: Application = module.build(routes or [], four)
    if peer != "raw":
        await start(app)
    return app


_lifespans: set[asyncio.Future[None]] = set()


async def start(app: Application) -> None:
    """Run an application's lifespan until it has started."""
    events = iter([{"type": "lifespan.startup"}])
    started = asyncio.Event()

    async def receive() -> Any:
        message = next(events, None)
        if message is None:
            await asyncio.Event().wait()
        return message

    async def send(message: Any) -> None:
        started.set()

    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    _lifespans.add(asyncio.ensure_future(app(scope, receive, send)))
    await asyncio.wait_for(started.wait(), 30)


async def ask(app: Application, workload: Workload, path: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """One answer, whole."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": workload.body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope_of(workload, path), receive, send)
    start = sent[0]
    return start["status"], list(start["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


async def verify(peer: str, plain: Application, four: Application) -> None:
    """Ask every workload's first and last path. Raises AssertionError where an answer is not what it must be."""
    for workload in WORKLOADS:
        app = four if workload.name == "full" else plain
        for number in (0, len(workload.paths) - 1):
            status, headers, body = await ask(app, workload, workload.paths[number])
            names = {name.decode().lower(): value.decode() for name, value in headers}
            assert status == workload.status, (peer, workload.name, status, body)
            answer = body.decode() if workload.name == "plaintext" else json.loads(body)
            assert answer == workload.expected(number), (peer, workload.name, answer)
            assert names.get("content-length") == str(len(body)), (peer, workload.name, names)
            assert names["content-type"].startswith(
                "text/plain" if workload.name == "plaintext" else "application/json"
            )
            if workload.name == "full":
                missing = [
                    name
                    for name in [*SECURE_HEADERS, "x-request-id", "vary", "access-control-allow-origin"]
                    if name not in names
                ]
                # hayate has no option for X-XSS-Protection.
                assert not missing or (peer == "hayate" and missing == ["x-xss-protection"]), (peer, missing)


async def batch(app: Application, workload: Workload, count: int, start: int) -> float:
    """Seconds per request over `count` requests."""
    paths = workload.paths
    paths = (paths[start % len(paths) :] + paths * (count // len(paths) + 1))[:count]
    message = {"type": "http.request", "body": workload.body, "more_body": False}
    begin = perf_counter()
    for path in paths:
        sent: list[Any] = []

        async def receive() -> Any:
            return message

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        await app(scope_of(workload, path), receive, send)
    return (perf_counter() - begin) / count


def best_tenth(times: list[float]) -> float:
    """The mean of the lowest tenth."""
    kept = sorted(times)[: max(1, len(times) // 10)]
    return sum(kept) / len(kept)


async def measure(peers: list[str], workloads: list[Workload], rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds per request, by workload and peer."""
    logging.disable(logging.CRITICAL)
    plain: dict[str, Application] = {}
    full: dict[str, Application] = {}
    for peer in peers:
        plain[peer], full[peer] = await load(peer), await load(peer, four=True)
        await verify(peer, plain[peer], full[peer])
    times: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for workload in workloads:
        apps = full if workload.name == "full" else plain
        for peer, app in apps.items():
            once = best_tenth([await batch(app, workload, 20, 0) for _ in range(10)])
            counts[workload.name, peer] = max(10, int(BATCH_SECONDS / once))
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        for workload in workloads:
            apps = full if workload.name == "full" else plain
            for peer, app in apps.items():
                count = counts[workload.name, peer]
                times.setdefault((workload.name, peer), []).append(await batch(app, workload, count, number * count))
    return {
        workload.name: {peer: best_tenth(times[workload.name, peer]) * 1e6 for peer in peers} for workload in workloads
    }


def table(results: dict[str, dict[str, float]]) -> str:
    """The table, in Markdown: microseconds for raw, ratios to it for the others."""
    names = list(results)
    peers = list(next(iter(results.values())))
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for peer in peers:
        if peer == "raw":
            cells = [f"{results[name]['raw']:.2f}" for name in names]
            lines.append(f"| raw, µs | {' | '.join(cells)} |")
        else:
            cells = [f"{results[name][peer] / results[name]['raw']:.2f}" for name in names]
            lines.append(f"| {peer} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--peers", default=",".join(PEERS[1:]))
    parser.add_argument("--workloads", default=",".join(workload.name for workload in WORKLOADS))
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    chosen = [workload for workload in WORKLOADS if workload.name in options.workloads.split(",")]
    peers = ["raw", *(peer for peer in options.peers.split(",") if peer and peer != "raw")]

    async def run() -> dict[str, dict[str, float]]:
        results = await measure(peers, chosen, options.rounds)
        for task in _lifespans:
            task.cancel()
        await asyncio.gather(*_lifespans, return_exceptions=True)
        return results

    results = asyncio.run(run())
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
