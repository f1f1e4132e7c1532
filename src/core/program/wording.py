"""Spelling of bindings, values and lists of names in messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from core.bindings.kinds import KINDS
from core.config.model import Binding, Configuration
from core.config.words import type_name
from core.program.extensions import protocol_of


def in_file(configuration: Configuration) -> str:
    """`` in wrangler.toml``, or `` in [env.staging] of wrangler.toml``."""
    file = configuration.path.name
    if configuration.environment is None:
        return f" in {file}"
    if configuration.is_json:
        return f' in "env.{configuration.environment}" of {file}'
    return f" in [env.{configuration.environment}] of {file}"


def variable(name: str, value: str, configuration: Configuration, *, kind: str = "var") -> str:
    """Return the line that declares a variable, as the configuration file writes it."""
    table = KINDS[kind].table(configuration.environment, json=configuration.is_json)
    return f'{table}: {{ "{name}": {value} }}' if configuration.is_json else f"{table} {name} = {value}"


def required_secret(name: str, configuration: Configuration) -> str:
    """Return the line that declares a required secret, as the configuration file writes it."""
    return variable("required", f'["{name}"]', configuration, kind="secret")


def annotation_for(binding: Binding) -> str:
    """Return the annotation that an attribute for a binding needs."""
    match binding.kind:
        case "var":
            return variable_type(binding.entry)
        case "assets":
            return "Assets"
        case "queue":
            return "Queue[…]"
        case "durable_object":
            return f"DurableObjectNamespace[{binding.entry.class_name}]"
        case _:
            return (protocol_of(binding) or "object").rpartition(".")[2]


def variable_type(value: object) -> str:
    """Return the annotation that a variable of this value needs."""
    if isinstance(value, list):
        kinds = {variable_type(item) for item in cast("list[object]", value)}
        return f"list[{kinds.pop()}]" if len(kinds) == 1 else "list[object]"
    return _TYPES.get(type(value), "str")


_TYPES: Final[Mapping[type[object], str]] = {
    bool: "bool",
    int: "int",
    float: "float",
    dict: "dict[str, object]",
    type(None): "object",
}


def json_type(value: object) -> str:
    """Return the type of a value in the words of messages."""
    return "a bool" if isinstance(value, bool) else type_name(value)


def with_article(words: str) -> str:
    """Return words with `a` or `an` before them."""
    is_vowel = words[:1] in "AEIOaeio" and not words.startswith("une")
    return f"{'an' if is_vowel or words[:2] in ('R2', 'mT') else 'a'} {words}"
