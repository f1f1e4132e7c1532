"""`python -m core.program.start FOLDER MODULE ATTRIBUTE CONFIG FILE [--assume]`: import a program, and print its table.

Registering is running: an application that is imported has every mount, every router made in a loop and every decorated
handler exactly as requests meet them. Registrations that are refused are noted with their line and left out, and names
and modules that do not exist are given something to stand for them, so that one start tells all mistakes.

`--assume`: packages that are not installed are no mistakes, since a type checker that runs this tells of them itself.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import core.app
import core.router
from core.env import Bindings, fields_of
from core.errors import DeveloperError, EnvError, RegistrationError
from core.explain.frames import is_own
from core.handlers import MiddlewareInfo, attach_info, info_of, name_of
from core.hosts.application import find_app
from core.program.entry import Entry, import_main
from core.program.extensions import declared
from core.program.importing import file_of, real
from core.program.recording import Recorder
from core.program.table import App, Callback, Env, Event, Function, Place, Route, Table, to_json
from core.routing.offered import bodiless_at, offer_tools, servers_in
from core.routing.table import Route as Registered

_CORE: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_prove_order: Final = core.router.prove_order


def main(arguments: list[str]) -> None:
    """Answer on standard output, which a program that is imported prints to as well: so that goes elsewhere."""
    answer = os.dup(1)
    os.dup2(2, 1)
    gc.disable()  # nothing of an import is garbage: looking for some takes a fifth of the time
    assume = arguments[-1] == "--assume"
    table = Start(Entry(*arguments[:5]), assume=assume).table()
    with os.fdopen(answer, "w") as out:
        out.write(to_json(table))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the program started do not hold it up


class Start(Recorder):
    """One start of a program. It changes the framework, for its whole process."""

    def __init__(self, entry: Entry, *, assume: bool) -> None:
        super().__init__(assume=assume)
        self.entry = entry
        self.app: Any = None
        """The application that is served, once there is a table."""
        self._indices: dict[int, int] = {}
        self._callbacks: list[Callback] = []
        self._met: set[int] = set()
        """What requests meet, and the callables that they keep, as a guard keeps its authenticator."""

    def table(self) -> Table:
        """Import the program, and describe everything that it has registered."""
        before, path = set(sys.modules), list(sys.path)
        self.watch_files()
        self.watch_imports()
        self.watch_classes()
        self.watch_registrations()
        module = None
        try:
            module = import_main(self.entry)
        except (Exception, SystemExit) as error:  # the program's own code may raise anything
            self.refuse(error, Place(self.entry.config, 1))
        if module is not None:
            try:
                self.app = find_app(module, self.entry.attribute, self.entry.config)
            except DeveloperError as error:
                file = real(module.__file__ or "")
                if file not in self.stopped:
                    line = error.location[1] if error.location is not None else 1
                    self.note("NoApp", str(error).partition(": ")[2], Place(file, line))
        self.imported = True
        finished = module is not None and not (self.stopped or self.refusals or self.unread)
        own = [one for name, one in list(sys.modules.items()) if name not in before and is_own(file_of(one))]
        apps = [self._app(one, one is self.app) for one in self.apps if one._registered or one is self.app]
        met = {self.made[one] for one in self._met if one in self.made}
        served = {id(router) for app in self.apps for router in app._everything_below()}
        # A package beside the worker's own folder is shared: another worker may mount what this one does not.
        home = os.path.join(os.path.dirname(real(self.entry.config)), "")
        unmounted = (at for router, at in self.routes if id(router) not in served and at.file.startswith(home))
        return Table(
            tuple(apps),
            tuple(self._callbacks),
            tuple(_objects(module)) if module is not None and not self.stopped else (),
            tuple(self.refusals),
            tuple(dict.fromkeys(place for place in self.made.values() if place not in met)),
            tuple(self.unread),
            tuple(self.assumed),
            finished,
            tuple(dict.fromkeys(real(one) for one in sys.path if one not in path)),
            tuple(sorted({real(file_of(one)) for one in own})),
            tuple(sorted(self.opened)),
            tuple(sorted({self.entry.folder, *self.folders})),
            tuple(sorted(self.environ.items())),
            self.repeats,
            self.ran,
            tuple(dict.fromkeys(unmounted)) if finished else (),
        )

    # -- the application as a whole

    def _app(self, app: Any, is_main: bool) -> App:
        entries: list[Registered] = list(app.entries())
        for middleware in (middleware for entry in entries for middleware in entry.middleware):
            _declare(middleware)
        self._prove(entries)
        for entry, what in app._open() if app.default_deny else ():
            problem = f"default_deny: {what} is neither public nor behind an authenticator, so no request is served"
            way = "Put public() before it, app.use(prefix, public()) before a mount, or register it on router.authenticated(…)"
            self.note("DefaultDeny", f"{problem}. {way}", self.registered_at[id(entry)])
        below = {id(one) for one in app._everything_below()}
        return App(
            is_main,
            self.places[id(app)],
            None if app.env_class is None else _env(app.env_class),
            tuple(self._routes(app, servers_in(entries))),
            tuple(
                Event(kind, event, self._index_of(handler), place)
                for owner, kind, event, handler, place in sorted(self.events, key=lambda one: one[1] == "error")
                if owner is app or (kind == "error" and id(owner) in below)
            ),
        )

    def _prove(self, entries: list[Registered]) -> None:
        """The order and the requirements of middleware, each mistake at the registration that is refused."""
        servers = [entry for entry in entries if hasattr(entry.handler, "__core_mcp__")]
        # Of a module that stopped, the server may stand behind the line.
        tools = [] if self.stopped else [offer_tools]
        for prove in (_prove_order, core.app._prove_requirements, *tools):
            try:
                prove(entries)
                continue
            except RegistrationError:
                pass
            scopes = servers if prove is offer_tools else list[Registered]()
            for entry in entries:
                try:
                    prove([*scopes, entry])
                except RegistrationError as error:
                    self.note(type(error).__name__, str(error), self.registered_at[id(entry)])
                else:
                    scopes += [entry] if entry.method is None else []

    def _routes(self, app: Any, servers: list[object]) -> Iterator[Route]:
        for entry, chain in app._chains():
            middleware = [self._index_of(middleware) for middleware, _ in chain if not _is_mark(middleware)]
            if entry.method is None:
                continue
            shown = core.app.described(entry, chain, servers)
            mounted = getattr(entry.handler, "__module__", "") == "core.dispatch.mounts"
            yield Route(
                entry.method,
                entry.pattern.text,
                None if entry.handler is None else self._index_of(entry.handler),
                tuple(middleware),
                sum(not _is_mark(middleware) for middleware in entry.middleware),
                self.registered_at[id(entry)],
                "mount" if mounted else "websocket" if hasattr(entry.handler, "__core_opens__") else "http",
                shown.authenticated,
                shown.public,
                shown.optional,
                shown.tools,
                bodiless_at(entry, servers),
            )

    def _index_of(self, given: object) -> int:
        """The index of a callback, which is described once."""
        known = self._indices.get(id(given))
        if known is None:
            known = self._indices[id(given)] = len(self._callbacks)
            self.references.append(given)
            info = info_of(given)
            bodies, whole, direct = functions_behind(given)
            _meet(given, self._met)
            provides = () if info is None else tuple(sorted(info.provides))
            self._callbacks.append(Callback(name_of(given), bodies, whole, direct, provides, _maker(given)))
        return known


def _maker(callback: object) -> str:
    """The full name of the function that a callback was made in."""
    return f"{getattr(callback, '__module__', '')}.{getattr(callback, '__qualname__', '')}".partition(".<locals>")[0]


def _is_mark(callback: object) -> bool:
    """Return True for `public()`, which is no middleware: `Route.public` says it."""
    info = info_of(callback)
    return info is not None and info.public


def _declare(callback: object) -> None:
    """Give a middleware of a package what the package declares of it, where it has no declaration of its own."""
    declaration = declared().middleware.get(_maker(callback))
    if declaration is not None and info_of(callback) is None:
        names = declaration.provides, declaration.reads, declaration.requires
        attach_info(callback, MiddlewareInfo(declaration.name, *names))


def _objects(module: ModuleType) -> Iterator[str]:
    """The classes of Durable Objects in a module, those of the platform's own SDK among them."""
    from core.bindings.durable_object import object_class

    for name, value in list(vars(module).items()):
        if not isinstance(value, type) or name == "DurableObject":
            continue
        if object_class(value) is not None or any(base.__name__ == "DurableObject" for base in value.__mro__):
            yield name


def _env(cls: Any) -> Env:
    problems: tuple[str, ...] = ()
    try:
        fields_of(cls)
    except EnvError as error:
        problems = tuple(error.problems)
    return Env(cls.__module__, cls.__qualname__, issubclass(cls, Bindings), problems)


# The functions behind what was registered -----------------------------------------------------------------------------


def functions_behind(given: object) -> tuple[tuple[Function, ...], bool, bool]:
    """The functions behind a callable, the outermost first; whether one is found or it is the framework's; and whether
    a request calls the first of them itself, with no code of a package around it.

    What a decorator has kept is found by `__wrapped__`, else as the async functions among what it closes over or keeps
    as attributes: a request may meet each of them.
    """
    found: dict[Function, None] = {}
    seen: set[int] = set()
    todo: list[tuple[Any, int]] = [(getattr(given, "__core_opens__", given), 0)]
    outermost: str | None = None
    while todo:
        one, bound = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        code = getattr(one, "__code__", None)
        if hasattr(one, "__func__"):  # a method, or a staticmethod
            todo.append((one.__func__, bound + inspect.ismethod(one)))
        elif code is None and callable(getattr(one, "func", None)):  # functools.partial
            todo.append((one.func, bound + len(getattr(one, "args", ()))))
        elif code is None:
            # An object, and the functions that it keeps, as decorators written as classes do.
            call = getattr(one.__class__, "__call__", None)
            todo += [(call, bound + 1)] if hasattr(call, "__code__") else []
            todo += [(value, 0) for value in _attributes(one) if _is_async(value)]
        else:
            if is_own(code.co_filename):
                found[Function(real(code.co_filename), code.co_qualname, code.co_firstlineno, bound)] = None
            outermost = outermost or code.co_filename
            wrapped = getattr(one, "__wrapped__", None)
            if wrapped is not None:
                todo.append((wrapped, bound))
            else:
                todo += [(value, _own(value)) for value in _cells(one) if _is_async(value)]
    outermost = outermost or ""
    return tuple(found), bool(found) or outermost.startswith(_CORE), is_own(outermost)


def _is_async(value: object) -> bool:
    """Return True for an async function, also behind what wraps it."""
    if not callable(value) or isinstance(value, type):
        return False
    inner: Any = value
    while inspect.ismethod(inner) or callable(getattr(inner, "func", None)):
        inner = inner.__func__ if inspect.ismethod(inner) else inner.func
    call = getattr(inner.__class__, "__call__", None)
    return inspect.iscoroutinefunction(inspect.unwrap(inner)) or inspect.iscoroutinefunction(call)


def _own(function: object) -> int:
    """The arguments that whoever keeps a function gives it before those of a request: the object of a method."""
    return int(getattr(getattr(function, "__code__", None), "co_varnames", ())[:1] == ("self",))


def _attributes(one: object) -> Iterator[object]:
    yield from getattr(one, "__dict__", {}).values()
    for cls in type(one).__mro__:
        for name in getattr(cls, "__slots__", ()):
            yield getattr(one, name, None)


def _meet(one: object, met: set[int]) -> None:
    """Add a callable, and those that it closes over or keeps as attributes."""
    if callable(one) and not isinstance(one, type) and id(one) not in met:
        met.add(id(one))
        for inner in (*_cells(one), *_attributes(one)):
            _meet(inner, met)


def _cells(function: Any) -> Iterator[object]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not filled yet


if __name__ == "__main__":
    main(sys.argv[1:])
