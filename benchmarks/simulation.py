"""What a plain test pays for the places where a simulation would meet its fakes: a ratio of processor time in one run.

The same test runs with `core.testing` as it is, and with every question "does a simulation run?" compiled away. Both
take turns in processes of their own; what counts is the mean of each one's best tenth.

python -m benchmarks.simulation [--times 60]
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import subprocess
import sys
import time
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

import attrs

from benchmarks.in_process import best_tenth
from core import Bindings, D1Database, KVNamespace, Queue, Request, Response, create_app

TESTS = 100
"""How often a process runs the test."""


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[int]


app = create_app(Env)


@app.post("/visits")
async def visit(req: Request[Env], res: Response) -> None:
    visits = int(await req.env.KV.get("visits") or 0) + 1
    await req.env.KV.put("visits", str(visits))
    await req.env.DB.prepare("INSERT INTO visits VALUES (?)").bind(visits).run()
    await req.env.JOBS.send(visits)
    res.json({"visits": visits})


class _NoQuestion(ast.NodeTransformer):
    """`seam.running is None` is True, `is not None` False, and `seam.running` None."""

    asked = 0

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if ast.unparse(node.left) == "seam.running":
            self.asked += 1
            return ast.copy_location(ast.Constant(isinstance(node.ops[0], ast.Is)), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.copy_location(ast.Constant(None), node) if ast.unparse(node) == "seam.running" else node


class _Without(SourceFileLoader):
    """Loads a module of `core.testing` without these questions."""

    asked = 0

    def get_code(self, fullname: str) -> CodeType:
        questions = _NoQuestion()
        tree = questions.visit(ast.parse(self.get_data(self.get_filename(fullname))))
        _Without.asked += questions.asked
        code: CodeType = compile(tree, self.get_filename(fullname), "exec", dont_inherit=True)
        return code


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path, target) if name.startswith("core.testing.") else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Without(name, spec.origin)
        return spec


def measure() -> float:
    """Processor time of the test, in milliseconds. The first runs, which import, are not counted."""
    # Here, so that `main` may have decided how it is loaded.
    from core.testing import Client, FakeClock, env

    async def test() -> None:
        clock = FakeClock()
        made = env(Env, clock=clock)
        await made.DB.exec("CREATE TABLE visits (number INTEGER)")
        client = Client(app, made)
        for number in range(10):
            answer = await client.post("/visits")
            assert await answer.json() == {"visits": number + 1}
            await clock.advance(1)

    for _ in range(10):
        asyncio.run(test())
    began = time.process_time()
    for _ in range(TESTS):
        asyncio.run(test())
    return (time.process_time() - began) / TESTS * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--one", choices=["as it is", "without"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        if options.one == "without":
            sys.meta_path.insert(0, _Finder())
        print(measure())
        assert (_Without.asked > 10) is (options.one == "without"), _Without.asked
        return
    times: dict[str, list[float]] = {"as it is": [], "without": []}
    for turn in range(options.times):
        for one in [*times] if turn % 2 else [*times][::-1]:
            command = [sys.executable, "-m", "benchmarks.simulation", "--one", one]
            times[one].append(float(subprocess.check_output(command)))
    found = {one: best_tenth(each) for one, each in times.items()}
    ratio = found["as it is"] / found["without"]
    print(f"{found['as it is']:.3f} ms a test, {found['without']:.3f} ms without the questions: {ratio:.3f}")


if __name__ == "__main__":
    main()
