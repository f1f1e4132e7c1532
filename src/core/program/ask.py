"""Asks a program for its table: kept between runs under the state of all that it was made of.

The program runs in a process of its own, with the interpreter of the project. A kept table holds while only bodies of
`async def` change, since those do not run while a program is imported.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from core.program.cache import Cache, stamp, stamps, written
from core.program.entry import Entry
from core.program.table import Function, Place, Refusal, Table, from_json, is_set, to_json

_SECONDS: Final = 30
"""The time after which a start that has not ended is given up."""


def ask(entry: Entry, *, python: str = "", assume: bool = False, seconds: float = _SECONDS) -> Table:
    """The table of a program: the one that is kept where nothing has changed, else that of a start of it.

    `python` is another interpreter than this one. `assume` is as in `core.program.start`.
    """
    python = python or sys.executable
    stored = Cache(Path(entry.config).parent).read(*_name(entry, python))
    if stored is not None:
        table = from_json(stored["table"])
        # Where nothing was assumed and nothing refused, both kinds of a start give the same.
        if table is not None and (stored["assume"] == assume or not (table.assumed or table.refusals)):
            held = _held(table, stored["state"], stored["texts"])
            if held is not None:
                return held
    since = time.time_ns()
    table = _start(entry, python, assume, seconds)
    keep(table, entry, python, assume=assume, since=since)
    return table


def keep(table: Table, entry: Entry, python: str, *, assume: bool, since: int) -> None:
    """Keep what a start of a program has told, for whoever asks next.

    The start began at the time `since`, in nanoseconds. Where something that it read was written later, it may have
    read what was there before, and nothing is kept.
    """
    read = (*table.modules, *table.files, *table.folders)
    if table.repeats and all(written(path) < since for path in read):
        texts = {} if table.ran or table.refusals else {one: _text(one) for one in table.modules}
        state = stamps(read)
        stored = {"table": to_json(table), "assume": assume, "state": state, "texts": texts}
        Cache(Path(entry.config).parent).write(*_name(entry, python), stored)


def _name(entry: Entry, python: str) -> tuple[str, object]:
    """The name and the key of a program's table."""
    key = [entry, os.path.realpath(python)]
    return f"table-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}", key


def _held(table: Table, state: Mapping[str, str], texts: Mapping[str, str | None]) -> Table | None:
    """The kept table with the lines of now, where a start would give it again."""
    if not is_set(table.environ):
        return None
    moves: dict[str, list[tuple[int, int]]] = {}
    for path in (path for path, stamped in state.items() if stamp(path) != stamped):
        before, now = _skeleton(texts.get(path)), _skeleton(_text(path))
        if before is None or now is None or before[0] != now[0]:
            return None
        moves[path] = [(begin, end - last) for (begin, last), (_, end) in zip(before[1], now[1], strict=True)]
    return _moved(table, moves) if moves else table


def _moved(value: Any, moves: Mapping[str, Sequence[tuple[int, int]]]) -> Any:
    """A part of a table, with the lines of files in which bodies have become longer or shorter."""
    if isinstance(value, Place | Function):
        # Behind a body, lines are as far off as its end is.
        off = [off for begin, off in moves.get(value.file, ()) if begin < value.line]
        return value._replace(line=value.line + off[-1]) if off else value
    if hasattr(value, "_fields"):
        return value._make(_moved(one, moves) for one in value)
    return tuple(_moved(one, moves) for one in value) if value.__class__ is tuple else value


def _text(file: str) -> str | None:
    """The bytes of a file, as JSON can have them; None where there is none."""
    try:
        return Path(file).read_bytes().decode("latin-1")
    except OSError:
        return None


def _skeleton(module: str | None) -> tuple[str, list[tuple[int, int]]] | None:
    """A digest of all of a module that runs when it is imported, and the first and last lines of what is left out: the
    bodies of async functions that yield nothing, at the top and in classes there, behind their docstrings. None for a
    text that is no module.
    """
    if module is None:
        return None
    text = module.encode("latin-1")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    lines = text.split(b"\n")
    cut: list[tuple[int, int]] = []
    for node in (*tree.body, *(inner for one in tree.body if isinstance(one, ast.ClassDef) for inner in one.body)):
        body = node.body[ast.get_docstring(node) is not None :] if isinstance(node, ast.AsyncFunctionDef) else []
        if body and not lines[body[0].lineno - 1][: body[0].col_offset].strip():
            first, last = body[0].lineno, node.end_lineno or node.lineno
            if not any(b"yield" in line for line in lines[first - 1 : last]):
                cut.append((first, last))
    cut.sort()
    for first, last in reversed(cut):
        del lines[first - 1 : last]
    return hashlib.sha256(b"\n".join(lines)).hexdigest(), cut


def _start(entry: Entry, python: str, assume: bool, seconds: float) -> Table:
    command = [python, "-P", "-m", "core.program.start", *entry, *(["--assume"] if assume else [])]
    # What is said goes to a file: nobody is to wait for a process in the background that has it open.
    with TemporaryFile() as said:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=Path(entry.config).parent,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"importing the program takes longer than {seconds:g} s. Start from a lifespan what runs on"
            return _refused(entry, problem)
        except OSError as error:
            return _refused(entry, f"the program cannot be started with {python}: {error}")
        try:
            table = from_json(done.stdout)
        except ValueError:
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:] or [f"status {done.returncode}"]
            return _refused(entry, f"importing the program ends its process: {last[0]}")
    if table is None:
        return _refused(entry, f"{python} has another version of core-edge. Install the one of this command there")
    return table


def _refused(entry: Entry, message: str) -> Table:
    place = Place(entry.file, 1) if entry.file else Place(entry.config, 1)
    return Table(refusals=(Refusal("NoStart", message, place),), repeats=False)
