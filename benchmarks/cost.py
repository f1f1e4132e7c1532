"""The cost of one request in instructions of the interpreter: counted, not timed, so that CI can compare it.

Counted are the bytecode instructions that `sys.settrace` reports, and the calls of Python and of C that
`sys.setprofile` reports; they are the same on every machine with the same minor version of Python. Lines are not
counted: a change could lower their number by writing two lines as one. `benchmarks/baseline.json` holds the counts by
version. A change that makes a request longer shows there, and is either taken back or written down:
`python -m benchmarks.cost --write`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers import core_app
from benchmarks.workloads import WORKLOADS, Workload, scope_of
from core.hosts.asgi import asgi

BASELINE = Path(__file__).with_name("baseline.json")
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


async def count(workload: Workload) -> dict[str, int]:
    """The instructions, and the calls of Python and of C, of one request after others like it have filled
    the caches.
    """
    app = asgi(core_app.application([], workload.name == "full"))
    message = {"type": "http.request", "body": workload.body, "more_body": False}

    async def receive() -> Any:
        return message

    async def send(message: Any) -> None:
        pass

    async def ask(number: int) -> None:
        await app(scope_of(workload, workload.paths[number % len(workload.paths)]), receive, send)

    # Past what is made some at a time and kept by number: ids, values of headers, hooks of types.
    for number in range(101):
        await ask(number)
    scope = scope_of(workload, workload.paths[100 % len(workload.paths)])
    counted = {"instructions": 0, "calls": 0, "C calls": 0}

    def trace(frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        elif event == "opcode":
            counted["instructions"] += 1
        return trace

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            counted["calls"] += 1
        elif event == "c_call":
            counted["C calls"] += 1

    coroutine: Any = app(scope, receive, send)
    sys.setprofile(profile)
    try:
        await coroutine
    finally:
        sys.setprofile(None)
    # Python 3.12 reports instructions where a frame asked for them before `settrace`, 3.13 from the second call of a
    # function on: what the first request counts is discarded.
    sys._getframe().f_trace_opcodes = True
    for _ in range(2):
        counted["instructions"] = 0
        coroutine = app(dict(scope), receive, send)
        sys.settrace(trace)
        try:
            await coroutine
        finally:
            sys.settrace(None)
    counted["C calls"] -= 1  # the one that ends the counting
    return counted


def measure() -> dict[str, dict[str, int]]:
    """The counts of the seven workloads."""
    logging.disable(logging.CRITICAL)
    try:
        return {workload.name: asyncio.run(count(workload)) for workload in WORKLOADS}
    finally:
        logging.disable(logging.NOTSET)


def main() -> None:
    """Print, and with `--write` keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = measure()
    print(f"| one request, Python {VERSION} | instructions | calls | C calls |\n| --- | ---: | ---: | ---: |")
    for name, counted in found.items():
        print(f"| {name} | {counted['instructions']} | {counted['calls']} | {counted['C calls']} |")
    if options.write:
        kept = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
        kept[VERSION] = found
        BASELINE.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
