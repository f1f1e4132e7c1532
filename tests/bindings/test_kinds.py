"""The table of kinds, and what belongs to each row: a forgotten part fails with the name of the file to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from typing_extensions import is_protocol

import core
import core.testing
from core.assembly.embedded import _MAKERS, _NAMES
from core.backends.workerd.env import _KINDS
from core.bindings.kinds import KINDS, PROTOCOLS, Kind, bindings_of
from core.bindings.kv import KVNamespace
from core.config.load import load
from core.config.model import Worker
from core.runtime.project import unsupported
from core.testing import FakeKVNamespace

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "core"
OWN = [kind for kind in KINDS.values() if kind.module]
BINDINGS = [kind for kind in OWN if kind.name != "secret"]
NO_KINDS = {"__init__", "absent", "calls", "kinds", "numbers", "object_socket", "queue_limits"}


def named(kind: Kind) -> str:
    return kind.name


def found(file: Path, name: str, module: str) -> Any:
    """The class `name` of `file`, which is `module`."""
    shown = file.relative_to(ROOT)
    assert file.exists() or file.with_suffix("").is_dir(), f"write {shown} with the class {name}"
    value = getattr(import_module(module), name, None)
    assert isinstance(value, type), f"write the class {name} in {shown}"
    return value


@pytest.mark.parametrize("kind", BINDINGS, ids=named)
def test_a_kind_has_its_protocol_and_its_page(kind: Kind) -> None:
    name = kind.alias or kind.protocol
    assert name is not None, f"write protocol= of the kind {kind.name} in src/core/bindings/kinds.py"
    protocol = found(SOURCE / "bindings" / f"{kind.module}.py", name, f"core.bindings.{kind.module}")
    assert is_protocol(protocol), f"{name} in src/core/bindings/{kind.module}.py is not a Protocol"
    assert PROTOCOLS[name] is kind
    pages = ROOT / "docs" / "reference" / "api"
    lines = {line for page in pages.glob("*.md") for line in page.read_text("utf-8").splitlines()}
    line = f"::: core.{name}" if name in core.__all__ else f"::: core.bindings.{kind.module}.{name}"
    assert line in lines, f"write `{line}` in a page of {pages.relative_to(ROOT)}"


@pytest.mark.parametrize("kind", BINDINGS, ids=named)
def test_a_kind_has_its_class_in_workerd(kind: Kind) -> None:
    if kind.protocol == "Fetcher":
        kind = KINDS["service"]
    engine = kind.engine("Workerd")
    assert engine, f"write Workerd among the engines of the kind {kind.name} in src/core/bindings/kinds.py"
    found(SOURCE / "backends" / "workerd" / f"{kind.module}.py", engine, f"core.backends.workerd.{kind.module}")
    engines = (ROOT / "tests" / "typing" / "accept" / "bindings_engines.py").read_text("utf-8")
    for cls in filter(None, (engine, kind.engine("Embedded"))):
        assert engines.count(cls) > 1, f"hold {cls} against {kind.protocol} in tests/typing/accept/bindings_engines.py"


@pytest.mark.parametrize("kind", [kind for kind in OWN if "Embedded" in kind.engines], ids=named)
def test_an_embedded_kind_has_its_engine_and_is_made(kind: Kind) -> None:
    file = SOURCE / "backends" / "embedded" / f"{kind.module}.py"
    found(file, kind.engine("Embedded"), f"core.backends.embedded.{kind.module}")
    own_way = {"ai", "durable_object", "hyperdrive"}  # what these are made of is more than their table
    assert kind.name in {*_MAKERS, *_NAMES, *own_way}, f"write {kind.name} in _MAKERS of src/core/assembly/embedded.py"


@pytest.mark.parametrize("kind", [kind for kind in OWN if "Fake" in kind.engines], ids=named)
def test_a_fake_has_its_contract(kind: Kind) -> None:
    fake = kind.engine("Fake")
    assert "Embedded" in kind.engines, f"{fake} has no engine to be the fake of"
    found(SOURCE / "testing" / f"{kind.module}.py", fake, f"core.testing.{kind.module}")
    assert fake in core.testing.__all__, f"write {fake} in src/core/testing/__init__.py"
    for name in (kind.module, f"test_{kind.module}"):
        file = ROOT / "tests" / "contracts" / f"{name}.py"
        assert file.exists() or file.with_suffix("").is_dir(), f"write {file.relative_to(ROOT)}"


@pytest.mark.parametrize("kind", OWN, ids=named)
def test_the_table_of_a_kind_is_read_from_the_configuration(kind: Kind) -> None:
    table: Any = Worker
    for key in kind.section:
        fields = {field.name: field for field in attrs.fields(table)}
        assert key in fields, f"write the table {kind.table()} in src/core/config/model.py"
        default: object = fields[key].default
        table = type(default)
        if not attrs.has(cast("type[object]", table)):
            break


def test_every_file_of_bindings_belongs_to_a_kind() -> None:
    for folder in ("bindings", "backends/workerd"):
        known = {kind.module for kind in OWN} | NO_KINDS
        known |= (
            {"conversion", "engine", "env", "fetch", "leaving", "migrations", "rpc", "spans", "web_socket"}
            if folder != "bindings"
            else set()
        )
        for file in (SOURCE / folder).glob("*.py"):
            assert file.stem in known, f"write a row for {file.relative_to(ROOT)} in src/core/bindings/kinds.py"


def test_a_javascript_class_tells_of_a_kind_that_workerd_has_a_class_for() -> None:
    assert all(KINDS[kind].engine("Workerd") for kind in _KINDS.values())


@pytest.mark.parametrize("made", [attrs.frozen, dataclass, dataclass(frozen=True, slots=True)])
def test_bindings_are_found_in_an_env_of_every_form(made: Callable[[type], type]) -> None:
    class Env:
        KV: KVNamespace
        NAME: str

    bindings = FakeKVNamespace()
    assert [*bindings_of(made(Env)(bindings, "x"))] == [("KV", "kv", bindings)]


def missing_in_workerd(folder: Path, tables: str) -> dict[str, str]:
    (folder / "wrangler.toml").write_text(f'name = "shop"\nmain = "main.py"\n{tables}')
    return unsupported(load(folder / "wrangler.toml"))


def test_a_worker_without_bindings_asks_for_nothing_that_workerd_lacks(tmp_path: Path) -> None:
    assert missing_in_workerd(tmp_path, "") == {}


def test_a_database_behind_hyperdrive_is_said_to_need_cpython(tmp_path: Path) -> None:
    ((name, reason),) = missing_in_workerd(tmp_path, '[[hyperdrive]]\nbinding = "PG"\nid = "pg"').items()
    assert name == "PG"
    assert reason.startswith("a client of a database opens sockets, which Python has not in workerd")
    assert reason.endswith("Run the worker on CPython: `core serve --python`")


def test_a_rate_limit_is_said_to_be_counted_elsewhere_in_workerd(tmp_path: Path) -> None:
    limiter = '[[ratelimits]]\nname = "LIMITER"\nnamespace_id = "1001"\nsimple = { limit = 100, period = 60 }'
    ((name, reason),) = missing_in_workerd(tmp_path, limiter).items()
    assert name == "LIMITER"
    assert reason.startswith("workerd alone has no service for this rate limit. Count with the middleware rate_limit")


def test_another_worker_and_its_classes_are_not_there_in_workerd(tmp_path: Path) -> None:
    services = '[[services]]\nbinding = "OWN"\nservice = "shop"\n[[services]]\nbinding = "AUTH"\nservice = "auth"\n'
    classes = '[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\nscript_name = "auth"'
    told = missing_in_workerd(tmp_path, services + classes)
    assert [
        reason.partition(". ")[0].removeprefix("workerd alone has no service for this ") for reason in told.values()
    ] == [
        "Durable Object class of another worker",
        "service binding to another worker",
    ]


LAMP = Kind("lamp", "lamp", ("lamps",), protocol="Lamp", engines=("Workerd", "Embedded", "Fake"))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (test_a_kind_has_its_protocol_and_its_page, "write src/core/bindings/lamp.py with the class Lamp"),
        (test_a_kind_has_its_class_in_workerd, "write src/core/backends/workerd/lamp.py with the class WorkerdLamp"),
        (
            test_an_embedded_kind_has_its_engine_and_is_made,
            "write src/core/backends/embedded/lamp.py with the class EmbeddedLamp",
        ),
        (test_a_fake_has_its_contract, "write src/core/testing/lamp.py with the class FakeLamp"),
        (
            test_the_table_of_a_kind_is_read_from_the_configuration,
            "write the table [[lamps]] in src/core/config/model.py",
        ),
    ],
)
def test_a_row_alone_is_refused_with_the_next_file_to_write(step: Callable[[Kind], None], message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{re.escape(message)}"):
        step(LAMP)
