"""The bindings of an environment, and the position where each is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.bindings.kinds import KINDS, Kind
from core.config.document import Document, Table, as_list, as_table
from core.config.keys import INHERITED_KEYS, TOP_LEVEL_KEYS
from core.config.model import Binding, Worker
from core.config.secrets import LocalSecret
from core.config.toml_text import KeyPath


def bindings_of(
    document: Document, environment: str | None, worker: Worker, secrets: Mapping[str, LocalSecret]
) -> Mapping[str, Binding]:
    """Every binding of an environment by its name, with its line and its table."""
    level, data = document.level(environment)
    bindings: dict[str, Binding] = {}
    found = [(item, level) for item in named_bindings(data, level)]
    if environment is not None:
        # Static files and the keys of the top level alone come down to every environment.
        inherited = ({*INHERITED_KEYS, *TOP_LEVEL_KEYS} - set(data)) & set(document.data)
        found += [(item, ()) for item in named_bindings({key: document.data[key] for key in inherited}, ())]
    for (kind, name, path, raw), at in found:
        table = kind.table(environment if at else None, json=document.is_json)
        entry = _entry(worker, kind, path[len(at) :], raw)
        bindings[name] = Binding(name, kind.name, table, document.path, document.line(path), entry)
    for name, secret in secrets.items():
        if name not in bindings:
            bindings[name] = Binding(name, "secret", "", secret.file, secret.line)
    return bindings


def named_bindings(data: Table, level: KeyPath) -> Iterator[tuple[Kind, str, KeyPath, object]]:
    """Every binding of a level that has a name: its kind, its name, where the name is, and its entry."""
    for kind in KINDS.values():
        value: Any = data
        for key in kind.section:
            value = as_table(value).get(key)
        path: KeyPath = (*level, *kind.section)
        if kind.name == "secret":
            for index, name in enumerate(as_list(as_table(value).get("required"))):
                if isinstance(name, str):
                    yield kind, name, (*path, "required", index), None
        elif kind.name in ("var", "wasm_module", "text_blob", "data_blob"):
            for name, item in as_table(value).items():
                yield kind, name, (*path, name), item
        elif kind.many:
            for index, entry in enumerate(as_list(value)):
                name = as_table(entry).get(kind.key)
                if isinstance(name, str):
                    yield kind, name, (*path, index, kind.key), entry
        else:
            name = as_table(value).get(kind.key)
            if isinstance(name, str):
                yield kind, name, (*path, kind.key), value


def _entry(worker: Worker, kind: Kind, path: KeyPath, raw: object) -> object:
    """The structured table of a binding, or the value of a variable."""
    value: Any = worker
    for key in path[: len(kind.section)]:
        if not hasattr(value, str(key)):
            return raw
        value = getattr(value, str(key))
    if kind.name == "var":
        return raw
    if kind.name == "secret":
        return None
    index = path[len(kind.section)]
    return value[index] if kind.many and isinstance(index, int) else value
