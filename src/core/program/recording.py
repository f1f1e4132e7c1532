"""Everything that a program registers, noted with its line as it is registered; what is refused is left out.

The methods of `Router` and `App` are replaced for the process, so that a worker's own registrations cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import core.app
import core.handlers
import core.mcp.server
import core.router
from core.errors import PathError, RegistrationError
from core.program.importing import Imports, anything, caller, is_anything
from core.program.table import Place
from core.routing.pattern import Pattern
from core.routing.table import Route


class Recorder(Imports):
    """The registrations of one start."""

    def __init__(self, *, assume: bool) -> None:
        super().__init__(assume=assume)
        self.apps: list[Any] = []
        self.events: list[tuple[object, str, str | None, object, Place]] = []
        """The router of each event, and of each handler of errors, its kind, name, handler and line."""
        self.routes: list[tuple[object, Place]] = []
        """The router of each route, and its line."""
        self.made: dict[int, Place] = {}
        """Where each declared middleware was made."""
        self.registered_at: dict[int, Place] = {}
        """The line at which each entry of a layout is registered."""
        self.imported = False
        self._refused: set[int] = set()

    def watch_registrations(self) -> None:
        """Note registrations from here on."""
        router: Any = core.router.Router
        app: Any = core.app.App
        # Order is proven at the end, for the application as a whole: here a mount would be left out for it.
        core.router.prove_order = lambda entries: None
        router._laid_out = self._lenient_layout(router._laid_out)
        # Those that are made once the import has ended are of a layout, and have no line of their own.
        self._after(Route, "__init__", lambda args: self.place(args[0], Place() if self.imported else None))
        self._after(core.handlers, "attach_info", self._make)
        make = app.__init__

        def init(one: object, env: object = None, /, **options: object) -> None:
            self.apps.append(one)
            self.place(one)
            try:
                make(one, None if is_anything(env) else env, **options)
            except RegistrationError as error:
                self.note("EnvError", str(error), caller())
                make(one, **options)

        app.__init__ = init
        for name in ("on", "_register"):
            self._lenient(router, name, lambda _: _same)
        self._lenient(router, "authenticated", lambda args: args[0])
        for name in ("_append", "mount", "_register_error_handler"):
            self._lenient(app if name == "mount" else router, name, lambda _: None)
        self._lenient(router, "on_error", lambda args: _same if isinstance(args[1], type) else args[1])
        for name in ("lifespan", "not_found"):
            self._lenient(app, name, lambda args: args[1])
        self._decorators(router, "websocket")
        self._decorators(app, "queue")
        self._decorators(app, "scheduled")
        self._lenient(core.mcp.server.MCP, "_add", lambda _: None)
        self._lenient(core.mcp.server.MCP, "complete", lambda _: _same)
        self._watch_use(router)
        self._watch_foreign_names(router)

    def _after(self, owner: object, name: str, then: Callable[[tuple[object, ...]], object]) -> None:
        own = getattr(owner, name)

        def call(*args: object, **options: object) -> object:
            result = own(*args, **options)
            then(args)
            return result

        setattr(owner, name, call)

    def _make(self, args: tuple[object, ...]) -> None:
        self.references.append(args[0])
        self.made[id(args[0])] = caller()

    def _lenient(self, cls: object, name: str, otherwise: Callable[[tuple[object, ...]], object]) -> None:
        """Let a method note what it refuses, and return something else."""
        own = getattr(cls, name)

        def call(*args: object, **options: object) -> object:
            if self.imported:  # what is refused then is told by who proves it
                return own(*args, **options)
            if _has_anything(args[1:]):
                self.unread.setdefault(caller())
            else:
                try:
                    result = own(*args, **options)
                except RegistrationError as error:
                    self.note(type(error).__name__, str(error), caller())
                else:
                    self._registered(name, args)
                    return result
            if name == "_append":
                self._refused.add(id(args[1]))
            return otherwise(args)

        setattr(cls, name, call)

    def _registered(self, name: str, args: tuple[Any, ...]) -> None:
        match name, args:
            case "lifespan", (app, handler):
                self.events.append((app, "lifespan", None, handler, caller()))
            case "not_found", (app, handler):
                self.events.append((app, "error", None, handler, caller()))
            case "_append", (router, route, _):
                self.routes.append((router._view_of, self.places[id(route)]))
            case "_register_error_handler", (router, _, handler):
                self.events.append((router._view_of, "error", None, handler, caller()))
            case _:
                pass

    def _decorators(self, cls: Any, name: str) -> None:
        """The same, for a method that gives a decorator which registers."""
        self._lenient(cls, name, lambda _: _same)
        own = getattr(cls, name)

        def call(*args: Any, **options: Any) -> object:
            register = own(*args, **options)

            def decorate(handler: object) -> object:
                if is_anything(handler):
                    self.unread.setdefault(caller())
                    return handler
                try:
                    result = register(handler)
                except RegistrationError as error:
                    self.note(type(error).__name__, str(error), caller())
                    return handler
                if name != "websocket" and register is not _same:
                    self.events.append((args[0], name, args[1] if len(args) > 1 else None, handler, caller()))
                return result

            return decorate

        setattr(cls, name, call)

    def _watch_use(self, router: Any) -> None:
        # With a prefix alone it was meant to be a decorator.
        self._lenient(router, "use", lambda args: _same if isinstance(args[-1], str) else None)
        own = router.use

        def use(one: object, first: object, /, *more: object) -> object:
            # One by one, so that the others count where one is refused.
            prefix = (first,) if isinstance(first, str) else ()
            for step in more if prefix else (first, *more):
                own(one, *prefix, step)
            return own(one, first) if prefix and not more else None

        router.use = use

    def _watch_foreign_names(self, router: Any) -> None:
        own = router.__getattr__

        def get(one: object, name: str) -> object:
            try:
                return own(one, name)
            except AttributeError as error:
                if " In core this is " not in str(error):
                    raise
                self.note("ForeignName", str(error), caller())
                return anything(name)

        router.__getattr__ = get

    def _lenient_layout(self, own: Callable[..., Iterator[Route]]) -> Callable[..., Iterator[Route]]:
        """`Router._laid_out`, each entry with the place of its registration, and without those that are refused."""

        def laid_out(router: object, one: Route, prefix: Pattern, errors: object) -> Iterator[Route]:
            place = self.places[id(one)]
            try:
                for entry in own(router, one, prefix, errors):
                    self.registered_at.setdefault(id(entry), place)
                    yield entry
            except RegistrationError as error:
                if isinstance(error, PathError) or not (id(one) in self._refused or (self.imported and self.stopped)):
                    self.note(type(error).__name__, str(error), place)
            if (
                self.imported
                and one.mounted is not None
                and not (one.mounted._registered or self.stopped or self.unread)
            ):
                problem = (
                    "mounts nothing: the router has neither routes nor middleware. Register them on it, or leave it out"
                )
                self.note("MountsNothing", f'use("{one.pattern.below(prefix).text}", Router()) {problem}', place)

        return laid_out


def _same(handler: object) -> object:
    return handler


def _has_anything(args: Any) -> bool:
    return any(is_anything(one) or (type(one) is tuple and _has_anything(one)) for one in args)
