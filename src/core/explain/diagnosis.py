"""The fix for a mistake that Python reports in its own words.

Loaded after a failure only, so it costs nothing before one. `explain` adds the fix as a note to the logged error, and
`core dev` shows the same fix on its error page, in the terminal and in JSON. Nothing of it reaches a client.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

import typing_extensions

from core.env import Bindings
from core.errors import BindingError, DeveloperError, MissingExtraError
from core.explain.misuse import (
    as_sentence,
    fix_for_attribute,
    fix_for_call,
    fix_for_name,
    fix_for_operation,
    fix_for_syntax,
    frame_of,
    known_as,
    line_of,
    snake,
)
from core.explain.names import IN_WORKERD, MODULE, MODULES, NAMES, WORKERD
from core.explain.pages import AWAIT, page_of
from core.request import Request
from core.response import Response

_NOTE: Final = "How to fix: "
_PAGE: Final = "Page: "

_CORE: Final = str(Path(__file__).parent.parent)

_SENDS: Final = frozenset({"json", "text", "html", "send", "redirect", "stream", "sse", "status", "file"})


# -- the fix for an error


def with_note(error: BaseException) -> None:
    """Add the fix and its page to an error, once, as notes (PEP 678) that its traceback in a log ends with.

    An error that takes no note stays as it is: it still has to be answered.
    """
    try:
        if not any(is_note(note) for note in getattr(error, "__notes__", ())):
            fix = explain(error)
            if fix is not None and fix.rstrip(".") not in words_of(error):
                error.add_note(f"{_NOTE}{fix}")
            if (page := page_of(error, fix)) is not None:
                error.add_note(f"{_PAGE}{page}")
    except Exception:
        return


def log_failure(error: BaseException, message: str, *args: object) -> None:
    """Log an error that nobody else is told, with its notes."""
    with_note(error)
    logging.getLogger("core").error(message, *args, exc_info=error)


def is_note(line: str) -> bool:
    """Return True for what `with_note` adds."""
    return line.startswith((_NOTE, _PAGE))


def words_of(error: BaseException) -> str:
    """The text of an error. `__str__` is the program's, and may raise: then what a traceback has in its place."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def explain(error: BaseException) -> str | None:
    """The fix for an error, as one or two sentences; None where nothing is known of it, or its own methods raise."""
    try:
        return _explain(error, str(error))
    except Exception:
        return None


def _explain(error: BaseException, text: str) -> str | None:
    match error:
        case MissingExtraError():
            return text
        case DeveloperError():
            return _last_sentence(text)
        case BindingError():
            return _first(_BINDING, text) or (_last_sentence(text) if ". " in text else None)
        case SyntaxError():
            return f"{fix_for_syntax(text) or 'Correct the line: Python cannot read the file'}."
        case NameError(name=str(name)) if name in MODULE:
            return as_sentence(MODULE[name])
        case ModuleNotFoundError() if error.name is not None:
            return _explain_module(error.name)
        case ImportError() | AttributeError() if "(most likely due to a circular import)" in text:
            return "Put what both modules need into a third one, or import it inside the function that needs it."
        case ImportError(name="typing") if (later := text.split("'")[1]) in typing_extensions.__all__:
            return f"A later Python has it there. Write `from typing_extensions import {later}`."
        case ImportError(name=str(module)) if text.startswith("cannot import name"):
            fix = fix_for_name(module, text.split("'")[1], dir(sys.modules.get(module)))
            return fix if fix.endswith("?") else f"{fix}." if module.partition(".")[0] == "core" else None
        case AttributeError():
            return _explain_attribute(error)
        case UnboundLocalError():
            return (
                "An assignment makes it a variable of the function alone. Keep what requests share in a Durable Object "
                "or in KV: every isolate has a memory of its own."
            )
        case NameError():
            return f"Import `{error.name}`, define it, or correct its spelling."
        case TypeError() | ValueError():
            return (
                _first(_CALLS, text)
                or fix_for_operation(error)
                or fix_for_call(error)
                or _first(_ANY_CALL, text)
                or _explain_raised_here(error, text)
                or _explain_conversion(error)
            )
        case KeyError() if error.args and "the path has no parameter" in str(error.args[0]):
            return "Use one of the names that the route's path has, or add the parameter to the path."
        case KeyError() if (frame := frame_of(error)) is not None and frame.f_code.co_qualname == "State.__missing__":
            return f"State lives as long as its request: set `req.state[{text}]` in a middleware before it is read."
        case KeyError() if (frame := frame_of(error)) is not None and frame.f_globals.get("__name__") == "os":
            return "Variables and secrets are attributes of the Env class: `req.env.NAME`."
        case RuntimeError():
            return _first(_RUNTIME, text)
        case _:
            return None


def misses_await(error: BaseException) -> bool:
    """Return True if an error comes from a call that was not awaited: its page is the one about those."""
    return page_of(error, explain(error)) == AWAIT


def _last_sentence(text: str) -> str:
    last = text.rstrip(".").rpartition(". ")[2]
    return last if last.endswith("?") else f"{last}."


def _explain_module(name: str) -> str:
    parent, _, last = name.rpartition(".")
    if parent == "core" and last in MODULES:
        return as_sentence(MODULES[last])
    if parent in sys.modules:
        return f"Correct the import: `{parent}` is there, and has no module `{last}`."
    if name.partition(".")[0] in WORKERD:
        return f"{IN_WORKERD}."
    return f"Install the package that has the module `{name.partition('.')[0]}`, or correct the import."


def _first(rules: Sequence[tuple[str, str]], text: str) -> str | None:
    for pattern, fix in rules:
        found = re.search(pattern, text)
        if found is not None:
            return found.expand(fix)
    return None


_RUNTIME: Final = (
    (
        r"bound to a different event loop|Cannot perform I/O on behalf of a different request",
        (
            "Objects of one request (an asyncio.Event, a socket, a task) cannot be awaited by another. Keep what several "
            "requests share in a Durable Object, and make the rest inside the handler."
        ),
    ),
    (
        r"asyncio\.run\(\) cannot be called|event loop is already running",
        "A handler runs in a loop: await the call.",
    ),
    (
        r"no running event loop",
        "Nothing may start while a module is imported. Make tasks, clients and locks inside a handler.",
    ),
)
_BINDING: Final = (
    (r'near "%": syntax error', 'Write `?` for each value, in place of `%s`: `prepare("… WHERE id = ?").bind(value)`.'),
    (
        r"([^/\\]+\.sql):\d+: [\s\S]*The file changed nothing",
        r"Correct \1: `core dev` applies it when it is saved, and `core migrate apply` elsewhere.",
    ),
    (
        r"no such (table|column)|has no column named",
        "Correct the name, or make it in a migration (`core migrate new`, `core migrate apply`). `core check` compares the two.",
    ),
    (
        r"NOT NULL constraint failed",
        "Bind a value for the column, or let it be NULL by a migration (`core migrate new`).",
    ),
    (
        r"FOREIGN KEY constraint failed",
        "Write the row that it refers to first, or correct the id. A DELETE comes after that of the rows that refer to it.",
    ),
    (r"CHECK constraint failed", "Test the value before it is written: `req.json(T)` with a validator answers 422."),
    (
        r"table \S+ already exists",
        "Make tables in a migration (`core migrate new`), and not while requests are answered.",
    ),
    (r"Wrong number of parameter bindings", "Give `bind(…)` one value for each `?` of the statement."),
    (
        r"UNIQUE constraint failed",
        'Run the statement in `with conflict("column"):` (`from core import conflict`), which answers 409.',
    ),
    (
        r"Type 'object' not supported for value '\[object Object\]'",
        "`bind` takes no dict. Give its values one by one, in the order of the `?`, or `json.dumps(value)` for a column of text.",
    ),
    (r"Type 'object' not supported for value '\d{4}-\d\d-\d\d", "Give a date as text: `bind(value.isoformat())`."),
    (
        r"Type 'object' not supported for value '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'",
        "Give a UUID as text: `bind(str(value))`.",
    ),
    (r"D1_TYPE_ERROR: -?\d+ is beyond", "Give it as text: `bind(str(value))`."),
    (
        r"D1_TYPE_ERROR: Type '",
        "`bind` takes None, bool, int, float, str and bytes. Give a value made of one of them, such as `str(value)`.",
    ),
    (r"batch\(\) takes ", "Give it a list of statements, none of them awaited: `await db.batch([db.prepare(sql)])`."),
    (r"A message of a batch must be", 'Give it a list of messages: `await queue.send_batch([{"body": value}])`.'),
    (r"Invalid Durable Object ID", 'A name is no id: `namespace.get_by_name("name")`.'),
    (
        r"Unknown response type",
        'The second argument is the type of the value: "text", "json", "bytes" or "stream". There is no default: test for None.',
    ),
    (r"put\(\) may only be called with", 'Give one key and its value, or a dict: `await storage.put({"a": 1})`.'),
    (
        r"Failed to execute 'put' on 'R2Bucket'",
        "Give str, bytes or a stream of known length: `json.dumps(value)` for JSON.",
    ),
    (r"Key name cannot be empty", "Give a key of at least one character."),
    (r"Invalid expiration_ttl|Expiration TTL", "Give `expiration_ttl` at least 60 seconds."),
)


_NOT_AWAITED: Final = "A call was not awaited. Write `await` before it."
_CALLS: Final = (
    (
        r"Response\.(json|text|html|send)\(\) (takes 2|got an unexpected keyword argument 'status)",
        r"Set the status first: `res.status(201).\1(value)`.",
    ),
    (
        r"object (Response) can't be used in 'await'",
        "Methods of `res` send at once and are not awaited: remove the `await`.",
    ),
    (r"the JSON object must be str, bytes or bytearray, not (dict|list)", "It is parsed already: remove `json.loads`."),
    (r"^(?:Invalid URL|Unable to parse URL): (/.*)$", r"Give the whole URL: `https://example.test\1`."),
    (r"^(?:Invalid URL|Unable to parse URL): ", "Give a URL with its scheme and host: `https://example.test/path`."),
    (r"^Invalid HTTP method string: ", "Give the name of a method: `GET`."),
    (r"'coroutine' object|of type 'coroutine'|'coroutine' and|and 'coroutine'|not \"coroutine\"", _NOT_AWAITED),
    (
        r"^results\[\d+\]\.",
        (
            "Make the fields of the class those that the statement gives: `core check` compares them. A class in a row "
            "is `Author | None` where an outer join may find none."
        ),
    ),
)
"""The fixes that depend on Python's words alone."""
_ANY_CALL: Final = (
    (r"object (\w+) can't be used in 'await'", "The call returns its result at once: remove the `await`."),
    (r"'(\w*Env)' object is not subscriptable", r"Bindings are attributes: `req.env.NAME`, as the class \1 has them."),
    (r"mutable default", "All instances would share it. Write `field(default_factory=list)`."),
    (r"(\w+)\.__init__\(\) missing \d+ required", r"Give every field of \1 that has no default."),
    (
        r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'",
        r"Remove `\2`, or correct its name: \1 has no such field.",
    ),
    (
        r"(\w+)\(\) got an unexpected keyword argument '(\w+)'",
        r"Remove `\2`, or correct its name: \1 has no such option.",
    ),
    (r"(\w+)\(\) missing \d+ required", r"Give `\1` the arguments that the message names."),
    (r"(\w+)\.__init__\(\) takes .* but \d+ (?:was|were) given", r"Count the arguments of `\1`."),
    (r"(\w+)\(\) takes .* but \d+ (?:was|were) given", r"Count the arguments of `\1`; a method's first one is `self`."),
)
"""The same for functions of which nothing else is known."""


def _explain_raised_here(error: BaseException, text: str) -> str | None:
    """Return the fix that a TypeError or a ValueError of the framework ends with."""
    frame = frame_of(error)
    if frame is None or not frame.f_code.co_filename.startswith(_CORE):
        return None
    for mark in (". ", ": "):
        if mark in text:
            fix = text.rstrip(".").rpartition(mark)[2]
            return f"{fix[:1].upper()}{fix[1:]}."
    return None


def _explain_conversion(error: BaseException) -> str | None:
    """Return the fix for `int(req.params["id"])` of a text that is no number."""
    found = re.search(r"\breq(?:uest)?\.(params|query|header)\b", line_of(error))
    if found is None or not isinstance(error, ValueError):
        return None
    where, status = found[1].replace("header", "headers"), 404 if found[1] == "params" else 422
    return f"Any client can send such a text: `req.{where}.parse(T)` converts it to the types of T, and answers {status} where it does not fit."


def _explain_attribute(error: AttributeError) -> str | None:
    if "In core this is" in str(error):
        return _last_sentence(str(error))
    given: Any = error.obj
    owner: type[Any] = given.__class__
    name = error.name
    # It was written, not read: before Python 3.13 the object is named in the text alone.
    if name is None or str(error).endswith(_WRITTEN):
        return _explain_written(error)
    if inspect.iscoroutine(given):
        return _NOT_AWAITED
    if _is_turned(error, owner, name):
        return "The request comes first: `async def handler(req, res)`."
    if issubclass(owner, Bindings):
        return _explain_binding_name(given, name)
    if (found := fix_for_attribute(given, name)) is not None:
        return found
    if owner.__name__ == "member_descriptor" and issubclass(given.__objclass__, Bindings):
        return f"Read it while a request is answered, when an Env has its values: `req.env.{given.__name__}`, in a handler."
    if given is None:
        if "req.user" in line_of(error):
            return "`req.user` is None until an authenticator has run: register on `app.authenticated(authenticator)`."
        return f"The value is None: test for it before `.{name}`."
    if "req.url." in line_of(error) and owner is str:
        return "`req.url` is a str: `req.path` is its path, and `http.URL(req.url)` has all parts."
    written = snake(name)
    if written != name and hasattr(given, written):
        return f"Names are written as in Python: `{written}`."
    near = get_close_matches(name, [each for each in dir(cast("object", given)) if each[:1] != "_"], n=1, cutoff=0.75)
    if near and owner.__module__.startswith("core."):
        return f"Did you mean `{near[0]}`?"
    return None


def _is_turned(error: AttributeError, owner: type[Any], name: str) -> bool:
    """Return True if a handler takes `(res, req)`, by the attribute, or by the name that its line gives it."""
    if issubclass(owner, Request):
        other, has = "res(?:ponse)?", name in _SENDS
    elif issubclass(owner, Response):
        other, has = "req(?:uest)?", hasattr(Request, name)
    else:
        return False
    return (has and known_as(cast("type[object]", owner), name) is None) or re.search(
        rf"\b{other}\.{name}\b", line_of(error)
    ) is not None


def _explain_binding_name(env: object, name: str) -> str:
    known = [field.name for field in getattr(type(env), "__attrs_attrs__", ())]
    if name.islower() and name in dir(dict):
        return "Bindings are attributes: `req.env.NAME`."
    if near := get_close_matches(name, known, n=1):
        return f"Did you mean `{near[0]}`?"
    return (
        f"Correct the name, or add the attribute {name} to the Env class and the binding to the configuration file. "
        f"Bindings there are: {', '.join(known) or 'none'}."
    )


_WRITTEN: Final = ("no __dict__ for setting new attributes", "is read-only", "has no setter")


def _explain_written(error: AttributeError) -> str | None:
    """The fix for an attribute that was set: `res.status = 201`, `req.state.user = user`, `env.KV = kv`."""
    if type(error).__name__ == "FrozenInstanceError":
        return "An object of a frozen class stays as it is: make another, `attrs.evolve(given, name=value)`."
    if found := re.search(r"'State' object has no attribute '(\w+)'", str(error)):
        return f'State is a dict: `req.state["{found[1]}"] = value`.'
    return fix_for_operation(error)


def foreign_name(owner: object, name: str) -> AttributeError:
    """The error for an attribute that an App or a Router does not have, with our name for one of another framework."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    found = NAMES["Router"].get(name)
    if found is not None:
        text = f"{type(owner).__name__} has no {name}. In core this is {found}"
    return AttributeError(text, name=name, obj=owner)
