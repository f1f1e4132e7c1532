"""The versions of Python that are on this machine, and a folder of packages that each of them can import."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = ("core", "attr", "attrs", "cattr", "cattrs", "typing_extensions")
"""What a program of core's imports, without anything that is made for one version of Python."""


def packages(folder: Path) -> Path:
    """A folder with nothing but PACKAGES."""
    for name in PACKAGES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        if source.name == "__init__.py":
            shutil.copytree(source.parent, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(source, folder)
    return folder


def python_of(version: str) -> str | None:
    """The command of this version of Python; None where there is none."""
    installed = sorted(
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(f"versions/{version}.*/bin/python")
    )
    version_of = ("-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    commands = [command for command in (shutil.which(f"python{version}"), *map(str, installed)) if command is not None]
    return next((command for command in commands if run(command, *version_of) == version), None)


def run(*command: str, **env: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **env}, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr
