"""The contract of every kind of binding wherever an application is served: CPython, workerd and its cluster, miniflare.

The same text that holds the fakes and the embedded bindings. What the real runtime does otherwise is listed, each with
its reason, and has to fail: a difference that is gone is taken off the list.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.contract import Case
from tests.runtime.conftest import Background, Make, Running, member_of, start_running, with_test_clock
from tests.runtime.contracts.queues import QUEUES
from tests.support.commands import Answer, Command, ask
from tests.support.npm import npm_folder

from core.runtime.bundle import Bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

MAIN = Path(__file__).parent / "contracts" / "main.py"
KINDS = ("kv", "d1", "r2", "durable_object", "queue")
# The places in which an application is served, and the kinds tried there. A consumer of `core serve --python` is
# in another process than the case that would look at it.
PLACES: Mapping[str, Sequence[str]] = {
    "CPython served": ("kv", "d1", "r2", "durable_object"),
    "workerd": KINDS,
    "cluster": KINDS,
    "miniflare": ("r2",),
}
# By place, kind and case: whether it passed in this run.
OUTCOMES: dict[tuple[str, str, str], bool] = {}
PLAN = Plan(
    name="contracts",
    kv={"KV": "one", "OTHER_KV": "two"},
    d1={"DB": "one", "OTHER_DB": "two"},
    r2={"BUCKET": "one", "OTHER_BUCKET": "two"},
    queues={name.replace("-", "_").upper(): name for name in QUEUES},
    consumers=QUEUES,
    durable_objects={"OBJECTS": "Subject", "OTHER_OBJECTS": "OtherSubject"},
    # As `plan_of` sets it: an object's errors cross with their attributes.
    compatibility_flags=["enhanced_error_serialization"],
)
CLOCK = {"name": "CLOCK", "service": {"name": "core-kv", "props": {"json": '{"namespace": "clock"}'}}}

QUEUE_CLOCK = {"name": "QUEUE_CLOCK", "service": {"name": "core-queues", "props": {"json": '{"queue": "clock"}'}}}

FRONTS = {
    f"core-{name}": (MAIN.parent / "still_clock.mjs").read_text("utf-8").replace("SERVICE", f"{name}.js")
    for name in ("kv", "queues")
}

GIVEN: Mapping[str, Any] = {
    "plan": PLAN,
    "bindings": [CLOCK, QUEUE_CLOCK],
    "adjust": partial(with_test_clock, fronts=FRONTS),
}

# By kind and case: what the real runtime does otherwise, and why that is so.
DIFFERENCES: Mapping[tuple[str, str], str] = {
    ("kv", "an_invented_cursor_is_no_error"): "workerd's own KV service refuses a cursor that it did not give",
    ("d1", "errors_are_sqlites_in_the_platforms_words"): (
        "workerd's own D1 service leaves out statements without anything in them, and has one message for all of them"
    ),
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
    ("d1", "a_text_or_blob_has_at_most_2000000_bytes"): "workerd's own D1 service takes larger ones",
}

# A thousand writes one after the other, and a cluster keeps each in its bucket before it acknowledges it. Those of R2
# are made in `tests/backends/s3/test_r2.py`, without workerd.
TOO_MANY_WRITES = {"a_page_has_at_most_1000_keys", "more_than_1000_objects_are_listed_in_pages"}


def cases(place: str) -> Iterator[Any]:
    """The cases that are tried in a place. Where no clock can be moved, cases about time are left out."""
    for kind in PLACES[place]:
        # The alarms of objects and the dates of a bucket follow the machine's clock, which a test cannot move.
        timed = place in ("workerd", "cluster") and kind in ("kv", "queue")
        for case in import_module(f"tests.contracts.{kind}").contract.select(timed=timed):
            if place == "cluster" and case.name in TOO_MANY_WRITES:
                continue
            reason = difference(place, kind, case.name)
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
            yield pytest.param(kind, case, id=f"{kind}-{case.name}", marks=marks)


def difference(place: str, kind: str, name: str) -> str | None:
    """The reason why a case fails in a place. The buckets of CPython, workerd and the cluster are this project's."""
    ours = place == "CPython served" or (kind == "r2" and place != "miniflare")
    return None if ours else DIFFERENCES.get((kind, name))


@pytest.fixture(scope="module")
def contracts(make: Make) -> Bundle:
    """The bundle of a worker with the contracts in it."""
    return make(MAIN, PLAN, files=contract_files())


def contract_files() -> dict[str, bytes]:
    """The contracts by the paths that `main.py` imports them from. A bundle leaves an application's tests out."""
    root = Path(__file__).parents[2]
    return {
        place.relative_to(root).as_posix(): place.read_bytes() for place in (root / "tests" / "contracts").rglob("*.py")
    }


@pytest.fixture(scope="module")
def worker(
    tools: Toolchain, contracts: Bundle, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A node of its own."""
    state = tmp_path_factory.mktemp("worker")
    running = start_running(tools, contracts, background, state, **GIVEN)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def members(
    tools: Toolchain, contracts: Bundle, background: Background, bucket: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Running]]:
    """Two nodes of a cluster."""
    started: list[Running] = []
    for _ in range(2):
        cluster = member_of(bucket, "contracts")
        given = {**GIVEN, "cluster": cluster}
        started.append(start_running(tools, contracts, background, tmp_path_factory.mktemp("member"), **given))
        assert started[-1].get("/").status == 404
    yield started
    for running in started:
        background.run(running.node.stop(seconds=8))


@pytest.mark.parametrize(("kind", "case"), list(cases("workerd")))
def test_the_real_runtime_keeps_the_contract(worker: Running, kind: str, case: Case[Any]) -> None:
    keeps("workerd", partial(worker.request, "POST"), kind, case)


@pytest.mark.parametrize(("kind", "case"), list(cases("cluster")))
def test_a_cluster_keeps_the_contract(members: list[Running], kind: str, case: Case[Any]) -> None:
    """The nodes take turns, but for the services that have a clock to be moved: each node has one of its own."""
    turn = 0 if kind in ("kv", "queue") else len(OUTCOMES) % 2
    keeps("cluster", partial(members[turn].request, "POST"), kind, case)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of `core serve --python`, two processes that answer and one that has the objects."""
    folder = Path(shutil.copytree(MAIN.parent, tmp_path_factory.mktemp("served") / "contracts"))
    shutil.copytree(Path(__file__).parents[1] / "contracts", folder / "tests" / "contracts")
    command = Command("serve", "--python", "--port", "0", "--health", "127.0.0.1:0", "--workers", "2", folder=folder)
    yield command.ports()[0]
    command.finish()


@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
@pytest.mark.parametrize(("kind", "case"), list(cases("CPython served")))
def test_processes_of_cpython_keep_the_contract(served: int, kind: str, case: Case[Any]) -> None:
    keeps("CPython served", lambda path: ask(served, path, "POST"), kind, case)


def keeps(place: str, post: Callable[[str], Answer], kind: str, case: Case[Any]) -> None:
    """Run one case in a place."""
    answer = post(f"/run/{kind}/{case.name}")
    OUTCOMES[place, kind, case.name] = answer.status == 204
    if answer.status != 204:
        told = answer.json()
        raise AssertionError(f"{told['error']}\n{told['where']}\n{told['trace']}")


@pytest.fixture(scope="module")
def under_miniflare(contracts: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same worker under miniflare, which has R2."""
    place = tmp_path_factory.mktemp("miniflare")
    script = Path(__file__).parent / "miniflare" / "run.mjs"
    log = (place / "log").open("wb")
    process = subprocess.Popen(
        ["node", str(script), str(contracts.folder), str(npm_folder(script.parent))],
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
        process.wait(120)
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


@pytest.mark.parametrize(("kind", "case"), list(cases("miniflare")))
def test_the_real_object_bucket_keeps_the_contract(under_miniflare: Running, kind: str, case: Case[Any]) -> None:
    keeps("miniflare", partial(under_miniflare.request, "POST"), kind, case)


TABLE = Path(__file__).parents[2] / "docs" / "reference" / "workerd.md"


def test_the_documentation_has_the_table_of_this_run() -> None:
    """A whole run writes what it saw with `CORE_WRITE_DOCS=1`. A partial one knows only what the lists above expect."""
    expected = {
        (place, kind, case.name): not param.marks
        for place in PLACES
        for param in cases(place)
        for kind, case in [param.values]
    }
    seen = {**expected, **OUTCOMES}
    if os.environ.get("CORE_WRITE_DOCS") == "1":
        assert set(OUTCOMES) == set(expected), (
            "a table is written by one process that ran every case: leave out -k and -n"
        )
        assert expected == OUTCOMES, "a table is written by a run whose cases did what is expected of them"
        TABLE.write_text(table(seen), "utf-8")
    assert TABLE.read_text("utf-8") == table(seen), (
        "write it anew: CORE_WRITE_DOCS=1 pytest tests/runtime/test_contracts.py"
    )


def table(seen: Mapping[tuple[str, str, str], bool]) -> str:
    """The table of what passes and what differs, by kind and place; `seen` has whether each case passed."""
    lines = [
        "# The contracts, in every place",
        "",
        "One text of promises for each kind of binding holds every place. The fakes and the embedded bindings keep all of",
        "them (`tests/contracts/`). The other columns are written by a run of `tests/runtime/test_contracts.py`, from what",
        "passed in it: `core serve --python` with two processes, CPython in workerd, two nodes of a cluster, and for R2 the",
        "same under miniflare. `core serve` and `core dev` answer workerd's R2: with the embedded buckets, or with buckets inside",
        "that of the cluster (in the table two nodes over `moto`). Rooms,",
        "which are Durable Objects with WebSockets, are tried with 200 members as well (`test_rooms.py`, `test_cluster.py`).",
        "",
        f"| Kind | Fakes | Embedded | {' | '.join(PLACES)} |",
        f"| --- | --- | --- |{' --- |' * len(PLACES)}",
    ]
    for kind in KINDS:
        every = len(import_module(f"tests.contracts.{kind}").contract.cases)
        cells = [
            cell(every, [passed for (at, of, _), passed in seen.items() if (at, of) == (place, kind)])
            for place in PLACES
        ]
        lines.append(f"| {kind} | {every} | {every} | {' | '.join(cells)} |")
    lines += [
        "",
        "A number is that of the promises kept. *Untried* ones need a clock that a test can move, and two in a cluster a",
        "thousand writes in a row. The clock of the queues stands still until a case moves it. A dash: no service there,",
        "and for queues on CPython, that the consumer is in another process (`tests/runtime/tools/test_cpython.py` tries it).",
        "",
        "## What differs in the real runtime",
        "",
    ]
    differing = sorted({(kind, name) for (_, kind, name), passed in seen.items() if not passed})
    lines += [
        f"- **{kind}**: {name.replace('_', ' ')}. Here {DIFFERENCES.get((kind, name), 'it fails, and is not listed')}."
        for kind, name in differing
    ]
    return "\n".join(lines) + "\n"


def cell(every: int, outcomes: Sequence[bool]) -> str:
    """The numbers of one kind in one place."""
    if not outcomes:
        return "–"
    counts = [(len(outcomes) - sum(outcomes), "differ"), (every - len(outcomes), "untried")]
    return ", ".join([str(sum(outcomes)), *(f"{count} {word}" for count, word in counts if count)])
