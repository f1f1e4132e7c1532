"""The parts of other people in the explorer: what is committed is what the lock file says, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "src" / "core" / "dev" / "explorer" / "page"
MADE = ("vendor.js", "vendor.LICENSES.txt")
"""What is built of packages. The fonts, whose names begin with geist, come whole from theirs."""

needs_packages = pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules" / "esbuild").is_dir(),
    reason="Node.js, or the packages, are missing: npm ci --prefix tests/explorer --ignore-scripts",
)


@needs_packages
def test_the_bundle_is_what_the_lock_file_makes(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=HERE, check=True)
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (PAGE / name).read_bytes(), f"{name}: run `node build.mjs`"


def test_every_part_is_there_with_its_licence() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text("utf-8"))["packages"]
    told = (PAGE / "vendor.LICENSES.txt").read_text("utf-8")
    parts = re.findall(r"^(@?[a-z][^ \n]*) (\d[^ ]*) \((MIT|Apache-2\.0)\)$", told, re.MULTILINE)
    assert {"preact", "htm", "@codemirror/view", "@tanstack/virtual-core"} <= {name for name, _, _ in parts}
    for name, version, licence in parts:
        entry = lock[f"node_modules/{name}"]
        assert (entry["version"], entry["license"]) == (version, licence)


def test_our_own_files_are_small_and_ask_nobody_else() -> None:
    for file in PAGE.glob("*.*"):
        if file.name not in MADE and not file.name.startswith("geist"):
            text = file.read_text("utf-8")
            assert len(text.splitlines()) <= 400, file.name
            assert "innerHTML" not in text, file.name
            assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), file.name
