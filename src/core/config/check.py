"""What a program may not say, given its configuration: every finding and its exact words.

Plain functions over plain values. The mypy plugin and `core check` read programs, each in its own way, and ask here;
so both say the same thing at the same place. Nothing is a finding that is not proven: what a face does not
understand it passes as unknown, and unknown is never reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import attrs

from core.config.model import KINDS, Binding, Configuration, DurableObjectTable
from core.errors import ConfigurationError
from core.values import frozen

__all__ = [
    "CODES",
    "Code",
    "EnvAttribute",
    "EnvShape",
    "Finding",
    "Location",
    "Severity",
    "binding_problem",
    "check_env",
    "configuration_findings",
    "contradicted",
    "declared_bindings",
    "deployed",
    "handler_not_last",
    "handler_parameters",
    "order_problem",
    "queue_problem",
    "sort_findings",
    "unknown_parameter",
]

Code: TypeAlias = Literal["core-binding", "core-env", "core-order", "core-params", "core-queue", "core-sql"]
CODES: Final[tuple[Code, ...]] = ("core-binding", "core-env", "core-order", "core-params", "core-queue", "core-sql")
Severity: TypeAlias = Literal["error", "warning"]

Scalar: TypeAlias = str | int | bool | None


@attrs.frozen(order=True)
class Location:
    """A place in a source file. Lines and columns count from 1; 0 where it is not known."""

    file: str
    line: int = 0
    column: int = 0


@frozen
class Finding:
    """One thing that cannot work. `environment` is the named environment it belongs to, None for the top level."""

    code: Code
    message: str
    file: str
    line: int
    column: int = 0
    severity: Severity = "error"
    environment: str | None = None

    @property
    def text(self) -> str:
        """`file:line: error: message  [code]`, as mypy prints it."""
        return f"{self.file}:{self.line}: {self.severity}: {self.message}  [{self.code}]"


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Without repetitions, by file, line, column, code and text."""
    return sorted(set(findings), key=lambda f: (f.file, f.line, f.column, f.code, f.message))


# Env ----------------------------------------------------------------------------------------------------------------


@frozen
class EnvAttribute:
    """One attribute of an Env class, as a face reads it.

    `name` is the binding's name (the attribute's alias), `attribute` the name on the class. `kind` is the bare name of
    a Protocol of `core.bindings` or a subclass of it (`KVNamespace`), or `str`, `int`, `float`, `bool`, `list`,
    `dict`, `Secret`, `Literal`; `table` for an attrs class, dataclass or TypedDict; `Any`; and `""` for whatever the
    face does not understand, which fits everything. `shown` is the annotation for messages, without `None`.
    `arguments` are the full names of its type arguments; `literals` the values of a `Literal`. `optional` says that the
    binding may be absent: the annotation allows None, or there is a default. `converted`: a converter of its own.
    `inherited`: a base class that is an Env itself has it, and it is reported there.
    """

    name: str
    kind: str
    shown: str
    location: Location
    attribute: str = ""
    optional: bool = False
    arguments: Sequence[str] = ()
    literals: Sequence[Scalar] = ()
    converted: bool = False
    inherited: bool = False


@frozen
class EnvShape:
    """An Env class, as a face reads it. `partial`: another Env derives from it, so it need not have every binding."""

    name: str
    location: Location
    attributes: Sequence[EnvAttribute]
    partial: bool = False

    def find(self, name: str) -> EnvAttribute | None:
        """The attribute for the binding of that name."""
        return next((attribute for attribute in self.attributes if attribute.name == name), None)


@frozen
class _Problem:
    """A finding before environments are put together: problems of one `key` in several environments are one finding."""

    key: tuple[str, ...]
    message: str
    location: Location
    environment: str | None


def check_env(
    shape: EnvShape, configurations: Sequence[Configuration], *, entry_names: frozenset[str] | None = None
) -> list[Finding]:
    """Compare an Env with the environments of a configuration file, in both directions (`core-env`).

    `entry_names` are the names that the module of `main` defines or imports, for the classes of Durable Objects; None
    when they are not known. A finding that holds in several environments is told once, and names the others.
    """
    together: dict[tuple[str, ...], list[_Problem]] = {}
    for configuration in deployed(configurations):
        for problem in _compare(shape, configuration, entry_names):
            together.setdefault(problem.key, []).append(problem)
    findings: list[Finding] = []
    for problems in together.values():
        first, *others = problems
        also = f". The same in {_listed([f'[env.{p.environment}]' for p in others])}" if others else ""
        findings.append(
            Finding(
                code="core-env",
                message=first.message + also,
                file=first.location.file,
                line=first.location.line,
                column=first.location.column,
                environment=first.environment,
            )
        )
    return findings


def contradicted(shape: EnvShape, attribute: EnvAttribute, configurations: Sequence[Configuration]) -> bool:
    """Whether an attribute has a binding of another kind than its annotation says."""
    return any(
        _kind_problem(shape, attribute, binding, configuration) is not None
        for configuration in deployed(configurations)
        if (binding := declared_bindings(configuration).get(attribute.name)) is not None
    )


def deployed(configurations: Sequence[Configuration]) -> list[Configuration]:
    """The environments that are meant to run: a top level without any binding only holds what others inherit."""
    named = [c for c in configurations if c.environment is not None]
    if not any(_declares(c) for c in named):
        return list(configurations)
    return [c for c in configurations if c.environment is not None or _declares(c)]


def _declares(configuration: Configuration) -> bool:
    return any(binding.file == configuration.path for binding in configuration.bindings.values())


def _compare(shape: EnvShape, configuration: Configuration, entry_names: frozenset[str] | None) -> list[_Problem]:
    problems: list[_Problem] = []
    environment = configuration.environment
    own = {attribute.name for attribute in shape.attributes}
    bindings = declared_bindings(configuration)
    orphans = {} if shape.partial else {n: b for n, b in bindings.items() if _wanted(b) and n not in own}
    missing: list[EnvAttribute] = []

    def add(kind: str, attribute: EnvAttribute, message: str, *more: str) -> None:
        key = (kind, attribute.name, *more)
        problems.append(_Problem(key, message, attribute.location, environment))

    for attribute in shape.attributes:
        if attribute.inherited:
            continue
        binding = bindings.get(attribute.name)
        if binding is None:
            if not attribute.optional:
                missing.append(attribute)
        else:
            message = _kind_problem(shape, attribute, binding, configuration)
            if message is not None:
                add("kind", attribute, message, binding.kind)
            elif isinstance(binding.entry, DurableObjectTable):
                message = _class_problem(shape, attribute, binding, binding.entry, configuration, entry_names)
                if message is not None:
                    add("class", attribute, message, binding.entry.class_name)

    # A renamed binding is one mistake, not an attribute without binding and a binding without attribute.
    for attribute, near in _pair(missing, orphans, configuration):
        if near is None:
            add("missing", attribute, _missing(shape, attribute, configuration))
        else:
            orphans.pop(near.name, None)
            where = _where(configuration)
            message = (
                f"{_named(shape, attribute)}: no binding of that name{where}. Did you mean {near.name} ({near.place})?"
            )
            add("missing", attribute, message, near.name)
    for binding in orphans.values():
        title = KINDS[binding.kind].title
        message = (
            f"{shape.name} has no attribute for the {title} {binding.name} ({binding.place}). "
            f"Write {binding.name}: {_annotation(binding)}"
        )
        problems.append(_Problem(("orphan", binding.name), message, shape.location, environment))
    return problems


def declared_bindings(configuration: Configuration) -> Mapping[str, Binding]:
    """The bindings that count. Where `[secrets]` names the secrets, what else lies in `.dev.vars` is this machine's."""
    if configuration.worker.secrets is None:
        return configuration.bindings
    return {name: b for name, b in configuration.bindings.items() if b.kind != "secret" or b.table}


def _wanted(binding: Binding) -> bool:
    """Whether an Env must have an attribute for it: what has a type here, and is not only on this machine."""
    if binding.kind == "secret":
        return binding.table != ""
    return binding.kind == "var" or binding.protocol is not None


def _pair(
    missing: Sequence[EnvAttribute], orphans: Mapping[str, Binding], configuration: Configuration
) -> list[tuple[EnvAttribute, Binding | None]]:
    """Each attribute without binding, with the binding without attribute that was likely meant.

    Nearest names first. When one attribute and one binding of a kind are left over, it is a new name for the binding.
    """
    left = dict(orphans)
    pairs: dict[str, Binding] = {}
    for attribute in missing:
        fitting = [name for name, binding in left.items() if _may_be(attribute, binding)]
        near = get_close_matches(attribute.name, fitting, n=1)
        if near:
            pairs[attribute.name] = left.pop(near[0])
    for attribute in missing:
        if attribute.name in pairs or not attribute.kind:
            continue
        same = [binding for binding in left.values() if _may_be(attribute, binding)]
        rivals = [a for a in missing if a.name not in pairs and a is not attribute and a.kind == attribute.kind]
        if len(same) == 1 and not rivals and same[0].protocol is not None:
            pairs[attribute.name] = left.pop(same[0].name)
    # A binding that has its attribute, or one of another kind, is still worth naming when it is only misspelled.
    return [(attribute, pairs.get(attribute.name)) for attribute in missing]


def _may_be(attribute: EnvAttribute, binding: Binding) -> bool:
    if attribute.kind in _ANYTHING:
        return True
    if binding.kind == "var":
        return attribute.kind != "Secret" and _json_fits(attribute, binding.entry)
    if binding.kind == "secret":
        return attribute.kind in ("str", "Secret")
    return attribute.kind == binding.protocol


_ANYTHING: Final = frozenset(["", "Any", "object"])
_SCALARS: Final = frozenset(["str", "int", "float", "bool", "list", "dict", "table", "Literal"])


def _kind_problem(
    shape: EnvShape, attribute: EnvAttribute, binding: Binding, configuration: Configuration
) -> str | None:
    if attribute.kind in _ANYTHING or attribute.converted:
        return None
    is_a = f"{_named(shape, attribute)} is {_article(attribute.shown)}, but {binding.place}"
    if binding.kind == "var":
        if attribute.kind == "Secret":
            required = _required(attribute.name, configuration)
            return (
                f"{is_a} is plain text that everyone with the file can read. "
                f"Move its value to .dev.vars, and write {required}"
            )
        if _json_fits(attribute, binding.entry):
            return None
        value = f'"{binding.entry}"' if isinstance(binding.entry, str) and attribute.literals else _value(binding.entry)
        return f"{is_a} {binding.name} is {value}. Write {binding.name}: {_annotation(binding)}"
    if binding.kind == "secret":
        if attribute.kind in ("str", "Secret"):
            return None
        return f"{is_a} declares a secret. Write {binding.name}: Secret"
    if binding.protocol is None or attribute.kind == binding.protocol:
        return None
    title = KINDS[binding.kind].title
    return f"{is_a} declares {_article(title)}. Write {binding.name}: {_annotation(binding)}"


def _json_fits(attribute: EnvAttribute, value: Any) -> bool:
    match attribute.kind:
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "dict" | "table":
            return isinstance(value, dict)
        case "Literal":
            return any(type(value) is type(literal) and value == literal for literal in attribute.literals)
        case kind:
            return kind in _ANYTHING


def _class_problem(
    shape: EnvShape,
    attribute: EnvAttribute,
    binding: Binding,
    entry: DurableObjectTable,
    configuration: Configuration,
    entry_names: frozenset[str] | None,
) -> str | None:
    """A Durable Object's class that is not there, or is another one than the annotation says."""
    name, worker = entry.class_name, configuration.worker
    if entry.script_name is not None and entry.script_name != worker.name:
        return None
    if entry_names is not None and name not in entry_names:
        near = get_close_matches(name, sorted(entry_names), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Define it there, or import it: class {name}(DurableObject)"
        return f'{_named(shape, attribute)}: {worker.main} has no class {name} ({binding.place} class_name = "{name}"). {hint}'
    # The argument may be a Protocol of the object's methods, so only another declared class is a contradiction.
    classes = {other.class_name for other in worker.durable_objects.bindings}
    for argument in attribute.arguments:
        bare = argument.rpartition(".")[2]
        if bare != name and bare in classes:
            return (
                f"{_named(shape, attribute)} is {_article(attribute.shown)}, but {binding.place} has "
                f'class_name = "{name}". Write {attribute.name}: DurableObjectNamespace[{name}]'
            )
    return None


# Names in calls -----------------------------------------------------------------------------------------------------


def binding_problem(call: str, name: str, shape: EnvShape, *, expected: str = "KVNamespace") -> str | None:
    """A binding named by a literal, `rate_limit(kv_binding="SESSIONS")`, against the Env it will run with (`core-binding`).

    `call` is how the argument is written, for example `rate_limit(kv_binding="SESSIONS")`.
    """
    attribute = next((a for a in shape.attributes if name in (a.attribute or a.name, a.name)), None)
    fitting = [a.attribute or a.name for a in shape.attributes if a.kind == expected]
    if attribute is not None:
        if attribute.kind in _ANYTHING or attribute.kind == expected:
            return None
        hint = f"Did you mean {_listed(fitting, 'or')}?" if fitting else f"{shape.name} has no {expected}"
        return f"{call}: {_named(shape, attribute)} is {_article(attribute.shown)}, not {_article(expected)}. {hint}"
    near = get_close_matches(name, fitting, n=1) or get_close_matches(
        name, [a.attribute or a.name for a in shape.attributes], n=1
    )
    hint = f"Did you mean {near[0]}?" if near else f"Write {name}: {expected} on {shape.name}"
    return f"{call}: {shape.name} has no attribute {name}. {hint}"


def unknown_parameter(name: str, path: str, known: Sequence[str]) -> str:
    """`req.params["idd"]` in a handler of `/users/:id` (`core-params`)."""
    near = get_close_matches(name, known, n=1)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif known:
        hint = f"It has {_listed(known)}"
    else:
        hint = f"It has none. Write /:{name} where it belongs"
    return f'req.params["{name}"]: the path {path} has no parameter {name}. {hint}'


def handler_parameters(handler: str, wanted: Sequence[str], path: str, known: Sequence[str]) -> str | None:
    """A handler over `Request[Env, U, Literal["org"]]` on a path without `:org` (`core-params`)."""
    lacking = [name for name in wanted if name not in known]
    if not lacking:
        return None
    has = f"it has {_listed(known)}" if known else "it has no parameters"
    return (
        f"{handler} reads {_listed([f':{name}' for name in lacking])}, which the path {path} does not have: {has}. "
        f"Register it on a path with {_listed([f':{name}' for name in lacking])}"
    )


def handler_not_last(handler: str, call: str) -> str:
    """A handler `(req, res)` before others in one registration (`core-params`). `call` is for example `get("/users")`."""
    return f"{handler} is a handler (req, res) and ends the chain, so what follows it in {call} never runs. Put it last"


def order_problem(early: str, late: str, reason: str) -> str:
    """A proven reversal of middleware (`core-order`), for example `logger()` before `request_id()`."""
    return f"{early}() is registered before {late}(), but {reason}. Register {late}() first"


def queue_problem(
    queue: str, message: tuple[str, str] | None, shape: EnvShape | None, configurations: Sequence[Configuration]
) -> str | None:
    """A consumer `@app.queue("jobs")` over `MessageBatch[T]`, against what is sent and declared (`core-queue`).

    `message` is T: its full name and how to show it; None when it is not known.
    """
    declared = [c for c in configurations if c.worker.queues.consumers]
    names = sorted({consumer.queue for c in declared for consumer in c.worker.queues.consumers})
    producers = [
        binding
        for c in configurations
        for binding in c.bindings.values()
        if binding.kind == "queue" and binding.entry.queue == queue
    ]
    if configurations and queue not in names:
        near = get_close_matches(queue, names, n=1)
        configuration = configurations[0]
        kind_text = (
            f'"queues.consumers": [{{ "queue": "{queue}" }}]'
            if configuration.is_json
            else f'[[queues.consumers]] queue = "{queue}"'
        )
        hint = f"Did you mean {near[0]}?" if near else f"Write {kind_text}"
        return f'queue("{queue}"): {configuration.path.name} has no consumer of that queue. {hint}'
    if message is None or shape is None or message[0] in ("typing.Any", "builtins.object", "object", "Any"):
        return None
    for binding in producers:
        attribute = shape.find(binding.name)
        if attribute is None or attribute.kind != "Queue" or len(attribute.arguments) != 1:
            continue
        sent = attribute.arguments[0]
        if sent not in ("", "typing.Any", "Any", message[0]):
            return (
                f'queue("{queue}"): the consumer takes MessageBatch[{message[1]}], but {_named(shape, attribute)} '
                f"({binding.place}) is {_article(attribute.shown)}. Write the same type in both"
            )
    return None


# The configuration itself --------------------------------------------------------------------------------------------

_PLACE: Final = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+):)? (?P<text>.*)", re.DOTALL)


def configuration_findings(error: ConfigurationError, path: Path) -> list[Finding]:
    """The mistakes of a configuration file as findings, each at its line of the file that has it."""
    findings: list[Finding] = []
    for problem in error.problems:
        match = _PLACE.fullmatch(problem)
        file, line, text = path, 1, problem
        if match is not None:
            file = path.parent / match["file"] if match["file"] != path.name else path
            line, text = int(match["line"] or 1), match["text"]
        findings.append(Finding("core-env", text, str(file), line))
    return findings


# Words --------------------------------------------------------------------------------------------------------------


def _named(shape: EnvShape, attribute: EnvAttribute) -> str:
    return f"{shape.name}.{attribute.attribute or attribute.name}"


def _where(configuration: Configuration) -> str:
    """`` in wrangler.toml``, or `` in [env.staging] of wrangler.toml``."""
    file = configuration.path.name
    if configuration.environment is None:
        return f" in {file}"
    if configuration.is_json:
        return f' in "env.{configuration.environment}" of {file}'
    return f" in [env.{configuration.environment}] of {file}"


def _missing(shape: EnvShape, attribute: EnvAttribute, configuration: Configuration) -> str:
    environment, is_json, name = configuration.environment, configuration.is_json, attribute.name
    hint = ""
    kind = next((k for k in KINDS.values() if k.protocol == attribute.kind and attribute.kind), None)
    if attribute.shown == "Assets":
        kind = KINDS["assets"]
    if attribute.kind == "Secret":
        write = f"write {_required(name, configuration)}, and its value in .dev.vars"
    elif kind is not None:
        write = f"write {kind.write(name, environment, json=is_json)}"
    elif attribute.kind in _SCALARS:
        write = f"write {_variable(name, _EXAMPLES[attribute.kind], configuration)}"
        if attribute.kind == "str":
            write += f", or {_required(name, configuration)} if it is a secret"
    else:
        write = "declare it there, or give the attribute a default"
    if environment is not None:
        hint = "Bindings and variables are not inherited: "
    else:
        write = write[0].upper() + write[1:]
    return f"{_named(shape, attribute)}: no binding of that name{_where(configuration)}. {hint}{write}"


_EXAMPLES: Final[Mapping[str, str]] = {
    "str": '"…"',
    "int": "1",
    "float": "0.5",
    "bool": "true",
    "list": "[…]",
    "dict": "{ … }",
    "table": "{ … }",
    "Literal": '"…"',
}


def _variable(name: str, value: str, configuration: Configuration) -> str:
    table = KINDS["var"].table(configuration.environment, json=configuration.is_json)
    return f'{table}: {{ "{name}": {value} }}' if configuration.is_json else f"{table} {name} = {value}"


def _required(name: str, configuration: Configuration) -> str:
    table = KINDS["secret"].table(configuration.environment, json=configuration.is_json)
    return f'{table}: {{ "required": ["{name}"] }}' if configuration.is_json else f'{table} required = ["{name}"]'


def _annotation(binding: Binding) -> str:
    """How an attribute for a binding is annotated."""
    if binding.kind != "var":
        match binding.kind:
            case "assets":
                return "Assets"
            case "queue":
                return "Queue[…]"
            case "durable_object":
                return f"DurableObjectNamespace[{binding.entry.class_name}]"
            case _:
                return binding.protocol or "object"
    value: object = binding.entry
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case list():
            items = cast("list[object]", value)
            return "list[str]" if all(isinstance(item, str) for item in items) else "list[object]"
        case dict():
            return "dict[str, object]"
        case _:
            return "str"


def _value(value: object) -> str:
    match value:
        case bool():
            return "a bool"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "null"


def _article(words: str) -> str:
    if words[:2] in ("R2", "KV", "D1", "mT") or words[:1] not in "AEIOaeio" or words.startswith("une"):
        return f"{'an' if words[:2] in ('R2', 'mT') else 'a'} {words}"
    return f"an {words}"


def _listed(words: Sequence[str], conjunction: str = "and") -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"
