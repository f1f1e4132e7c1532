"""The configuration model against the schema of the platform's own tool: every key of it is known here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import attrs
import pytest
from tests.config.platform_schema.schema import SCHEMA, TABLE, table

from core.bindings.kinds import KINDS
from core.config.keys import INHERITED_KEYS, TOP_LEVEL_KEYS, UNCHECKED_IN, UNCHECKED_KEYS
from core.config.load import load
from core.config.model import AiServer, CoreSettings, UnsafeBinding, Worker

LINES = TABLE.read_text().splitlines()
PLATFORM = {line.partition(" = ")[0].removeprefix("^"): line.partition(" = ")[2].split() for line in LINES}
TOP_ONLY = {line[1:].partition(" = ")[0].partition(".")[0] for line in LINES if line[0] == "^"}

# Known here and not there: older files have them, and one class stands for two tables. And what only the framework
# reads.
OLDER = {
    "constellation",
    "legacy_env",
    "node_compat",
    "observability.traces.invocation_logs",
    "services.environment",
    "usage_model",
    "version_metadata.remote",
    "workflows.remote",
    "zone_id",
}
OURS = (CoreSettings, AiServer)


def tables(type_: Any) -> Iterator[Any]:
    """The tables that a value of this type may be, or have in it."""
    if attrs.has(type_):
        yield type_
    elif get_origin(type_) is not cast("Any", Literal):
        for part in get_args(type_):
            yield from tables(part)


def known(class_: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of a table and of those in it, with its type; None for what is read over."""
    for key in UNCHECKED_IN.get(class_, ()):
        yield path + key, None
    for attribute in attrs.fields(attrs.resolve_types(class_)):
        key = path + attribute.name.removesuffix("_")
        yield key, attribute.type
        for inner in tables(attribute.type):
            if inner not in OURS:
                yield from known(inner, f"{key}.")


MODEL: dict[str, Any] = {key: type_ for key, type_ in known(Worker) if key not in ("core", "unsafe.bindings.options")}


def is_open(key: str) -> bool:
    """True if a key is in what core reads over, or in what has keys of the user's own."""
    parts = key.split(".")
    if parts[0] in UNCHECKED_KEYS:
        return True
    if parts[:2] == ["unsafe", "bindings"]:
        return parts[2] not in {a.name for a in attrs.fields(UnsafeBinding)}
    around = [".".join(parts[:end]) for end in range(1, len(parts))]
    return any(outer in MODEL and not any(tables(MODEL[outer])) for outer in around)


def test_the_model_knows_every_key_of_the_platform() -> None:
    assert [key for key in PLATFORM if key not in MODEL and not is_open(key)] == ["env"], (
        "write each key as a field of its table in src/core/config/model.py, or in UNCHECKED_KEYS of "
        "src/core/config/keys.py where core only reads over it"
    )


def test_the_model_has_no_key_of_its_own() -> None:
    assert {key for key in MODEL if key not in PLATFORM and not is_open(key)} == OLDER - UNCHECKED_KEYS, (
        "src/core/config/model.py has keys that tests/config/platform_schema/keys.txt lacks: name the version of the "
        "platform's tool that has them in tests/config/platform_schema/tool.json, and run make keys"
    )
    assert {key for key in UNCHECKED_KEYS if key not in PLATFORM} == OLDER & UNCHECKED_KEYS


def test_the_model_takes_every_word_of_the_platform() -> None:
    for key, words in PLATFORM.items():
        choices = [
            get_args(part) for part in (MODEL.get(key), *get_args(MODEL.get(key))) if get_origin(part) is Literal
        ]
        for taken in choices:
            assert set(words) <= set(taken), key


def test_the_top_levels_keys_are_the_platforms() -> None:
    assert set(TOP_LEVEL_KEYS) == TOP_ONLY | {"legacy_env"}
    assert not INHERITED_KEYS & TOP_LEVEL_KEYS


def test_every_binding_of_the_platform_is_a_kind() -> None:
    named = {key.rpartition(".")[0] for key in PLATFORM if key.endswith(".binding")}
    assert named - {".".join(kind.section) for kind in KINDS.values()} == set()


@pytest.mark.skipif(not SCHEMA.exists(), reason="the platform's schema is not here: make schema")
def test_the_table_is_the_schemas() -> None:
    assert TABLE.read_text() == table(json.loads(SCHEMA.read_text())), "write it anew: make keys"


TODAY = """
name = "shop"
main = "app.py"
compatibility_date = "2026-04-01"
routes = [{ pattern = "example.com/*", zone_name = "example.com", enabled = true, previews_enabled = false }]
[observability]
redact_query_string = true
issues = { enabled = true }
[[migrations]]
tag = "v1"
transferred_classes = [{ from = "A", from_script = "old", to = "B" }]
[[d1_databases]]
binding = "DB"
jurisdiction = "eu"
migrations_dir = "migrations"
migrations_pattern = "migrations/*/migration.sql"
[[r2_buckets]]
binding = "FILES"
local_dev = { experimental_s3_credentials = { accessKeyId = "a", secretAccessKey = "b" } }
[durable_objects]
code_update_strategy = { mode = "deferred", max_delay = 5 }
[[workflows]]
binding = "ORDERS"
name = "orders"
class_name = "Orders"
schedules = ["0 0 * * *"]
[[hyperdrive]]
binding = "PG"
id = "0"
remote = true
[assets]
directory = "public"
base_path = "/static"
[triggers]
crons = []
events = [{ type = "cf.artifacts.repo.pushed" }]
[[analytics_engine_datasets]]
binding = "EVENTS"
remote = true
[dev]
inspector_ip = "127.0.0.1"
"""


def test_a_configuration_of_todays_platform_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.toml"
    path.write_text(TODAY)
    configuration = load(path)
    assert {"DB", "FILES", "ORDERS", "PG", "EVENTS"} <= set(configuration.bindings)
    notes = {entry.key: entry.reason for entry in configuration.unchecked}
    assert notes.pop("d1_databases[0].migrations_pattern").startswith("core applies the .sql files of migrations_dir")
    assert notes == dict.fromkeys(
        [
            "observability.redact_query_string",
            "observability.issues",
            "migrations[0].transferred_classes",
            "d1_databases[0].jurisdiction",
            "r2_buckets[0].local_dev",
            "durable_objects.code_update_strategy",
            "workflows[0].schedules",
            "assets.base_path",
            "triggers.events",
        ],
        "core does not check it",
    )
