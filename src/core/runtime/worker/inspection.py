"""Run by a build's worker, as text: import the application under watch, and report its actions.

Watched are entropy, files, sockets, threads and JavaScript objects: those that a snapshot would repeat in every
isolate, or that the platform refuses before the first request. Each finding has the chain of imports that led to it.
"""

from __future__ import annotations

import base64
import json
import marshal
import os
import random
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import FrameType
from typing import Any
from zipimport import zipimporter

SITE = "/core/"
_STDLIB = ("/lib/python",)
watching: bool = False
findings: list[dict[str, Any]] = []


def chain() -> list[list[object]]:
    """The imports that led here, outermost first, and the line that did it."""
    steps: list[list[object]] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(SITE):
            steps.append([code.co_filename[len(SITE) :], frame.f_lineno, code.co_name])
        frame = frame.f_back
    return steps[::-1]


def importing() -> bool:
    """Return True if a module is being imported by the application right now, rather than pyodide at work."""
    return any(name == "<module>" for _, _, name in chain())


importers: dict[str, list[list[object]]] = {}


class Recorder:
    """Asked first for every module: keeps which imports led to it, and finds none itself."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if watching:
            importers.setdefault(name, chain())


def found(kind: str, thing: str) -> None:
    """Keep a finding, with the imports that led to it."""
    global watching
    watching = False
    try:
        entry = {"kind": kind, "thing": thing, "chain": chain()}
        if entry not in findings:
            findings.append(entry)
    finally:
        watching = True


def guard(owner: object, name: str, thing: str, when: Callable[..., bool] = lambda *args, **kwargs: True) -> None:
    """Have a function tell when it is called while the application is imported."""
    original = getattr(owner, name)

    def guarded(*args: object, **kwargs: object) -> object:
        if watching and when(*args, **kwargs) and importing():
            found("entropy", thing)
        return original(*args, **kwargs)

    setattr(owner, name, guarded)


def audit(event: str, args: tuple[Any, ...]) -> None:
    """Python's own report of the files and sockets that are opened."""
    if not watching:
        return
    if event == "open":
        opened, mode, flags = args[0], args[1], args[2]
        if isinstance(opened, int) or not importing():
            return
        path = os.fsdecode(opened)
        writes = bool(mode and set(mode) & set("wax+")) or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        inside = os.path.abspath(path).startswith((SITE, *_STDLIB)) or path.endswith(".zip")
        if writes or not inside:
            found("files", f"open({path!r})")
    elif event.startswith("socket.") or event in ("os.system", "subprocess.Popen", "os.posix_spawn"):
        if importing():
            found("sockets" if event.startswith("socket.") else "processes", event)
    elif event == "_thread.start_new_thread" and importing():
        found("threads", "a thread was started")


def js_objects() -> list[dict[str, object]]:
    """JavaScript objects that modules of the bundle hold, other than those that `import js` gives by name."""
    import js
    from pyodide.ffi import JsProxy

    held: list[dict[str, object]] = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not file.startswith(SITE):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, JsProxy) and not _is_global(js, attribute, value):
                steps = [*importers.get(name, []), [file[len(SITE) :], 0, "<module>"]]
                held.append({"kind": "js", "thing": f"{name}.{attribute}", "chain": steps})
    return held


def _is_global(js: object, attribute: str, value: object) -> bool:
    """Return True for the global scope and for what has a name there: a snapshot finds those again by their names."""
    names = {attribute, getattr(value, "name", None)}
    return bool(value == js) or any(
        isinstance(name, str) and getattr(js, name, None) == value for name in names if name
    )


def described(error: BaseException) -> dict[str, object]:
    """A traceback of the frames that belong to the bundle, and the error's own words."""
    frames = [
        [frame.filename[len(SITE) :], frame.lineno, frame.name, frame.line or ""]
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(SITE)
    ]
    words = traceback.format_exception_only(error)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return {"text": "".join(words).strip(), "frames": frames, "missing": missing}


def _without_seed(self: random.Random, a: object = None, *rest: object, **named: object) -> bool:
    return a is None  # it draws a seed itself


def bytecode() -> dict[str, str | None]:
    """The bytecode of each loaded module of the bundle, in base64, by the path at which an import finds it; None for
    bytecode that the bundle has.

    It is this interpreter's own, so the worker that gets it compiles nothing. A bundle never changes, so an import need
    not compare it with its source (PEP 552, unchecked).
    """
    found: dict[str, str | None] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and file.startswith(SITE) and file.endswith(".py"):
            cached = cache_from_source(file)
            found[cached[len(SITE) :]] = None if os.path.exists(cached) else _compiled(module)
    return found


def library() -> dict[str, str]:
    """The bytecode of the loaded modules of the standard library, in base64, by their paths in its archive."""
    found: dict[str, str] = {}
    for module in list(sys.modules.values()):
        archive, inside, path = (getattr(module, "__file__", None) or "").rpartition(".zip/")
        # Others of the archive are frozen in the interpreter as well, and loaded from there.
        is_archived = isinstance(getattr(module, "__loader__", None), zipimporter)
        if inside and archive.startswith(_STDLIB) and is_archived:
            found[f"{path}c"] = _compiled(module)
    return found


def _compiled(module: Any) -> str:
    """The bytecode of a module in base64, which an import does not compare with its source."""
    spec = module.__spec__
    unchecked = (1).to_bytes(4, "little") + bytes(8)
    return base64.b64encode(MAGIC_NUMBER + unchecked + marshal.dumps(spec.loader.get_code(spec.name))).decode()


def inspect(host: str, main: str, env: object) -> str:
    """Everything a build wants to know, as JSON."""
    global watching
    for owner, name in ((os, "urandom"), (os, "getrandom"), (random, "_urandom")):
        if hasattr(owner, name):
            guard(owner, name, f"os.{name.lstrip('_')}")
    guard(random.Random, "seed", "random.seed", when=_without_seed)
    for name in ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "getrandbits"):
        guard(random, name, f"random.{name}")
    sys.addaudithook(audit)
    sys.meta_path.insert(0, Recorder)
    report: dict[str, object] = {"error": None, "problems": None, "classes": {}, "secrets": None, "bytecode": {}}
    watching = True
    try:
        loaded = import_module(host)
        loaded.start(main)
    except BaseException as error:
        watching = False
        report["error"] = described(error)
    else:
        watching = False
        report.update(loaded.report(env))
        findings.extend(js_objects())
        report["bytecode"] = bytecode()
    report["findings"] = findings
    return json.dumps(report)
