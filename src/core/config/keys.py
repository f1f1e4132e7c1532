"""The keys of a file: which are known, misspelt, unchecked, inherited by a named environment, or the top level's
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import attrs
from cattrs.errors import ClassValidationError

from core.bindings.kinds import KINDS
from core.config import model
from core.config.document import Document, Problems, Table, as_list, as_table
from core.config.model import (
    Assets,
    D1Table,
    DurableObjectMigration,
    DurableObjects,
    Observability,
    R2Table,
    Triggers,
    Unchecked,
    Worker,
    WorkflowTable,
)
from core.config.structure import UNIONS, converter, mistakes
from core.config.toml_text import KeyPath
from core.config.words import and_list, dotted, header_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


INHERITED_KEYS: Final = _words(
    "name main base_dir account_id compatibility_date compatibility_flags workers_dev preview_urls routes route triggers "
    "migrations limits placement observability assets rules python_modules build core "
    # and of those that are not modelled:
    "access cache compliance_region exports find_additional_modules first_party_worker jsx_factory jsx_fragment keep_names "
    "logfwdr logpush minify no_bundle preserve_file_names previews tsconfig upload_source_maps"
)
"""The keys a named environment inherits from the top level. Bindings and vars are not inherited."""

TOP_LEVEL_KEYS: Final = _words(
    "$schema addresses alias data_blobs dependencies_instrumentation dev env keep_vars legacy_env "
    "pages_build_output_dir send_metrics site text_blobs wasm_modules"
)
"""The keys that only the top level may have, for all environments."""

UNCHECKED_KEYS: Final = _words(
    "$schema access addresses agent_memory alias analytics connect dependencies_instrumentation exports k2 "
    "keep_vars legacy_env pages_build_output_dir send_metrics site wasm_modules text_blobs data_blobs "
    "ai_search ai_search_namespaces artifacts cache cloudchamber compliance_region constellation "
    "containers define find_additional_modules first_party_worker flagship jsx_factory jsx_fragment keep_names "
    "logfwdr logpush media minify no_bundle pipelines preserve_file_names previews stream "
    "streaming_tail_consumers tsconfig unsafe_hello_world upload_source_maps usage_model vpc_networks "
    "vpc_services worker_loaders node_compat zone_id"
)
"""The platform's keys that the framework ignores."""

UNCHECKED_IN: Final[Mapping[type, frozenset[str]]] = {
    Assets: _words("base_path"),
    D1Table: _words("jurisdiction migrations_pattern"),
    DurableObjectMigration: _words("transferred_classes"),
    DurableObjects: _words("code_update_strategy"),
    Observability: _words("issues redact_query_string"),
    R2Table: _words("local_dev"),
    Triggers: _words("events"),
    WorkflowTable: _words("concurrency default_retention jurisdiction schedules"),
}
"""The same inside of tables, by their class."""


_MODEL_KEYS: Final = frozenset(a.name for a in attrs.fields(Worker)) - {"unchecked"}


def worker_of_level(document: Document, environment: str | None, problems: Problems) -> Worker:
    """One level of the file, the top or a named environment, without the keys it inherits."""
    level, data = document.level(environment)
    known: dict[str, object] = {}
    unchecked: dict[str, Any] = {}
    for key, value in data.items():
        if level and key in TOP_LEVEL_KEYS:
            problems.add((*level, key), " cannot differ by environment. Move it to the top level.")
        elif key in _MODEL_KEYS:
            known[key] = value
        elif key != "env":
            names = _MODEL_KEYS | UNCHECKED_KEYS if level else _MODEL_KEYS | UNCHECKED_KEYS | TOP_LEVEL_KEYS
            near = None if key in UNCHECKED_KEYS else _near(key, value, sorted(names), data, Worker)
            if near is None:
                unchecked[key] = value
            else:
                problems.add((*level, key), f" is not a key of the configuration. Did you mean {near}?")
    known = {key: _known(value, types_of(Worker)[key], (*level, key), problems) for key, value in known.items()}
    worker = Worker()
    try:
        worker = converter.structure(known, Worker)
    except ClassValidationError as error:
        for path, text in mistakes(error, level, known, document.is_json):
            problems.add(path, text)
    return attrs.evolve(worker, unchecked=unchecked)


def _known(value: object, type_: Any, path: KeyPath, problems: Problems) -> object:
    """`value` without the keys that its tables have not. One that is a key but for a letter is a mistake, and is taken
    for that key; any other is the platform's business, and unchecked."""
    given = value  # not narrowed by what follows
    arms = get_args(type_) if get_origin(type_) in UNIONS else (type_,)
    for arm in arms:
        if isinstance(value, list) and get_origin(arm) is Sequence:
            return [_known(item, get_args(arm)[0], (*path, at), problems) for at, item in enumerate(as_list(value))]
        if isinstance(value, dict) and attrs.has(arm) and arm is not model.UnsafeBinding:
            return _known_keys(as_table(value), arm, path, problems)
    return given


def _known_keys(table: Table, class_: Any, path: KeyPath, problems: Problems) -> Table:
    kept: dict[str, object] = {}
    types, unchecked = types_of(class_), UNCHECKED_IN.get(class_, frozenset())
    for key, value in table.items():
        if key in types:
            kept[key] = _known(value, types[key], (*path, key), problems)
        elif key in unchecked:
            problems.unknown[*path, key] = True
        else:
            near = _near(key, value, [*types, *unchecked], table, class_)
            is_json = problems.document.is_json
            if near is None and class_ not in _OURS:
                problems.unknown[*path, key] = False
                continue
            hint = f"It has {and_list([*types])}." if near is None else f"Did you mean {near}?"
            text = f" is not a key of {header_of(path, is_json)}. {hint}"
            problems.add((*path, key), text)
            if near in types:
                # So that it is not missing as well.
                kept[near] = _known(value, types[near], (*path, key), problems)
    return kept


# Every key of these is known: the platform has them not.
_OURS: Final = frozenset({model.CoreSettings, model.AiServer})


def _near(key: str, value: object, names: Iterable[str], table: Table, class_: object) -> str | None:
    """The key that was meant: a letter away, not given yet, and of a type that takes the value."""
    for name in names:
        if name in table or not _one_letter(_letters(key), _letters(name)):
            continue
        type_ = types_of(class_).get(name)
        if type_ is None or _fits(_known(value, type_, (), Problems(Document(Path(), {}, {}, b""))), type_):
            return name
    return None


def _letters(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _one_letter(one: str, other: str) -> bool:
    """Return True if one letter more, less, another or two in the wrong order make one word of the other."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    if len(long) > len(short):
        return short[at:] == long[at + 1 :]
    return short[at + 1 :] == long[at + 1 :] or (
        short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    )


def _fits(value: Any, type_: Any) -> bool:
    try:
        converter.structure(value, type_)
    except Exception:  # whatever it is that does not fit
        return False
    return True


@cache
def types_of(class_: Any) -> dict[str, Any]:
    """The keys of a table as they are written, with their types."""
    return {a.name.removesuffix("_"): a.type for a in attrs.fields(attrs.resolve_types(class_))}


def inherit(top: Worker, own: Worker, environment: str, data: Table) -> Worker:
    """An environment with the keys it takes from the top level. Its name has the environment's name at its end."""
    said = data["env"][environment]
    changes: dict[str, Any] = {
        a.name: getattr(top, a.name)
        for a in attrs.fields(Worker)
        if a.name not in said and (a.name in INHERITED_KEYS or a.name in TOP_LEVEL_KEYS)
    }
    # `route` and `routes` are two spellings of one key.
    if "route" in said or "routes" in said:
        changes |= {key: getattr(own, key) for key in ("route", "routes")}
    if "name" not in said and top.name:
        changes["name"] = f"{top.name}-{environment}"
    inherited = {k: v for k, v in top.unchecked.items() if k in INHERITED_KEYS or k in TOP_LEVEL_KEYS}
    return attrs.evolve(own, **changes, unchecked={**inherited, **own.unchecked})


def unchecked_of(
    document: Document, environment: str | None, worker: Worker, unknown: Mapping[KeyPath, bool]
) -> list[Unchecked]:
    """The parts of an environment that the framework does not check, each with its reason."""
    level, own = document.level(environment)
    entries: list[Unchecked] = []
    for key in worker.unchecked:
        path: KeyPath = (*level, key) if (*level, key) in document.lines else (key,)
        if key != "$schema":
            entries.append(Unchecked(dotted(path), document.line(path), _REASONS[key in UNCHECKED_KEYS]))
    taken = {*INHERITED_KEYS, *TOP_LEVEL_KEYS} - {"env", *own}
    for path, is_known in unknown.items():
        at_level = path[: len(level)] == level and (bool(level) or path[0] != "env")
        if at_level or path[0] in taken:
            reason = _PATTERN if path[-1] == "migrations_pattern" else _REASONS[is_known]
            entries.append(Unchecked(dotted(path), document.line(path), reason))
    for kind, section in (("dispatch_namespace", worker.dispatch_namespaces), ("unsafe", worker.unsafe.bindings)):
        if section:
            path = (*level, *KINDS[kind].section)
            entries.append(Unchecked(dotted(path), document.line(path), "core has no type for it"))
    return entries


_PATTERN: Final = "core applies the .sql files of migrations_dir, and does not follow the pattern"
_REASONS: Final = {True: "core does not check it", False: "core does not know it, and does not check it"}
