"""State in a directory: what it survives, and how two processes share it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.d1.engine import engine_of
from core.backends.embedded.disk import Files, StoreBusyError
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Database, Store, is_busy
from core.context import system_clock
from core.errors import D1Error, KVError


def test_one_name_is_one_database_and_another_name_another(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert store.database("kv", "a") is store.database("kv", "a")
        assert store.database("kv", "a") is not store.database("kv", "b")
        assert store.database("kv", "a") is not store.database("d1", "a")


@given(st.lists(st.text(max_size=20), unique=True, max_size=8))
def test_every_name_has_a_file_of_its_own_also_where_case_is_folded(names: list[str]) -> None:
    from core.backends.embedded.store import _file_name

    files = [_file_name(name) for name in names]
    assert len({file.lower() for file in files}) == len(names)
    assert not any("/" in file or "\x00" in file or file in ("", ".", "..") for file in files)


async def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        await EmbeddedKVNamespace(store, "Names / are: any?").put("k", "v", metadata=[1])
        await EmbeddedD1Database(store, "db").exec("CREATE TABLE t (a)\nINSERT INTO t VALUES (1)")
    with Store(tmp_path) as store:
        assert (await EmbeddedKVNamespace(store, "Names / are: any?").get_with_metadata("k")).metadata == [1]
        assert await EmbeddedD1Database(store, "db").prepare("SELECT a FROM t").first("a") == 1


def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "db.sqlite")
    database.connection.execute("CREATE TABLE t (a)")

    def fail() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert database.connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert not database.connection.in_transaction
    database.close()
    database.close()


# ---------------------------------------------------------------------- another process

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("free", flush=True)
"""


class Holder:
    """Another process that holds a database's write lock."""

    def __init__(self, file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "held\n"

    def let_go(self) -> None:
        """Commit, and end."""
        self.process.communicate("go\n", timeout=120)


async def test_a_write_waits_for_another_process_and_the_loop_runs_on(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        holder = Holder(tmp_path / "kv" / "kv.sqlite")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1
                if ticks == 10:
                    await asyncio.to_thread(holder.let_go)

        ticking = asyncio.create_task(tick())
        await kv.put("k", "v")
        ticking.cancel()
        assert ticks >= 10
        assert await kv.get("k") == "v"


async def test_reads_go_on_while_another_process_writes(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kv, db = EmbeddedKVNamespace(store, "kv"), EmbeddedD1Database(store, "db")
        await kv.put("k", "v")
        await db.exec("CREATE TABLE t (a)")
        holders = [Holder(tmp_path / "kv" / "kv.sqlite"), Holder(tmp_path / "d1" / "db.sqlite")]
        assert await kv.get("k") == "v"
        assert (await db.prepare("SELECT * FROM t").all()).results == []
        assert len(await db.batch([db.prepare("SELECT 1"), db.prepare("SELECT 2")])) == 2
        for holder in holders:
            holder.let_go()


async def test_after_the_busy_timeout_the_error_says_who_and_what_to_do(tmp_path: Path) -> None:
    with Store(tmp_path, busy_timeout=0.2) as store:
        kv, db = EmbeddedKVNamespace(store, "kv"), EmbeddedD1Database(store, "db")
        await db.exec("CREATE TABLE t (a)")
        holders = [Holder(tmp_path / "kv" / "kv.sqlite"), Holder(tmp_path / "d1" / "db.sqlite")]
        started = time.monotonic()
        with pytest.raises(KVError) as kv_error:
            await kv.put("k", "v")
        waited = time.monotonic() - started
        with pytest.raises(D1Error) as d1_error:
            await db.prepare("INSERT INTO t VALUES (1)").run()
        with pytest.raises(D1Error):
            await db.batch([db.prepare("INSERT INTO t VALUES (1)")])
        for holder in holders:
            holder.let_go()
        assert waited >= 0.2
        place = tmp_path / "kv" / "kv.sqlite"
        assert str(kv_error.value) == (
            "KV PUT failed: 503 Another process, or another connection of this one, has held the database for more than "
            f"0.2 seconds: {place}. Wait for its transaction to finish, or end it, and try again"
        )
        assert str(d1_error.value).startswith("D1_ERROR: database is locked: SQLITE_BUSY. ")
        await kv.put("k", "v")
        await db.prepare("INSERT INTO t VALUES (1)").run()


def test_insisting_blocks_until_the_timeout(tmp_path: Path) -> None:
    database = Database(tmp_path / "db.sqlite", timeout=0.1)
    holder = Holder(tmp_path / "db.sqlite")
    with pytest.raises(StoreBusyError):
        database.insist(lambda: database.connection.execute("BEGIN IMMEDIATE"))
    holder.let_go()
    database.close()


def test_other_errors_are_not_waited_for(tmp_path: Path) -> None:
    database = Database(tmp_path / "db.sqlite")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.insist(lambda: database.connection.execute("SELECT * FROM nope"))
    assert not is_busy(sqlite3.ProgrammingError("of the module"))
    database.close()


def test_opening_a_database_waits_for_a_process_that_has_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the last process has it that closes the file, or the one that recovers it after a kill."""
    path = tmp_path / "db.sqlite"
    database = Database(path)
    database.close()
    peer = sqlite3.connect(path, isolation_level=None)
    peer.execute("PRAGMA locking_mode = EXCLUSIVE")
    peer.execute("BEGIN EXCLUSIVE")
    database.connection = sqlite3.connect(path, timeout=0, isolation_level=None)

    monkeypatch.setattr(time, "sleep", lambda seconds: peer.close())
    assert engine_of(database, system_clock).single("SELECT 1", ())[1] == [(1,)]
    database.close()


def test_many_processes_open_one_new_directory_at_once(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from core.backends.embedded.store import Store\n"
        "from core.backends.embedded.kv import EmbeddedKVNamespace\n"
        "from core.backends.embedded.d1 import EmbeddedD1Database\n"
        "async def main():\n"
        "    with Store(sys.argv[1]) as store:\n"
        "        kv, db = EmbeddedKVNamespace(store, 'kv'), EmbeddedD1Database(store, 'db')\n"
        "        await db.prepare('CREATE TABLE IF NOT EXISTS t (a)').run()\n"
        "        for index in range(50):\n"
        "            await kv.put(f'{sys.argv[2]}-{index}', 'v')\n"
        "            await db.prepare('INSERT INTO t VALUES (?)').bind(index).run()\n"
        "asyncio.run(main())\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(number)]) for number in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0, 0]
    with Store(tmp_path) as store:
        assert store.database("kv", "kv").connection.execute("SELECT count(*) FROM kv").fetchone() == (200,)
        assert store.database("d1", "db").connection.execute("SELECT count(*) FROM t").fetchone() == (200,)


# ---------------------------------------------------------------------- files


def test_a_file_is_real_only_when_it_is_published(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    staged = files.stage([b"one", b"two"])
    assert staged.suffix == ".tmp"
    name = files.publish(staged)
    assert files.read(name) == b"onetwo"
    assert (files.folder / name).exists()
    assert not staged.exists()
    staged.unlink(missing_ok=True)
    files.remove([name, "missing"])
    with pytest.raises(FileNotFoundError):
        files.read(name)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")

    def chunks() -> object:
        yield b"one"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        files.stage(chunks())  # type: ignore[arg-type]  # an iterator that fails
    assert list(files.folder.iterdir()) == []


def test_a_sweep_leaves_what_is_named_and_what_another_process_is_writing(tmp_path: Path) -> None:
    files = Files(tmp_path / "files")
    files.sweep([])  # of a folder that is not there
    named, orphan = files.publish(files.stage([b"a"])), files.publish(files.stage([b"b"]))
    fresh, stale = files.stage([b"c"]), files.stage([b"d"])
    hours_ago = time.time() - 7200
    os.utime(stale, (hours_ago, hours_ago))
    files.sweep([(named,)])
    assert sorted(path.name for path in files.folder.iterdir()) == sorted([named, fresh.name])
    assert orphan not in {path.name for path in files.folder.iterdir()}
