"""A package of npm that tests run, installed once by its lock file."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from core.runtime.toolchain import cache_folder

__all__ = ["npm_folder"]


def npm_folder(here: Path) -> Path:
    """The folder with what the lock file in `here` names; the last part of `here` is the package's name."""
    lock = (here / "package-lock.json").read_bytes()
    target = cache_folder() / f"{here.name}-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not (target / "node_modules" / here.name).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            place = Path(folder) / here.name
            place.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(here / name, place / name)
            subprocess.run(
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, check=True, capture_output=True
            )
            place.rename(target)
    return target
