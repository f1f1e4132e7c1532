"""Packages with and without a need of their compiled modules: the look of a build's worker, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from textwrap import dedent

import pytest

from core.runtime.collect import _compiled

LOOK = (resources.files("core.runtime") / "worker" / "compiled.py").read_text("utf-8")


def needed(folder: Path, **files: str) -> list[str | None] | None:
    """The compiled module that the package `p` needs, and by which module; None where it works without."""
    paths = {name.replace("__in__", "/") + ".py": text for name, text in files.items() if text != "compiled"}
    for path, text in paths.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(text))
    native = [
        name.replace("__in__", "/") + ".cpython-314-x86_64-linux-gnu.so"
        for name, text in files.items()
        if text == "compiled"
    ]
    found = _compiled("p 1.0", (), [*paths, *native])
    if found is None:
        return None
    asked = json.dumps({"p": {"compiled": [*found.files], "modules": found.modules}})
    code = f"{LOOK}\nSITE = {f'{folder}/'!r}\nsys.path.insert(0, SITE)\nprint(examine({asked!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, list[str | None]] = json.loads(done.stdout)
    return told.get("p")


GUARDED = """
    try:
        from p._fast import go
    except ImportError:
        def go(): ...
"""


def test_a_compiled_module_that_is_imported_in_try_has_a_fallback(tmp_path: Path) -> None:
    assert needed(tmp_path, p__in____init__=GUARDED, p__in___fast="compiled") is None


def test_one_that_is_imported_without_try_is_needed(tmp_path: Path) -> None:
    told = needed(tmp_path, p__in____init__="import p._fast", p__in___fast="compiled")
    assert told == ["p._fast", "p"]


def test_a_source_of_the_same_name_is_a_fallback(tmp_path: Path) -> None:
    files = {"p__in____init__": "import p.fast", "p__in__fast": "", "p__in__fast__mypyc": "compiled"}
    assert needed(tmp_path, **files) is None
    assert _compiled("p", (), ["p/__init__.py", "p/fast.py", "p/fast.cpython-314-x86_64-linux-gnu.so"]) is None


def test_a_module_around_the_compiled_one_may_be_missing_where_others_do_without_it(tmp_path: Path) -> None:
    init = """
        try:
            from . import wrapper
        except ImportError:
            wrapper = None
    """
    files = {"p__in__wrapper": "import p._fast", "p__in___fast": "compiled"}
    assert needed(tmp_path, p__in____init__=init, **files) is None
    assert needed(tmp_path, p__in____init__="", **files) == ["p._fast", "p.wrapper"]


def test_an_error_that_is_raised_instead_is_followed(tmp_path: Path) -> None:
    init = """
        try:
            from p._fast import go
        except ImportError as error:
            raise RuntimeError("build it first") from error
    """
    assert needed(tmp_path, p__in____init__=init, p__in___fast="compiled") == ["p._fast", "p"]


def test_a_function_that_imports_it_needs_it_unless_its_module_asked_before(tmp_path: Path) -> None:
    files = {"p__in____init__": GUARDED, "p__in___fast": "compiled"}
    call = "def call():\n    from . import _fast\n    return _fast.go()\n"
    assert needed(tmp_path, **files, p__in__later=call) == ["p._fast", "p.later"]
    tried = "def call():\n    try:\n        from . import _fast\n    except ImportError:\n        return None\n"
    assert needed(tmp_path, **files, p__in__later=tried) is None


def test_a_folder_of_compiled_modules_alone_is_followed_by_its_name(tmp_path: Path) -> None:
    init = """
        import importlib
        try:
            importlib.import_module("p._native._fast")
        except ImportError:
            pass
    """
    assert needed(tmp_path, p__in____init__=init, p__in___native__in___fast="compiled") is None


def test_one_that_nothing_asks_for_is_the_package_itself(tmp_path: Path) -> None:
    assert needed(tmp_path, p="compiled") == ["p", None]


@pytest.mark.parametrize("file", ["a.so", "a.cpython-314-x86_64-linux-gnu.so", "a.abi3.so", "a.pyd", "a.so.1.2"])
def test_a_compiled_file_is_known_by_its_ending(file: str) -> None:
    found = _compiled("p", (), ["p/__init__.py", f"p/{file}"])
    assert found is not None
    assert found.files == {"p.a": f"p/{file}"}
