"""A seed is the same runs in every version of Python that is on this machine; one that is not is named by its skip."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.pythons import VERSIONS, packages, python_of, run
from tests.testing.simulation.schedules import DIGEST, digest

from core.runtime.toolchain import missing_reason, toolchain

PROGRAM = Path(__file__).with_name("schedules.py")
NODE = """
import { loadPyodide } from "%s/pyodide.mjs";
const [folder, program] = process.argv.slice(-2);
const python = await loadPyodide();
for (const [at, root] of [["/packages", folder], ["/program", program]]) {
  python.FS.mkdirTree(at);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, at);
}
// Its own words: Node would show a megabyte of the runtime's source before them.
process.on("uncaughtException", (error) => { console.error(error.message); process.exitCode = 1; });
python.runPython(`
import asyncio, runpy, selectors, sys, time

class Nothing(selectors.SelectSelector):
    def select(self, timeout=None):
        time.sleep(timeout or 0)
        return []

class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        super().__init__(Nothing())

    # The bytes by which another thread wakes it up need sockets, which a browser does not have.
    def _make_self_pipe(self): pass
    def _close_self_pipe(self): pass

asyncio.events._set_running_loop(None)
asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
sys.dont_write_bytecode = True
sys.path.insert(0, "/packages")
runpy.run_path("/program/schedules.py", run_name="__main__")
`);
"""


def test_a_seed_is_the_same_runs_in_this_python() -> None:
    assert digest() == DIGEST


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_seed_is_the_same_runs_in_every_version_of_python(version: str, tmp_path: Path) -> None:
    found = python_of(version)
    expected = f"{version.replace('.', ' ')} {DIGEST}"
    if found is not None:
        path = {"PYTHONPATH": str(packages(tmp_path)), "PYTHONDONTWRITEBYTECODE": "1"}
        assert run(found, "-S", str(PROGRAM), **path) == expected
        return
    # The runtime's own Python is a build of CPython for WebAssembly, which Node runs, too.
    node = shutil.which("node")
    if version != "3.14" or node is None or missing_reason() is not None:
        pytest.skip(f"there is no Python {version} on this machine")
    script = NODE % toolchain().pyodide.as_uri()
    folder = str(packages(tmp_path))
    assert run(node, "--input-type=module", "-e", script, folder, str(PROGRAM.parent)) == expected
