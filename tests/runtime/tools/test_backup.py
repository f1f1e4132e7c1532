"""`core backup` and `core restore`: of a node that runs, that was killed, and of what no backup is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.tools.test_cpython import Load
from tests.support.command_line import run
from tests.support.commands import Command, ask, until

from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, broker_of
from core.backends.embedded.store import Store
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.bindings.queue import MessageBatch
from core.errors import DeveloperError
from core.runtime import backup
from core.runtime.backup import back_up, restore
from core.runtime.state_folder import lock_state
from core.testing.clock import FakeClock


@pytest.mark.slow
@pytest.mark.parametrize("form", ["copy", "copy.tar.gz"])
def test_a_backup_of_a_busy_node_has_all_that_was_acknowledged_before_it(
    serve: Callable[..., Command], shop: Path, tmp_path: Path, form: str
) -> None:
    served = serve()
    port, _ = served.ports()
    state = shop / ".core" / "python"
    with Load(port) as load:
        until(lambda: len(load.acknowledged), lambda count: count > 20)
        before = [*load.acknowledged]
        copied = run("backup", str(state), str(tmp_path / form), folder=shop)
        assert copied.returncode == 0, copied.stderr
        served.process.send_signal(signal.SIGKILL)
        served.finish(by_itself=True)
    in_use = f"{state} has a state already"
    assert in_use in run("restore", str(tmp_path / form), str(state), folder=shop).stderr
    until(lambda: not (state / "node.lock").exists() or _is_free(state), bool)
    restored = run("restore", str(tmp_path / form), str(state), "--replace", folder=shop)
    assert restored.returncode == 0, restored.stderr
    assert "the state that was there is in" in restored.stdout
    assert len([*state.parent.glob("python.*")]) == 1

    port, _ = serve().ports()
    missing = until(lambda: ask(port, "/have", "POST", str(before)).json(), lambda said: not said["queue"])
    assert missing == {"object": [], "db": [], "kv": [], "queue": []}


def _is_free(state: Path) -> bool:
    try:
        os.close(lock_state(state))
    except DeveloperError:
        return False
    return True


LARGE = 200_000


async def test_large_values_come_along_though_they_are_replaced_meanwhile(tmp_path: Path) -> None:
    state = tmp_path / "state"
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        async def replace() -> None:
            with Store(state) as store:
                kv = EmbeddedKVNamespace(store, "kv")
                turn = 0
                while not stop.is_set():
                    turn += 1
                    for key in "abc":
                        await kv.put(key, bytes([turn % 256]) * LARGE)
                    begun.set()
                    await asyncio.sleep(0.01)

        asyncio.run(replace())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        await asyncio.to_thread(begun.wait)
        for number in range(5):
            back_up(state, tmp_path / f"copy{number}")
    finally:
        stop.set()
        writer.join()
    for number in range(5):
        restore(tmp_path / f"copy{number}", tmp_path / f"state{number}")
        with Store(tmp_path / f"state{number}") as store:
            kv = EmbeddedKVNamespace(store, "kv")
            for key in "abc":
                value = await kv.get(key, "bytes")
                assert value is not None
                assert len(value) == LARGE
                assert len({*value}) == 1


@pytest.mark.slow
async def test_a_message_that_is_handled_meanwhile_is_in_the_queue_of_the_backup_or_what_its_handler_wrote_is(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    sent: list[str] = []
    begun, stop = threading.Event(), threading.Event()

    def work() -> None:
        async def move() -> None:
            with Store(state) as store:
                kv, queue, broker = (
                    EmbeddedKVNamespace(store, "kv"),
                    EmbeddedQueue[str](store, "jobs"),
                    broker_of(store),
                )

                async def handle(batch: MessageBatch[str]) -> None:
                    for message in batch.messages:
                        await kv.put(message.body, "handled")
                        begun.set()

                broker.consume("jobs", handle, ConsumerSettings(max_batch_timeout=0))
                while not stop.is_set():
                    await queue.send(f"message {len(sent)}")
                    sent.append(f"message {len(sent)}")
                    await asyncio.sleep(0)
                await broker.close()

        asyncio.run(move())

    worker = threading.Thread(target=work)
    worker.start()
    before: list[int] = []
    try:
        await asyncio.to_thread(begun.wait)
        for number in range(40):
            before.append(len(sent))
            back_up(state, tmp_path / f"copy{number}")
    finally:
        stop.set()
        worker.join()
    for number, count in enumerate(before):
        restore(tmp_path / f"copy{number}", tmp_path / f"state{number}")
        with Store(tmp_path / f"state{number}") as store:
            kv = EmbeddedKVNamespace(store, "kv")
            broker = broker_of(store)
            rows = broker.rows([seq for seq, _ in broker.waiting("jobs")])
            waiting = {json.loads(row.body) for row in rows}
            assert [body for body in sent[:count] if body not in waiting and await kv.get(body) is None] == []


def test_what_is_to_be_done_is_copied_before_what_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    for folder in ("d1", "do", "durable_objects", "kv", "queues", "r2", "cron"):
        (state / folder).mkdir(parents=True)
        sqlite3.connect(state / folder / "a.sqlite").close()
    copied: list[str] = []
    copy = backup._copy_database

    def note(source: Path, target: Path) -> None:
        copied.append(source.parent.name)
        copy(source, target)

    monkeypatch.setattr(backup, "_copy_database", note)
    back_up(state, tmp_path / "copy")
    assert copied == ["cron", "queues", "do", "durable_objects", "d1", "kv", "r2"]


class Bell(DurableObject[Any]):
    """Counts how often it rang."""

    async def arm(self, milliseconds: float) -> None:
        await self.ctx.storage.set_alarm(milliseconds)

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("rang", await self.rang() + 1)

    async def rang(self) -> int:
        return await self.ctx.storage.get("rang") or 0


async def test_an_alarm_rings_after_a_restore(tmp_path: Path) -> None:
    clock = FakeClock()
    with Store(tmp_path / "state", clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "Bell", Bell)
        await namespace.get_by_name("door").arm((clock.time() + 60) * 1000)
        back_up(tmp_path / "state", tmp_path / "copy")
        await namespace.close()
    restore(tmp_path / "copy", tmp_path / "restored")
    with Store(tmp_path / "restored", clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "Bell", Bell)
        namespace.start()
        await clock.advance(61)
        assert await namespace.get_by_name("door").rang() == 1
        await namespace.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (file TEXT)")
        connection.execute("INSERT INTO t VALUES ('a name of no file')")
        connection.commit()
    (folder / "workerd.capnp").write_text("a key")
    return folder


def test_what_is_the_node_s_own_stays_and_a_backup_is_for_its_user_alone(state: Path, tmp_path: Path) -> None:
    copied = back_up(state, tmp_path / "copy")
    assert (copied.databases, copied.files) == (1, 0)
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["a.sqlite", "backup.json"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "copy").rglob("*"))


def test_a_damaged_database_is_told_with_what_to_do_about_it(tmp_path: Path) -> None:
    (tmp_path / "state" / "d1").mkdir(parents=True)
    (tmp_path / "state" / "d1" / "shop.sqlite").write_bytes(b"no database")
    with pytest.raises(
        DeveloperError, match=r"shop\.sqlite cannot be copied: file is not a database\. Put the file of"
    ):
        back_up(tmp_path / "state", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_damaged_or_foreign_backup_is_refused_and_nothing_is_made(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "copy")
    (tmp_path / "copy" / "a.sqlite").write_bytes(b"x")
    with pytest.raises(DeveloperError, match=r"a\.sqlite is missing or damaged"):
        restore(tmp_path / "copy", tmp_path / "new")
    (tmp_path / "other").mkdir()
    with pytest.raises(DeveloperError, match="is not a backup"):
        restore(tmp_path / "other", tmp_path / "new")
    evil = tmp_path / "evil.tar.gz"
    with tarfile.open(evil, "w:gz") as archive:
        archive.add(state / "a.sqlite", arcname="../../escaped")
    with pytest.raises(DeveloperError, match="which no backup has"):
        restore(evil, tmp_path / "new")
    with pytest.raises(DeveloperError, match=r"cannot be unpacked: file could not be opened successfully\. Name"):
        restore(state / "a.sqlite", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path.parent / "escaped").exists()


def test_a_folder_that_a_node_has_is_not_replaced(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "copy")
    lock = lock_state(state)
    try:
        with pytest.raises(DeveloperError, match="in use by process"):
            restore(tmp_path / "copy", state, replace=True)
    finally:
        os.close(lock)
    assert (state / "a.sqlite").exists()


def test_where_a_backup_cannot_go_is_told(state: Path, tmp_path: Path) -> None:
    with pytest.raises(DeveloperError, match="is there already"):
        back_up(state, tmp_path)
    with pytest.raises(DeveloperError, match="is inside of"):
        back_up(state, state / "copy")
    with pytest.raises(DeveloperError, match="is not a state folder"):
        back_up(tmp_path / "nowhere", tmp_path / "copy")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text("")
    with pytest.raises(DeveloperError, match="is not a state folder"):
        back_up(tmp_path / "project", tmp_path / "copy")
    (tmp_path / "project" / "node.lock").write_text("")  # of an application that has kept nothing yet
    assert back_up(tmp_path / "project", tmp_path / "copy").databases == 0


@pytest.mark.parametrize(
    "manifest",
    ["[]", '{"format": 1}', "[" * 100_000, '{"format": 1, "databases": 0, "files": 1, "hashes": {"a": 1}}', "null"],
    ids=["a list", "no hashes", "too deep", "no hash", "null"],
)
def test_a_manifest_that_is_none_is_told_in_a_line(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "backup.json").write_text(manifest)
    with pytest.raises(DeveloperError, match=r"copy is not a backup of this version of core.*\. Name a file or folder"):
        restore(tmp_path / "copy", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_file_that_the_manifest_lacks_is_not_restored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Store(state) as store:
        store.database("kv", "a")
    back_up(state, tmp_path / "copy")
    (tmp_path / "copy" / "kv").mkdir(exist_ok=True)
    (tmp_path / "copy" / "kv" / "planted.sqlite").write_bytes(b"")
    with pytest.raises(DeveloperError, match=r"has kv/planted\.sqlite in it, of which its backup\.json says nothing"):
        restore(tmp_path / "copy", tmp_path / "again")
    assert not (tmp_path / "again").exists()
