"""The cost of the checks: `python benchmarks/plugin.py [--modules 45] [--rounds 7] [--write]`.

A generated project of 45 modules, 13,000 lines, has 675 routes, statements, uses of bindings and links to other routes.
mypy checks it with and without the plugin: with nothing cached, by mypy or in `.core/cache`, from a warm cache, after
an edit of a handler's body, and after one of the module with Env, which takes a start of the program. The two take
turns in processes of their own, so that a busy machine slows both. `core check` and the answer of `core check
--watch` to an edit stand beside them. The best of all rounds counts, in seconds of the processor and of the clock;
`--instructions` counts instructions instead, which no other work can change.

Exit status 1 when a bound is broken by processor time. `--write` keeps the tables in
docs/reference/checks/index.md.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "checks" / "index.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
COLD, WARM, BODY_EDITED, ENV_EDITED = (
    "nothing cached",
    "warm cache",
    "a handler's body edited",
    "the module with `Env` edited",
)
MOST = {COLD: (1.5, 0.0), WARM: (1.1, 0.0), BODY_EDITED: (1.0, 0.3), ENV_EDITED: (1.0, 1.2)}
"""The most that mypy with the plugin may take of the processor: a multiple of mypy alone, and seconds more."""
CHECK_MOST = {COLD: 1.5, BODY_EDITED: 0.5}
WATCH_MOST = 0.3
"""Seconds of `core check`, and of its answer to an edit."""
ROUTES = 15
LEAF, ENV_MODULE = "shop/m7.py", "shop/env.py"

# As in an installed package, the modules of the plugin are compiled when they are measured.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONHASHSEED"] = "0"

WRANGLER = """\
name = "large"
main = "app.py"
compatibility_date = "2026-04-01"

[[kv_namespaces]]
binding = "SESSIONS"
id = "a"

[[d1_databases]]
binding = "DB"
database_name = "large"
database_id = "b"

[vars]
ORIGIN = "https://example.com"
"""

ENV = """\
import attrs

from core import Bindings, D1Database, KVNamespace


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    ORIGIN: str
"""

MODULE_HEAD = """\
import attrs

from core import CoreError, Request, Response, Router
from core.middleware.rate_limit import rate_limit
from shop.env import Env

router: Router[Env] = Router()
"""

ROUTE = """

@attrs.frozen
class Row{i}:
    id: int
    name: str
    email: str | None


@router.get("/things{i}/:id", rate_limit(kv_binding="SESSIONS", limit={limit}, window=60))
async def show{i}(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare(
        "SELECT t.id, t.name, u.email FROM t{table} t LEFT JOIN users u ON u.id = t.user_id WHERE t.id = ? AND {i} > 0"
    )
    row = await statement.bind(req.params["id"]).first(Row{i})
    if row is None:
        raise CoreError(404, "Not found")
    await req.env.SESSIONS.put(f"seen:{{row.id}}", req.env.ORIGIN)
    res.json({{"row": row, "id": req.params["id"], "self": req.url_for(show{i}, id=row.id)}})
"""


def generate(root: Path, modules: int) -> int:
    """Write the project, and return its number of lines."""
    package = root / "shop"
    package.mkdir(parents=True)
    (root / "wrangler.toml").write_text(WRANGLER)
    (root / "migrations").mkdir()
    tables = "".join(
        f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, name TEXT NOT NULL, user_id INTEGER NOT NULL);\n"
        for n in range(50)
    )
    (root / "migrations" / "0001_init.sql").write_text(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT);\n" + tables
    )
    (package / "__init__.py").write_text("")
    (package / "env.py").write_text(ENV)
    for number in range(modules):
        text = MODULE_HEAD + "".join(
            ROUTE.format(i=number * ROUTES + i, table=(number + i) % 50, limit=i + 1) for i in range(ROUTES)
        )
        (package / f"m{number}.py").write_text(text)
    names = [f"m{number}" for number in range(modules)]
    (root / "app.py").write_text(
        "from core import create_app\nfrom shop.env import Env\n"
        + "".join(f"from shop.{name} import router as {name}\n" for name in names)
        + "\napp = create_app(Env)\n"
        + "".join(f'app.use("/{name}", {name})\n' for name in names)
    )
    for name, plugins in (("with.ini", "plugins = core.mypy_plugin\n"), ("without.ini", "")):
        (root / name).write_text(f"[mypy]\nstrict = True\n{plugins}")
    return sum(len(path.read_text().splitlines()) for path in root.rglob("*.py"))


class Cost(NamedTuple):
    """Seconds of the processor, and those that passed."""

    processor: float
    clock: float


def best(costs: list[Cost]) -> Cost:
    """The least of each of several."""
    return Cost(min(cost.processor for cost in costs), min(cost.clock for cost in costs))


def timed(root: Path, *command: str) -> Cost:
    """Run a command that finds nothing, and return its cost."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, env=ENVIRONMENT)
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command[0]} found something in a correct project:\n{done.stdout[:2000]}{done.stderr[:2000]}")
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed)


def check(root: Path, kind: str, cache: Path) -> Cost:
    """Check the project with mypy."""
    return timed(root, "mypy", "--config-file", f"{kind}.ini", "--cache-dir", str(cache), "app.py")


def edit(root: Path, file: str, number: int) -> None:
    """Change a module: a body in the one of many that nothing imports, or a name that all who import the Env's see."""
    path = root / file
    text = path.read_text()
    if file == LEAF:
        path.write_text(re.sub(r'"Not found[^"]*"', f'"Not found {number}"', text, count=1))
    else:
        before = text.partition("\nEDIT_")[0]
        path.write_text(f"{before}\nEDIT_{number} = {number}\n")


def forget(root: Path) -> None:
    """Remove what the plugin and `core check` keep."""
    shutil.rmtree(root / ".core" / "cache", ignore_errors=True)


def instructions(root: Path, kind: str) -> int:
    """Check the project from a cold cache under valgrind, and return how many instructions it took.

    Other than seconds these are the same on a busy machine as on a quiet one.
    """
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    mypy = [sys.executable, "-m", "mypy", "--config-file", f"{kind}.ini", "--cache-dir", str(root / f"counted-{kind}")]
    done = subprocess.run(
        [*valgrind, *mypy, "app.py"],
        cwd=root,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    match = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or match is None:
        sys.exit(f"{kind}: nothing was counted:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(match[1].replace(",", ""))


def watched(root: Path, file: str, edits: int) -> list[Cost]:
    """Edit a file while `core check --watch` runs, and return what each answer took,
    from the write to the last line.
    """
    command = [sys.executable, "-m", "core", "check", "--watch"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        told = iter(process.stdout)
        costs: list[Cost] = []
        try:
            before = start = 0.0
            for number in range(edits + 1):
                if not next(line for line in told if line != "Checking…\n").startswith("The program agrees"):
                    sys.exit("core check --watch found something in a correct project")
                if number:
                    costs.append(Cost(_processor(process.pid) - before, time.perf_counter() - start))
                time.sleep(0.5)  # nobody saves while the last answer is printed; what follows it is done by then
                before, start = _processor(process.pid), time.perf_counter()
                edit(root, file, 1000 + number)
        finally:
            process.kill()
    return costs


def _processor(process: int) -> float:
    """The seconds of the processor that a running process has taken; Linux says so in ticks of 10 ms."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(root: Path, rounds: int) -> tuple[list[str], list[str]]:
    """Measure, and return the lines of the tables, and the bounds that are broken."""
    broken: list[str] = []
    costs: dict[str, dict[str, list[Cost]]] = {name: {"without": [], "with": []} for name in MOST}
    checks: dict[str, list[Cost]] = {COLD: [], BODY_EDITED: []}
    check(root, "with", root / "first")  # compiles what it imports, and brings the files into memory
    for round_ in range(rounds):
        steps: list[tuple[str, Callable[[], object]]] = [
            (COLD, lambda: None),
            *[(WARM, lambda: None)] * 3,
            (BODY_EDITED, partial(edit, root, LEAF, round_)),
            (ENV_EDITED, partial(edit, root, ENV_MODULE, round_)),
        ]
        caches = {kind: root / f"cache-{kind}-{round_}" for kind in ("without", "with")}
        for name, change in steps:
            change()
            for kind in ("with", "without") if round_ % 2 else ("without", "with"):
                if name == COLD:
                    forget(root)
                costs[name][kind].append(check(root, kind, caches[kind]))
        for cache in caches.values():
            shutil.rmtree(cache)
        forget(root)
        checks[COLD].append(timed(root, "core", "check"))
        edit(root, LEAF, 500 + round_)
        checks[BODY_EDITED].append(timed(root, "core", "check"))
    lines = ["| | mypy, processor | with the plugin | ratio | mypy, clock | with the plugin | ratio | goal |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (factor, more) in MOST.items():
        without, with_ = best(costs[name]["without"]), best(costs[name]["with"])
        goal = f"{more} s more" if more else f"{factor} times"
        if with_.processor > without.processor * factor + more:
            broken.append(f"{name}: {with_.processor:.2f} s beside {without.processor:.2f} s, at most {goal}")
        lines.append(
            f"| {name} | {without.processor:.2f} s | {with_.processor:.2f} s | {with_.processor / without.processor:.2f} "
            f"| {without.clock:.2f} s | {with_.clock:.2f} s | {with_.clock / without.clock:.2f} | {goal} |"
        )
    lines += ["", "| | processor | clock | goal |", "| --- | ---: | ---: | ---: |"]
    rows = {f"`core check`, {name}": (best(checks[name]), most) for name, most in CHECK_MOST.items()}
    for name, file in ((BODY_EDITED, LEAF), (ENV_EDITED, ENV_MODULE)):
        rows[f"`core check --watch`, {name}"] = best(watched(root, file, rounds)), WATCH_MOST
    for name, (cost, most) in rows.items():
        if cost.processor > most:
            broken.append(f"{name}: {cost.processor:.2f} s, at most {most}")
        lines.append(f"| {name} | {cost.processor:.2f} s | {cost.clock:.2f} s | {most} s |")
    return lines, broken


def write(lines: list[str]) -> None:
    """Put the tables in the place of those of the documentation."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.partition(END)[2]}", "utf-8")


def main() -> int:
    """Measure, print, and compare with the bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=45)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--instructions", action="store_true", help="count with valgrind in place of measuring")
    parser.add_argument("--write", action="store_true", help="write the tables into docs")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="core-plugin-"))
    try:
        lines = generate(root, arguments.modules)
        routes = arguments.modules * ROUTES
        print(f"{arguments.modules} modules, {lines:,} lines, {routes:,} routes, statements, bindings and links")
        load = os.getloadavg()[0]
        if arguments.instructions:
            check(root, "with", root / "first")
            forget(root)
            with ThreadPoolExecutor(2) as both:
                without, with_ = both.map(partial(instructions, root), ("without", "with"))
            ratio = with_ / without
            print(f"cold: {without / 1e9:.2f} G instructions without, {with_ / 1e9:.2f} G with: {ratio:.3f}")
            return 0 if ratio <= MOST[COLD][0] else 1
        told = f"The load was {load:.1f}, on {os.cpu_count()} processors, at the start of {arguments.rounds} rounds."
        tables, broken = measure(root, arguments.rounds)
        print(told, "", *tables, sep="\n")
        if arguments.write:
            write([told, "", *tables])
        for text in broken:
            print(f"BOUND BROKEN: {text}")
        return 1 if broken else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
