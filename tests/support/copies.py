"""Copies of projects of this repository, for tests that change them."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["copy_project"]


def copy_project(project: Path, folder: Path) -> Path:
    """Copy a project into `folder`, which is made, and return the folder.

    What a run, a check or a build writes beside the sources is left out: another test may be writing it.
    """
    return shutil.copytree(
        project, folder, ignore=shutil.ignore_patterns(".core", ".mypy_cache", "__pycache__", "dist")
    )
