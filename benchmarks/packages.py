"""The most used packages of pure Python in a bundle: each is installed, bundled, and imported inside workerd.

python -m benchmarks.packages                  all of packages.json, half an hour on two processors
python -m benchmarks.packages jinja2 requests  some of it
python -m benchmarks.packages --beside         beside `jwt_auth`, `static` and a Durable Object, with a memory snapshot;
                                               printed, and written nowhere

The list in packages.json was chosen by hand, from those of which most are downloaded and which an API could use. A run
puts the version and the outcome of each beside its name, and docs/reference/packages.md is made of that.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from core.errors import DeveloperError
from core.program.entry import Entry
from core.runtime.collect import collect
from core.runtime.make import Build, make_bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import PINNED, toolchain

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "reference" / "packages.md"

_HEAD = """\
# Packages in a bundle

The hundred most used packages of pure Python that an API could use, and whether [`core build`](../how-to/workerd.md#build)
takes them along. `python -m benchmarks.packages` wrote this page: it installed each one with what it requires, built an
application that imports it, and imported that inside workerd (pyodide {pyodide}). Bundled means that the import works. It
says nothing of what needs sockets, threads, processes or files afterwards: a worker has none, and `fetch` in their place.
What draws randomness while it is imported is refused: every isolate that starts from the memory snapshot would draw the same.

{bundled} of {count} are bundled.

| package | version | | why |
| --- | --- | --- | --- |
"""


def read() -> list[dict[str, Any]]:
    """The packages, with what the last run found of each."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))
    return found


def page(packages: list[dict[str, Any]]) -> str:
    """The text of the page."""
    bundled = sum(package["why"] is None for package in packages)
    head = _HEAD.format(pyodide=PINNED["pyodide"], bundled=bundled, count=len(packages))
    rows = [
        f"| {package['package']} | {package['version']} | {'bundled' if package['why'] is None else 'not'} "
        f"| {(package['note'] or '') if package['why'] is None else package['why'].replace('|', chr(92) + '|')} |"
        for package in packages
    ]
    return head + "\n".join(rows) + "\n"


_ALONE = """
from core import create_app

app = create_app()
"""

_BESIDE = """
from pathlib import Path

import attrs

from core import Bindings, DurableObject, DurableObjectNamespace, Secret, create_app
from core.middleware.jwt import jwt_auth
from core.middleware.static import static


class Counter(DurableObject[Bindings]):
    async def count(self) -> int:
        return 1


@attrs.frozen
class Env(Bindings):
    COUNTER: DurableObjectNamespace[Counter]
    JWT_SECRET: Secret


app = create_app(Env)
app.use("/files", static(directory=Path(__file__).parent))
app.use(jwt_auth(secret=lambda req: req.env.JWT_SECRET))
"""


def build(name: str, module: str, beside: str = "") -> dict[str, Any]:
    """Bundle an application that imports an installed package; its version, and why it was refused or None.

    With `beside` the application has `jwt_auth`, `static` and a Durable Object, too, and the bundle a memory snapshot.
    """
    note = None
    with tempfile.TemporaryDirectory(prefix="core-package-") as folder:
        project = Path(folder)
        (project / "main.py").write_text(f"import {module}\n{_BESIDE if beside else _ALONE}")
        plan = Plan(durable_objects={"COUNTER": "Counter"}, secrets=["JWT_SECRET"]) if beside else Plan()
        extra = [name, *(["pyjwt"] if beside else [])]
        started = Build(Entry(str(project), "main", "app", ""), project, plan, toolchain(), extra)
        making = make_bundle(started, project / "dist", snapshot=bool(beside))
        why = None
        try:
            asyncio.run(making)
            compiled = collect(project, project=project, extra=[name]).compiled.values()
            if compiled:
                note = f"without the compiled modules of {', '.join(found.package for found in compiled)}"
        except DeveloperError as error:
            why = short(str(error))
    return {"version": importlib.metadata.version(name), "why": why, "note": note}


def short(message: str) -> str:
    """The reason of a refusal in one line: its first sentence, or the error of an import that raised."""
    lines = message.splitlines()
    if lines[0].startswith("the application raises"):
        last = next((line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Exit)\b", line)), lines[-2])
        place = next((line.strip() for line in reversed(lines) if ", line " in line), "")
        return f"raises while it is imported: `{last}` ({place.partition(': ')[0]})"
    first = lines[0].partition(". A worker loads")[0].partition(". Every isolate")[0].partition(". It is not among")[0]
    first = re.sub(r"^\S*main\.py, line 1 imports", "needs", first)
    return re.sub(r" \(\S+\.so\)", "", first).rstrip(".")


def try_one(package: dict[str, Any], beside: bool = False) -> dict[str, Any]:
    """Install a package in a folder of its own, and have another process build with it."""
    name, module = package["package"], package["module"]
    with tempfile.TemporaryDirectory(prefix="core-packages-") as folder:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
        subprocess.run([*install, "--target", folder, name], check=True, capture_output=True, timeout=600)
        build = [sys.executable, "-m", "benchmarks.packages", "--build", name, module]
        build += ["beside"] if beside else []
        found = package
        for _ in range(4):
            done = subprocess.run(
                build,
                env={**os.environ, "PYTHONPATH": folder},
                cwd=ROOT,
                check=True,
                stdout=subprocess.PIPE,
                timeout=600,
            )
            found = {**package, **json.loads(done.stdout)}
            # A worker needs requirements that this platform does not. The message names the command.
            needed = re.search(r"Install it first: pip install ([\w.-]+)$", found["why"] or "")
            if needed is None:
                break
            subprocess.run([*install, "--target", folder, needed[1]], check=True, capture_output=True, timeout=600)
    print(f"{name} {found['version']}: {found['why'] or 'bundled'}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="the ones to try (default: all)")
    parser.add_argument("--beside", action="store_true", help="beside jwt_auth, static and a Durable Object")
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.build:
        print(json.dumps(build(*args.packages)))
        return
    toolchain()
    packages = read()
    chosen = [package for package in packages if not args.packages or package["package"] in args.packages]
    with ThreadPoolExecutor(2) as pool:
        if args.beside:
            found_all = list(pool.map(lambda package: try_one(package, beside=True), chosen))
            print(f"{sum(found['why'] is None for found in found_all)} of {len(found_all)} are built, and start")
            return
        for found in pool.map(try_one, chosen):
            packages = [found if package["package"] == found["package"] else package for package in packages]
            DATA.write_text(json.dumps(packages, indent=1) + "\n", "utf-8")
            PAGE.write_text(page(packages), "utf-8")


if __name__ == "__main__":
    main()
