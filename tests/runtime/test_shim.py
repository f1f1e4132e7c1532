"""What pyodide sees while it loads: nothing that workerd would not wait for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import core.runtime

SHIM = Path(core.runtime.__file__).parent / "worker" / "shim.mjs"
PROGRAM = """
const real = WebAssembly.compile;
const { restore } = await import(process.argv[1]);
let state = 'pending';
const compiled = WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
compiled.then((module) => WebAssembly.instantiate(module)).then(() => { state = 'ready'; });
for (let turn = 0; turn < 10; turn += 1) await null;
const seen = state;
restore();
console.log(seen, WebAssembly.compile === real);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_pyodides_own_module_is_compiled_before_anything_waits_for_it() -> None:
    done = subprocess.run(
        ["node", "--input-type=module", "-e", PROGRAM, SHIM.as_uri()], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("ready true\n", "")
