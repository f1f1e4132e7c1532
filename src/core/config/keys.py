"""The keys of a file: known, misspelt, unchecked, inherited by a named environment, or the top level's alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import attrs

from core.bindings.kinds import KINDS
from core.config.document import Document, Table
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
from core.config.toml_text import KeyPath
from core.config.words import dotted


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


def one_letter(one: str, other: str) -> bool:
    """True if one letter more, less, another or two in the wrong order make one key of the other."""
    short, long = sorted((key.lower().replace("_", "").replace("-", "") for key in (one, other)), key=len)
    at = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    short, long = short[at:], long[at:]  # from the first letter that differs
    return long[1:] in (short, short[1:]) or (short[:2] == long[1::-1] and short[2:] == long[2:])


@cache
def types_of(class_: Any) -> dict[str, object]:
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
    return attrs.evolve(own, **changes)


def unchecked_of(
    document: Document, environment: str | None, worker: Worker, unknown: Mapping[KeyPath, bool]
) -> list[Unchecked]:
    """The parts of an environment that the framework does not check, each with its reason."""
    level, own = document.level(environment)
    entries: list[Unchecked] = []
    taken = {*INHERITED_KEYS, *TOP_LEVEL_KEYS} - {"env", *own}
    for path, is_known in unknown.items():
        at_level = path[: len(level)] == level and (bool(level) or path[0] != "env")
        if path != ("$schema",) and (at_level or path[0] in taken):
            reason = _PATTERN if path[-1] == "migrations_pattern" else _REASONS[is_known]
            entries.append(Unchecked(dotted(path), document.line(path), reason))
    for kind, section in (("dispatch_namespace", worker.dispatch_namespaces), ("unsafe", worker.unsafe.bindings)):
        if section:
            path = (*level, *KINDS[kind].section)
            entries.append(Unchecked(dotted(path), document.line(path), "core has no type for it"))
    return entries


_PATTERN: Final = "core applies the .sql files of migrations_dir, and does not follow the pattern"
_REASONS: Final = {True: "core does not check it", False: "core does not know it, and does not check it"}
