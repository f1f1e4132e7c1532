"""An Env against the environments of a configuration file, in both directions (`core-env`).

Plain functions over plain values. Nothing is a finding that is not proven: `core.program.reader` passes as unknown
everything that it does not understand, and unknown is never reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from core.bindings.kinds import KINDS
from core.config.model import Binding, Configuration, DurableObjectTable
from core.config.words import as_attribute, did_you_mean, listed
from core.program.extensions import declared, protocol_of
from core.program.findings import Finding
from core.program.table import Place
from core.program.wording import (
    annotation_for,
    in_file,
    json_type,
    required_secret,
    variable,
    with_article,
)
from core.values import frozen

if TYPE_CHECKING:
    from core.sql.schema import Schema

Scalar: TypeAlias = str | int | bool | None


@frozen
class EnvAttribute:
    """One attribute of an Env class, as `core.program.reader` reads it.

    `name` is the binding's name (the attribute's alias), `attribute` the name on the class. `kind` is the bare name of
    a Protocol of `core.bindings` or a subclass of it (`KVNamespace`), or `str`, `int`, `float`, `bool`, `list`,
    `dict`, `Secret`, `Literal`; `table` for an attrs class, dataclass or TypedDict; `Any`; and `""` for whatever is not
    understood, which fits everything. `shown` is the annotation for messages, without `None`.
    `arguments` are the full names of its type arguments; `literals` the values of a `Literal`. `optional` says that the
    binding may be absent: the annotation allows None, or there is a default. `converted`: a converter of its own.
    `inherited`: a base class that is an Env itself has it, and it is reported there. `inside` says what is wrong
    inside a list, a dict or a table, which it is given with its name.
    """

    name: str
    attribute: str
    kind: str
    shown: str
    location: Place
    optional: bool = False
    arguments: Sequence[str] = ()
    literals: Sequence[Scalar] = ()
    converted: bool = False
    inherited: bool = False
    inside: Callable[[object, str], str | None] = lambda value, path: None


@frozen
class EnvClass:
    """An Env class, as `core.program.reader` reads it.

    `partial`: another Env derives from it, so it need not have every binding.
    """

    name: str
    location: Place
    attributes: Sequence[EnvAttribute]
    partial: bool = False


def check_env(
    env: EnvClass, configurations: Sequence[Configuration], *, entry_names: frozenset[str] | None = None
) -> list[Finding]:
    """Compare an Env with the environments of a configuration file, in both directions (`core-env`).

    `entry_names` are the classes of Durable Objects that the module of `main` defines or imports; None when they are
    not known. A finding that holds in several environments is told once, and names the others.
    """
    together: dict[tuple[str, ...], list[Finding]] = {}
    for configuration in deployed(configurations):
        for key, finding in _compare(env, configuration, entry_names):
            together.setdefault(key, []).append(finding)
    findings: list[Finding] = []
    for first, *others in together.values():
        environments = [f"[env.{one.environment}]" for one in others]
        also = f". The same in {listed(environments, 'and')}" if others else ""
        findings.append(first._replace(message=first.message + also))
    return findings


def migration_problems(
    env: EnvClass, configurations: Sequence[Configuration], schema: Callable[[Configuration, Binding], Schema]
) -> Iterator[Finding]:
    """The migrations that fail, each at the attribute of Env that has the database (`core-sql`)."""
    for attribute in env.attributes:
        if attribute.kind != "D1Database" or attribute.inherited:
            continue
        for configuration in configurations:
            binding = configuration.bindings.get(attribute.name)
            if binding is not None and binding.kind == "d1":
                from core.sql.catalog import problem_text

                for problem in schema(configuration, binding).migrated.problems:
                    text = problem_text(problem, configuration.directory)
                    yield Finding("core-sql", f"{attribute_name(env, attribute)}: {text}", *attribute.location)


def contradicted(env: EnvClass, attribute: EnvAttribute, configurations: Sequence[Configuration]) -> bool:
    """Return True if an attribute has a binding of another kind than its annotation says."""
    return any(
        _kind_problem(env, attribute, binding, configuration) is not None
        for configuration in deployed(configurations)
        if (binding := declared_bindings(configuration).get(attribute.name)) is not None
    )


def deployed(configurations: Sequence[Configuration]) -> list[Configuration]:
    """The environments that are meant to run: a top level without any binding only holds settings that others
    inherit.
    """
    named = [c for c in configurations if c.environment is not None]
    if not any(_declares(c) for c in named):
        return list(configurations)
    return [c for c in configurations if c.environment is not None or _declares(c)]


def _declares(configuration: Configuration) -> bool:
    return any(binding.file == configuration.path for binding in configuration.bindings.values())


def _compare(
    env: EnvClass, configuration: Configuration, entry_names: frozenset[str] | None
) -> list[tuple[tuple[str, ...], Finding]]:
    """The findings of one environment, each with a key: those of one key in several environments are one."""
    problems: list[tuple[tuple[str, ...], Finding]] = []
    own = {attribute.name for attribute in env.attributes}
    bindings = declared_bindings(configuration)
    orphans = {} if env.partial else {n: b for n, b in bindings.items() if _wanted(b) and n not in own}
    missing: list[EnvAttribute] = []

    def add(kind: str, name: str, place: Place, message: str, *more: str) -> None:
        finding = Finding("core-env", message, *place, environment=configuration.environment)
        problems.append(((kind, name, *more), finding))

    for attribute in env.attributes:
        if attribute.inherited:
            continue
        binding = bindings.get(attribute.name)
        if binding is None:
            if not attribute.optional:
                missing.append(attribute)
        else:
            message = _kind_problem(env, attribute, binding, configuration)
            if message is not None:
                add("kind", attribute.name, attribute.location, message, binding.kind)
            elif isinstance(binding.entry, DurableObjectTable):
                message = _class_problem(env, attribute, binding, binding.entry, configuration, entry_names)
                if message is not None:
                    add("class", attribute.name, attribute.location, message, binding.entry.class_name)

    # A renamed binding is one mistake, not an attribute without binding and a binding without attribute.
    pairs = _pairs(missing, orphans)
    for attribute in missing:
        near = pairs.get(attribute.name)
        if near is None:
            add("missing", attribute.name, attribute.location, _missing(env, attribute, configuration))
        else:
            orphans.pop(near.name, None)
            where = in_file(configuration)
            message = f"{attribute_name(env, attribute)}: no binding of that name{where}. Did you mean {near.name} ({near.place})?"
            add("missing", attribute.name, attribute.location, message, near.name)
    for binding in orphans.values():
        title = KINDS[binding.kind].title
        message = (
            f"{env.name} has no attribute for the {title} {binding.name} ({binding.place}). "
            f"Write {binding.name}: {annotation_for(binding)}"
        )
        add("orphan", binding.name, env.location, message)
    return problems


def declared_bindings(configuration: Configuration) -> Mapping[str, Binding]:
    """The bindings that count.

    Where `[secrets]` names the secrets, the other names in `.dev.vars` are this machine's; so are those everywhere that
    no attribute can have, which no configuration file can declare.
    """
    named = configuration.worker.secrets is not None
    return {
        name: binding
        for name, binding in configuration.bindings.items()
        if binding.kind != "secret" or binding.table or not (named or as_attribute(name) != name)
    }


def _wanted(binding: Binding) -> bool:
    """Return True if an Env must have an attribute for it:
    a binding with a type here that is not only on this machine.
    """
    if binding.kind == "secret":
        return binding.table != ""
    return binding.kind == "var" or protocol_of(binding) is not None


def _pairs(missing: Sequence[EnvAttribute], orphans: Mapping[str, Binding]) -> Mapping[str, Binding]:
    """The binding without attribute that was likely meant by each attribute without binding.

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
        if len(same) == 1 and not rivals and protocol_of(same[0]) is not None:
            pairs[attribute.name] = left.pop(same[0].name)
    return pairs


def _may_be(attribute: EnvAttribute, binding: Binding) -> bool:
    if attribute.kind in ANYTHING:
        return True
    if binding.kind == "var":
        return attribute.kind != "Secret" and json_fits(attribute.kind, binding.entry, attribute.literals)
    if binding.kind == "secret":
        return attribute.kind in ("str", "Secret")
    return attribute.kind == protocol_of(binding)


ANYTHING: Final = frozenset(["", "Any", "object"])


def _kind_problem(env: EnvClass, attribute: EnvAttribute, binding: Binding, configuration: Configuration) -> str | None:
    if attribute.kind in ANYTHING or attribute.converted:
        return None
    is_a = f"{attribute_name(env, attribute)} is {with_article(attribute.shown)}, but {binding.place}"
    if binding.kind == "var":
        if attribute.kind == "Secret":
            required = required_secret(attribute.name, configuration)
            return (
                f"{is_a} is plain text that everyone with the file can read. "
                f"Move its value to .dev.vars, and write {required}"
            )
        if json_fits(attribute.kind, binding.entry, attribute.literals):
            inside = attribute.inside(binding.entry, binding.name)
            return f"{is_a} {inside}. Correct one of the two" if inside is not None else None
        value, way = json_type(binding.entry), f"Write {binding.name}: {annotation_for(binding)}"
        if isinstance(binding.entry, str) and attribute.literals:
            known = [one for one in attribute.literals if isinstance(one, str)]
            value, way = f'"{binding.entry}"', did_you_mean(binding.entry, known, way)
        return f"{is_a} {binding.name} is {value}. {way}"
    if binding.kind == "secret":
        if attribute.kind in ("str", "Secret"):
            return None
        return f"{is_a} declares a secret. Write {binding.name}: Secret"
    if protocol_of(binding) in (None, attribute.kind):
        return None
    title = KINDS[binding.kind].title
    return f"{is_a} declares {with_article(title)}. Write {binding.name}: {annotation_for(binding)}"


def json_fits(kind: str, value: object, literals: Sequence[object]) -> bool:
    """Return True for a value of JSON that is of a kind of `EnvAttribute`, or one of the `literals` of a `Literal`."""
    if kind == "Literal":
        return any(type(value) is type(literal) and value == literal for literal in literals)
    return type(value) in _JSON.get(kind, ()) or kind in ANYTHING


_JSON: Final[Mapping[str, Sequence[type]]] = {
    "str": [str],
    "bool": [bool],
    "int": [int],
    "float": [int, float],
    "list": [list],
    "dict": [dict],
    "table": [dict],
}
"""The types of JSON's values by the kinds of `EnvAttribute` that they fit."""


def _class_problem(
    env: EnvClass,
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
        hint = did_you_mean(name, sorted(entry_names), f"Write class {name}(DurableObject) there, or import it")
        return f'{attribute_name(env, attribute)}: {worker.main} has no Durable Object {name} ({binding.place} class_name = "{name}"). {hint}'
    # The argument may be a Protocol of the object's methods, so only another declared class is a contradiction.
    classes = {other.class_name for other in worker.durable_objects.bindings}
    for argument in attribute.arguments:
        bare = argument.rpartition(".")[2]
        if bare != name and bare in classes:
            return (
                f"{attribute_name(env, attribute)} is {with_article(attribute.shown)}, but {binding.place} has "
                f'class_name = "{name}". Write {attribute.name}: DurableObjectNamespace[{name}]'
            )
    made = {one for step in worker.migrations for one in (*step.new_classes, *step.new_sqlite_classes)}
    if name not in made | {one.to for step in worker.migrations for one in step.renamed_classes}:
        step = f'[[migrations]] tag = "v1", new_sqlite_classes = ["{name}"]'
        if configuration.is_json:
            step = f'"migrations": [{{"tag": "v1", "new_sqlite_classes": ["{name}"]}}]'
        return (
            f"{attribute_name(env, attribute)}: no migration makes the class {name} ({binding.place}), so the platform "
            f"refuses to deploy it. Write {step}"
        )
    return None


def declares_bindings(configurations: Sequence[Configuration]) -> Binding | None:
    """The first binding that an Env must have an attribute for, in any environment; None where there is none."""
    return next(
        (b for c in deployed(configurations) for b in declared_bindings(c).values() if _wanted(b) and b.table), None
    )


def attribute_name(env: EnvClass, attribute: EnvAttribute) -> str:
    """Return an attribute as messages name it: `Env.COUNTERS`."""
    return f"{env.name}.{attribute.attribute}"


def _missing(env: EnvClass, attribute: EnvAttribute, configuration: Configuration) -> str:
    environment, is_json, name = configuration.environment, configuration.is_json, attribute.name
    hint = ""
    kind = next((k for k in KINDS.values() if k.protocol == attribute.kind and attribute.kind), None)
    for declared_kind, protocol in declared().kinds.items():
        if attribute.kind == protocol:
            kind = KINDS.get(declared_kind)
    if attribute.shown == "Assets":
        kind = KINDS["assets"]
    if attribute.kind == "Secret":
        write = f"write {required_secret(name, configuration)}, and its value in .dev.vars"
    elif kind is not None:
        write = f"write {kind.write(name, environment, json=is_json)}"
    elif attribute.kind in _EXAMPLES:
        write = f"write {variable(name, _EXAMPLES[attribute.kind], configuration)}"
        if attribute.kind == "str":
            write += f", or {required_secret(name, configuration)} if it is a secret"
    else:
        write = "declare it there, or give the attribute a default"
    if environment is not None:
        hint = "Bindings and variables are not inherited: "
    else:
        write = write[0].upper() + write[1:]
    return f"{attribute_name(env, attribute)}: no binding of that name{in_file(configuration)}. {hint}{write}"


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
