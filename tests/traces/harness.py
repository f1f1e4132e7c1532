"""Recorded calls of the real bindings, made again on ours: the reader, the matcher and the loop.

A trace is a program of calls with the outcome of each written beside it; `docs/reference/traces.md` gives the
format. This file knows the format and no binding: what a group of bindings needs of its own (fresh stores, a clock,
constructors) is an `Adapter`, in `adapter_<group>.py`. It decides what counts as the same outcome.
"""

# Traces are JSON of any shape, told apart by isinstance: what is inside has no type to know.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import importlib
import inspect
import json
import math
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import format_datetime
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import attrs

from core.bindings.r2 import R2Body
from core.testing.clock import FakeClock

__all__ = [
    "GROUPS",
    "UNDEFINED",
    "Adapter",
    "NotRunError",
    "Program",
    "Special",
    "adapter_for",
    "load",
    "replay",
    "snake",
]

DATA: Final = Path(__file__).parent / "data"
GROUPS: Final = ("kv", "d1", "r2", "queues", "fetch")

Program = Mapping[str, Any]


class NotRunError(Exception):
    """A program asks for what this replayer or its adapter does not know. Whether it fits cannot be said."""


# ---------------------------------------------------------------------- files


def load(folder: Path, groups: Iterable[str] = GROUPS) -> list[Program]:
    """Every program of a folder of traces, in order. Files of other formats raise ValueError."""
    programs: list[Program] = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        if not isinstance(document, dict) or "programs" not in document:
            continue
        if document.get("format") != 1:
            raise ValueError(f"{path}: format {document.get('format')!r} is not known; this reads format 1")
        if document["group"] in groups:
            programs += [{**program, "group": document["group"]} for program in document["programs"]]
    return programs


# ---------------------------------------------------------------------- arguments


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()
"""JavaScript's undefined. A binding that has no such thing gets None, or nothing."""


@attrs.frozen
class Special:
    """An argument that has no plain Python form. `Adapter.special` makes of it what its bindings take."""

    kind: str
    value: Any
    tag: Mapping[str, Any] = attrs.Factory(dict)


@attrs.define
class Scope:
    """The values that tags of one program refer to: its start, what it saved, and the index of a repetition."""

    start: int
    saved: dict[str, Any] = attrs.Factory(dict)
    index: int = 0


def snake(name: str) -> str:
    """JavaScript's name in Python's spelling."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


def _tag(value: Mapping[str, Any]) -> str | None:
    return next((key for key in value if key.startswith("$")), None)


def _format(template: str, index: int) -> str:
    return re.sub(r"%0?(\d*)d", lambda match: str(index).rjust(int(match[1] or 0), "0"), template)


def _float(text: str) -> float:
    return float(text.replace("Infinity", "inf"))


def _moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


class Decoder:
    """The tagged JSON of a step's arguments as Python values."""

    def __init__(self, scope: Scope, adapter: Adapter) -> None:
        self.scope = scope
        self.adapter = adapter

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = _tag(value)
        if tag is None:
            return {key: self(item) for key, item in value.items()}
        return self.tagged(tag, value[tag], value)

    def tagged(self, tag: str, x: Any, whole: dict[str, Any]) -> Any:
        start = self.scope.start
        match tag:
            case "$undefined":
                return UNDEFINED
            case "$float":
                return _float(x)
            case "$bytes" | "$arraybuffer" | "$dataview":
                return base64.b64decode(x)
            case "$repeat":
                return x[0] * x[1]
            case "$bytesrepeat":
                return bytes([x[0]]) * x[1]
            case "$date":
                return _moment(x)
            case "$now":
                return start + x
            case "$nowms":
                return (start + x) * 1000
            case "$nowdate":
                return _moment(start + x)
            case "$nowhttp":
                return format_datetime(_moment(start + x), usegmt=True)
            case "$ref":
                return self.lookup(x)
            case "$fmt":
                return _format(x, self.scope.index)
            case "$seq":
                first = x.get("start", 0)
                return [_format(x["format"], index) for index in range(first, first + x["count"])]
            case "$map_seq":
                outer, items = self.scope.index, []
                for self.scope.index in range(x["count"]):
                    items.append(self(x["item"]))
                self.scope.index = outer
                return items
            case "$concat":
                return "".join(self(part) for part in x)
            case "$obj":
                return {key: self(item) for key, item in x}
            case "$headers":
                return Special("headers", [(name, self(item)) for name, item in x], whole)
            case "$stream":
                body = self(x)
                return Special("stream", body.encode() if isinstance(body, str) else body, whole)
            case "$sql":
                return Special("sql", x, {"bind": self(whole["bind"])} if "bind" in whole else {})
            case "$bigint":
                return Special("bigint", int(x), whole)
            case _:
                # JavaScript's own kinds: $formdata, $blob, $url, $symbol, $promise, ...
                return Special(tag[1:], x, whole)

    def lookup(self, path: str) -> Any:
        """The value that an earlier step saved, by path: `p1.keys.0.name`."""
        name, *rest = path.split(".")
        value = self.scope.saved.get(name)
        for part in rest:
            if value is None:
                return None
            value = self.adapter.get(value, part)
        return value


# ---------------------------------------------------------------------- what a group of bindings adds


class Adapter:
    """The way of one group's programs to our bindings. Everything here is a default to override."""

    options_at: ClassVar[Mapping[str, int]] = {}
    """The position of the options object in JavaScript's arguments, by operation."""
    nested: ClassVar[frozenset[str]] = frozenset()
    """Options whose own keys are names too, not data."""
    strict: bool = False
    """Compare advisory values as well, and SQLite's messages with their offsets."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.clock = FakeClock(1_800_000_000.25)

    async def open(self, program: Program) -> Mapping[str, Any]:
        """Fresh, empty bindings by name: KV, KV2, DB, ..."""
        raise NotImplementedError

    async def close(self) -> None:
        """End what `open` began."""

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.advance(seconds)

    async def drain(self, seconds: float) -> Any:
        """Let time pass; give the batches that consumers got since the last time."""
        raise NotImplementedError

    def special(self, value: Special, target: Any) -> Any:
        """An argument that has no plain form."""
        match value.kind:
            case "stream":
                return _chunks(value.value)
            case "bigint":
                return value.value
            case _:
                raise NotRunError(f"no value for ${value.kind}")

    def arguments(self, op: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """JavaScript's arguments as Python's: the options object as keyword arguments, undefined left out."""
        while args and args[-1] is UNDEFINED:
            args = args[:-1]
        options: dict[str, Any] = {}
        place = self.options_at.get(op)
        if place is not None and len(args) > place:
            given, args = args[place], args[:place]
            options = self.options(op, given)
        return [None if value is UNDEFINED else value for value in args], options

    def options(self, op: str, given: Any) -> dict[str, Any]:
        """An options object as keyword arguments."""
        options = {}
        for name, value in (given or {}).items():
            if value is UNDEFINED:
                continue
            inner = name in self.nested and type(value) is dict
            options[snake(name)] = {snake(key): item for key, item in value.items()} if inner else value
        return options

    def method(self, target: Any, op: str) -> Callable[..., Any]:
        """The method of a binding for an operation of JavaScript's."""
        return cast("Callable[..., Any]", getattr(target, snake(op)))

    def get(self, target: Any, name: str) -> Any:
        """A property, by its JavaScript name."""
        if isinstance(target, Mapping) and (name in target or snake(name) in target or name != "length"):
            return target[name] if name in target else target.get(snake(name))
        if name == "length" and not hasattr(target, "length"):
            return len(target)
        if name.isdigit():
            return target[int(name)]
        return getattr(target, snake(name))

    def written(self, target: Any, name: str) -> Any:
        """A property as the record of a whole R2 object has it, which may not be how it reads alone."""
        return self.get(target, name)

    def construct(self, name: str, args: list[Any]) -> Any:
        """`new Request(...)`."""
        raise NotImplementedError

    def static(self, name: str, method: str, args: list[Any]) -> Any:
        """`Response::json(...)`."""
        raise NotImplementedError

    def iterate(self, target: Any, what: str) -> list[Any]:
        """`[entries]`, `[keys]`, `[values]`, as lists."""
        items = getattr(target, {"entries": "items"}.get(what, what))()
        return [list(item) if isinstance(item, tuple) else item for item in items]

    def error(self, error: BaseException) -> tuple[str, str]:
        """JavaScript's name for the kind of error, and the message."""
        name = getattr(error, "js_name", None)
        if name is None:
            kinds: dict[type[BaseException], str] = {
                TypeError: "TypeError",
                # What JavaScript says of a method that is not there.
                AttributeError: "TypeError",
                ValueError: "RangeError",
                json.JSONDecodeError: "SyntaxError",
            }
            name = kinds.get(type(error), "Error")
        return name, str(error)


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 65536):
        yield data[start : start + 65536]


# ---------------------------------------------------------------------- outcomes


class Matcher:
    """A recorded outcome against what a binding gave. It remembers which value each label stood for."""

    def __init__(self, adapter: Adapter, start: int) -> None:
        self.adapter = adapter
        self.start = start
        self.labels: dict[str, Any] = {}

    def outcome(self, expect: Mapping[str, Any], error: BaseException | None, got: Any) -> list[str]:
        """Every difference, as lines; none when it fits. Labels are learned only from an outcome that fits."""
        before = dict(self.labels)
        if "error" in expect:
            problems = self.error(expect["error"], error, got)
        elif error is not None:
            problems = [f"raised {type(error).__name__}: {error}"]
        else:
            problems = self.value(expect["value"], got, "value")
        if problems:
            self.labels = before
        return problems

    def error(self, want: Mapping[str, Any], error: BaseException | None, got: Any) -> list[str]:
        if error is None:
            return [f"want {want['name']}: {want['message']}, got the value {got!r:.160}"]
        name, message = self.adapter.error(error)
        if name != want["name"]:
            return [f"want {want['name']}: {want['message']}, got {name}: {message}"]
        if want.get("match") == "name":
            return []
        exact = self.text(want["message"])
        loose = self.text(want.get("loose", want["message"]))
        if message != exact and (self.adapter.strict or _loose(message) != loose):
            return [f"want the message {exact!r}, got {message!r}"]
        cause = getattr(error, "cause_message", None)
        if "cause" in want and cause is not None and _loose(cause) != _loose(self.text(want["cause"])):
            return [f"want the cause {want['cause']!r}, got {cause!r}"]
        return []

    def text(self, text: str) -> str:
        return re.sub(r"\{now([+-]\d+)\}", lambda match: str(self.start + int(match[1])), text)

    def value(self, want: Any, got: Any, at: str) -> list[str]:
        wrong = [f"{at}: want {json.dumps(want, ensure_ascii=False)[:200]}, got {got!r:.200}"]
        if got is UNDEFINED:
            got = None
        match want:
            case None:
                fits = got is None
            case bool():
                fits = got is want
            case int() | float():
                fits = isinstance(got, int | float) and not isinstance(got, bool) and got == want
            case str():
                fits = isinstance(got, str) and got == want
            case list():
                return self.sequence(want, got, at, wrong)
            case _:
                tag = _tag(want)
                return self.members(want, got, at) if tag is None else self.tagged(tag, want[tag], got, at, wrong)
        return [] if fits else wrong

    def sequence(self, want: list[Any], got: Any, at: str, wrong: list[str]) -> list[str]:
        if isinstance(got, bytes | bytearray):  # JavaScript's D1 gives a blob as a list of numbers
            return [] if list(got) == want else wrong
        if not isinstance(got, list | tuple) or len(got) != len(want):
            return wrong
        return [
            problem
            for index, (item, value) in enumerate(zip(want, got, strict=True))
            for problem in self.value(item, value, f"{at}[{index}]")
        ]

    def members(self, want: Mapping[str, Any], got: Any, at: str) -> list[str]:
        problems = []
        for name, item in want.items():
            problems += self.value(item, self.member(got, name), f"{at}.{name}")
        if "served_by" in want:  # the meta of a query may say more than the recording's
            return problems
        wanted = {key for name in want for key in (name, snake(name))}
        problems += [
            f"{at}: unexpected {name} = {value!r:.80}"
            for name, value in _named(got)
            if name not in wanted and value is not None
        ]
        return problems

    def member(self, got: Any, name: str, *, written: bool = False) -> Any:
        try:
            return self.adapter.written(got, name) if written else self.adapter.get(got, name)
        except (AttributeError, KeyError, IndexError, TypeError):
            return None

    def tagged(self, tag: str, x: Any, got: Any, at: str, wrong: list[str]) -> list[str]:
        match tag:
            case "$undefined":
                fits = got is None
            case "$ignored" | "$skipped" | "$error" | "$function":
                fits = True
            case "$advisory":
                return self.value(x, got, at) if self.adapter.strict else []
            case "$any":
                kinds: dict[str, Any] = {"number": (int, float), "string": str, "array": (list, tuple), "boolean": bool}
                fits = isinstance(got, kinds.get(x, object))
            case "$object":
                fits = got is not None
            case "$float":
                fits = isinstance(got, float) and math.isnan(got) if x == "NaN" else got == _float(x)
            case "$bigint":
                fits = got == int(x)
            case "$bytes":
                fits = _is_bytes(got) and bytes(got) == base64.b64decode(x)
            case "$bytesrepeat":
                fits = _is_bytes(got) and bytes(got) == bytes([x[0]]) * x[1]
            case "$bigbytes":
                fits = _is_bytes(got) and hashlib.sha256(bytes(got)).hexdigest() == x["sha256"]
            case "$repeat":
                fits = got == x[0] * x[1]
            case "$bigtext":
                fits = isinstance(got, str) and hashlib.sha256(got.encode()).hexdigest() == x["sha256"]
            case "$stream":
                return self.value(x, got, at)
            case "$map":
                if not isinstance(got, Mapping) or [name for name, _ in x] != list(got):
                    return wrong
                return [problem for name, item in x for problem in self.value(item, got[name], f"{at}[{name!r}]")]
            case "$obj":
                if not isinstance(got, Mapping):
                    return wrong
                return [problem for name, item in x for problem in self.value(item, got.get(name), f"{at}.{name}")]
            case "$opaque":
                fits = self.label(x, got)
            case "$now":
                fits = got is not None and _seconds(got) == self.start + x
            case "$date":
                fits = got is not None and abs(_seconds(got) - x) < 0.001
            case "$recent":
                fits = got is not None and self.start - 1 <= _seconds(got) <= self.adapter.clock.time() + 1
            case "$r2" | "$multipart":
                return self.object(x, got, at, wrong)
            case "$headers":
                return self.value(x, self.adapter.iterate(got, "entries"), at)
            case "$urlsearchparams":
                fits = str(got) == x
            case "$formdata":
                fits = [list(item) for item in got.items_in_order] == x
            case _:
                raise NotRunError(f"no rule for {tag}")
        return [] if fits else wrong

    def label(self, label: str, got: Any) -> bool:
        """True if a value that is different in every run is the same, or another, as the labels say."""
        if label in self.labels:
            return bool(self.labels[label] == got)
        kind = label.split("#")[0] + "#"
        if got is None or any(value == got for known, value in self.labels.items() if known.startswith(kind)):
            return False
        self.labels[label] = got
        return True

    def object(self, want: Mapping[str, Any], got: Any, at: str, wrong: list[str]) -> list[str]:
        if got is None:
            return wrong
        problems = []
        for name, item in want.items():
            value = (
                getattr(got, "body", None) is not None if name == "has_body" else self.member(got, name, written=True)
            )
            problems += self.value(item, value, f"{at}.{name}")
        return problems


def _named(got: Any) -> Iterator[tuple[str, Any]]:
    """The names that a result has."""
    if isinstance(got, Mapping):
        yield from got.items()
    elif attrs.has(type(got)):
        for field in attrs.fields(type(got)):
            yield field.name, getattr(got, field.name)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def _seconds(value: Any) -> float:
    return value.timestamp() if isinstance(value, dt.datetime) else float(value)


def _loose(message: str) -> str:
    """A message without what Python's sqlite3 module does not tell."""
    return re.sub(r" \(extended: SQLITE_\w+\)", "", re.sub(r" at offset \d+(?=: SQLITE_)", "", message))


# ---------------------------------------------------------------------- the loop


async def replay(program: Program, adapter: Adapter) -> list[str]:
    """Run one program. What does not fit its record, as lines of text; none when all of it fits.

    Raises NotRunError for a program that cannot be run: it is of another version of the format, or asks for more.
    """
    try:
        bindings = await adapter.open(program)
        return await _Replay(program, adapter, bindings).run()
    except (KeyError, TypeError, LookupError, NotImplementedError) as error:
        raise NotRunError(f"{type(error).__name__}: {error}") from error
    finally:
        await adapter.close()


class _Replay:
    def __init__(self, program: Program, adapter: Adapter, bindings: Mapping[str, Any]) -> None:
        self.program = program
        self.adapter = adapter
        self.bindings = bindings
        self.scope = Scope(start=int(adapter.clock.time()))
        self.decode = Decoder(self.scope, adapter)
        self.matcher = Matcher(adapter, self.scope.start)

    async def run(self) -> list[str]:
        problems: list[str] = []
        for number, step in enumerate(self.program["steps"]):
            where = f"{self.program['id']}[{number}] {step['op']}"
            problems += [f"{where}: {problem}" for problem in await self.step(step)]
        return problems

    async def step(self, step: Mapping[str, Any]) -> list[str]:
        got: Any = None
        error: BaseException | None = None
        if "on" in step and self.decode.lookup(step["on"]) is None:
            return [] if step["expect"].get("value") == {"$skipped": True} else [f"{step['on']} was never made"]
        try:
            got = await self.perform(step)
        except NotRunError:
            raise
        except NotImplementedError as unknown:
            raise NotRunError(f"no way to do {step['op']} ({unknown})") from unknown
        except Exception as raised:
            error = raised
        if "as" in step and error is None:
            self.scope.saved[step["as"]] = got
        problems = self.matcher.outcome(step["expect"], error, got)
        for other in ("newer", "undici"):
            if problems and other in step and not self.adapter.strict:
                problems = self.matcher.outcome(step[other], error, got) and problems
        return problems

    async def perform(self, step: Mapping[str, Any]) -> Any:
        op: str = step["op"]
        if op == "@sleep":
            return await self.adapter.advance(step["args"][0])
        if op == "@drain":
            return await self.adapter.drain(step["args"][0])
        target = self.decode.lookup(step["on"]) if "on" in step else self.bindings.get(step.get("binding", ""))
        for name, args in step.get("chain", []):
            target = await self.call(target, name, args or [])
        repeat = step.get("repeat", {"count": 1})
        first = repeat.get("start", 0)
        got: Any = None
        for self.scope.index in range(first, first + repeat["count"]):
            got = await _read(await self.once(target, op, step.get("args", [])))
        return got

    async def once(self, target: Any, op: str, args: list[Any]) -> Any:
        if op.startswith("."):
            try:
                return await _await(self.adapter.get(target, op[1:]))
            except (AttributeError, KeyError):
                return None  # JavaScript's undefined
        if op.startswith("["):
            return self.adapter.iterate(target, op[1:-1])
        if op.startswith("new "):
            return await _await(self.adapter.construct(op[4:], self.specials(self.decode(args), None)))
        if "::" in op:
            name, method = op.split("::")
            return await _await(self.adapter.static(name, method, self.specials(self.decode(args), None)))
        return await self.call(target, op, args)

    async def call(self, target: Any, op: str, args: list[Any]) -> Any:
        positional, options = self.adapter.arguments(op, self.specials(self.decode(args), target))
        return await _await(self.adapter.method(target, op)(*positional, **options))

    def specials(self, value: Any, target: Any) -> Any:
        if isinstance(value, Special):
            return self.adapter.special(value, target)
        if isinstance(value, list):
            return [self.specials(item, target) for item in value]
        if type(value) is dict:
            return {key: self.specials(item, target) for key, item in value.items()}
        return value


async def _await(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _read(value: Any) -> Any:
    """A stream as what it gives; everything else as it is."""
    if isinstance(value, AsyncIterator | R2Body):
        return b"".join([chunk async for chunk in value])
    return value


# ---------------------------------------------------------------------- which adapter


def adapter_for(group: str, folder: Path | None = None) -> Adapter:
    """The adapter of a group, over memory or a folder. Raises LookupError where there is none."""
    try:
        module = importlib.import_module(f"tests.traces.adapter_{group}")
    except ModuleNotFoundError as error:
        raise LookupError(f"no adapter for the group {group!r}") from error
    adapter: Adapter = module.adapter(folder)
    return adapter


@contextmanager
def empty_folder() -> Generator[Path]:
    """A working directory of its own: what a program writes there got past the binding."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def strays(folder: Path) -> Sequence[str]:
    """Files that a program left in its working directory."""
    return sorted(path.name for path in folder.iterdir())
