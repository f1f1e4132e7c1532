"""`core-worker`: what a program uses that a worker's Python has not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.config.load import load_all
from core.program.findings import Finding
from core.program.proof import check_program, check_worker
from core.program.worker import GONE_MODULES, NEW_MODULES


def found(place: Path, **files: str) -> list[Finding]:
    (place / "wrangler.toml").write_text('name = "x"\nmain = "main.py"\n')
    for name, text in files.items():
        (place / f"{name}.py").write_text(text)
    return check_worker(load_all(place / "wrangler.toml"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import dbm", 1),
        ("import dbm.dumb as d", 1),
        ("def f():\n    from tkinter import ttk", 2),
        ("from hashlib import sha256, scrypt\nscrypt()", 1),
        ("import hashlib as h\nh.pbkdf2_hmac()", 2),
        ("from threading import Thread as T\nclass A:\n    def f(self):\n        T(target=f)", 4),
        ("import threading\nclass A(threading.Thread): ...", 2),
        ("import concurrent.futures\nconcurrent.futures.ThreadPoolExecutor()", 2),
        ("import subprocess as s\nrun = s.run\nrun([])", 3),
        ("import asyncio\nasync def f():\n    await asyncio.open_connection()", 3),
        ("try:\n    pass\nexcept ValueError:\n    import pwd", 4),
        ("import time\nasync def f():\n    time.sleep(1)", 3),
        ("from time import sleep as wait\nclass A:\n    async def f(self):\n        if 1:\n            wait(1)", 5),
        ("import requests\nasync def f():\n    return requests.get('x').json()", 3),
        ("import urllib.request\nasync def f():\n    urllib.request.urlopen('x')", 3),
        ("async def f():\n    with open('x', 'w') as g:\n        g.write('')", 2),
        ("from pathlib import Path\nasync def f():\n    Path('x').write_text('')", 3),
        ("import asyncio\nLOCK = asyncio.Lock()\nasync def f(g):\n    async with LOCK:\n        await g()", 4),
        ("from asyncio import Semaphore as S\nAT = S(3)\nasync def f(g):\n    await AT.acquire()\n    await g()", 4),
        ("import asyncio\nclass A:\n    L = asyncio.Lock()\nasync def f(g):\n    async with A.L, g():\n        ...", 5),
        ("import asyncio\nQ = asyncio.Queue(maxsize=5)\nasync def f():\n    await Q.put(1)", 4),
        ("import asyncio\nQ = asyncio.Queue()\nasync def f():\n    await Q.get()", 4),
        ("import asyncio\nE = asyncio.Event()\nasync def f():\n    await E.wait()", 4),
    ],
)
def test_what_is_missing_is_found(tmp_path: Path, text: str, line: int) -> None:
    assert [(f.code, f.line) for f in found(tmp_path, main=text)] == [("core-worker", line)]


@pytest.mark.parametrize(
    "text",
    [
        "import threading\nthreading.Lock()",
        "try:\n    import resource\nexcept ImportError:\n    resource = None",
        "import sys\nif sys.platform == 'win32':\n    import winreg",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tkinter",
        "import subprocess\nif __name__ == '__main__':\n    subprocess.run([])",
        "import venv  # core: ignore[core-worker]",
        "class Thread: ...\nThread()",
        "import hashlib\nhashlib.sha256()",
        "import time\ndef f():\n    time.sleep(1)",
        "import time\nasync def f():\n    def g():\n        time.sleep(1)\n    return lambda: time.sleep(1)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
        "async def f():\n    return open('page.html').read()",
        "import asyncio\nasync def f(g):\n    lock = asyncio.Lock()\n    async with lock:\n        await g()",
        "import asyncio\nLOCK = asyncio.Lock()\nasync def f():\n    async with LOCK:\n        print(1)",
        "import asyncio\nQ = asyncio.Queue()\nasync def f():\n    await Q.put(1)",
        "import asyncio\nclass A:\n    def __init__(self):\n        self.l = asyncio.Lock()\n    async def f(self):\n        await self.l.acquire()",
        "async def f(p, mode):\n    p.write_text('')\n    open('x', mode)",
        "import sys, time\nasync def f():\n    if sys.platform != 'emscripten':\n        time.sleep(1)",
    ],
)
def test_what_works_or_is_meant_is_not(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, main=text) == []


def test_a_module_of_the_program_s_own_is_its_own(tmp_path: Path) -> None:
    assert found(tmp_path, main="import turtle", turtle="") == []


def test_files_are_found_by_what_main_imports(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, main="from other import f", other="import grp\ndef f(): ...", script="import pwd")
    assert finding.file.endswith("other.py")
    assert finding.text.endswith('if sys.platform != "emscripten":`  [core-worker]')


def test_a_project_may_switch_it_off_and_core_check_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import dbm\nfrom core import create_app\napp = create_app()\n")
    config = tmp_path / "wrangler.toml"
    config.write_text('name = "x"\nmain = "main.py"\n')
    assert [f.code for f in check_program(load_all(config))] == ["core-worker"]
    config.write_text('name = "x"\nmain = "main.py"\n[core.checks]\ncore-worker = "off"\n')
    assert check_worker(load_all(config)) == []


def test_core_build_is_stopped_by_it_with_the_file_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "x"\nmain = "main.py"\ncompatibility_date = "2026-01-01"\n')
    (tmp_path / "main.py").write_text("from core import create_app\nimport dbm\napp = create_app()\n")
    done = subprocess.run(
        [sys.executable, "-m", "core", "build"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "main.py:2: error: a worker's Python has no module dbm. A worker has no files to keep" in done.stderr
    assert "# core: ignore[core-worker]" in done.stderr
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("settings", "text", "told"),
    [
        ('compatibility_date = "2026-09-07"', "import annotationlib", "annotationlib is a module of Python 3.14, and compatibility_date 2026-09-07 has 3.13."),
        ('compatibility_date = "2025-09-28"', "import compression.zstd", "compression is a module of Python 3.14, and compatibility_date 2025-09-28 has 3.12."),
        ('compatibility_date = "2026-09-08"', "import annotationlib", None),
        ("", "import annotationlib", None),
        ('compatibility_date = "2026-04-01"\ncompatibility_flags = ["python_workers_20260610"]', "import annotationlib", None),
        ('compatibility_date = "2026-04-01"', "import cgi", "cgi is no module of Python since 3.13, and compatibility_date 2026-04-01 has 3.13."),
        ('compatibility_date = "2025-09-28"', "import cgi", None),
        ('compatibility_date = "2025-09-28"', "import imp", "imp is no module of Python since 3.12, and compatibility_date 2025-09-28 has 3.12."),
        ('compatibility_date = "2026-09-08"', "from distutils import log", "distutils is no module of Python since 3.12, and compatibility_date 2026-09-08 has 3.14."),
        ('compatibility_date = "2025-09-28"\ncompatibility_flags = ["python_workers_20250116"]', "from cgi import parse", 'cgi is no module of Python since 3.13, and the compatibility flag "python_workers_20250116" has 3.13.'),
        ("", "from concurrent import interpreters\nimport concurrent.futures", None),
        ('compatibility_date = "2026-04-01"', "from string import templatelib", "string.templatelib is a module of Python 3.14,"),
    ],
)  # fmt: skip
def test_the_date_decides_which_modules_python_has(tmp_path: Path, settings: str, text: str, told: str | None) -> None:
    (tmp_path / "wrangler.toml").write_text(f'name = "x"\nmain = "main.py"\n{settings}\n')
    (tmp_path / "main.py").write_text(text)
    messages = [finding.message for finding in check_worker(load_all(tmp_path / "wrangler.toml"))]
    assert len(messages) == (told is not None)
    assert told is None or messages[0].startswith(told)


def test_modules_that_are_gone_or_new_are_so_in_the_python_that_runs_this() -> None:
    minor = sys.version_info.minor
    assert {name for name, version in GONE_MODULES.items() if minor < version} <= sys.stdlib_module_names | {"msilib"}
    assert {name for name, version in NEW_MODULES.items() if minor < version}.isdisjoint(sys.stdlib_module_names)
