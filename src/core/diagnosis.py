"""The fix for a mistake that Python reports in its own words.

Loaded after a failure only, so it costs nothing before one. `explain` adds the fix as a note to the logged error, and
`core dev` shows the same fix on its error page, in the terminal and in JSON. Nothing of it reaches a client.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from core.errors import BindingError, DeveloperError, NothingSentError
from core.mistakes import APP, MODULE, REQUEST, RESPONSE
from core.request import Params, Query, Request
from core.response import Response

__all__ = ["NOTE", "explain", "foreign_name", "misses_await", "with_note"]

NOTE: Final = "How to fix: "
"""The beginning of the note that `with_note` adds."""

_CORE: Final = str(Path(__file__).parent)

_SENDS: Final = frozenset({"json", "text", "html", "send", "redirect", "stream", "sse", "status", "file"})


# -- the fix for an error


def with_note(error: BaseException) -> None:
    """Add the fix to an error, once, as a note (PEP 678) that its traceback in a log ends with."""
    if not any(note.startswith(NOTE) for note in getattr(error, "__notes__", ())):
        fix = explain(error)
        if fix is not None and fix.rstrip(".") not in str(error):
            error.add_note(f"{NOTE}{fix}")


def explain(error: BaseException) -> str | None:
    """The fix for an error, as one or two sentences; None where nothing is known of it."""
    text = str(error)
    match error:
        case DeveloperError():
            return _last_sentence(text)
        case BindingError():
            return _explain_binding(text)
        case SyntaxError():
            return "Correct the line: Python cannot read the file."
        case NameError() if error.name in MODULE:
            return _here(error.name)
        case ImportError() if text.startswith("cannot import name") and " from 'core" in text:
            return _here(text.split("'")[1])
        case AttributeError():
            return _explain_attribute(error)
        case NameError():
            return f"Import `{error.name}`, define it, or correct its spelling."
        case TypeError() | ValueError():
            return _explain_call(text) or _explain_raised_here(error, text)
        case RuntimeError():
            return _first(_RUNTIME, text)
        case _:
            return None


def misses_await(error: BaseException) -> bool:
    """Return True if an error comes from a call that was not awaited, and its text or its fix says so."""
    match error:
        case NothingSentError():
            return error.unawaited
        case AttributeError():
            return inspect.iscoroutine(error.obj)
        case TypeError() | ValueError() | RuntimeError():
            return re.search(rf"{_COROUTINE}|{_LOOP_IN_LOOP}|is a call that was not awaited", str(error)) is not None
        case _:
            return False


def _last_sentence(text: str) -> str:
    return text.rstrip(".").rpartition(". ")[2] + "."


def _here(name: str | None) -> str | None:
    found = MODULE.get(name or "")
    return None if found is None else f"In core this is {found}."


def _first(rules: Sequence[tuple[str, str]], text: str) -> str | None:
    for pattern, fix in rules:
        found = re.search(pattern, text)
        if found is not None:
            return found.expand(fix)
    return None


_LOOP_IN_LOOP: Final = r"asyncio\.run\(\) cannot be called|event loop is already running"
_RUNTIME: Final = (
    (
        r"bound to a different event loop|Cannot perform I/O on behalf of a different request",
        (
            "Objects of one request (an asyncio.Event, a socket, a task) cannot be awaited by another. Keep what several "
            "requests share in a Durable Object, and make the rest inside the handler."
        ),
    ),
    (_LOOP_IN_LOOP, "A handler runs in a loop: await the call."),
    (
        r"no running event loop",
        "Nothing may start while a module is imported. Make tasks, clients and locks inside a handler.",
    ),
)
_BINDING: Final = (
    (
        r"no such (table|column)",
        "Correct the name, or make it in a migration (`core migrate new`, `core migrate apply`). `core check` compares the two.",
    ),
    (r"Wrong number of parameter bindings", "Give `bind(…)` one value for each `?` of the statement."),
    (
        r"UNIQUE constraint failed",
        'Catch `D1Error` with `error.constraint == "UNIQUE"`, and raise `CoreError(409, …)`.',
    ),
    (r"Key name cannot be empty", "Give a key of at least one character."),
    (r"Invalid expiration_ttl|Expiration TTL", "Give `expiration_ttl` at least 60 seconds."),
)


def _explain_binding(text: str) -> str | None:
    return _first(_BINDING, text) or (_last_sentence(text) if ". " in text else None)


_COROUTINE: Final = r"'coroutine' object|argument of type 'coroutine'"
_NOT_AWAITED: Final = "A call was not awaited. Write `await` before it."
_CALLS: Final = (
    (
        r"Response\.(json|text|html|send)\(\) (takes 2|got an unexpected keyword argument 'status)",
        r"Set the status first: `res.status(201).\1(value)`.",
    ),
    (r"Response\.(json|text|html|send)\(\) got an unexpected", r"Stage headers first: `res.header(…).\1(value)`."),
    (
        r"object (Response) can't be used in 'await'",
        "Methods of `res` send at once and are not awaited: remove the `await`.",
    ),
    (
        r"object \w*D1PreparedStatement can't be used in 'await'",
        "A statement runs with `.first()`, `.all()`, `.run()` or `.raw()`: await one of them.",
    ),
    (_COROUTINE, _NOT_AWAITED),
    (r"object (\w+) can't be used in 'await'", "The call returns its result at once: remove the `await`."),
    (r"'Params' object is not callable", 'Parameters are a mapping: `req.params["id"]`.'),
    (r"'Query' object is not callable", 'The query is a mapping: `req.query.get("q")`.'),
    (r"'HeadersView' object is not callable", 'One header is `req.header("X-Name")`.'),
    (r"'(\w*Env)' object is not subscriptable", r"Bindings are attributes: `req.env.NAME`, as the class \1 has them."),
    (r"mutable default", "All instances would share it. Write `field(default_factory=list)`."),
    (r"(\w+)\.__init__\(\) missing \d+ required", r"Give every field of \1 that has no default."),
    (
        r"(\w+)\(\) got an unexpected keyword argument '(\w+)'",
        r"Remove `\2`, or correct its name: \1 has no such option.",
    ),
    (r"(\w+)\(\) missing \d+ required", r"Give `\1` the arguments that the message names."),
    (r"(\w+)\(\) takes .* but \d+ (?:was|were) given", r"Count the arguments of `\1`; a method's first one is `self`."),
)


def _explain_call(text: str) -> str | None:
    return _first(_CALLS, text)


def _explain_raised_here(error: BaseException, text: str) -> str | None:
    """Return the fix that a TypeError or a ValueError of the framework ends with."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None or not step.tb_frame.f_code.co_filename.startswith(_CORE):
        return None
    for mark in (". ", ": "):
        if mark in text:
            fix = text.rstrip(".").rpartition(mark)[2]
            return f"{fix[:1].upper()}{fix[1:]}."
    return None


def _explain_attribute(error: AttributeError) -> str | None:
    if "In core this is" in str(error):
        return _last_sentence(str(error))
    given: Any = error.obj
    owner: type[Any] = given.__class__
    name = error.name or ""
    if inspect.iscoroutine(given):
        return _NOT_AWAITED
    if issubclass(owner, Request) and (name in _SENDS or name in ("header", "cookie")):
        return "The request comes first: `async def handler(req, res)`."
    for kind, names in ((Request, REQUEST), (Response, RESPONSE)):
        if issubclass(owner, kind) and name in names:
            return f"In core this is {names[name]}."
    if issubclass(owner, Response) and hasattr(Request, name):
        return "The request comes first: `async def handler(req, res)`."
    if issubclass(owner, Params):
        return f'Parameters are a mapping: `req.params["{name}"]`.'
    if issubclass(owner, Query):
        return f'The query is a mapping: `req.query.get("{name}")`.'
    if given is None:
        if "req.user" in _line_of(error):
            return "`req.user` is None until an authenticator has run: register on `app.authenticated(authenticator)`."
        return f"The value is None: test for it before `.{name}`."
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    if snake != name and hasattr(given, snake):
        return f"Names are written as in Python: `{snake}`."
    near = get_close_matches(name, [each for each in dir(cast("object", given)) if each[:1] != "_"], n=1, cutoff=0.75)
    if near and owner.__module__.startswith("core."):
        return f"Did you mean `{near[0]}`?"
    return None


def _line_of(error: BaseException) -> str:
    """Return the source line that raised an error, or an empty string."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return "" if step is None else linecache.getline(step.tb_frame.f_code.co_filename, step.tb_lineno)


def foreign_name(owner: object, name: str) -> AttributeError:
    """The error for an attribute that an App or a Router does not have, with our name for one of another framework."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    found = APP.get(name)
    if found is not None:
        text = f"{type(owner).__name__} has no {name}. In core this is {found}"
    return AttributeError(text, name=name, obj=owner)
