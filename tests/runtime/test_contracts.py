"""The contract of every kind of binding that workerd has a service for, inside workerd.

The same text that holds the fakes and the embedded bindings. What the real runtime does otherwise is listed, each with
its reason, and has to fail: a difference that is gone is taken off the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Background, Running, start_running

import core
from core.cli.runtime.capnp import Plan
from core.cli.runtime.make import make_bundle
from core.cli.runtime.toolchain import Toolchain
from core.testing.contracts.contract import Case

MAIN = Path(__file__).parent / "contracts" / "main.py"
KINDS = ("kv", "d1", "durable_object")
PLAN = Plan(
    name="contracts",
    kv={"KV": "one", "OTHER_KV": "two"},
    d1={"DB": "one", "OTHER_DB": "two"},
    durable_objects={"OBJECTS": "Subject", "OTHER_OBJECTS": "OtherSubject"},
)
CLOCK = {"name": "CLOCK", "service": {"name": "core-kv", "props": {"json": '{"namespace": "clock"}'}}}

# By kind and case: what the real runtime does otherwise, and why that is so.
DIFFERENCES: Mapping[tuple[str, str], str] = {
    ("kv", "an_invented_cursor_is_no_error"): "workerd's own KV service refuses a cursor that it did not give",
    ("d1", "errors_are_sqlites_in_the_platforms_words"): (
        "workerd's own D1 service leaves out statements without anything in them, and has one message for all of them"
    ),
    (
        "d1",
        "names_in_double_quotes_are_never_strings",
    ): "workerd's SQLite takes an unknown name in double quotes as a text",
    (
        "durable_object",
        "storage_has_limits",
    ): "workerd's storage takes longer keys and larger values than the platform's",
    ("durable_object", "a_cursor_goes_on_where_it_stopped"): (
        "workerd's cursor counts the rows that a sort reads as well, in rows_read"
    ),
    ("d1", "limits_are_the_platforms"): "workerd's own D1 service has SQLite's limits, not D1's",
}


def cases() -> Iterator[Any]:
    for kind in KINDS:
        # The alarms of objects follow the machine's clock, which a test cannot move.
        for case in import_module(f"core.testing.contracts.{kind}").contract.select(timed=kind != "durable_object"):
            reason = DIFFERENCES.get((kind, case.name))
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
            yield pytest.param(kind, case, id=f"{kind}-{case.name}", marks=marks)


@pytest.fixture(scope="module")
def contracts(tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A worker with the contracts in it."""
    place = tmp_path_factory.mktemp("contracts")
    bundle = background.run(
        make_bundle(MAIN, project=MAIN.parent, plan=PLAN, out=place / "dist", toolchain=tools, files=contract_files())
    )
    running = start_running(tools, bundle, background, place / "state", plan=PLAN, bindings=[CLOCK], test_clock=True)
    yield running
    running.stop()


def contract_files() -> dict[str, bytes]:
    """The contracts, which are for development and so in no other bundle."""
    root = Path(core.__path__[0])
    places = [root / "testing" / "__init__.py", *(root / "testing" / "contracts").glob("*.py")]
    return {f"core/{place.relative_to(root).as_posix()}": place.read_bytes() for place in places}


@pytest.mark.parametrize(("kind", "case"), list(cases()))
def test_the_real_runtime_keeps_the_contract(contracts: Running, kind: str, case: Case[Any]) -> None:
    answer = contracts.request("POST", f"/run/{kind}/{case.name}")
    assert answer.status == 204, f"{answer.json()['error']}\n{answer.json()['where']}\n{answer.json()['trace']}"
