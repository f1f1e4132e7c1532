"""The arguments of `url_for(handler, …)` against the paths of the handler's routes (`core-params`).

Read from the text in both front ends, since the routes of a handler may be in any module, and a type checker sees one
at a time. A finding is certain or it is not made: every mention of the handler in the project has to be understood
first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.analysis.front_end import REGISTERS
from core.analysis.modules import Definition, FunctionNode, Local, Module, Modules, Scope
from core.analysis.nodes import parents_of, request_parameter, scopes_in
from core.analysis.sources import Sources, read_sources
from core.analysis.syntax import REQUESTS, Node, Registered, Router, SyntaxTrees
from core.analysis.url_arguments import Way, arguments_of, mismatch
from core.errors import PathError
from core.routing.pattern import Pattern, parse

__all__ = ["Urls"]


_REGISTERS: Final = REGISTERS | {"websocket"}
_WORD: Final = re.compile(rb"[\w\x80-\xff]+")


class Urls:
    """The paths of handlers, for the calls of `url_for` in one program. `root` is the folder of the project."""

    def __init__(
        self,
        trees: SyntaxTrees,
        sources: Sources,
        root: Path,
        walked: Mapping[Module, Sequence[Registered]] | None = None,
    ) -> None:
        self.trees = trees
        self.modules: Modules = trees.modules
        self.sources = sources
        self.root = root
        self._walked: dict[Module, Sequence[Registered]] = dict(walked or {})
        self._found: dict[ast.AST, list[Registered] | None] = {}
        self._above: dict[ast.AST, list[Pattern | None]] = {}
        self._mounting: list[Registered] | None = None
        self._surely: bool = True
        self._calls: dict[Module, dict[tuple[int, int], tuple[ast.Call, Scope]]] = {}
        self._mounted: dict[ast.AST, list[tuple[Registered, Node]]] = {}
        self._assigns: dict[tuple[Path, str], bool] = {}
        self._words: dict[bytes, list[str]] | None = None

    def calls(self, module: Module) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls of an application's or a request's `url_for` in a module, as far as annotations show them."""
        for scope in scopes_in(module.scope):
            for node in parents_of(scope):
                match node:
                    case ast.Call(func=ast.Attribute(attr="url_for", value=owner)) if self._links(owner, scope):
                        yield node, scope
                    case _:
                        pass

    def at(self, module: Module, line: int, column: int) -> tuple[str, ast.expr] | None:
        """The problem of the `url_for` at a place of a module, by a front end that knows its receiver."""
        calls = self._calls.get(module)
        if calls is None:
            calls = self._calls[module] = {
                (node.lineno, node.col_offset): (node, scope)
                for scope in scopes_in(module.scope)
                for node in parents_of(scope)
                if isinstance(node, ast.Call) and _is_link(node)
            }
        found = calls.get((line, column))
        return self.problem(*found) if found is not None else None

    def problem(self, call: ast.Call, scope: Scope) -> tuple[str, ast.expr] | None:
        """Everything that is known to be wrong with one `url_for`, and the expression that it is about."""
        if not call.args or isinstance(call.args[0], ast.Starred):
            return None
        handler = self.trees.function(call.args[0], scope)
        given = arguments_of(call)
        if handler is None or given is None:
            return None
        function, around = handler
        routes = self._routes(function, around)
        if routes is None:
            return None
        shown = self.trees.shown(Node(call.args[0], scope))
        if not routes:
            if not self._understood(function, around, routes):
                return None
            text = "it is not the handler of a route. Register it, or name the function that was registered"
            return f"url_for({shown}): {text}", call.args[0]
        ways = self._ways(routes)
        found = mismatch(shown, given, ways, lambda value: self._text(value, scope)) if ways is not None else None
        if found is None or not self._understood(function, around, routes):
            return None
        return found[0], found[1] or call

    def _text(self, value: ast.expr, scope: Scope) -> str | None:
        """The text that a value becomes, where it is written out."""
        written, inner = self.modules.value(value, scope)
        if isinstance(written, ast.Constant) and isinstance(written.value, str | int):
            return str(written.value)
        return self.modules.string(written, inner)

    # -- the paths of a handler

    def _ways(self, routes: Sequence[Registered]) -> list[Way] | None:
        """Every path of some routes; None where one of them is not known."""
        found: list[Way] = []
        for route in routes:
            at = 1 if route.method == "on" else 0
            text = self.trees.string_of(route.arguments[at]) if len(route.arguments) > at else None
            if text is None:
                return None
            try:
                own = parse(text)
                for prefix in self._prefixes(route.on, frozenset()):
                    whole = own if prefix is None else own.below(prefix)
                    found += (Way(variant, prefix is None) for variant in whole.variants)
            except PathError:
                return None
        return found

    def _prefixes(self, router: Router, seen: frozenset[ast.AST]) -> list[Pattern | None]:
        """The prefixes that a router is at; None among them for one that is not known."""
        known = self._above.get(router.key)
        if known is not None:
            return known
        found: list[Pattern | None] = [parse("/")] if router.app else []
        mounts = self._mounted.get(router.key)
        if mounts is None:
            mounts = self._mounted[router.key] = list(self._mounts(router))
        for mount, handler in mounts:
            if mount.on.key in seen:
                continue
            first = mount.arguments[0]
            text = "/" if first is handler else self.trees.string_of(first)
            if text is None and (self.trees.router(*first) is not None or self.trees.function(*first) is not None):
                text = "/"
            for above in self._prefixes(mount.on, seen | {router.key}):
                found.append(parse(text).below(above) if text is not None and above is not None else None)
        if not router.app and not (mounts and self._surely):
            found.append(None)
        if not seen:
            self._above[router.key] = found
        return found

    def _mounts(self, router: Router) -> Iterator[tuple[Registered, Node]]:
        """The calls of `use` that mount a router, and the argument that it is."""
        if self._mounting is None:
            self._mounting = self._uses()
        for use in self._mounting:
            for handler in use.arguments:
                if self._may_be(handler, router):
                    mounted = self.trees.router(*handler)
                    if mounted is not None and mounted.key is router.key:
                        yield use, handler

    def _uses(self) -> list[Registered]:
        """Every `use` of the project; `_surely` is False where one of them may mount routes that it does not show."""
        found: list[Registered] = []
        for file in sorted(self.sources.mounting):
            module = self.modules.add(Path(file))
            if module is None:
                self._surely = False
                continue
            uses = [registration for registration in self._walk(module) if registration.method == "use"]
            found += uses
            called = {use.call.node for use in uses}
            for scope in scopes_in(module.scope):
                for node in parents_of(scope):
                    match node:
                        case ast.Call(func=ast.Attribute(attr="use")) if node not in called:
                            self._surely = False
                        case _:
                            pass
            self._surely = self._surely and all(
                not use.starred and all(map(self._shows, use.arguments)) for use in uses
            )
        return found

    def _shows(self, argument: Node) -> bool:
        """Return True if an argument of `use` shows which router it is, or that it is none."""
        node, scope = argument
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            return True
        if isinstance(node, ast.Call):
            made = self.trees.function(node.func, scope)
            if made is None:
                return self.trees.maker_of(argument) != "" or self.trees.router(node, scope) is not None
            returned = made[0].returns
            return returned is not None and "Router" not in (text := ast.unparse(returned)) and "App" not in text
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        definition = _definition(node, scope)
        if definition is not None and definition.alias is not None:
            return True  # an import, which is followed for the router that is asked for
        value, inner = self.modules.value(node, scope)
        if value is not node and not isinstance(value, ast.Name | ast.Attribute):
            return self._shows(Node(value, inner))
        return self.trees.router(node, scope) is not None or self.trees.function(node, scope) is not None

    def _may_be(self, argument: Node, router: Router) -> bool:
        """Return False for an argument that is another router by its import alone, so that no file is read for it."""
        node, scope = argument
        if not isinstance(node, ast.Name | ast.Attribute):
            return isinstance(node, ast.Call)
        definition = _definition(node, scope)
        if definition is None or definition.alias is None or not definition.alias[1]:
            return True
        module, name = definition.alias
        file = self.modules.file_of(module)
        if file is None or file == router.file:
            return True
        assigns = self._assigns.get((file, name))
        if assigns is None:
            assigns = self._assigns[file, name] = _is_assigned(file, name)
        return not assigns

    # -- the routes of a handler

    def _routes(self, function: FunctionNode, scope: Scope) -> list[Registered] | None:
        """The routes that a function answers; None where one of its decorators is not understood."""
        if function not in self._found:
            self._found[function] = self._read_routes(function, scope)
        return self._found[function]

    def _read_routes(self, function: FunctionNode, scope: Scope) -> list[Registered] | None:
        found: list[Registered] = []
        others = sorted(self.sources.files_of(function.name, str(scope.module.path)))
        for module in (scope.module, *map(self.modules.add, map(Path, others))):
            if module is None:
                return None
            for route in self._walk(module):
                if route.is_route and self._answers(route, function):
                    found.append(route)
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr=method, value=owner), args=[*arguments]):
                    router = self.trees.router(owner, scope)
                    if router is None or method not in _REGISTERS:
                        return None
                    if method == "websocket":
                        nodes = [Node(argument, scope) for argument in arguments]
                        call = Node(decorator, scope)
                        found.append(Registered(call, router, method, (), nodes))
                case _:
                    return None
        return found

    def _answers(self, route: Registered, function: FunctionNode) -> bool:
        """Return True if a function answers a route: the decorated one, or the last of its handlers."""
        if route.decorated is not None:
            return route.decorated.node is function
        found = self.trees.function(*route.handlers[-1]) if route.handlers else None
        return found is not None and found[0] is function

    def _walk(self, module: Module) -> Sequence[Registered]:
        """The registrations of a module."""
        if module not in self._walked:
            self._walked[module] = self.trees.walk(module)
        return self._walked[module]

    # -- certainty

    def _understood(self, function: FunctionNode, scope: Scope, routes: Sequence[Registered]) -> bool:
        """Return True if a function is mentioned by nothing but its routes and by `url_for`, anywhere in the
        project.
        """
        files = map(Path, sorted(self._files_with(function.name)))
        for module in map(self.modules.add, dict.fromkeys([scope.module.path, *files])):
            if module is None:
                return False
            calls = {registration.call.node: registration for registration in self._walk(module)}
            for parent in self._mentions(module, function):
                registration = calls.get(parent)
                if registration is None and not _is_link(parent):
                    return False
                if registration is not None and registration not in routes and self._answers(registration, function):
                    return False
        return True

    def _files_with(self, name: str) -> Sequence[str]:
        """The files of the project that have a name in their text. Every file is read once, for all names."""
        if self._words is None:
            words: dict[bytes, list[str]] = {}

            def look(path: str, text: bytes) -> None:
                for word in set(_WORD.findall(text)):
                    words.setdefault(word, []).append(path)

            read_sources(self.root, each=look)
            self._words = words
        return self._words.get(name.encode(), ())

    def _mentions(self, module: Module, function: FunctionNode) -> Iterator[ast.AST]:
        """The nodes around each expression that names a function."""
        names = {name for name, given in module.scope.names.items() if _imports(given, function.name)} | {function.name}
        for scope in scopes_in(module.scope):
            parents = parents_of(scope)
            for node, parent in parents.items():
                match node:
                    case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if name in names:
                        found = self.trees.function(node, scope)
                        if found is not None and found[0] is function:
                            yield parent
                    case _:
                        pass

    # -- the receiver

    def _links(self, owner: ast.expr, scope: Scope) -> bool:
        """Return True if an expression is an application or a request."""
        router = self.trees.router(owner, scope)
        if router is not None:
            return router.app
        resolved = self.modules.resolve(owner, scope) if isinstance(owner, ast.Name) else None
        if not isinstance(resolved, Local) or not isinstance(resolved.definition.node, ast.arg):
            return False
        name, inside = resolved.definition.node.arg, resolved.scope
        annotation = resolved.definition.annotation
        if annotation is None:
            handles = inside.node in self.trees.routes
            return handles and request_parameter(inside) == name
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return False
        written, where = self.trees.reader.written_out(annotation, inside)
        class_ = self.modules.resolve(written.value if isinstance(written, ast.Subscript) else written, where)
        return getattr(class_, "name", "") in REQUESTS


def _definition(node: ast.expr, scope: Scope) -> Definition | None:
    """The one place that gives a name its meaning."""
    current: Scope | None = scope
    while current is not None and isinstance(node, ast.Name):
        found = current.names.get(node.id)
        if found:
            return found[0] if len(found) == 1 else None
        current = current.parent
    return None


def _is_assigned(file: Path, name: str) -> bool:
    """Return True if a file assigns a name at its top, so that it imports no other module's router by it."""
    try:
        text = file.read_bytes()
    except OSError:
        return False
    return re.search(rb"(?m)^%s\b[^=\n]*=" % re.escape(name.encode()), text) is not None


def _imports(definitions: Sequence[Definition], name: str) -> bool:
    """Return True if something is imported that has this name in its own module."""
    return any(definition.alias is not None and definition.alias[1] == name for definition in definitions)


def _is_link(parent: ast.AST) -> bool:
    """Return True for a call of `url_for`."""
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "url_for"
