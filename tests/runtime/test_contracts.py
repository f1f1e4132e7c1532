"""The contract of every kind of binding that workerd has a service for, inside workerd.

The same text that holds the fakes and the embedded bindings. What the real runtime does otherwise is listed, each with
its reason, and has to fail: a difference that is gone is taken off the list.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Background, Running, start_running
from tests.runtime.contracts.queues import QUEUES
from tests.support.npm import npm_folder

import core
from core.runtime.capnp import Consumer, Plan
from core.runtime.make import make_bundle
from core.runtime.toolchain import Toolchain
from core.testing.contracts.contract import Case

MAIN = Path(__file__).parent / "contracts" / "main.py"
KINDS = ("kv", "d1", "durable_object", "queue")
PLACES: Mapping[str, str] = {**dict.fromkeys(KINDS, "workerd"), "r2": "miniflare"}
# By kind and case: whether it passed in this run.
OUTCOMES: dict[tuple[str, str], bool] = {}
PLAN = Plan(
    name="contracts",
    kv={"KV": "one", "OTHER_KV": "two"},
    d1={"DB": "one", "OTHER_DB": "two"},
    queues={name.replace("-", "_").upper(): name for name in QUEUES},
    consumers=[Consumer(name, settings) for name, settings in QUEUES.items()],
    durable_objects={"OBJECTS": "Subject", "OTHER_OBJECTS": "OtherSubject"},
)
CLOCK = {"name": "CLOCK", "service": {"name": "core-kv", "props": {"json": '{"namespace": "clock"}'}}}

QUEUE_CLOCK = {"name": "QUEUE_CLOCK", "service": {"name": "core-queues", "props": {"json": '{"queue": "clock"}'}}}

# By kind and case: what the real runtime does otherwise, and why that is so.
DIFFERENCES: Mapping[tuple[str, str], str] = {
    ("kv", "an_invented_cursor_is_no_error"): "workerd's own KV service refuses a cursor that it did not give",
    ("d1", "errors_are_sqlites_in_the_platforms_words"): (
        "workerd's own D1 service leaves out statements without anything in them, and has one message for all of them"
    ),
    (
        "d1",
        "names_in_double_quotes_are_never_strings",
    ): "workerd's SQLite takes an unknown name in double quotes as a string",
    (
        "durable_object",
        "storage_has_limits",
    ): "workerd's storage takes longer keys and larger values than the platform's",
    ("durable_object", "a_cursor_goes_on_where_it_stopped"): (
        "workerd's cursor counts the rows that a sort reads as well, in rows_read"
    ),
    ("r2", "custom_metadata_has_8192_characters_and_twice_as_few_beyond_latin_1"): (
        "this miniflare keeps 2048 characters of custom metadata, newer ones and the platform 8192"
    ),
    ("queue", "messages_that_waited_for_a_consumer_come_to_it"): (
        "consumers are in workerd's configuration: there is no queue that waits for one"
    ),
    ("d1", "limits_are_the_platforms"): "workerd's own D1 service has SQLite's limits, not D1's",
}

# What needs a clock that stands still: workerd's can be moved, and runs on meanwhile.
UNTRIED: Mapping[tuple[str, str], str] = dict.fromkeys(
    [
        ("queue", "a_delay_is_kept_and_a_messages_own_wins"),
        ("queue", "a_message_has_an_id_a_time_and_attempts"),
    ],
    "it needs a clock that stands still, and workerd's runs on",
)


def cases(kind: str) -> Iterator[Any]:
    # The alarms of objects and the dates of a bucket follow the machine's clock, which a test cannot move.
    for case in import_module(f"core.testing.contracts.{kind}").contract.select(timed=kind in ("kv", "queue")):
        reason = DIFFERENCES.get((kind, case.name))
        if (kind, case.name) in UNTRIED:
            continue
        marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
        yield pytest.param(case, id=f"{kind}-{case.name}", marks=marks)


def cases_of(*kinds: str) -> Iterator[Any]:
    for kind in kinds:
        for case in cases(kind):
            yield pytest.param(kind, *case.values, id=case.id, marks=case.marks)


@pytest.fixture(scope="module")
def contracts(tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A worker with the contracts in it."""
    place = tmp_path_factory.mktemp("contracts")
    bundle = background.run(
        make_bundle(MAIN, project=MAIN.parent, plan=PLAN, out=place / "dist", toolchain=tools, files=contract_files())
    )
    running = start_running(
        tools, bundle, background, place / "state", plan=PLAN, bindings=[CLOCK, QUEUE_CLOCK], test_clock=True
    )
    yield running
    running.stop()


def contract_files() -> dict[str, bytes]:
    """The contracts, which are for development and so in no other bundle."""
    root = Path(core.__path__[0])
    places = [root / "testing" / "__init__.py", *(root / "testing" / "contracts").rglob("*.py")]
    return {f"core/{place.relative_to(root).as_posix()}": place.read_bytes() for place in places}


@pytest.mark.parametrize(("kind", "case"), list(cases_of(*KINDS)))
def test_the_real_runtime_keeps_the_contract(contracts: Running, kind: str, case: Case[Any]) -> None:
    keeps(contracts, kind, case)


def keeps(worker: Running, kind: str, case: Case[Any]) -> None:
    """Run one case in a worker."""
    answer = worker.request("POST", f"/run/{kind}/{case.name}")
    OUTCOMES[kind, case.name] = answer.status == 204
    if answer.status != 204:
        told = answer.json()
        raise AssertionError(f"{told['error']}\n{told['where']}\n{told['trace']}")


@pytest.fixture(scope="module")
def under_miniflare(
    tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The same worker under miniflare, which has R2."""
    place = tmp_path_factory.mktemp("miniflare")
    plan = Plan(name="contracts")
    bundle = background.run(
        make_bundle(
            MAIN,
            project=MAIN.parent,
            plan=plan,
            out=place / "dist",
            toolchain=tools,
            files=contract_files(),
            snapshot=False,
        )
    )
    script = Path(__file__).parent / "miniflare" / "run.mjs"
    log = (place / "log").open("wb")
    process = subprocess.Popen(
        ["node", str(script), str(bundle.folder), str(npm_folder(script.parent))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (place / "log").read_text("utf-8", "replace")[-2000:]
        yield Remote(json.loads(line)["port"])
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
        log.close()


class Remote(Running):
    """A worker that something else runs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.lines = []

    @property
    def port(self) -> int:
        return self._port


@pytest.mark.parametrize("case", list(cases("r2")))
def test_the_real_object_bucket_keeps_the_contract(under_miniflare: Running, case: Case[Any]) -> None:
    keeps(under_miniflare, "r2", case)


TABLE = Path(__file__).parents[2] / "docs" / "reference" / "workerd.md"


def test_the_documentation_has_the_table_of_this_run() -> None:
    """A whole run writes what it saw with `CORE_WRITE_DOCS=1`. A partial one knows only what the lists above expect."""
    expected = {(kind, case.name): (kind, case.name) not in DIFFERENCES for kind in PLACES for case in tried(kind)}
    seen = {**expected, **OUTCOMES}
    if os.environ.get("CORE_WRITE_DOCS") == "1":
        assert set(OUTCOMES) == set(expected), "a table is written by a run of every case: leave out -k"
        TABLE.write_text(table(seen), "utf-8")
    assert TABLE.read_text("utf-8") == table(seen), (
        "write it anew: CORE_WRITE_DOCS=1 pytest tests/runtime/test_contracts.py"
    )


def tried(kind: str) -> list[Case[Any]]:
    """The cases of a kind that are run here."""
    return [case.values[0] for case in cases(kind)]


def table(seen: Mapping[tuple[str, str], bool]) -> str:
    """The table of what passes and what differs, by kind and place; `seen` has whether each case passed."""
    lines = [
        "# The contracts, in every place",
        "",
        "One text of promises for each kind of binding holds the fakes, the embedded bindings and the real runtime. The",
        "first two keep all of them (`tests/contracts/`). The real runtime is CPython in workerd, and for R2, which",
        "workerd alone has no service for, the same under miniflare. Its columns are written by a run of",
        "`tests/runtime/test_contracts.py`, from what passed in it.",
        "",
        "| Kind | Fakes passed | Embedded passed | Real runtime | Passed | Differs | Needs a clock that stands still |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, place in PLACES.items():
        every = len(import_module(f"core.testing.contracts.{kind}").contract.cases)
        outcomes = [passed for (of, _), passed in seen.items() if of == kind]
        passed = sum(outcomes)
        lines.append(
            f"| {kind} | {every} | {every} | {place} | {passed} | {len(outcomes) - passed} | {every - len(outcomes)} |"
        )
    lines += ["", "## What differs in the real runtime", ""]
    lines += [
        f"- **{kind}**: {name.replace('_', ' ')}. Here {DIFFERENCES.get((kind, name), 'it fails, and is not listed')}."
        for (kind, name), passed in sorted(seen.items())
        if not passed
    ]
    return "\n".join(lines) + "\n"
