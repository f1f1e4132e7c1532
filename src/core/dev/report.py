"""An error as a developer wants to see it: their own frames first, the request, and how to fix it.

One `Report` is made of an exception, and written three ways: a page for a browser, JSON for an API client, text for
a terminal. Nothing of it ever leaves a development host, and secrets in a request are left out even there.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterable
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast

import attrs

import core
from core.dev.record import Exchange
from core.dev.terminal import Style
from core.errors import ConfigurationError, DeveloperError, EnvError, MissingExtraError, NothingSentError
from core.explain.diagnosis import NOTE, explain, words_of

_CORE: Final = Path(core.__file__).parent
_AROUND: Final = 5
_HIDDEN_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "x-core-token"})


@attrs.frozen
class Frame:
    """One step of a traceback. `source` has the lines around it with their numbers; `own` is the application's code."""

    file: str
    line: int
    function: str
    source: tuple[tuple[int, str], ...]
    own: bool


@attrs.frozen
class Report:
    """An error, explained. `problems` has one entry for each mistake, `fix` the way to correct it, if it is known."""

    kind: str
    message: str
    frames: tuple[Frame, ...]
    problems: tuple[str, ...] = ()
    fix: str | None = None
    causes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    key: str = ""
    """The key of the request in the explorer, where it is kept there."""


def report(error: BaseException, *, root: Path, exchange: Exchange | None = None) -> Report:
    """Describe `error`, which came up in `exchange`. `root` is the folder of the application."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=False)
    lines = "".join(shown.format_exception_only()).rstrip().splitlines()
    message = words_of(error) if isinstance(error, DeveloperError) else _message(lines, error)
    problems: tuple[str, ...] = ()
    if isinstance(error, (ConfigurationError, EnvError)):
        problems = tuple(error.problems)
        message = f"{len(problems)} mistakes" if len(problems) != 1 else "1 mistake"
        message += (
            " in the configuration" if isinstance(error, ConfigurationError) else " between Env and configuration"
        )
    return Report(
        kind=type(error).__name__,
        message=message,
        frames=tuple(_frames(error, root)),
        problems=problems,
        fix=_fix(error),
        causes=tuple(_causes(error)),
        facts=() if exchange is None else tuple(_facts(exchange)),
    )


def _message(lines: list[str], error: BaseException) -> str:
    # Python's own words, suggestions ("Did you mean") and the caret under a syntax error included.
    text = "\n".join(line for line in lines if not line.startswith(NOTE))
    prefix = f"{type(error).__name__}: "
    last = text.rpartition(f"\n{prefix}")[2] if f"\n{prefix}" in text else text.removeprefix(prefix)
    for qualified in (f"{type(error).__module__}.{prefix}",):
        last = last.removeprefix(qualified)
    return last.strip() or type(error).__name__


def _causes(error: BaseException) -> Iterable[str]:
    seen, said = {id(error)}, words_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if words_of(cause) not in said:  # what is said already is not said again
            yield f"{type(cause).__name__}: {words_of(cause)}"
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield f"{type(inner).__name__}: {words_of(inner)}"


def _frames(error: BaseException, root: Path) -> Iterable[Frame]:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield _frame(error.filename, error.lineno, "", root)
        return
    if isinstance(error, (EnvError, NothingSentError)) and error.location is not None:
        yield _frame(*error.location, "", root)
    steps: list[Frame] = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        steps.append(_frame(code.co_filename, step.tb_lineno, code.co_qualname, root))
        step = step.tb_next
    # The last step is where it happened: it comes first.
    yield from reversed(steps)


def is_own(file: str, root: Path) -> bool:
    """Return True for a file of the application in the folder `root`, and not of a library."""
    path = Path(file)
    return path.is_relative_to(root) and not {".venv", "venv", "site-packages"}.intersection(path.parts)


def _frame(file: str, line: int, function: str, root: Path) -> Frame:
    lines = [(number, linecache.getline(file, number)) for number in range(max(1, line - _AROUND), line + _AROUND + 1)]
    path, own = Path(file), is_own(file, root)
    if own:
        shown = str(path.relative_to(root))
    elif path.is_relative_to(_CORE):
        shown = f"core/{path.relative_to(_CORE)}"
        own = False
    else:
        shown = file
    return Frame(shown, line, function, tuple((number, text.rstrip("\n")) for number, text in lines if text), own)


def _fix(error: BaseException) -> str | None:
    match error:
        case MissingExtraError():
            return str(error)
        case EnvError() | ConfigurationError():
            return "Each line above ends with the fix. The server goes on as soon as the file is saved."
        case _:
            return explain(error)


# -- the three ways to write it


def to_json(found: Report) -> dict[str, Any]:
    """For an API client: the answer of the application, and beside it the details that it never sends in production."""
    return {
        "error": "Internal Server Error",
        "development": {
            "type": found.kind,
            "message": found.message,
            "problems": list(found.problems),
            "fix": found.fix,
            "causes": list(found.causes),
            "frames": [
                {"file": frame.file, "line": frame.line, "function": frame.function}
                for frame in found.frames
                if frame.own
            ],
        },
    }


def to_text(found: Report, style: Style | None = None) -> str:
    """For a terminal."""
    paint = style or Style(sys.stderr)
    lines = [f"{paint.paint(found.kind, 'bold', 'red')}: {found.message}"]
    lines += [f"  {number}. {problem}" for number, problem in enumerate(found.problems, 1)]
    own = [frame for frame in found.frames if frame.own]
    for frame in own[:6]:
        lines.append(f"  {paint.cyan(f'{frame.file}:{frame.line}')} {paint.dim(frame.function)}".rstrip())
        for number, text in frame.source:
            if number == frame.line:
                lines.append(f"    {text.strip()}")
    if not own and not found.problems and found.fix is None:
        lines += [f"  {frame.file}:{frame.line} {frame.function}" for frame in found.frames[:6]]
    lines += [f"  caused by {cause}" for cause in found.causes]
    if found.fix and not found.problems and found.fix.rstrip(".") not in found.message:
        lines.append(f"  {paint.bold('How to fix:')} {found.fix}")
    return "\n".join(lines)


def to_html(found: Report) -> str:
    """For a browser: one page that needs nothing else."""
    parts = [f"<h1><span>{escape(found.kind)}</span> {escape(found.message)}</h1>"]
    if found.problems:
        items = "".join(f"<li>{escape(problem)}</li>" for problem in found.problems)
        parts.append(f"<ol class=problems>{items}</ol>")
    if found.fix:
        parts.append(f"<section class=fix><h2>How to fix</h2><p>{escape(found.fix)}</p></section>")
    if found.causes:
        items = "".join(f"<li>{escape(cause)}</li>" for cause in found.causes)
        parts.append(f"<section><h2>Caused by</h2><ul>{items}</ul></section>")
    own = [frame for frame in found.frames if frame.own]
    others = [frame for frame in found.frames if not frame.own]
    if own:
        parts.append("<section><h2>Your code, the last step first</h2>")
        parts += [_frame_html(frame, is_open=index < 3) for index, frame in enumerate(own)]
        parts.append("</section>")
    if others:
        parts.append(
            f"<details><summary>{len(others)} more step{'' if len(others) == 1 else 's'}, inside libraries</summary>"
        )
        parts += [_frame_html(frame, is_open=False) for frame in others]
        parts.append("</details>")
    if found.facts:
        rows = "".join(f"<tr><th scope=row>{escape(name)}<td>{escape(value)}" for name, value in found.facts)
        parts.append(f"<section><h2>The request</h2><table>{rows}</table></section>")
    if found.key:
        parts.append(f'<p><a class=button href="/_core#requests/{escape(found.key)}">Write a test of it</a></p>')
    body = "\n".join(parts)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(found.kind)}</title>"
        f'<meta name=viewport content="width=device-width"><style>{_STYLE}</style><main>{body}'
        "<footer>This page is shown by <code>core dev</code> only. It goes away when the code is saved and the page "
        "is loaded again.</footer></main>"
    )


def _frame_html(frame: Frame, *, is_open: bool) -> str:
    lines = "".join(
        f'<span class="{"at" if number == frame.line else "by"}"><b>{number}</b>{escape(text)}\n</span>'
        for number, text in frame.source
    )
    return (
        f"<details{' open' if is_open else ''}><summary><code>{escape(frame.file)}:{frame.line}</code> "
        f"{escape(frame.function)}</summary><pre tabindex=0>{lines}</pre></details>"
    )


def _facts(exchange: Exchange) -> Iterable[tuple[str, str]]:
    """The facts about the request for an error page. Secrets are left out."""
    yield from (("method", exchange.method), ("url", exchange.path))
    for name, value in exchange.request.headers:
        yield name, "(left out)" if name.lower() in _HIDDEN_HEADERS else value


_STYLE: Final = """
:root{color-scheme:light dark;--line:light-dark(#d8d4cc,#3a3d42);--soft:light-dark(#f4f1ea,#1d2024);
--red:light-dark(#a3162b,#ff8d9b);--green:light-dark(#0b5d34,#7fdca6);--dim:light-dark(#5c5a55,#a9adb3)}
body{margin:0;font:16px/1.5 system-ui,sans-serif;background:light-dark(#fffdf8,#131518);color:light-dark(#1c1b19,#e9e7e2)}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem}
h1{font-size:1.35rem;white-space:pre-wrap;overflow-wrap:anywhere}h1 span{color:var(--red)}
h2{font-size:1rem;margin:1.5rem 0 .4rem}
.fix{border-left:4px solid var(--green);padding:.1rem 1rem;background:var(--soft)}.fix h2{margin-top:.6rem}
.problems li{margin:.4rem 0;overflow-wrap:anywhere}
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:.3rem .8rem}
summary{cursor:pointer;overflow-wrap:anywhere}
pre{overflow:auto;margin:.5rem 0;font:14px/1.45 ui-monospace,monospace}
pre b{display:inline-block;width:3.5em;color:var(--dim);font-weight:400}
.at{display:block;background:light-dark(#ffe3e3,#4a1f25)}.by{display:block}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:500;vertical-align:top;padding-right:1.5rem}
td{overflow-wrap:anywhere}th,td{border-bottom:1px solid var(--line);padding:.25rem .5rem .25rem 0}
.button{display:inline-block;padding:.3rem .9rem;border:1px solid;border-radius:6px;color:inherit;text-decoration:none}
footer{margin-top:2rem;color:var(--dim);font-size:.9rem}code{font-family:ui-monospace,monospace}
"""
