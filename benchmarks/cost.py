"""The cost of a request, counted and not timed, so that it is the same on a busy machine, and CI can compare it.

Counted in two ways. Steps: the bytecode instructions that `sys.settrace` reports, and the calls of Python and of C
that `sys.setprofile` reports, of one request by function; they are the same wherever the minor version of Python is.
Processor: the instructions that valgrind counts, which see the work in C too, and are the same for one build of Python
within 0.2 %. `benchmarks/baseline.json` holds both. A change that makes a request longer shows there, and is either
taken back or written down, with its reason in the commit.

    python -m benchmarks.cost                 count, and compare
    python -m benchmarks.cost --steps         the same without valgrind, in a second
    python -m benchmarks.cost --write         count, and write the baseline of this Python
    python -m benchmarks.cost --peer falcon   the processor's instructions of another framework, of the first seven
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import attrs

from benchmarks.in_process import Application, load
from benchmarks.peers import core_app
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS, WORKLOADS, Workload, numbered, scope_of
from core import App, Next, Request, Response, create_app
from core.hosts.asgi import asgi
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_stores import MemoryStore
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs

Functions = dict[str, list[int]]
"""The instructions, the calls and the calls of C of one request, by function."""
BASELINE = Path(__file__).with_name("baseline.json")
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
BUILD = f"{platform.python_version()} {platform.python_compiler()} {platform.machine()}"
MOST = 1.02
"""The growth that is let pass."""
KINDS = ("instructions", "calls", "calls of C")
WAY_OUT = (
    "Make it shorter again, or keep the new counts with `python -m benchmarks.cost --write` and say why in the commit."
)
REQUESTS = 128
"""The number of requests that the processor's instructions are the mean of; fewer of long ones."""


def rows(count: int) -> bytes:
    """JSON of so many rows, which are read and written."""
    return json.dumps([{**ROWS[number % 10], "price": number * 1.5} for number in range(count)]).encode()


HELD = [
    *WORKLOADS,
    Workload("by hand", "GET", numbered("/full/users/{}"), 200, query="page=2&limit=10"),
    Workload("five", "GET", numbered("/full/users/{}"), 200, query="page=2&limit=10"),
    Workload("kv", "GET", ["/kv"], 200),
    Workload("d1", "GET", ["/d1"], 200),
    Workload("1 row", "POST", ["/rows"], 200, body=rows(1)),
    Workload("100 rows", "POST", ["/rows"], 200, body=rows(100)),
    Workload("10,000 rows", "POST", ["/rows"], 200, body=rows(10_000)),
]


@attrs.frozen
class Row:
    id: int
    name: str
    email: str


def application(name: str) -> App[Any]:
    """The application of a workload: `by hand` has the middleware of `full` as users write it, `five` our own five."""
    if name in {workload.name for workload in WORKLOADS}:
        plain: App[Any] = core_app.application([], name == "full")
        return plain
    app = create_app()
    if name == "by hand":
        app.use(give_id, log_line, secure, share)
    if name == "five":
        limited = rate_limit(store=MemoryStore(), limit=1_000_000, window=3600)
        app.use(request_id(), logger(write=core_app.null), secure_hdrs(), cors(origins=[ORIGIN]), limited)

    @app.get("/full/users/:id")
    async def full(req: Request, res: Response) -> None:
        page, limit = int(req.query["page"]), int(req.query["limit"])
        res.json({"id": req.params["id"], "page": page, "limit": limit, "rows": ROWS})

    @app.post("/rows")
    async def read_and_write(req: Request, res: Response) -> None:
        res.json(await req.json())

    @app.get("/kv")
    async def kv(req: Request[Any], res: Response) -> None:
        res.json({"name": await req.env.KV.get("name")})

    @app.get("/d1")
    async def d1(req: Request[Any], res: Response) -> None:
        row = await req.env.DB.prepare("SELECT id, name, email FROM users WHERE id = ?").bind(7).first(Row)
        res.json(row)

    return app


async def give_id(req: Request, res: Response, next: Next) -> None:
    res.header("X-Request-Id", req.headers.get("X-Request-Id") or uuid4().hex)
    await next()


async def log_line(req: Request, res: Response, next: Next) -> None:
    begin = perf_counter()
    await next()
    core_app.null(f"{req.method} {req.path} {res.status_code} {round((perf_counter() - begin) * 1000)}ms")


async def secure(req: Request, res: Response, next: Next) -> None:
    for name, value in SECURE_HEADERS.items():
        res.header(name, value)
    await next()


async def share(req: Request, res: Response, next: Next) -> None:
    if req.headers.get("Origin") == ORIGIN:
        res.header("Access-Control-Allow-Origin", ORIGIN)
    res.header("Vary", "Origin")
    await next()


async def bindings() -> Any:
    """The fakes that `kv` and `d1` ask. They are of this process alone, so one pair serves all workloads."""
    from core.testing import FakeD1Database, FakeKVNamespace

    db = FakeD1Database()
    await db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)")
    for id in range(10):
        await db.prepare("INSERT INTO users VALUES (?, ?, ?)").bind(id, f"user {id}", f"user{id}@example.test").run()
    return attrs.make_class("Env", ["KV", "DB"])(FakeKVNamespace({"name": "Ada"}), db)


async def ask(app: Application, workload: Workload, count: int, mark: Callable[[], object] = lambda: None) -> None:
    """Ask so many requests, between two marks."""
    message = {"type": "http.request", "body": workload.body, "more_body": False}
    paths = workload.paths
    scopes = [scope_of(workload, paths[number % len(paths)]) for number in range(count)]
    statuses: list[int] = []

    async def receive() -> Any:
        return message

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    # When the collector comes depends on the whole process, and it would be most of a difference.
    gc.collect()
    gc.disable()
    mark()
    for scope in scopes:
        await app(scope, receive, send)
    mark()
    gc.enable()
    assert statuses == [workload.status] * count, (workload.name, set(statuses))


async def warmed(app: Application, workload: Workload) -> Application:
    """The application, past what is made some at a time and kept by number: ids, values of headers, hooks of types."""
    await ask(app, workload, 101 if requests(workload) == REQUESTS else 1)
    return app


# -- steps


async def count_steps(workload: Workload) -> Functions:
    """The instructions, and the calls of Python and of C, of one request by function."""
    app = await warmed(asgi(application(workload.name), await bindings()), workload)
    counted: tuple[Counter[Any], Counter[Any], Counter[Any]] = (Counter(), Counter(), Counter())
    instructions, calls, c_calls = counted

    def trace(frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        elif event == "opcode":
            instructions[frame.f_code] += 1
        return trace

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1
        elif event == "c_call":
            c_calls[frame.f_code] += 1

    def mark(start: Callable[[Any], None], counter: Any) -> Callable[[], None]:
        """Start counting at the first mark, stop at the second."""
        steps = iter((counter, None))
        return lambda: start(next(steps))

    await ask(app, workload, 1, mark(sys.setprofile, profile))
    # Python 3.12 reports instructions where a frame asked for them before `settrace`, 3.13 from the second call of a
    # function on: what the first request counts is discarded.
    sys._getframe().f_trace_opcodes = True
    for _ in range(2):
        instructions.clear()
        await ask(app, workload, 1, mark(sys.settrace, trace))
    named = {
        code: f"{Path(code.co_filename).stem}:{code.co_qualname}"
        for counter in counted
        for code in counter
        if not code.co_qualname.startswith(("ask.", "count_steps."))
    }
    return {
        name: [sum(counter[code] for code, named_so in named.items() if named_so == name) for counter in counted]
        for name in sorted(set(named.values()))
    }


def steps() -> dict[str, Functions]:
    """The steps of every workload, by function."""
    return {workload.name: asyncio.run(count_steps(workload)) for workload in HELD}


# -- processor


async def be_counted(peer: str) -> None:
    """Ask all workloads, one after the other, with a call of `getppid` before and behind each."""
    env = await bindings()
    for workload in HELD if peer == "core" else WORKLOADS:
        if peer == "core":
            app: Application = asgi(application(workload.name), env)
        else:
            app = await load(peer, four=workload.name == "full")
        await warmed(app, workload)
        await ask(app, workload, requests(workload), os.getppid)
    # No farewell: what ends the process is not measured.
    os._exit(0)


def requests(workload: Workload) -> int:
    """The number of requests that are counted."""
    return REQUESTS if len(workload.body) < 1000 else 10 if len(workload.body) < 100_000 else 1


def processor(peer: str = "core") -> dict[str, int]:
    """The processor's instructions of one request, by workload. Raises RuntimeError where valgrind is missing."""
    if shutil.which("valgrind") is None:
        raise RuntimeError("valgrind is missing (Debian: apt install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        # At each entry of a function of the C library the counts so far are written to a file, and begin anew.
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/counted"]
        command += [sys.executable, "-m", "benchmarks.cost", "--inside", "--peer", peer]
        # Where a dict of strings has its collisions is part of what is counted.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return {
            workload.name: total(Path(folder, f"counted.{2 * place}")) // requests(workload)
            for place, workload in enumerate(HELD if peer == "core" else WORKLOADS, 1)
        }


def total(path: Path) -> int:
    """The sum of what valgrind wrote to a file."""
    return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("totals:"))


# -- the baseline


def nearest(kept: dict[str, Any]) -> Any:
    """What is kept for this version of Python; for the nearest one before it where there is nothing of its own."""
    versions = {tuple(map(int, version.split("."))): counts for version, counts in kept.items()}
    return versions[max(version for version in versions if version <= sys.version_info[:2])]


def grown(functions: Functions, kept: Functions) -> str:
    """Which functions grew, the most first."""
    more = {
        name: [now - then for now, then in zip(counts, kept.get(name, [0, 0, 0]), strict=True)]
        for name, counts in functions.items()
    }
    names = sorted((name for name in more if max(more[name]) > 0), key=lambda name: more[name], reverse=True)
    words = [
        f"{name} ({', '.join(f'+{n} {kind}' for n, kind in zip(more[name], KINDS, strict=True) if n > 0)})"
        for name in names
    ]
    return ", ".join(words) or "no function takes more steps, so what they call in C does"


def longer(
    functions: dict[str, Functions], kept: dict[str, Functions], processor: dict[str, int], before: dict[str, int]
) -> list[str]:
    """A sentence for each workload that takes more than the baseline has."""
    told: list[str] = []
    for name, own in functions.items():
        # One more step, for versions of attrs and cattrs that do the same in others.
        counts = [
            (kind, sum(each[at] for each in own.values()), sum(each[at] for each in kept[name].values()), 1)
            for at, kind in enumerate(KINDS)
        ]
        if name in before and name in processor:
            counts.append(("instructions of the processor", processor[name], before[name], 0))
        told += [
            f"{name}: {now:,} {kind}, {then:,} in the baseline: {grown(own, kept[name])}"
            for kind, now, then, more in counts
            if now > round(then * MOST) + more
        ]
    return told


def write(kept: dict[str, Any], found_steps: dict[str, Functions], found_processor: dict[str, int]) -> None:
    """Keep the counts of this Python: one line for each workload."""
    kept["steps"][VERSION] = found_steps
    kept["processor"][BUILD] = found_processor
    lines: list[str] = []
    for part, versions in kept.items():
        tables = [
            f"  {json.dumps(version)}: {{\n"
            + ",\n".join(f"   {json.dumps(name)}: {json.dumps(counts)}" for name, counts in table.items())
            + "\n  }"
            for version, table in sorted(versions.items())
        ]
        lines.append(f' "{part}": {{\n' + ",\n".join(tables) + "\n }")
    BASELINE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Count, print, and compare or write; or, with `--inside`, be what valgrind counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--peer", default="core")
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sys.modules["msgspec"] = None  # type: ignore[assignment]  # as for an import: not everyone has core-edge[fast]
    if options.inside:
        asyncio.run(be_counted(options.peer))
    found_steps = steps() if options.peer == "core" else {}
    found = {} if options.steps else processor(options.peer)
    kept: dict[str, Any] = json.loads(BASELINE.read_text(encoding="utf-8"))
    before = kept["processor"].get(BUILD, {})
    print("| one request | processor | baseline | instructions | calls | calls of C |\n| --- |" + " ---: |" * 5)
    for name in found_steps or found:
        sums = [sum(counts[at] for counts in found_steps.get(name, {}).values()) for at in range(3)]
        print(f"| {name} | {found.get(name, 0):,} | {before.get(name, 0):,} | {sums[0]} | {sums[1]} | {sums[2]} |")
    if options.write:
        write(kept, found_steps, found)
    elif options.peer == "core":
        if not before:
            print(f"The baseline has nothing of this build ({BUILD}): its processor is not compared")
        if told := longer(found_steps, nearest(kept["steps"]), found, before):
            raise SystemExit("\n".join([*told, WAY_OUT]))


if __name__ == "__main__":
    main()
