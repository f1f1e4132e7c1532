"""The time that `full` takes without any framework: how far ahead of Falcon anything in pure Python can be.

`floor` is one function that knows its only route and does core's work in core's own short ways: the kept encoder, ids
made a row at a time, header pairs written beforehand, a query that is split and not decoded. It has no objects for
requests and responses, no chain, no errors, no HEAD; no header of it can be replaced. `json` answers the ten rows
alone.

    python -m benchmarks.floor [--rounds 300]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
from time import perf_counter
from typing import Any

from benchmarks.in_process import Application, batch, best_tenth, load
from benchmarks.peers.core_app import null
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS, WORKLOADS
from core.http.json import dumps
from core.middleware.request_id import _random_uuid, current_request_id

FULL = next(workload for workload in WORKLOADS if workload.name == "full")
COUNT = 120

JSON = (b"content-type", b"application/json")
FIXED = [*[(name.encode(), value.encode()) for name, value in SECURE_HEADERS.items()], (b"vary", b"Origin"), JSON]
ALLOWED = (b"access-control-allow-origin", ORIGIN.encode())
LENGTHS = [(b"content-length", b"%d" % size) for size in range(4096)]


async def floor(scope: Any, receive: Any, send: Any) -> None:
    """The work of `full`."""
    begin = perf_counter()
    path = scope["path"]
    given = dict(scope["headers"])
    id = given.get(b"x-request-id")
    id = _random_uuid(None) if id is None else id.decode()
    token = current_request_id.set(id)
    head, _, last = path.rpartition("/")
    assert head == "/full/users"
    query: dict[str, str] = {}
    for piece in scope["query_string"].decode().split("&"):
        name, _, value = piece.partition("=")
        query[name] = value
    body = dumps({"id": last, "page": int(query["page"]), "limit": int(query["limit"]), "rows": ROWS}).encode()
    headers = [*FIXED, (b"x-request-id", id.encode()), LENGTHS[len(body)]]
    if given.get(b"origin") == b"https://example.test":
        headers.append(ALLOWED)
    null(f"{scope['method']} {path} 200 {round((perf_counter() - begin) * 1000)}ms [-]")
    current_request_id.reset(token)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def rows(scope: Any, receive: Any, send: Any) -> None:
    """The JSON of `full`, sent with two headers that are there already."""
    body = dumps({"id": "7", "page": 2, "limit": 10, "rows": ROWS}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [JSON, LENGTHS[len(body)]]})
    await send({"type": "http.response.body", "body": body})


async def measure(rounds: int) -> dict[str, float]:
    """Microseconds of `full`, rounds interleaved."""
    logging.disable(logging.CRITICAL)
    apps: dict[str, Application] = {"json": rows, "floor": floor}
    for peer in ("core", "raw", "falcon"):
        apps[peer] = await load(peer, four=True)
    times: dict[str, list[float]] = {name: [] for name in apps}
    for app in apps.values():
        await batch(app, FULL, 2 * COUNT, 0)
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        for name, app in apps.items():
            times[name].append(await batch(app, FULL, COUNT, number * COUNT))
    return {name: best_tenth(measured) * 1e6 for name, measured in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    found = asyncio.run(measure(parser.parse_args().rounds))
    falcon = found["falcon"]
    print(f"| full | {' | '.join(found)} |\n| --- |{' ---: |' * len(found)}")
    print(f"| µs | {' | '.join(f'{value:.2f}' for value in found.values())} |")
    print(f"| Falcon's time over it | {' | '.join(f'{falcon / value:.2f}' for value in found.values())} |")


if __name__ == "__main__":
    main()
