"""The modules of a program as text: its files, the meaning of their names, and their constants.

Read with `ast` alone; nothing of the program runs. A name is followed through imports, aliases and modules as far as
it is certain: a name that is assigned twice, computed or shadowed is not known, and None says so.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import attrs

from core.program.entry import module_of
from core.program.findings import Finding, syntax_error

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)
_BUILTINS: Final = frozenset(vars(builtins))
_STEPS: Final = 50
_NAMES: Final = (ast.Name, ast.Attribute)


class Definition(NamedTuple):
    """One place that gives a name its meaning: a statement, a parameter, or something that cannot be followed."""

    node: ast.AST
    value: ast.expr | None = None
    annotation: ast.expr | None = None
    alias: tuple[str, str] | None = None  # the module and the name that an import takes from it ("" for the module)
    known: bool = True
    entered: ast.expr | None = None  # the context manager whose `with` binds the name


class Nodes(NamedTuple):
    """The nodes of a function without those inside other functions and classes in it: the parent of each, and those of
    each kind.
    """

    parents: Mapping[ast.AST, ast.AST]
    kinds: Mapping[type[ast.AST], Sequence[Any]]

    def of(self, *kinds: type[_Node]) -> Sequence[_Node]:
        """Those of some kinds."""
        if len(kinds) == 1:
            return self.kinds.get(kinds[0], ())
        return [node for kind in kinds for node in self.kinds.get(kind, ())]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around one, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent


@attrs.frozen(eq=False, kw_only=True)
class Scope:
    """The names of a module, a class or a function."""

    module: Module
    node: ast.Module | ast.ClassDef | FunctionNode
    parent: Scope | None
    names: dict[str, list[Definition]] = attrs.field(factory=dict[str, "list[Definition]"])
    stars: list[str] = attrs.field(factory=list[str])
    children: dict[ast.AST, ClassScope | FunctionScope] = attrs.field(
        factory=dict[ast.AST, "ClassScope | FunctionScope"]
    )

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of the module, class or function."""
        return _nodes_in(self.node)

    def walk(self) -> Iterator[Scope]:
        """The scope and all scopes inside it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def home_of(self, name: str) -> Scope | None:
        """The scope that a name has its meaning from here: this one, or one around it that binds it. Names of a class
        are not seen from the functions inside it.
        """
        home: Scope | None = self
        while home is not None and (name not in home.names or (home is not self and isinstance(home, ClassScope))):
            home = home.parent
        return home

    @property
    def qualname(self) -> str:
        """The dotted name of the class or function, without its module."""
        if isinstance(self.node, ast.Module) or self.parent is None:
            return ""
        return f"{self.parent.qualname}.{self.node.name}".removeprefix(".")


@attrs.frozen(eq=False, kw_only=True)
class ClassScope(Scope):
    """A class of the program: its fields, methods and inner classes."""

    node: ast.ClassDef
    parent: Scope

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.module.name}.{self.qualname}"


@attrs.frozen(eq=False, kw_only=True)
class FunctionScope(Scope):
    """A function of the program; that of a method is in the scope of its class."""

    node: FunctionNode
    parent: Scope


@attrs.define(eq=False)
class Module:
    """One file of the program, and a digest of its text."""

    name: str
    path: Path
    digest: str
    tree: ast.Module
    links: bool = attrs.field(kw_only=True)
    """True where the text has `url_for` in it."""
    walrus: bool = attrs.field(kw_only=True)
    """True where the text has `:=` in it, which binds a name in any expression."""
    imports: list[str] = attrs.field(factory=list[str])
    scope: Scope = attrs.field(init=False)


class External(NamedTuple):
    """Something outside of the program, by its full name, as it was imported."""

    name: str


class Local(NamedTuple):
    """Something inside of the program: where it is defined and in which scope."""

    definition: Definition
    scope: Scope

    @property
    def body(self) -> Scope | None:
        """The scope inside it, where it is a class or a function."""
        return self.scope.children.get(self.definition.node)


Resolved: TypeAlias = External | Local | Module


class Modules:
    """The modules of one program. `roots` are the folders that imports start from; `problems` of files with errors.

    `known` are the modules of an earlier look, which are read again where their texts have changed.
    """

    def __init__(self, roots: Sequence[Path], known: dict[Path, Module]) -> None:
        self.roots = roots
        self.problems: list[Finding] = []
        self.derived: Container[str] = ()
        """The names of classes that others derive from."""
        self._known = known
        self._by_path: dict[Path, Module | None] = {}
        self._by_name: dict[str, Module | None] = {}
        self._resolved: dict[tuple[str, Scope], Resolved | None] = {}
        self._following = 0
        self._named: dict[tuple[ast.expr, Scope], Resolved | None] = {}
        self._ancestors: dict[ClassScope, list[ClassScope]] = {}
        self._instances: dict[ast.AST, dict[str, list[tuple[Definition, Scope]]]] = {}
        self._strings: dict[ast.expr, str | None] = {}

    # -- files

    @property
    def files(self) -> Iterable[Path]:
        """The files that were read, also those with mistakes."""
        return self._by_path

    def add(self, path: Path) -> Module | None:
        """The module in a file, read once. None where it cannot be read; `problems` then says why."""
        if path not in self._by_path:
            path = path.resolve()  # which asks the disk
        if path in self._by_path:
            return self._by_path[path]
        found = self._read(path)
        module = self._by_path[path] = found if isinstance(found, Module) else None
        if isinstance(found, Module):
            self._by_name.setdefault(found.name, found)
        else:
            self.problems.append(found)
        return module

    def _read(self, path: Path) -> Module | Finding:
        """The module in a file, or the mistake of its text."""
        try:
            text = path.read_bytes()
        except OSError as error:
            return syntax_error(str(path), 1, str(error))
        digest, known = hashlib.sha256(text).hexdigest(), self._known.get(path)
        if known is not None and known.digest == digest:
            return known
        try:
            tree = ast.parse(text, str(path))
        except SyntaxError as error:
            return syntax_error(str(path), error.lineno or 1, error.msg)
        except (ValueError, RecursionError) as error:
            return syntax_error(str(path), 1, str(error))
        module = Module(self._name(path), path, digest, tree, links=b"url_for" in text, walrus=b":=" in text)
        module.scope = Scope(module=module, node=tree, parent=None)
        _Collector(module.scope).statements(tree.body)
        self._known[path] = module
        return module

    def find(self, name: str) -> Module | None:
        """The module of that name, if it is part of the program."""
        if name in self._by_name:
            return self._by_name[name]
        path = self._file_of(name)
        module = self._by_name[name] = self.add(path) if path is not None else None
        return module

    def is_module(self, name: str) -> bool:
        """Return True for a module of the program, or a folder with some."""
        return self._file_of(name) is not None or any((root / Path(*name.split("."))).is_dir() for root in self.roots)

    def _file_of(self, name: str) -> Path | None:
        relative = Path(*name.split("."))
        for root in self.roots:
            for path in (root / relative / "__init__.py", (root / relative).with_suffix(".py")):
                if name and path.is_file():
                    return path
        return None

    def reachable(self, start: Sequence[Module]) -> list[Module]:
        """The modules that `start` imports, at the top or inside functions, and theirs, and so on; `start` included."""
        found: dict[Path, Module] = {}
        todo = list(reversed(start))
        while todo:
            module = todo.pop()
            if module.path in found:
                continue
            found[module.path] = module
            todo += reversed(list(self._imports(module)))
        return list(found.values())

    def _imports(self, module: Module) -> Iterator[Module]:
        for name in dict.fromkeys(module.imports):
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                imported = self.find(".".join(parts[:length]))
                if imported is not None:
                    yield imported

    def _name(self, path: Path) -> str:
        """The dotted name: from the folder that its outermost package lies in, or from the root above that."""
        folder, name = module_of(path)
        above = [root for root in self.roots if folder.is_relative_to(root)]
        root = max(above, key=lambda r: len(r.parts)) if above else folder
        return ".".join([*folder.relative_to(root).parts, name])

    # -- names

    def resolve(self, expression: ast.expr, scope: Scope) -> Resolved | None:
        """Return the object behind a dotted name, through imports and aliases; None if it is unknown."""
        try:
            return self._named[expression, scope]
        except KeyError:
            pass
        found: Resolved | None = None
        if isinstance(expression, ast.Name):
            found = self._look_up(expression.id, scope)
        elif isinstance(expression, ast.Attribute):
            owner = self.resolve(expression.value, scope)
            found = self._attribute(owner, expression.attr) if owner is not None else None
        if not self._following:
            self._named[expression, scope] = found
        return found

    def _attribute(self, owner: Resolved, name: str) -> Resolved | None:
        match owner:
            case External(outer):
                return External(f"{outer}.{name}")
            case Module():
                return self._member(owner, name)
            case Local():
                body = owner.body
                return self._in_scope(name, body) if isinstance(body, ClassScope) else None

    def outside(self, expression: ast.expr | None, scope: Scope) -> str:
        """The full name of something outside of the program, without type arguments; nothing for all others."""
        plain = expression.value if isinstance(expression, ast.Subscript) else expression
        resolved = self.resolve(plain, scope) if plain is not None else None
        return resolved.name if isinstance(resolved, External) else ""

    def maker_of(self, expression: ast.expr, scope: Scope) -> str:
        """The full name of the function that a call calls, where it is outside of the program."""
        return self.outside(expression.func, scope) if isinstance(expression, ast.Call) else ""

    def _look_up(self, name: str, scope: Scope) -> Resolved | None:
        home = scope.home_of(name)
        if home is not None:
            return self._in_scope(name, home)
        found = self._starred(name, scope.module)
        outside = [star for star in scope.module.scope.stars if self.find(star) is None]
        ours = [star for star in outside if star.split(".")[0] == "core"]
        if name in _BUILTINS:  # the framework has no name of them, others may
            ours = ["builtins"] if ours == outside else []
        return found or next((External(f"{star}.{name}") for star in ours), None)

    def _starred(self, name: str, module: Module) -> Resolved | None:
        """The object behind a name that a module takes with all names of another."""
        others = filter(None, map(self.find, module.scope.stars))
        home = next((other.scope for other in others if name in other.scope.names), None)
        return self._in_scope(name, home) if home is not None else None

    def _in_scope(self, name: str, scope: Scope) -> Resolved | None:
        """The object behind a name of a scope, found once."""
        key = name, scope
        if key not in self._resolved:
            self._resolved[key] = None  # for as long as it is followed: a name may be made of itself
            self._following += 1
            if self._following < _STEPS:
                self._resolved[key] = self._defined(name, scope)
            self._following -= 1
        return self._resolved[key]

    def _defined(self, name: str, scope: Scope) -> Resolved | None:
        definitions = scope.names.get(name, [])
        # `if TYPE_CHECKING` and `try` bind a name twice: it counts where all of them import the same.
        if len(definitions) != 1 and (not definitions or any(one.alias is None for one in definitions)):
            return None
        definition = definitions[0]
        if not definition.known:
            return None
        if definition.alias is not None:
            module_name, member = definition.alias
            module = self.find(module_name)
            if not member:
                return module or External(module_name)
            if module is not None:
                return self._member(module, member)
            return External(f"{module_name}.{member}")
        if isinstance(definition.value, ast.Name | ast.Attribute):
            followed = self.resolve(definition.value, scope)
            if followed is not None:
                return followed
        return Local(definition, scope)

    def _member(self, module: Module, name: str) -> Resolved | None:
        if name in module.scope.names:
            return self._in_scope(name, module.scope)
        submodule = self.find(f"{module.name}.{name}") if module.path.name == "__init__.py" else None
        return submodule or self._starred(name, module)

    # -- values

    def value(self, expression: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
        """An expression, or the value that the variable it names was assigned once, wherever that is."""
        resolved = self.resolve(expression, scope) if isinstance(expression, _NAMES) else None
        if not isinstance(resolved, Local) or resolved.definition.value is None:
            return expression, scope
        return resolved.definition.value, resolved.scope

    def definitions(self, name: ast.expr, scope: Scope) -> list[tuple[Definition, Scope]]:
        """The places in a scope, or around it, that give a name its values; none for an import and what is none."""
        if not isinstance(name, ast.Name) or (home := scope.home_of(name.id)) is None:
            return []
        found = home.names[name.id]
        return [(one, home) for one in found] if all(one.alias is None for one in found) else []

    def string(self, expression: ast.expr | None, scope: Scope) -> str | None:
        """The string that an expression is for certain: a literal, or a variable that is given one, once."""
        if expression is None:
            return None
        expression, scope = self.value(expression, scope)
        if expression not in self._strings:
            self._strings[expression] = None  # for as long as it is read: a text may be made of itself
            self._strings[expression] = self._string(expression, scope)
        return self._strings[expression]

    def _string(self, expression: ast.expr, scope: Scope) -> str | None:
        match expression:
            case ast.Constant(value=str() as text):
                return text
            case ast.Attribute():
                assigned = self.of_self(expression, scope)
                return self.string(*assigned) if assigned is not None else None
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self.string(left, scope), self.string(right, scope)
                return None if first is None or second is None else first + second
            case ast.JoinedStr(values=values):
                parts = [self.string(part, scope) for part in values]
                return None if None in parts else "".join(part or "" for part in parts)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self.string(value, scope)
            case _:
                return None

    def of_self(self, expression: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
        """The value of `self.name` in every object of a class: given once, in its body or in `__init__`."""
        if not isinstance(expression, ast.Attribute) or not isinstance(expression.value, ast.Name):
            return None
        class_, name = own_class(self.resolve(expression.value, scope)), expression.attr
        classes = self.ancestors(class_) if class_ is not None else ()
        if class_ is None or not all(map(self._is_known, classes)):
            return None
        derived = class_.node.name in self.derived
        in_methods = [given for each in classes for given in self.given_to_self(each, name)]
        in_bodies = [
            (one, each)
            for each in classes
            for one in each.names.get(name, ())
            if one.value is not None or not isinstance(one.node, ast.AnnAssign)
        ]
        nearest = in_methods or [one for one in in_bodies if one[1] is in_bodies[0][1]]
        if len(nearest) != 1 or (in_methods and (in_bodies or derived)):
            return None
        given, home = nearest[0]
        form = self.outside(given.annotation, home)
        # A field's value is a default, which an object may be made without.
        is_field = given.annotation is not None and isinstance(home, ClassScope) and home.node.decorator_list
        if given.value is None or (is_field and not form.endswith(".ClassVar")):
            return None
        return (given.value, home) if not derived or form.endswith(".Final") else None

    def bases(self, class_: ClassScope) -> list[Resolved | None]:
        """Return the bases of a class, without their type arguments."""
        bases = (base.value if isinstance(base, ast.Subscript) else base for base in class_.node.bases)
        return [self.resolve(base, class_.parent) for base in bases]

    def ancestors(self, class_: ClassScope) -> Sequence[ClassScope]:
        """A class and the classes of the program that it derives from, nearest first."""
        found = self._ancestors.get(class_)
        if found is None:
            found = self._ancestors[class_] = [class_]
            for one in found:  # which grows meanwhile
                bases = dict.fromkeys(map(class_at, self.bases(one)))
                found += [base for base in bases if base is not None and base not in found]
        return found

    def _is_known(self, class_: ClassScope) -> bool:
        """Return True for a class of the program that nobody but its own bases may give attributes."""
        bases = [base for base in self.bases(class_) if class_at(base) is None]
        known = (isinstance(base, External) and base.name.startswith(("core.", "abc.", "builtins.")) for base in bases)
        return all(known) and not class_.node.keywords

    def given_to_self(self, class_: ClassScope, name: str) -> Sequence[tuple[Definition, Scope]]:
        """The places where the methods of a class give an attribute to their object."""
        found = self._instances.get(class_.node)
        if found is None:
            found = self._instances[class_.node] = {}
            for method in class_.children.values():
                for attribute, given in _given_in(method):
                    found.setdefault(attribute, []).append((given, method))
        return found.get(name, ())


def positional(function: FunctionNode) -> list[ast.arg]:
    """The parameters of a function that have a place."""
    return [*function.args.posonlyargs, *function.args.args]


def class_at(resolved: Resolved | None) -> ClassScope | None:
    """Return the class that a name stands for, None for everything else."""
    body = resolved.body if isinstance(resolved, Local) else None
    return body if isinstance(body, ClassScope) else None


def own_class(parameter: Resolved | None) -> ClassScope | None:
    """The class that a parameter is an instance of, being the first one of a method; None for everything else."""
    if not isinstance(parameter, Local) or parameter.definition.node is not _self_of(parameter.scope):
        return None
    return parameter.scope.parent if isinstance(parameter.scope.parent, ClassScope) else None


def _self_of(method: Scope) -> ast.arg | None:
    """The first parameter of a method, which is its object or its class."""
    decorators = method.node.decorator_list if isinstance(method, FunctionScope) else ()
    if any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in decorators):
        return None
    return next(iter(positional(method.node)), None) if isinstance(method, FunctionScope) else None


def _given_in(method: Scope) -> Iterator[tuple[str, Definition]]:
    """The attributes that a method gives its object, with their values as far as `__init__` gives them one by one."""
    own = _self_of(method)
    makes = getattr(method.node, "name", "") == "__init__"
    values: dict[ast.expr, Definition] = {}
    for node in ast.walk(method.node) if own is not None else ():
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=given)) if makes:
                values |= {target: Definition(node, one) for target, one in zip(targets, given, strict=False)}
            case ast.Assign(targets=[target], value=value) if makes:
                values[target] = Definition(node, value)
            case ast.AnnAssign(target=target, value=value, annotation=annotation) if makes:
                values[target] = Definition(node, value, annotation)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                own is not None and name == own.arg and not isinstance(node.ctx, ast.Load)
            ):
                yield attr, values.get(node, Definition(node))
            case _:
                pass


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """The full name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    if module.path.name != "__init__.py":
        parts.pop()
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module and base else node.module or base


_BINDS_BY_WALRUS: Final = (ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.If, ast.While)
"""Statements that bind no name but by `:=`."""


class _Collector:
    """Puts the names that a body binds into its scope, and makes the scopes inside it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def bind(self, name: str, definition: Definition) -> None:
        self.scope.names.setdefault(name, []).append(definition)

    def inner(self, scope: ClassScope | FunctionScope) -> _Collector:
        self.bind(scope.node.name, Definition(scope.node))
        self.scope.children[scope.node] = scope
        return _Collector(scope)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.ClassDef():
                self.inner(ClassScope(module=self.scope.module, node=node, parent=self.scope)).statements(node.body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = self.inner(FunctionScope(module=self.scope.module, node=node, parent=self.scope))
                for parameter in getattr(node, "type_params", ()):  # def f[E: Env](…), of Python 3.12
                    inside.bind(parameter.name, Definition(parameter, annotation=getattr(parameter, "bound", None)))
                for arg in (*positional(node), *node.args.kwonlyargs):
                    inside.bind(arg.arg, Definition(arg, annotation=arg.annotation))
                for rest in (node.args.vararg, node.args.kwarg):
                    if rest is not None:
                        inside.bind(rest.arg, Definition(rest, known=False))
                inside.statements(node.body)
            case ast.Import():
                self.scope.module.imports += [alias.name for alias in node.names]
                for alias in node.names:
                    taken = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.bind(alias.asname or taken, Definition(node, alias=(taken, "")))
            case ast.ImportFrom():
                base = _absolute(self.scope.module, node)
                self.scope.module.imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
                for alias in node.names:
                    if alias.name == "*":
                        self.scope.stars.append(base)
                    else:
                        self.bind(alias.asname or alias.name, Definition(node, alias=(base, alias.name)))
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                self.bind(name, Definition(node, value=value))
                self.expressions(node, target)
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=value, annotation=annotation):
                self.bind(name, Definition(node, value=value, annotation=annotation))
                self.expressions(node, target)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ) and not any(isinstance(one, ast.Starred) for one in (*targets, *values)):
                for each, value in zip(targets, values, strict=True):
                    self.statement(ast.copy_location(ast.Assign([each], value), node))
            case ast.Global() | ast.Nonlocal():
                for name in node.names:
                    self.bind(name, Definition(node, known=False))
                    # A name that a function changes is not constant outside of it either.
                    outer = self.scope.parent
                    while outer is not None:
                        outer.names.setdefault(name, []).append(Definition(node, known=False))
                        outer = outer.parent
            case _:
                if type(node).__name__ == "TypeAlias":  # the `type` statement of Python 3.12
                    self.bind(node.name.id, Definition(node, value=node.value))  # type: ignore[attr-defined]  # 3.12
                    return
                self.expressions(node)
                for child in blocks_of(node):
                    self.statements(child)

    def expressions(self, node: ast.stmt, bound: ast.Name | None = None) -> None:
        """Bind the names of the other expressions that do so in a statement: loops, `with`, unpacking, `:=`, `except`,
        patterns, `del`. `bound` is a target that has been.
        """
        if not self.scope.module.walrus and (bound is not None or isinstance(node, _BINDS_BY_WALRUS)):
            return
        todo: list[ast.AST] = [node]
        while todo:
            current = todo.pop()
            if isinstance(current, ast.stmt) and current is not node:
                continue
            if isinstance(current, ast.Name) and not isinstance(current.ctx, ast.Load):
                if current is not bound:
                    self.bind(current.id, Definition(node, known=False))
            elif isinstance(current, ast.withitem) and isinstance(current.optional_vars, ast.Name):
                target = current.optional_vars
                self.bind(target.id, Definition(node, known=False, entered=current.context_expr))
                todo.append(current.context_expr)
                continue
            elif isinstance(current, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
                if current.name:
                    self.bind(current.name, Definition(node, known=False))
            elif isinstance(current, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
                continue  # names of their own
            todo += ast.iter_child_nodes(current)


_CLOSED: Final = frozenset(
    [ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Constant, ast.Name, ast.Load, ast.Store]
)
"""The nodes that nobody looks into: they have nothing inside, or it is of another scope."""


def _nodes_in(outermost: ast.AST) -> Nodes:
    parents: dict[ast.AST, ast.AST] = {}
    kinds: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    todo = [outermost]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            parents[child] = node
            kinds[child.__class__].append(child)
            if child.__class__ not in _CLOSED:
                todo.append(child)
    return Nodes(parents, kinds)


def blocks_of(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies inside a compound statement, in the order in which they run."""
    block: object = getattr(node, "body", None)
    if isinstance(block, list):
        yield block
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body
    for field in ("orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
