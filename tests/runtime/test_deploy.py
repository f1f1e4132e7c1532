"""A project of `core new`, as it is made, against a dry run of the platform's own tool."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.npm import npm_folder

pytestmark = pytest.mark.runtime


def test_the_modules_of_a_dry_run_are_those_that_are_imported(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "core.cli", "new", "shop", "--with", "kv,queue,r2"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    project = tmp_path / "shop"
    # What the platform's tool for Python puts there: the packages that the project needs.
    (project / "python_modules" / "attrs").mkdir(parents=True)
    (project / "python_modules" / "attrs" / "__init__.py").write_text("")
    tool = npm_folder(Path(__file__).parent / "wrangler") / "node_modules" / ".bin" / "wrangler"
    done = subprocess.run(
        [str(tool), "deploy", "--dry-run", "--outdir", str(tmp_path / "out")],
        cwd=project,
        env={**os.environ, "WRANGLER_SEND_METRICS": "false", "CI": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for binding in ("env.COUNTERS", "env.EVENTS", "env.DB", "env.FILES"):
        assert binding in done.stdout
    up = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.py")}
    assert {"main.py", "shop/env.py", "shop/routes/notes.py", "python_modules/attrs/__init__.py"} <= up
    assert "Default = entrypoint(app)" in (tmp_path / "out" / "main.py").read_text()
    for path in up:
        for node in ast.walk(ast.parse((tmp_path / "out" / path).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shop"):
                place = (node.module or "").replace(".", "/")
                assert {f"{place}.py", f"{place}/__init__.py"} & up, f"{path} imports {node.module}"
