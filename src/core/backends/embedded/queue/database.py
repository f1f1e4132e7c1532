"""The messages of a store's queues, in one SQLite database, and the writes of each step of a delivery.

One database holds all queues of a store, so that a move to a dead letter queue is one transaction and no message
is ever in none of them. A send returns when its row is committed; a message's row goes when its handler is done
with it. So every message is delivered at least once, whatever ends the process, and twice only when it ended
between the handler's last line and the commit.
"""

from __future__ import annotations

import math
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote

from typing_extensions import TypeVar

from core.backends.embedded.queue.messages import Outgoing, StoredMessage, to_datetime
from core.backends.embedded.store import Database, run_script
from core.bindings.queue import QueueMetrics
from core.context import Clock
from core.errors import QueueError
from core.spans import current_traceparent

T = TypeVar("T")

Arrival: TypeAlias = tuple[int, int]
"""The number of a stored message, and when it is due."""

RETENTION: Final = 14 * 86_400

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS queue_messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  content_type TEXT NOT NULL,
  body BLOB NOT NULL,
  sent INTEGER NOT NULL,
  due INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  traceparent TEXT NOT NULL DEFAULT '',
  failed_before INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS queue_messages_queue ON queue_messages (queue, sent);
CREATE TABLE IF NOT EXISTS queue_backlog (
  queue TEXT NOT NULL PRIMARY KEY,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS queue_message_added AFTER INSERT ON queue_messages
BEGIN
  INSERT INTO queue_backlog VALUES (new.queue, 1, length(new.body))
  ON CONFLICT (queue) DO UPDATE SET count = count + 1, bytes = bytes + length(new.body);
END;
CREATE TRIGGER IF NOT EXISTS queue_message_removed AFTER DELETE ON queue_messages
BEGIN
  UPDATE queue_backlog SET count = count - 1, bytes = bytes - length(old.body) WHERE queue = old.queue;
END;
"""

_COLUMNS: Final = ", ".join(StoredMessage._fields)
_INSERT: Final = f"INSERT INTO queue_messages ({_COLUMNS}) VALUES (NULL{', ?' * (len(StoredMessage._fields) - 1)})"


class QueueDatabase:
    """The messages of all queues of a store."""

    arrived: Callable[[str, Sequence[Arrival]], None]
    """Hands new messages of a queue to its consumer, if it has one here: a subclass has consumers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.clock: Clock = clock
        self._database = database
        self._connection = self._database.connection
        self.on_dead: Callable[[str, int], object] | None = None
        """Called with a queue and how many of its messages were given up."""
        self._database.insist(self._set_up)

    @property
    def location(self) -> str:
        return self._database.location

    def metrics(self, name: str, *, without: int = 0, bytes_without: int = 0) -> QueueMetrics:
        """Return the number of messages that wait in a queue, without those being delivered."""
        found = self._connection.execute("SELECT count, bytes FROM queue_backlog WHERE queue = ?", (name,)).fetchone()
        if found is None or found[0] <= without:
            return QueueMetrics()
        oldest = None
        if not without:
            (sent,) = self._connection.execute(
                "SELECT min(sent) FROM queue_messages WHERE queue = ?", (name,)
            ).fetchone()
            oldest = None if sent is None else to_datetime(sent)
        return QueueMetrics(found[0] - without, found[1] - bytes_without, oldest)

    def backlogs(self) -> dict[str, QueueMetrics]:
        """Return the number of messages that wait, for every queue that had one."""
        names = self._connection.execute("SELECT queue FROM queue_backlog").fetchall()
        return {name: self.metrics(name) for (name,) in names}

    def now(self) -> int:
        return math.floor(self.clock.time() * 1000)

    def add(self, name: str, messages: Sequence[Outgoing], now: int) -> tuple[list[Arrival], QueueMetrics]:
        """Store messages that were checked and sent at `now`, all or none.

        Returns the new arrivals, and how full the queue is with them.
        """
        traceparent = current_traceparent()
        rows = [
            StoredMessage(0, name, secrets.token_hex(16), kind, body, now, now + delay * 1000, 0, traceparent, 0)
            for kind, body, delay in messages
        ]
        with self._database.transaction() as connection:
            return _insert(connection, rows), self.metrics(name)

    def waiting(self, name: str) -> list[Arrival]:
        """Number and time of every message of a queue, in the order in which they are due."""
        return self._connection.execute(
            "SELECT seq, due FROM queue_messages WHERE queue = ? ORDER BY due, seq", (name,)
        ).fetchall()

    def rows(self, seqs: Sequence[int]) -> list[StoredMessage]:
        found = {
            row[0]: StoredMessage(*row)
            for row in self._connection.execute(
                f"SELECT {_COLUMNS} FROM queue_messages WHERE seq IN ({','.join('?' * len(seqs))})", seqs
            )
        }
        return [found[seq] for seq in seqs if seq in found]

    def begin(self, rows: Sequence[StoredMessage]) -> None:
        """Count an attempt of each message. Committed before its handler runs, which may end the process."""
        with self._database.transaction() as connection:
            connection.execute(
                f"UPDATE queue_messages SET failures = failures + 1 WHERE seq IN ({','.join('?' * len(rows))})",
                [row.seq for row in rows],
            )

    def settle(
        self,
        rows: Sequence[StoredMessage],
        again: Sequence[tuple[StoredMessage, int]],
        dead: Sequence[StoredMessage],
        letters: str | None,
    ) -> tuple[list[Arrival], list[Arrival]]:
        """Write down the outcome of a batch of `rows`, as one transaction.

        Returns the new arrivals: the retried, and the dead ones.
        """
        now = self.now()
        # A new number puts a retried message behind all that is there now, as a new arrival.
        retried = [row._replace(due=now + delay * 1000, failures=row.failures + 1) for row, delay in again]
        moved: list[StoredMessage] = []
        if letters is not None:
            moved = [row._replace(queue=letters, due=now, failures=0, failed_before=row.failures) for row in dead]
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM queue_messages WHERE seq = ?", [(row.seq,) for row in rows])
            return _insert(connection, retried), _insert(connection, moved)

    def put_back(self, name: str, rows: Sequence[StoredMessage]) -> None:
        """Store messages again that were delivered and acknowledged, with their id, time and attempts."""
        now = self.now()
        with self._database.transaction() as connection:
            stored = _insert(connection, [row._replace(due=now) for row in rows])
        self.arrived(name, stored)

    async def wait(self, verb: str, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises QueueError where that fails."""
        return await self._database.answer(action, lambda error: QueueError(f"Queue {verb} failed: {error}"))

    def lock_path(self, name: str) -> str | None:
        """The file whose lock the consumer of a queue holds, or None in memory, where there is no other process."""
        path = self._database.path
        if path is None:
            return None
        return str(path.with_name(f"consumer-{quote(name, safe='').replace('.', '%2E')}.lock"))

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, _SCHEMA)
            connection.execute("DELETE FROM queue_messages WHERE sent < ?", (self.now() - RETENTION * 1000,))


def _insert(connection: sqlite3.Connection, rows: Sequence[StoredMessage]) -> list[Arrival]:
    return [(connection.execute(_INSERT, row[1:]).lastrowid or 0, row.due) for row in rows]
