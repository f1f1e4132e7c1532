"""A chain that ended without an answer: the step that is to blame, found in its source.

Loaded after that failure only. `core dev` shows the step's lines, and nothing of it reaches a client.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, cast

from core.errors import HandlerError, NothingSentError
from core.explain.frames import shown
from core.handlers import info_of, name_of
from core.response import Response


def unanswerable(raised: BaseException) -> HandlerError | None:
    """The error to answer for one that is no Exception; None where the request itself is to end."""
    error: HandlerError | None = None
    if isinstance(raised, SystemExit):
        error = HandlerError(
            "a handler raised SystemExit, which would end the server. Send an answer, or raise CoreError"
        )
    elif isinstance(raised, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is not None and not task.cancelling():  # so it was not the request that was cancelled
            error = HandlerError(
                "a handler awaited a task that was cancelled. Catch asyncio.CancelledError where the task is awaited"
            )
    if error is not None:
        error.__cause__ = raised
    return error


def location_of(callable_: object) -> tuple[str, int] | None:
    """The file and line of a callable's definition; None for one that has no source."""
    target: Any = callable_
    while hasattr(target, "func"):  # functools.partial
        target = target.func
    code = getattr(target, "__code__", None) or getattr(getattr(target.__class__, "__call__", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else None


def nothing_sent(
    label: str, handler: object | None, middleware: Sequence[object], returned: object
) -> NothingSentError:
    """The error for a chain that ended without an answer. It names the step that is to blame, if its source shows it.

    `label` is the route's; `returned` is the value of the chain, which is the handler's where nothing is before it.
    """
    if handler is not None and returned is not None and not isinstance(returned, Response):
        error = _blame(label, handler, f"returned {_kind(returned)}, which nothing sends", _sending(returned))
        error.unawaited = inspect.isawaitable(returned)
        return error
    for timed in middleware:
        function = inspect.unwrap(cast("Callable[..., object]", timed))  # an instrument may stand around it
        if info_of(function) is not None or (source := _source(function)) is None:
            continue
        follow = _parameter(source, 2)
        called, awaited = _calls(source, follow)
        if called and not awaited:
            problem = f"calls {follow}() without awaiting it"
            error = _blame(label, function, problem, f"Write `await {follow}()`", role="middleware")
            error.unawaited = True
            return error
        if not called and not _calls(source, _parameter(source, 1))[0]:
            fix = f"Write `await {follow}()` to go on, or send on `res` to answer"
            return _blame(label, function, f"neither sends nor calls {follow}()", fix, role="middleware")
    if handler is not None:
        source = _source(handler)
        if source is not None and (value := _returned(source)) is not None:
            fix = "Send it: `return res.json(…)`"
            return _blame(label, handler, f"returns {value}, which nothing sends", fix)
        fix = "Send with `res.json(…)` or another method of `res`"
        return _blame(label, handler, "ended without sending anything", fix)
    return NothingSentError(
        f"the chain of {label} ended without sending anything. Send with res.json(…) or another method of `res`; "
        "in a middleware, `await next()` and do not forget the await"
    )


def _blame(label: str, function: object, problem: str, fix: str, *, role: str = "handler") -> NothingSentError:
    location = location_of(function)
    where = "" if location is None else f" ({shown(location[0], None)}:{location[1]})"
    error = NothingSentError(f"{label}: the {role} {name_of(function)}{where} {problem}. {fix}")
    error.location = location
    return error


def _kind(value: object) -> str:
    name = type(value).__name__
    if type(value).__module__.startswith("core.http"):
        name = f"http.{name}"
    return f"a{'n' if name[:1] in 'aeiou' or name.startswith('http.') else ''} {name}"


def _sending(value: object) -> str:
    if type(value).__module__.startswith("core.http"):
        return "Send its parts: `return res.status(response.status).send(await response.bytes())`"
    if inspect.isawaitable(value):
        return "Await it, and send its result: `return res.json(await …)`"
    if type(value).__name__ == "Router":
        return 'Mount it where it is made: `app.use("/path", router)`'
    if inspect.isasyncgen(value) or inspect.isgenerator(value):
        return "Send it: `return res.stream(value)`, of a function that is async"
    if isinstance(value, tuple):
        return "Send it, with the status first: `return res.status(201).json(value)`"
    return "Send it: `return res.text(value)`" if isinstance(value, str) else "Send it: `return res.json(value)`"


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _source(callable_: object) -> _Function | None:
    """The source of a function as a syntax tree; None where it cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cast("Callable[..., Any]", callable_))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    first = tree.body[0] if tree.body else None
    return first if isinstance(first, _Function) else None


def _parameter(function: _Function, index: int) -> str:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names[index] if index < len(names) else ""


def _calls(function: _Function, name: str) -> tuple[bool, bool]:
    """Return True twice if a function calls `name`, and if it awaits or returns the call, or hands `name` on."""
    nodes = [*ast.walk(function)]
    awaited = [node.value for node in nodes if isinstance(node, (ast.Await, ast.Return))]
    named = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.func in named]
    handed = len(named) > len(calls)
    return bool(named), handed or any(call in awaited for call in calls)


def _returned(function: _Function) -> str | None:
    """Return the source of a value that a handler returns instead of sending it."""
    res = _parameter(function, 1)
    for node in ast.walk(function):
        value = node.value if isinstance(node, ast.Return) else None
        if value is not None and not any(isinstance(inner, ast.Name) and inner.id == res for inner in ast.walk(value)):
            text = ast.unparse(value)
            if text != "None":
                return f"`{text if len(text) <= 40 else text[:39] + '…'}`"
    return None
