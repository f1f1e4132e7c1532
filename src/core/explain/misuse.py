"""The fix for what was used as another library's: a missing attribute, an operation, arguments of a call, an import.

Python's own words name a class and what it cannot do; `names.py` has what is written here in its place, and the
signature of the function what it takes. Loaded after a failure only. It reads the error and the frame that it came
from, and calls nothing of the application.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final, TypeVar

from core.errors.mistakes import module_in_place
from core.explain.names import MODULE, NAMES

_PROTOCOLS: Final = {
    "D1DatabaseSession": "D1Database",
    "Cursor": "SqlStorageCursor",
    "Delivery": "MessageBatch",
    "_Batch": "MessageBatch",
    "DeliveredMessage": "Message",
    "_Message": "Message",
    "BackgroundContext": "ExecutionContext",
    "FakeExecutionContext": "ExecutionContext",
    "WorkersContext": "ExecutionContext",
}
"""The public names of classes that do not derive from the class of that name."""

_OPERATIONS: Final = (
    (r"'(\w+)' object is not subscriptable", "[]"),
    (r"'(\w+)' object does(?: not|n't) support item assignment", "[]="),
    (r"'(\w+)' object does(?: not|n't) support item deletion", "del []"),
    (r"'(\w+)' object is not callable", "()"),
    (r"'(\w+)' object is not (?:iterable|an iterator)", "for"),
    (r"argument of type '(\w+)' is not (?:iterable|a container)", "in"),
    (r"'async for' requires an object with __aiter__ method, got (\w+)", "async for"),
    (r"object of type '(\w+)' has no len\(\)", "len"),
    (r"'(\w+)' object does not support the (?:asynchronous )?context manager protocol", "with"),
    (r"object (?:\w+\.)*(\w+) can't be used in 'await' expression|'(\w+)' object can't be awaited", "await"),
    (r"unsupported operand type\(s\) for [^:]+: '(\w+)' and '(\w+)'", "+"),
    (r"can only concatenate str \(not \"(\w+)\"\) to str", "+"),
    (r"^'(\w+)' object attribute '(?P<name>\w+)' is read-only", "="),
    (r"^property '(?P<name>\w+)' of '(\w+)' object has no setter", "="),
)
_CALL: Final = re.compile(
    r"^(?:(?P<owner>\w+)\.)?(?P<name>\w+)\(\) (?:"
    r"got an unexpected keyword argument '(?P<option>\w+)'"
    r"|(?P<many>takes .*? but \d+ (?:\w+ )*(?:was|were) given)"
    r"|missing \d+ required (?P<how>keyword-only|positional) arguments?: '(?P<missing>\w+)'"
    r"|got some positional-only arguments passed as keyword arguments: '(?P<named>\w+))"
)
_Kind = TypeVar("_Kind", type, FunctionType)
_SOURCES: Final = Path(__file__).parent.parent
_PUBLIC: Final = ("", "errors", "http", "bindings", "middleware", "testing", "hosts", "mcp")
"""The folders with the modules that programs import from. The first is that of the files that have none."""


def as_sentence(fix: str) -> str:
    """An entry of `NAMES` as a sentence."""
    return fix if fix[:1].isupper() else f"In core this is {fix}."


def known_as(cls: type, name: str) -> str | None:
    """The name here of an attribute or an operation, for a class of the framework or one of its bases."""
    for base in cls.__mro__:
        for key in keys_of(base):
            fix = NAMES.get(key, {}).get(name)
            if fix is not None:
                return fix
    return None


def keys_of(cls: type) -> Iterator[str]:
    """The names under which a class may stand in `NAMES`."""
    if not cls.__module__.startswith("core."):
        return
    name = cls.__name__
    if cls.__module__.startswith("core.http.") and name in ("Request", "Response"):
        name = f"http.{name}"
    yield name
    if name in _PROTOCOLS:
        yield _PROTOCOLS[name]


# -- an attribute


def fix_for_attribute(given: object, name: str) -> str | None:
    """The fix for an attribute that an object does not have; None where nothing is known of it."""
    owner = given.__class__
    found = known_as(owner, name)
    if found is not None:
        return as_sentence(found)
    if isinstance(given, ModuleType):  # `from core import request`, as in Flask
        of_module = {"core.request": "Request", "core.response": "Response", "core.app": "Router"}.get(
            given.__name__, ""
        )
        fix = NAMES.get(of_module, {}).get(name)
        return None if fix is None else as_sentence(fix)
    kinds = {key for base in owner.__mro__ for key in keys_of(base)}
    if "Params" in kinds:
        return f'Parameters are a mapping: `req.params["{name}"]`.'
    if "Query" in kinds:
        return f'The query is a mapping: `req.query.get("{name}")`.'
    if "HeadersView" in kinds and not hasattr(owner, snake(name)):
        header = "-".join(part.capitalize() for part in snake(name).split("_"))
        return f'Headers are a mapping: `req.header("{header}")`.'
    if "State" in kinds:
        return f'State is a dict: `req.state["{name}"]`.'
    if owner is dict:
        return (
            f'A dict is read by key: `["{name}"]`. Give a class for attributes: `first(T)` or `all(T)` for rows, '
            "`await req.json(T)` for a body."
        )
    return None


def snake(name: str) -> str:
    """A name of JavaScript's as Python writes it."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


# -- an operation


def fix_for_operation(error: BaseException) -> str | None:
    """The fix for what Python cannot do with an object of the framework: `kv["a"]`, `for row in result`."""
    text = str(error)
    for pattern, operation in _OPERATIONS:
        found = re.search(pattern, text)
        if found is None:
            continue
        named = found.groupdict().get("name")
        owners = [name for name in found.groups() if name is not None and name != named]
        fixes = {
            fix
            for name in owners
            for cls in _meant(name, error, type)
            if (fix := known_as(cls, operation if named is None else f"{named}{operation}")) is not None
        }
        if len(fixes) == 1:
            return as_sentence(*fixes)
        return _fix_for_callable(owners[0], operation, error)
    return None


_CALLABLES: Final = frozenset({"method", "function", "partial", "builtin_function_or_method"})


def _fix_for_callable(kind: str, operation: str, error: BaseException) -> str | None:
    """`req.json["a"]`, `await req.bytes`, and a call of a middleware's module in the place of its function."""
    frame = frame_of(error)
    if kind == "module" and operation == "()" and frame is not None:
        code = frame.f_code
        for name in re.findall(r"(\w+)\(", line_of(error)) or code.co_names + code.co_varnames:
            fix = module_in_place(_named(frame, name), name)
            if fix is not None:
                return f"{fix}."
    if kind in _CALLABLES and operation == "[]":
        return "A method is called before its result is read: `(await req.json())[…]`."
    if kind in _CALLABLES and operation in ("await", "+", "for"):
        return "Call it: write `(…)` behind the name of the method."
    return None


# -- the arguments of a call


def fix_for_call(error: BaseException) -> str | None:
    """The fix for arguments that a function of the framework does not take."""
    found = _CALL.search(str(error))
    if found is None:
        return None
    owner, name, option = found["owner"], found["name"], found["option"]
    if owner is None and (cls := next(iter(_meant(name, error, type)), None)) is not None:
        owner, name = cls.__name__, "__init__"  # as attrs says it in later versions
    keys = [f"({option}=)", "(…=)"] if option else ["(…)"] if found["many"] else ["()", "(…)"]
    if owner is None:
        function = next(iter(_meant(name, error, FunctionType)), None)
        if function is None:
            return None
        fix = next((NAMES[name][key] for key in keys if key in NAMES.get(name, {})), None)
        return as_sentence(fix) if fix is not None else _by_signature(name, function, found)
    for cls in _meant(owner, error, type):
        fix = next((fix for key in keys if (fix := known_as(cls, f"{name}{key}")) is not None), None)
        if fix is not None:
            return as_sentence(fix)
        if callable(function := getattr(cls, name, None)):
            return _by_signature(owner if name == "__init__" else name, function, found)
    return None


def _by_signature(name: str, function: Any, found: re.Match[str]) -> str | None:
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    named = [each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
    only = [each for each in parameters if each.kind == each.KEYWORD_ONLY]
    if found["option"]:
        near = get_close_matches(snake(found["option"]), named, n=1)
        if near:
            return f"Did you mean `{near[0]}`?"
        listed = ", ".join(f"`{each}`" for each in named)
        return f"Remove it: `{name}` takes {listed}." if named else f"Remove it: `{name}` has no options."
    if found["named"]:
        places = [each.name for each in parameters if each.kind == each.POSITIONAL_ONLY]
        return f"Give `{found['named']}` without its name, in its place: `{name}({', '.join(places)})`."
    if found["missing"]:
        return f"Give `{found['missing']}`{' by name' if found['how'] == 'keyword-only' else ''}: `{name}(…)`."
    if not only:
        return None
    first = next((each for each in only if each.default is each.empty), only[0])
    return f"Options are given by name: `{name}({first.name}=…)`."


# -- imports


def fix_for_name(module: str, name: str, names: Sequence[str]) -> str:
    """The fix for `from module import name`, without a full stop; `names` are those that the module has."""
    ours = module.partition(".")[0] == "core"
    if ours and name in MODULE:
        return f"In core this is {MODULE[name]}"
    if ours and (fix := next(_fixes(name), None)) is not None:
        return fix
    visible = [each for each in names if each[:1] != "_"]
    near = [each for each in visible if each.lower().startswith(name.lower())]
    near = near or get_close_matches(name, visible, 1, 0.65)
    if near:
        return f"Did you mean `{near[0]}`?"
    return "Correct the name" if ours else "Correct the name, or define it there"


def fix_for_syntax(message: str) -> str | None:
    """The fix for a syntax error, without a full stop."""
    # Of `await`, `async with` and `async for` alike; a comprehension is "outside of an asynchronous function".
    is_async = "outside async function" in message or "outside of an asynchronous function" in message
    return "Write `async def` for the function around it" if is_async else None


def _fixes(name: str) -> Iterator[str]:
    """Imports from the modules of the framework that list a public name, that define it, and that are called so."""
    listed = re.compile(rf'^    "{name}",$', re.MULTILINE)
    defined = re.compile(rf"^(?:(?:async )?def {name}\b|class {name}\b|{name}(?:: | = ))", re.MULTILINE)
    folders = {".".join(filter(None, ("core", each))): _SOURCES / each for each in _PUBLIC if name[:1] != "_"}
    for package, folder in folders.items():
        if (file := folder / "__init__.py").exists() and listed.search(file.read_text("utf-8")):
            yield f"Write `from {package} import {name}`"
    for package, folder in folders.items():
        for file in sorted(folder.glob("[a-z]*.py")):
            if defined.search(file.read_text("utf-8")):
                yield f"Write `from {package}.{file.stem} import {name}`"
    for package, folder in folders.items():
        if (folder / f"{name}.py").exists():
            yield f"Import what you need from `{package}.{name}`"


# -- who is meant


def frame_of(error: BaseException) -> FrameType | None:
    """The frame that raised an error."""
    return next((frame for frame, _ in deque(traceback.walk_tb(error.__traceback__), maxlen=1)), None)


def line_of(error: BaseException) -> str:
    """The source line that raised an error, or an empty string."""
    frames = deque(traceback.walk_tb(error.__traceback__), maxlen=1)
    return "".join(linecache.getline(frame.f_code.co_filename, line) for frame, line in frames)


def _named(frame: FrameType, name: str) -> object:
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _meant(name: str, error: BaseException, kind: type[_Kind]) -> list[_Kind]:
    """The classes or functions of the framework that Python may mean by `name`; none where the program has one."""
    frame = frame_of(error)
    meant = None if frame is None else _named(frame, name)
    if isinstance(meant, kind):
        return [meant] if meant.__module__.startswith("core.") else []
    modules = [module for key, module in sys.modules.items() if key.startswith("core.")]
    named = [(module.__name__, vars(module).get(name)) for module in modules]
    found = [each for module, each in named if isinstance(each, kind) and each.__module__ == module]
    return sorted(found, key=lambda each: each.__module__.startswith("core.http."))
