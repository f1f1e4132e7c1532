"""Imports and calls of a program that a worker's Python does not have (`core-worker`).

The tables are held to the truth by `tests/runtime/test_missing.py`, which asks the worker's own Python. What stands
under `try`, `TYPE_CHECKING`, `__name__ == "__main__"` or a question for the platform is the program's own decision,
and is never reported; nor is the code of other packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.config.model import Configuration
from core.program.findings import Finding
from core.program.modules import Module, Modules, Scope

_FILES: Final = "A worker has no files to keep: use a KV namespace, D1 or R2"
_USERS: Final = 'A worker has no users and no processes: leave it out, or ask under `if sys.platform != "emscripten":`'
_SCREEN: Final = "A worker has no terminal and no screen: leave it out"
_WINDOWS: Final = 'It is part of Windows alone: import it under `if sys.platform == "win32":`'

MISSING_MODULES: Final[Mapping[str, str]] = {
    "curses": _SCREEN,
    "dbm": _FILES,
    "ensurepip": "Packages are taken along by core build: name them in the dependencies of pyproject.toml",
    "grp": _USERS,
    "msvcrt": _WINDOWS,
    "pwd": _USERS,
    "readline": _SCREEN,
    "resource": _USERS,
    "syslog": "Use logging: it is the worker's own log",
    "tkinter": _SCREEN,
    "turtle": _SCREEN,
    "venv": "Packages are taken along by core build: name them in the dependencies of pyproject.toml",
    "winreg": _WINDOWS,
    "winsound": _WINDOWS,
}
"""Modules of the standard library that cannot be imported, and the way to do without each."""

NEW_MODULES: Final[Mapping[str, int]] = dict.fromkeys(
    ["annotationlib", "compression", "concurrent.interpreters", "pathlib.types", "string.templatelib"], 14
)
"""Modules by the version of Python 3 that brought them, behind the oldest that a worker has."""
_GONE: Final[Mapping[int, str]] = {
    12: "asynchat asyncore distutils imp smtpd",
    13: (
        "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd "
        "sunau telnetlib uu xdrlib"
    ),
}
GONE_MODULES: Final[Mapping[str, int]] = {name: version for version, names in _GONE.items() for name in names.split()}
"""Modules by the version of Python 3 that removed them (PEP 594 and PEP 632)."""
_VERSIONS: Final = (
    (14, "2026-09-08", "python_workers_20260610"),
    (13, "2025-09-29", "python_workers_20250116"),
    (12, "", ""),
)
"""Versions of Python 3 on the hosted platform, by the date from which, and the flag with which, a worker has each."""

_KEYS: Final = (
    "Python there is built without OpenSSL. Derive keys with the runtime's WebCrypto, js.crypto.subtle.deriveBits"
)
_THREADS: Final = (
    "There are no threads. Await each coroutine, with asyncio.gather for several at once, or send the work to a queue"
)
_PROCESSES: Final = "There are no processes. Send the work to a queue, or to a service that has them"
_SOCKETS: Final = "asyncio has no sockets there. Use fetch or a binding"

_LACKING: Final[Mapping[str, str]] = {
    _KEYS: "hashlib.pbkdf2_hmac hashlib.scrypt",
    _PROCESSES: (
        "asyncio.create_subprocess_exec asyncio.create_subprocess_shell concurrent.futures.ProcessPoolExecutor "
        "multiprocessing.Pool multiprocessing.Process multiprocessing.Queue os.fork os.popen subprocess.Popen "
        "subprocess.call subprocess.check_call subprocess.check_output subprocess.run"
    ),
    _SOCKETS: "asyncio.open_connection asyncio.start_server",
    _THREADS: "concurrent.futures.ThreadPoolExecutor threading.Thread",
    "There are no threads. Use asyncio, req.ctx.wait_until or a cron trigger": "threading.Timer",
}
MISSING_NAMES: Final[Mapping[str, str]] = {name: way for way, names in _LACKING.items() for name in names.split()}
"""Functions and classes that are missing or fail whenever they are used, and the way to do without each."""

_WAITS: Final = "Await the runtime's own fetch: `from js import fetch`, or a service binding"
_LOST: Final = "a written file is gone with the isolate. Use a KV namespace, R2 or D1"

BLOCKING: Final[Mapping[str, str]] = {
    "time.sleep": "Await asyncio.sleep",
    "urllib.request.urlopen": _WAITS,
    "http.client.HTTPConnection": _WAITS,
    "http.client.HTTPSConnection": _WAITS,
    "socket.create_connection": _SOCKETS,
    **{
        f"{module}.{name}": _WAITS
        for module in ("requests", "httpx")
        for name in ("delete", "get", "head", "options", "patch", "post", "put", "request")
    },
    "requests.Session": _WAITS,
    "httpx.Client": _WAITS,
    "builtins.input": "A worker has no terminal",
}
"""Calls that stop every request of the isolate for as long as they take, in an async function, and their replacements.
"""

_SHARED: Final[Mapping[str, frozenset[str]]] = {
    "asyncio.Event": frozenset(["wait"]),
    "asyncio.Condition": frozenset(["acquire", "wait", "wait_for"]),
    **dict.fromkeys(["asyncio.Lock", "asyncio.Semaphore", "asyncio.BoundedSemaphore"], frozenset(["acquire"])),
    **dict.fromkeys(["asyncio.Queue", "asyncio.LifoQueue", "asyncio.PriorityQueue"], frozenset(["get", "join", "put"])),
    "asyncio.Barrier": frozenset(["wait"]),
}
"""Objects that one request waits for until another acts, and the methods that wait."""
_WAITED: Final = frozenset(name for names in _SHARED.values() for name in names)
_HELD: Final = frozenset(name for name, methods in _SHARED.items() if "acquire" in methods)
"""Those of them that a request holds: nobody waits where it awaits nothing meanwhile."""
_WRITES: Final = frozenset(["write_text", "write_bytes", "mkdir", "touch"])
_ABSENT: Final = frozenset({"hashlib.pbkdf2_hmac", "hashlib.scrypt"})


def worker_findings(
    modules: Modules, program: Sequence[Module], configurations: Sequence[Configuration] = ()
) -> Iterator[Finding]:
    """Return the imports and calls that are missing in a worker.

    Which Python a worker has is decided by its configuration, which may differ from one environment to the next.
    """
    pythons = sorted({_python_of(one) for one in configurations}) or [_python_of(None)]
    for module in program:
        for scope in module.scope.walk():
            for node, message in _missing(modules, scope, pythons):
                if _runs(node, scope):
                    yield Finding("core-worker", message, str(module.path), node.lineno, node.col_offset + 1)


def _python_of(configuration: Configuration | None) -> tuple[int, str]:
    """The version of Python 3 that a worker has, and what decides it. `core build` has one, whatever the date."""
    worker = configuration.worker if configuration is not None else None
    if worker is None or worker.compatibility_date is None:
        return _VERSIONS[0][0], "a worker without a compatibility_date"
    for version, date, flag in _VERSIONS:
        if flag in worker.compatibility_flags:
            return version, f'the compatibility flag "{flag}"'
        if worker.compatibility_date >= date:
            return version, f"compatibility_date {worker.compatibility_date}"
    raise AssertionError("every date has a version")


def _missing(
    modules: Modules, scope: Scope, pythons: Sequence[tuple[int, str]]
) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for statement in scope.nodes.of(ast.Import):
        for alias in statement.names:
            yield from _module(modules, statement, alias.name, pythons)
    for taken in scope.nodes.of(ast.ImportFrom):
        if taken.level or not taken.module:
            continue
        yield from _module(modules, taken, taken.module, pythons)
        for full in (f"{taken.module}.{alias.name}" for alias in taken.names):
            if full in NEW_MODULES:
                yield from _module(modules, taken, full, pythons)
            if full in _ABSENT:
                yield taken, _unsupported(full)
    waits = isinstance(scope.node, ast.AsyncFunctionDef)
    used = [base for class_ in scope.nodes.of(ast.ClassDef) for base in class_.bases]
    for call in scope.nodes.of(ast.Call):
        used.append(call.func)
        message = _wait(modules, call, scope) if waits else None
        if message is not None and not any(isinstance(one, ast.Lambda) for one in scope.nodes.above(call)):
            yield call, message
    for expression in used:
        name = modules.outside(expression, scope)
        # A name that cannot be imported was told where it is imported.
        if name in MISSING_NAMES and not (name in _ABSENT and isinstance(expression, ast.Name)):
            yield expression, _unsupported(name)
    for entered in scope.nodes.of(ast.AsyncWith):
        for item in entered.items:
            message = _shared(modules, item.context_expr, "acquire", scope, entered)
            if message is not None:
                yield item.context_expr, message


def _module(
    modules: Modules, node: ast.stmt, name: str, pythons: Sequence[tuple[int, str]]
) -> Iterator[tuple[ast.stmt, str]]:
    top = name.partition(".")[0]
    if top in MISSING_MODULES and modules.find(top) is None:
        yield node, f"a worker's Python has no module {top}. {MISSING_MODULES[top]}"
        return
    new = next((full for full in (name, top) if full in NEW_MODULES), None)
    for python, why in pythons if modules.find(top) is None else ():
        if new is not None and python < NEW_MODULES[new]:
            date = next(date for version, date, _ in _VERSIONS if version == NEW_MODULES[new])
            text = f"{new} is a module of Python 3.{NEW_MODULES[new]}, and {why} has 3.{python}"
            yield node, f'{text}. Write compatibility_date = "{date}", or a later one'
        elif top in GONE_MODULES and python >= GONE_MODULES[top]:
            text = f"{top} is no module of Python since 3.{GONE_MODULES[top]}, and {why} has 3.{python}"
            yield node, f"{text}. Take along a package that has it, or do without"


def _wait(modules: Modules, call: ast.Call, scope: Scope) -> str | None:
    """The problem of a call that blocks, or writes a file, in the body of an async function."""
    name = modules.outside(call.func, scope)
    owner, method = (call.func.value, call.func.attr) if isinstance(call.func, ast.Attribute) else (call, "")
    if name in BLOCKING:
        return f"{name} blocks: no other request is answered meanwhile. {BLOCKING[name]}"
    if method in _WAITED:
        return _shared(modules, owner, method, scope)
    is_written = name == "builtins.open" and _is_written(call)
    if is_written or (method in _WRITES and modules.maker_of(*modules.value(owner, scope)) == "pathlib.Path"):
        return f"a worker has no files to keep: {_LOST}"
    return None


def _shared(
    modules: Modules, owner: ast.expr, method: str, scope: Scope, around: ast.AsyncWith | None = None
) -> str | None:
    """The problem of a wait for an object of the module that another request may keep waiting: a call of one of its
    methods, or `async with`, which is `around`.
    """
    made, inner = modules.value(owner, scope)
    kind = modules.maker_of(made, inner) if isinstance(inner.node, ast.Module | ast.ClassDef) else ""
    if not isinstance(made, ast.Call) or method not in _SHARED.get(kind, ()):
        return None
    if method == "put" and not (made.args or made.keywords):
        return None  # never full
    others = len(around.items) - 1 if around is not None else 0
    if kind in _HELD and others + sum(isinstance(part, _AWAITS) for part in ast.walk(around or scope.node)) < 2:
        return None
    of = "module" if isinstance(inner.node, ast.Module) else "class"
    text = f"{ast.unparse(owner)} is an {kind} of the {of}, and one request cannot await what another one does"
    return f"{text}. Keep what several requests share in a Durable Object, and make the rest inside the handler"


_AWAITS: Final = (ast.Await, ast.AsyncFor, ast.AsyncWith)


def _runs(node: ast.AST, scope: Scope) -> bool:
    """Return False for what the program does only where it works: under a question, or in a `try` that expects it to
    fail.
    """
    around: Scope | None = scope
    while around is not None:
        for parent in around.nodes.above(node):
            if isinstance(parent, ast.Try) and parent.handlers and node not in (*parent.handlers, *parent.finalbody):
                return False
            if isinstance(parent, ast.If) and _is_asked(parent.test):
                return False
            node = parent
        around = around.parent
    return True


def _is_written(call: ast.Call) -> bool:
    """Return True if a call of `open` opens for writing, for certain."""
    given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
    return isinstance(given, ast.Constant) and isinstance(given.value, str) and bool(set("wax+") & set(given.value))


def _unsupported(name: str) -> str:
    return f"{name} does not work in a worker. {MISSING_NAMES[name]}"


def _is_asked(test: ast.expr) -> bool:
    """Return True if a condition asks where the program runs, or whether it runs at all."""
    return any(
        (isinstance(node, ast.Name) and node.id in ("TYPE_CHECKING", "__name__"))
        or (isinstance(node, ast.Attribute) and node.attr in ("TYPE_CHECKING", "platform", "name", "modules"))
        for node in ast.walk(test)
    )
