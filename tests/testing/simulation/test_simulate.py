"""`simulate`: every run is a schedule, a failure is short and can be repeated, faults come where they are asked for."""

import asyncio
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.testing.simulation.schedules import Env, Memory, increment

from core import Bindings, KVNamespace, Request, Response, create_app, http
from core.context import system_clock
from core.errors import KVError
from core.http.websocket import WebSocket, WebSocketClosed
from core.middleware.cache import cache
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_stores import MemoryStore
from core.middleware.request_id import request_id
from core.testing import (
    Client,
    FakeClock,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeExecutionContext,
    FakeKVNamespace,
    FakeQueue,
    SimulatedCall,
    call_log,
    env,
    exactly_once_effect,
    linearizable,
    never_more_than,
    no_lost_update,
    no_read_of_older_than,
    replay,
    seam,
    simulate,
)
from core.testing.simulation.choices import Tape
from core.testing.simulation.decorators import asked, noted, reached
from core.testing.simulation.explore import NotRepeatableError
from core.testing.simulation.scheduler import Settings, Simulation, StuckError

app = create_app(Env)
app.post("/increments")(increment)


@app.post("/later")
async def later(req: Request[Env], res: Response) -> None:
    req.ctx.wait_until(req.env.KV.put("n", "1"))
    res.json({})


async def three_increments() -> None:
    kv = FakeKVNamespace()
    client = Client(app, Env(KV=kv))
    await asyncio.gather(*[client.post("/increments") for _ in range(3)])
    assert await kv.get("n") == "3"


def note_of(test: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as failure:
        test()
    return failure.value.__notes__[-1]


def test_a_lost_update_is_found_told_and_repeated() -> None:
    note = note_of(simulate(runs=100)(three_increments))
    assert "needs 1 deviation from the plain order" in note
    assert "+ POST /increments (no. 2): KV.get('n', 'text') -> None" in note
    line = re.search(r'@replay\("(.*)"\)', note)
    assert line is not None
    with pytest.raises(AssertionError, match="'2' == '3'"):
        replay(line[1])(simulate(runs=100)(three_increments))()
    replay("")(three_increments)()


def test_the_same_seed_is_the_same_runs_and_another_seed_others() -> None:
    def schedules(seed: int) -> list[str]:
        seen: list[str] = []

        def remember(calls: Sequence[SimulatedCall]) -> None:
            seen.append("\n".join(map(str, calls)))

        async def test() -> None:
            client = Client(app, Env(KV=FakeKVNamespace()))
            await asyncio.gather(*[client.post("/increments") for _ in range(3)])

        simulate(runs=20, seed=seed, checks=[remember])(test)()
        return seen

    assert schedules(1) == schedules(1)
    assert schedules(1) != schedules(2)
    assert len({*schedules(1)}) > 5


def test_randomness_and_the_machines_clock_are_the_runs_own() -> None:
    async def test() -> None:
        kv = FakeKVNamespace()
        await kv.put(uuid.uuid4().hex, os.urandom(4).hex())
        await kv.put("now", str(system_clock.time()))

    simulate(runs=5)(test)()


def test_the_ids_of_requests_are_the_runs_own() -> None:
    async def test() -> None:
        named = create_app(Env)
        named.use(request_id())

        @named.post("/notes")
        async def write(req: Request[Env], res: Response) -> None:
            await req.env.KV.put(req.id, uuid.uuid4().hex)
            res.json({})

        await Client(named, Env(KV=FakeKVNamespace())).post("/notes")

    simulate(runs=5)(test)()


def test_what_middleware_keeps_in_memory_is_the_runs_own() -> None:
    kept = create_app(Env)

    @kept.get("/notes", rate_limit(store=MemoryStore(), limit=3, window=60), cache(max_age=60))
    async def show(req: Request[Env], res: Response) -> None:
        res.json(await req.env.KV.get("note"))

    @simulate(runs=5)
    async def test() -> None:
        kv = FakeKVNamespace()
        ctx = FakeExecutionContext()
        client = Client(kept, Env(KV=kv), ctx)
        answers: list[http.Response] = []
        for _ in range(4):
            answers.append(await client.get("/notes"))
            await ctx.drain()
        assert [(answer.status, answer.headers.get("cache-status")) for answer in answers] == [
            (200, "core; fwd=miss"),
            (200, "core; hit"),
            (200, "core; hit"),
            (429, None),
        ]

    test()


def test_what_differs_without_a_draw_names_the_call() -> None:
    kept: list[int] = []

    async def test() -> None:
        kept.append(0)
        await FakeKVNamespace().put(f"key{len(kept)}", "value")

    with pytest.raises(NotRepeatableError, match=r"KV\.put\('key1', 'value'\), then KV\.put\('key2', 'value'\)"):
        simulate(runs=5)(test)()


def test_time_moves_only_when_nothing_else_can_happen() -> None:
    async def test() -> None:
        clock = FakeClock()
        kv = FakeKVNamespace(clock=clock)

        async def wait() -> None:
            await clock.sleep(3600)
            assert await kv.get("first") == "1"

        began = time.monotonic()
        await asyncio.gather(wait(), kv.put("first", "1"))
        await clock.advance(10)
        assert clock.monotonic() == 3610
        assert time.monotonic() - began < 60

    simulate(runs=5)(test)()


def test_a_task_that_waits_for_another_task_lets_the_run_go_on() -> None:
    async def test() -> None:
        kv = FakeKVNamespace()
        ready = asyncio.Event()

        async def first() -> None:
            await kv.put("a", "1")
            ready.set()

        async def second() -> None:
            await ready.wait()
            assert await kv.get("a") == "1"

        await asyncio.gather(second(), first())

    simulate(runs=20)(test)()


def test_a_choice_among_one_is_none_and_is_not_on_the_tape() -> None:
    tapes: list[Tape] = []

    async def alone() -> None:
        assert isinstance(seam.running, Simulation)
        tapes.append(seam.running.tape)
        client = Client(app, Env(KV=FakeKVNamespace()))
        await client.post("/increments")
        await client.post("/increments")

    async def together() -> None:
        await alone()
        kv = FakeKVNamespace()
        await asyncio.gather(kv.put("a", "1"), kv.put("b", "1"))

    simulate(runs=20, seed=3)(alone)()
    assert [tape.options for tape in tapes] == [[]] * 40
    tapes.clear()
    simulate(runs=20, seed=3)(together)()
    # Two calls wait, then one and the other after its effect, until one task is left.
    assert {option for tape in tapes for option in tape.options} == {2}
    assert len({str(tape) for tape in tapes}) > 2


def test_tasks_that_wait_for_each_other_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.testing.simulation.scheduler._PATIENCE", 0.01)

    async def test() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StuckError, match="nothing can go on"):
        simulate(runs=1)(test)()


def test_a_binding_fails_before_and_after_its_effect_where_it_is_asked_for() -> None:
    outcomes: set[tuple[str, str | None]] = set()

    async def test() -> None:
        kv = FakeKVNamespace()
        try:
            await kv.put("a", "1")
            failed = ""
        except KVError as error:
            failed = str(error)
        outcomes.add((failed, kv._select(b"a") and "kept"))

    simulate(runs=200, faults=["error"])(test)()
    assert ("KV PUT failed: 429 Too Many Requests", None) in outcomes
    assert ("KV PUT failed: 429 Too Many Requests", "kept") in outcomes
    outcomes.clear()
    simulate(runs=20)(test)()
    assert {failed for failed, _ in outcomes} == {""}


def test_a_dead_isolate_answers_500_and_ends_its_background_work() -> None:
    seen: set[tuple[int, str | None]] = set()

    async def test() -> None:
        kv, ctx = FakeKVNamespace(), FakeExecutionContext()
        answer = await Client(app, Env(KV=kv), ctx).post("/later")
        await ctx.drain()
        seen.add((answer.status, await kv.get("n")))

    simulate(runs=100, faults=["crash"])(test)()
    assert {(200, "1"), (200, None)} <= seen


def test_a_message_comes_twice_late_and_in_other_batches() -> None:
    batches: set[tuple[int, ...]] = set()

    async def test() -> None:
        queue: FakeQueue[int] = FakeQueue()
        got: list[int] = []

        async def consume(batch: Any) -> None:
            got.append(len(batch.messages))

        for number in range(3):
            await queue.send(number)
        while queue.waiting:
            await queue.deliver(consume)
        batches.add(tuple(got))

    simulate(runs=100, faults=["queue"])(test)()
    assert (3,) in batches
    assert any(sum(sizes) > 3 for sizes in batches)
    assert any(sum(sizes) == 3 and len(sizes) > 1 for sizes in batches)


def test_a_consumer_of_the_queue_sees_the_same_faults_as_time_goes_by() -> None:
    batches: set[tuple[int, ...]] = set()
    kept: set[str | None] = set()

    async def test() -> None:
        clock, kv = FakeClock(), FakeKVNamespace()
        queue: FakeQueue[int] = FakeQueue(clock=clock)
        got: list[int] = []

        async def consume(batch: Any) -> None:
            got.append(len(batch.messages))
            for message in batch.messages:
                await kv.put(str(message.body), "1")

        queue.consume(consume)
        await asyncio.gather(*[queue.send(number) for number in range(3)])
        while queue.waiting:
            await clock.advance(5)
        await queue.stop()
        batches.add(tuple(got))
        kept.update([await kv.get(str(number)) for number in range(3)])

    simulate(runs=100, faults=["queue"])(test)()
    assert (3,) in batches
    assert any(sum(sizes) > 3 for sizes in batches)
    assert any(sum(sizes) == 3 and len(sizes) > 1 for sizes in batches)
    assert kept == {"1"}
    batches.clear()
    simulate(runs=100, faults=["crash"])(test)()
    assert any(len(sizes) > 1 for sizes in batches)


def test_a_session_of_d1_reads_from_a_replica_that_lags_but_never_goes_back() -> None:
    seen: set[tuple[object, object]] = set()
    count = "SELECT count(*) AS n FROM t"

    async def test() -> None:
        db = FakeD1Database()
        await db.exec("CREATE TABLE t (n INTEGER)")
        begun = db.with_session("first-primary")
        assert await begun.prepare(count).first("n") == 0
        writer = db.with_session()
        await writer.prepare("INSERT INTO t VALUES (1)").run()
        await writer.prepare("INSERT INTO t VALUES (2)").run()
        at_least_here = db.with_session(writer.get_bookmark())
        for session in (writer, db, db.with_session("first-primary"), at_least_here):
            assert await session.prepare(count).first("n") == 2
        reader = db.with_session(begun.get_bookmark())
        seen.add((await reader.prepare(count).first("n"), (await reader.prepare(count).run()).results[0]["n"]))

    simulate(runs=200, faults=["replica"])(test)()
    assert seen == {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)}
    seen.clear()
    simulate(runs=20)(test)()
    assert seen == {(2, 2)}


def test_an_object_is_evicted_between_calls() -> None:
    counts: set[int] = set()

    async def test() -> None:
        memory = FakeDurableObjectNamespace(Memory).get_by_name("a")
        await memory.add()
        counts.add(await memory.add())

    simulate(runs=50, faults=["evict"])(test)()
    assert counts == {1, 2}


def test_a_read_of_another_place_is_old_but_never_goes_back() -> None:
    seen: set[tuple[str | None, str | None]] = set()

    async def test() -> None:
        kv = FakeKVNamespace()

        @attrs.frozen
        class Here(Bindings):
            KV: KVNamespace

        other = create_app(Here)

        @other.get("/")
        async def read(req: Request[Here], res: Response) -> None:
            res.json(await req.env.KV.get("a"))

        @other.post("/:value")
        async def write(req: Request[Here], res: Response) -> None:
            await req.env.KV.put("a", req.params["value"])
            res.json({})

        here, there = Client(other, Here(KV=kv)), Client(other, Here(KV=kv))
        for value in ("1", "2"):
            await here.post(f"/{value}")
        assert await (await here.get("/")).json() == "2"
        seen.add((await (await there.get("/")).json(), await (await there.get("/")).json()))

    simulate(runs=200, places=2)(test)()
    assert (None, "1") in seen
    assert ("1", "2") in seen
    assert not seen & {("2", "1"), ("1", None), ("2", None)}


def test_checks_read_the_calls_of_each_run() -> None:
    async def test() -> None:
        client = Client(app, Env(KV=FakeKVNamespace()))
        await asyncio.gather(client.post("/increments"), client.post("/increments"))

    for check in (no_lost_update, never_more_than(0, per=1)):
        assert "needs" in note_of(simulate(runs=100, checks=[check])(test))
    for check in (linearizable("n"), no_read_of_older_than(60), exactly_once_effect("jobs"), never_more_than(2, per=1)):
        simulate(runs=100, checks=[check])(test)()


def call(event: str, method: str, *args: object, at: int, until: int, result: object = None) -> SimulatedCall:
    return SimulatedCall(event, "KV", "kv", method, args, {}, 0, float(at), at, at, until, result)


@pytest.mark.parametrize(
    ("result", "holds"), [("1", True), ("2", True), ("3", False)], ids=["before", "after", "never"]
)
def test_a_read_during_a_write_has_either_value(result: str, holds: bool) -> None:
    calls = [
        call("a", "put", "k", "1", at=1, until=2),
        call("a", "put", "k", "2", at=3, until=6),
        call("b", "get", "k", at=4, until=5, result=result),
    ]
    if holds:
        linearizable("k")(calls)
    else:
        with pytest.raises(AssertionError, match="no order explains"):
            linearizable("k")(calls)


def test_a_read_of_an_old_value_is_measured_from_when_it_was_overwritten() -> None:
    calls = [
        call("a", "put", "k", "1", at=1, until=2),
        call("a", "put", "k", "2", at=30, until=31),
        call("b", "get", "k", at=100, until=101, result="1"),
    ]
    no_read_of_older_than(70)(calls)
    with pytest.raises(AssertionError, match="older than 69 s"):
        no_read_of_older_than(69)(calls)


@given(st.dictionaries(st.integers(0, 30), st.integers(1, 3)))
def test_every_tape_is_a_run_that_repeats(deviations: dict[int, int]) -> None:
    text = str(" ".join(f"{position}={value}" for position, value in deviations.items()))
    assert Tape.read(text).draw(1, lambda: 1) == 0

    async def test() -> None:
        client = Client(app, Env(KV=FakeKVNamespace()))
        await asyncio.gather(*[client.post("/increments") for _ in range(3)])
        assert len(call_log()) == 6

    replay(text)(simulate()(test))()


def test_what_is_mistaken_is_told() -> None:
    with pytest.raises(ValueError, match="the faults are error, crash"):
        simulate(faults=["lightning"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match='write the deviations as a report shows them, "3=1 9=2"'):
        replay("three")
    with pytest.raises(RuntimeError, match="for tests under @simulate"):
        call_log()
    with pytest.raises(TypeError, match="is not an async function"):
        simulate()(lambda: None)  # type: ignore[arg-type,return-value]


async def test_a_crash_ends_requests_and_background_work_and_keeps_bindings() -> None:
    kv, ctx = FakeKVNamespace(latency=1.0, clock=(clock := FakeClock())), FakeExecutionContext()
    made: Any = env(Env, KV=kv)
    client, elsewhere = Client(app, made, ctx), Client(app, made)
    request = asyncio.create_task(client.post("/increments"))
    await asyncio.sleep(0)
    assert (await client.post("/later")).status == 200
    assert (await elsewhere.post("/later")).status == 200
    await made.crash()
    assert (await request).status == 500
    await clock.advance(10)
    kv.latency = 0
    assert await kv.get("n") is None
    assert (await client.post("/increments")).status == 200
    assert repr(made).startswith("Env(KV=")
    assert isinstance(made, Env)


async def test_a_crash_ends_web_sockets() -> None:
    living = create_app(Env)

    @living.websocket("/echo")
    async def echo(req: Request[Env], socket: WebSocket) -> None:
        async for message in socket:
            await socket.send(message)

    made: Any = env(Env)
    client = Client(living, made)
    socket = await client.websocket("/echo")
    await socket.send("a")
    assert await socket.receive() == "a"
    await made.crash()
    with pytest.raises(WebSocketClosed, match="1006"):
        await socket.receive()


async def test_places_see_their_own_writes_at_once_and_those_of_others_after_60_seconds() -> None:
    clock = FakeClock()
    kv = FakeKVNamespace({"a": "0"}, clock=clock, places=2)
    read = create_app(Env)

    @read.get("/")
    async def get(req: Request[Env], res: Response) -> None:
        res.json([await req.env.KV.get("a"), len((await req.env.KV.list()).keys)])

    @read.put("/:key")
    async def put(req: Request[Env], res: Response) -> None:
        await req.env.KV.put(req.params["key"], "1")
        res.json({})

    here, there = Client(read, Env(KV=kv)), Client(read, Env(KV=kv), place=1)
    await here.put("/a")
    await here.put("/b")
    assert await (await here.get("/")).json() == ["1", 2]
    assert await (await there.get("/")).json() == ["0", 1]
    clock.advance(60)
    assert await (await there.get("/")).json() == ["1", 2]


PROJECT = """
import asyncio, attrs, pytest
from core import Bindings, KVNamespace, create_app
from core.testing import simulate

@attrs.frozen
class Env(Bindings):
    KV: KVNamespace

app = create_app(Env)

@app.post("/")
async def increment(req, res):
    number = int(await req.env.KV.get("n") or 0)
    await req.env.KV.put("n", str(number + 1))
    res.json({})

@pytest.fixture
def core_app():
    return app

@simulate(runs=20, faults=["cron"])
async def test_alone(core_client, core_env):
    await core_client.post("/")
    assert await core_env.KV.get("n") == "1"

async def test_plain(core_client, core_env):
    await asyncio.gather(core_client.post("/"), core_client.post("/"))
    assert await core_env.KV.get("n") == "2"
"""


def test_a_fault_that_one_set_of_arguments_reaches_was_reached() -> None:
    settings, before = Settings(faults=["crash", "cron"], places=2), asked - reached
    noted("a test", settings, {"crash"})
    noted("a test", settings, {"places"})
    noted("a test", attrs.evolve(settings, replay="1=1"), {"cron"})
    assert asked - reached == before | {("a test", "cron")}
    asked.difference_update([each for each in asked if each[0] == "a test"])


@pytest.mark.slow
def test_fixtures_are_made_anew_for_each_run_and_a_whole_suite_is_simulated_by_an_option(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-o", "asyncio_mode=auto", "test_it.py"]

    def told(*options: str) -> str:
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        return done.stdout

    plain = told()
    assert "2 passed" in plain
    unreached = "test_it.py::test_alone asks for faults that none of its runs reached: cron"
    assert unreached in plain
    assert unreached in told("-n", "2")
    simulated = told("--core-simulate=50")
    assert "1 failed, 1 passed" in simulated
    assert "To repeat it, put this line above the test:" in simulated


def test_a_plain_test_loads_nothing_of_a_simulation() -> None:
    plain = """if 1:
        import asyncio, sys
        from core.testing import FakeKVNamespace, FakeQueue
        asyncio.run(FakeKVNamespace().put("n", "1"))
        print(*sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True, timeout=120)
    assert "core.testing.seam" in done.stdout
    assert "core.testing.simulation" not in done.stdout
