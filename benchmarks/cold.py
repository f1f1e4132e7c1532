"""A fresh process: import, an application of ten routes, its first answer; milliseconds, beside every peer.

core's application has an `Env` and the six middleware of the specification. What it adds to importing attrs,
typing_extensions and asyncio, without which it cannot be, is what counts. Bytecode is cached, as it is where code is
deployed. With `--pyodide FOLDER` (which holds `node_modules/pyodide`) the same is measured under Pyodide in Node.

`--instructions` counts instead of timing, under valgrind: the instructions of the whole process, from the start of the
interpreter to its end, with the base alone and with core's application. They hardly differ from one run to the next.

    python -m benchmarks.cold [--times 20] [--pyodide FOLDER]
    python -m benchmarks.cold --instructions
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from benchmarks.in_process import best_tenth

BASE = "import attrs, typing_extensions, asyncio"

CORE = """
import attrs
from core import App, Bindings, D1Database, KVNamespace, Request, Response, Secret, create_app, http
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    JWT_SECRET: Secret

app = create_app(Env)
app.use(request_id())
app.use(logger(write=lambda line: None))
app.use(secure_hdrs())
app.use(cors(origins=["https://example.test"]))
app.use("/limited", rate_limit(kv_binding="SESSIONS", limit=1, window=60))

async def show(req: Request[Env], res: Response) -> None:
    res.json(req.params)

for number in range(10):
    app.get(f"/things{number}/:id", timeout(duration=1000), show)
"""

CORE_ANSWER = """
import asyncio
class Context:
    def wait_until(self, awaitable): ...
    def pass_through_on_exception(self): ...
response = asyncio.run(app.fetch(http.Request("https://example.test/things1/7"), None, Context()))
assert response.status == 200
"""

# Each with ten routes and nothing else, which is less than core's application does.
PEERS = {
    "hayate": """
from hayate import Context, Hayate, Response
app = Hayate()
async def show(c: Context) -> Response:
    return c.json({"id": c.req.param("id")})
for number in range(10):
    app.get(f"/things{number}/:id")(show)
""",
    "starlette": """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def show(request):
    return JSONResponse(request.path_params)
app = Starlette(routes=[Route(f"/things{number}/{{id}}", show) for number in range(10)])
""",
    "falcon": """
import falcon.asgi
class Show:
    async def on_get(self, req, resp, id):
        resp.media = {"id": id}
app = falcon.asgi.App()
for number in range(10):
    app.add_route(f"/things{number}/{{id}}", Show())
""",
    "blacksheep": """
from blacksheep import Application, json
app = Application()
async def show(id: str):
    return json({"id": id})
for number in range(10):
    app.router.add_get(f"/things{number}/:id", show)
""",
    "litestar": """
from litestar import Litestar, get
def make(number):
    @get(f"/things{number}/{{id:str}}")
    async def show(id: str) -> dict[str, str]:
        return {"id": id}
    return show
app = Litestar([make(number) for number in range(10)])
""",
    "fastapi": """
from fastapi import FastAPI
app = FastAPI()
async def show(id: str):
    return {"id": id}
for number in range(10):
    app.get(f"/things{number}/{{id}}")(show)
""",
}


def milliseconds(*steps: str) -> list[float]:
    """The processor time of each step in a fresh process: what else the machine does counts less than on the clock."""
    code = ["from time import process_time", "moments = [process_time()]"]
    for step in steps:
        code += [step, "moments.append(process_time())"]
    code.append("print(*[(b - a) * 1000 for a, b in zip(moments, moments[1:])])")
    return [float(part) for part in _run("\n".join(code)).stdout.split()]


def _run(code: str, *under: str) -> subprocess.CompletedProcess[str]:
    # Bytecode is written and read, whatever this shell says; hashes are the same in every process.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONHASHSEED"] = "0"
    command = [*under, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True)


def instructions(*steps: str) -> int:
    """The processor instructions of a fresh process that runs the steps, as valgrind counts them."""
    code = "\n".join(steps)
    _run(code)  # which fills the caches
    told = _run(code, "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null").stderr
    found = re.search(r"I\s+refs:\s+([\d,]+)", told)
    assert found is not None, told
    return int(found[1].replace(",", ""))


def measure(times: int) -> dict[str, float]:
    """Milliseconds by what is imported; rounds are interleaved."""
    found: dict[str, list[float]] = {}
    peers = {name: code for name, code in PEERS.items() if find_spec(name) is not None}
    for _ in range(times + 1):
        found.setdefault("base", []).append(milliseconds(BASE)[0])
        base, added, answer = milliseconds(BASE, CORE, CORE_ANSWER)
        found.setdefault("core", []).append(base + added)
        found.setdefault("core adds", []).append(added)
        found.setdefault("core, first answer", []).append(answer)
        for name, code in peers.items():
            found.setdefault(name, []).append(milliseconds(code)[0])
    # The first round fills the caches.
    return {name: best_tenth(values[1:]) for name, values in found.items()}


PYODIDE = """
import { loadPyodide } from "pyodide";
import { readFileSync } from "node:fs";
const [src, files, base, core, answer] = JSON.parse(readFileSync(0, "utf8"));
const py = await loadPyodide({ packages: [] });
for (const [path, text] of files) {
  py.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  py.FS.writeFile(path, text);
}
// Compiled beforehand, as it is where code is deployed.
py.runPython("import sys, compileall; sys.path.insert(0, '/packages'); compileall.compile_dir('/packages', quiet=2)");
const moments = [performance.now()];
for (const step of [base, core]) { py.runPython(step); moments.push(performance.now()); }
await py.runPythonAsync(answer);
moments.push(performance.now());
console.log(JSON.stringify([moments[1] - moments[0], moments[2] - moments[1], moments[3] - moments[2]]));
"""


def pyodide(folder: Path, times: int) -> list[float]:
    """Milliseconds of the base, of what core adds, and of the first answer, in Pyodide;
    files are compiled beforehand.
    """
    found: list[list[float]] = []
    files: list[tuple[str, str]] = []
    for name in ("attr", "attrs", "typing_extensions", "core"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        folder_of = origin.parent if origin.name == "__init__.py" else None
        for path in sorted(folder_of.rglob("*.py")) if folder_of is not None else [origin]:
            inside = path.relative_to(origin.parent.parent if folder_of is not None else origin.parent)
            files.append((f"/packages/{inside}", path.read_text(encoding="utf-8")))
    answer = CORE_ANSWER.replace("asyncio.run(", "await (")
    for _ in range(times):
        given = json.dumps([{}, files, BASE, CORE, answer])
        done = subprocess.run(
            ["node", "--input-type=module", "-e", PYODIDE],
            input=given,
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-3000:])
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return [best_tenth([row[place] for row in found]) for place in range(3)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--pyodide", type=Path)
    parser.add_argument("--json", default="")
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    if options.instructions:
        alone, whole = instructions(BASE), instructions(BASE, CORE)
        print(
            f"base {alone / 1e6:.1f} million, core {whole / 1e6:.1f}: a cold start takes {whole / alone - 1:.1%} more."
        )
        return
    found = measure(options.times)
    print("| fresh process | ms |\n| --- | ---: |")
    print(f"| attrs, typing_extensions, asyncio | {found['base']:.1f} |")
    print(f"| core: Env, six middleware, ten routes, on top of that | {found['core adds']:.1f} |")
    print(f"| core's first answer | {found['core, first answer']:.1f} |")
    print(f"| core in all | {found['core']:.1f} |")
    for name in PEERS:
        if name in found:
            print(f"| {name}, ten routes | {found[name]:.1f} |")
    print(f"\ncore adds {found['core adds'] / found['base']:.0%} to what it stands on.")
    if options.pyodide is not None:
        base, added, answer = pyodide(options.pyodide, max(3, options.times // 4))
        found |= {"pyodide base": base, "pyodide core adds": added, "pyodide first answer": answer}
        print(f"Under Pyodide: base {base:.0f} ms, core adds {added:.0f} ms, first answer {answer:.0f} ms.")
    if options.json:
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
