"""mypy's cache of what every program of a test imports: `core` and its libraries, checked once and handed to each.

mypy holds each module in it against its source as in any cache, so an old one costs time and changes nothing.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.command_line import run

KEPT = Path(__file__).parents[2] / ".mypy_cache" / "libraries"
PROGRAM = """\
from core import Bindings, CoreError, D1Database, KVNamespace, Queue, R2Bucket, Request, Response, Secret, create_app
from core.http.forms import FormLimits
from core.http.sse import Event
from core.middleware.jwt import jwt_auth
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.sessions import sessions
from core.pagination import page_of
from core.testing import FakeKVNamespace

app = create_app()
"""
CACHE = Path(".mypy_cache", "core-openapi")
STRICT = "[mypy]\nstrict = True\nenable_error_code = unused-awaitable\nplugins = core.mypy_plugin\n"
"""The options of a project of `core new`."""


def checked_libraries(place: Path) -> None:
    """Write mypy's cache of them into the folder `cache` of a place: with the plugin, and strictly."""
    (place / "mypy.ini").write_text(STRICT)
    (place / "wrangler.toml").write_text('name = "libraries"\nmain = "main.py"\n')
    (place / "main.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--cache-dir", "cache", "main.py"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def with_libraries(folder: Path) -> Path:
    """Give a folder the cache, so that its program is described sooner, with mypy's options as they are by default;
    return the folder.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(file.stat().st_mtime for file in (KEPT.parents[1] / "src" / "core").rglob("*.py"))
        made = KEPT / "openapi.json"
        if not made.is_file() or made.stat().st_mtime < newest:
            (KEPT / "wrangler.toml").write_text('name = "libraries"\nmain = "main.py"\n')
            (KEPT / "main.py").write_text(PROGRAM)
            done = run("openapi", "-o", made.name, folder=KEPT)
            assert done.returncode == 0, done.stderr
        shutil.copytree(KEPT / CACHE, folder / CACHE, dirs_exist_ok=True)
    return folder
