"""What a program registers, as its own start tells it: the one table that checks, documents and commands read.

Plain values, so that it passes as JSON between interpreters and versions of the framework: `to_json`, `from_json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import types
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints

FORMAT = 14
"""Raised with every change of these classes: the program's framework may be another one than the checker's."""


class Place(NamedTuple):
    """A place in a file. Lines and columns count from 1; 0 where they are not known."""

    file: str = ""
    line: int = 0
    column: int = 0


class Function(NamedTuple):
    """A function with a body in a file.

    `line` is that of its first decorator, as its code object has it. `bound` are the arguments that are given already:
    `self` of a method, those of a partial.
    """

    file: str
    qualname: str
    line: int
    bound: int = 0


class Callback(NamedTuple):
    """A middleware, an authenticator or a handler.

    `bodies` are the program's functions behind it, the outermost first. `whole` is False where one of them could not be
    found, `direct` where a request does not call the first of them itself. `provides` are names such as `req.user`, and
    `maker` is the full name of the function that it was made in.
    """

    name: str
    bodies: tuple[Function, ...]
    whole: bool
    direct: bool
    provides: tuple[str, ...] = ()
    maker: str = ""


class Route(NamedTuple):
    """A route as requests meet it: its whole path, and everything that runs before its handler.

    `handler` and `middleware` are indices of `Table.callbacks`; the last `own` of them are the registration's own.
    `handler` is None where the last middleware goes on. `kind` is `http`, `websocket`, or `mount` for another
    application. `bodiless` are those of its `tools` that send no body.
    """

    method: str
    path: str
    handler: int | None
    middleware: tuple[int, ...]
    own: int
    place: Place
    kind: str
    authenticated: bool
    public: bool
    optional: bool
    tools: tuple[str, ...] = ()
    bodiless: tuple[str, ...] = ()


class Event(NamedTuple):
    """A consumer of a queue, the handler of a cron (None: of every trigger), a lifespan, or a handler of errors,
    `not_found` among them: `kind` is `queue`, `scheduled`, `lifespan` or `error`. `handler` is an index of
    `Table.callbacks`.
    """

    kind: str
    name: str | None
    handler: int
    place: Place


class Env(NamedTuple):
    """The class of `req.env`. `bindings`: it derives from `Bindings`."""

    module: str
    qualname: str
    bindings: bool
    problems: tuple[str, ...]


class App(NamedTuple):
    """An application: `main` is True for the one that is served."""

    main: bool
    place: Place
    env: Env | None
    routes: tuple[Route, ...]
    events: tuple[Event, ...]


class Refusal(NamedTuple):
    """Something that a registration, `app.check()` or the import refuses; `kind` is the error's class. `fix` is what to
    do about an error of Python's own, where that is known.
    """

    kind: str
    message: str
    place: Place
    fix: str = ""


class Table(NamedTuple):
    """Everything that a program registers.

    `objects` are the classes of Durable Objects in the main module, which a binding may name. `finished` is False where
    the import did not come to its end: what is written behind that is missing. `unread` are registrations of something
    that is only assumed to be there, `unmounted` those on routers that are mounted nowhere. `idle` are the places of
    declared middleware that no route meets. `path` are the folders of the program that imports start from. The rest is
    what the table was made from: the files of its own `modules`, other `files`, the `folders` that were listed, the
    `environ` variables that were read, with digests of their values, and `repeats`, False where the start asked for
    something that no file tells. `ran` says that async functions ran, so that any edit may change the table.
    """

    apps: tuple[App, ...] = ()
    callbacks: tuple[Callback, ...] = ()
    objects: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    idle: tuple[Place, ...] = ()
    unread: tuple[Place, ...] = ()
    assumed: tuple[str, ...] = ()
    finished: bool = False
    path: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    repeats: bool = True
    ran: bool = False
    unmounted: tuple[Place, ...] = ()

    @property
    def app(self) -> App | None:
        """The application that is served."""
        return next((app for app in self.apps if app.main), None)


def digest_of(value: str | None) -> str:
    """A digest of the value of a variable, which may be a secret; "" where it is not set."""
    return "" if value is None else hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_set(environ: Iterable[tuple[str, str]]) -> bool:
    """Return True if variables have the values that these digests are of."""
    return all(digest_of(os.environ.get(name)) == digest for name, digest in environ)


def to_json(table: Table) -> str:
    """A table as text."""
    return json.dumps([FORMAT, table])


def from_json(text: str | bytes) -> Table | None:
    """The table that a text is; None for one of another format. Raises ValueError for no table at all."""
    found: Any = json.loads(text)
    try:
        number, table = found
        return cast("Table", _reader(Table)(table)) if number == FORMAT else None
    except (TypeError, ValueError):
        raise ValueError("not a table") from None


@lru_cache
def _reader(kind: Any) -> Callable[[Any], object]:
    """Reads a value of JSON as one of these classes."""
    if hasattr(kind, "_fields"):
        readers = [_reader(of) for of in get_type_hints(kind).values()]
        return lambda values: kind._make(read(one) for read, one in zip(readers, values, strict=True))
    if get_origin(kind) is tuple:
        each = [_reader(of) for of in get_args(kind) if of is not ...]
        if get_args(kind)[-1] is ...:
            return lambda values: tuple(map(each[0], values))
        return lambda values: tuple(read(one) for read, one in zip(each, values, strict=True))
    if isinstance(kind, types.UnionType):
        inner = _reader(get_args(kind)[0])
        return lambda value: None if value is None else inner(value)
    return lambda value: value
