"""All objects of a namespace: those that live, the databases of the others, and whose alarm goes off when; and the
state that an object's class is given.

One process at a time has a namespace's objects: the second one to call gets an error that says so.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote

from core.backends.embedded.d1 import engine_of
from core.backends.embedded.disk import lock_file
from core.backends.embedded.durable_object.alarms import AlarmSchedule
from core.backends.embedded.durable_object.arguments import MAX_VALUE
from core.backends.embedded.durable_object.ids import ObjectId, id_from_digits, id_from_name
from core.backends.embedded.durable_object.life import LiveObject
from core.backends.embedded.durable_object.records import AroundAlarm
from core.backends.embedded.durable_object.sockets import ObjectSockets, carrier_of
from core.backends.embedded.durable_object.storage import ObjectStorage
from core.backends.embedded.store import Database, Store, run_script
from core.bindings.durable_object import DurableObject, DurableObjectJurisdiction, DurableObjectState
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
from core.context import Clock, TimerHandle, require_awaitable
from core.errors import DurableObjectError

T = TypeVar("T")
MAX_AUTO_RESPONSE: Final = 2048
_log = logging.getLogger("core.durable_object")

# The bytes that a row counts beside its key and value.
_ROW: Final = 64

# How many objects of a namespace are kept with their files open; the one that was idle for longest goes first.
_KEPT: Final = 128

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS _cf_KV (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _cf_ALARM (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  time INTEGER NOT NULL,
  scheduled INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  mark TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS _cf_NAME (name BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;
"""


def objects_of(store: Store, name: str, cls: type[DurableObject[Any]], env: object) -> Objects:
    """The objects of a name in a store: every namespace of that name shares them."""
    schedule = store.database("durable_objects", f"{name}.alarms")
    objects: Objects | None = schedule.engine
    if objects is None:
        objects = schedule.engine = Objects(store, name, cls, env, schedule)
    elif objects.cls is not cls:
        raise ValueError(
            f"the Durable Objects {name!r} are of the class {objects.cls.__name__} already, not {cls.__name__}"
        )
    elif env is not None:
        objects.env = env
    return objects


class Objects:
    """All objects of a namespace: those that live, where the others are stored, and whose alarm goes off when."""

    def __init__(self, store: Store, name: str, cls: type[DurableObject[Any]], env: object, schedule: Database) -> None:
        self.name = name
        self.cls = cls
        self.env = env
        self.clock: Clock = store.clock
        self._timeout = store.busy_timeout
        self._folder = None if store.path is None else store.path / "durable_objects" / quote(name, safe="")
        # In memory an object's database must outlive its instance.
        self._databases: dict[str, Database] = {}
        self._living: OrderedDict[str, LiveObject] = OrderedDict()
        self.alarms: AlarmSchedule = AlarmSchedule(schedule, self.clock, lambda due: self.object(due).alarm.fire())
        self.around_alarm: AroundAlarm | None = None
        """Runs an alarm as an event of the application; None runs it alone."""
        self._lock: int | None = None
        self._started = False
        self._sockets: dict[str, ObjectSockets] = {}
        self.evict_after: float | None = None
        """Seconds without a call after which an object's instance is let go; None keeps it."""
        self._sweep: TimerHandle | None = None

    @property
    def location(self) -> str:
        """The directory that stores the objects, for errors."""
        return ":memory:" if self._folder is None else str(self._folder)

    def start(self) -> None:
        """Lock the namespace for this process, and take up the alarms that were set before."""
        if self._started:
            return
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_file(str(self._folder / "namespace.lock"))
            if self._lock is None:
                raise DurableObjectError(
                    f"the Durable Objects in {self.location} belong to another process that is still running. "
                    "An object lives in one process: end that one, or give this one another state directory"
                )
        self._started = True
        self.alarms.start(self._stored_alarms)

    async def close(self) -> None:
        """End every object, after the calls that are running."""
        self.alarms.stop()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self.hang_up()
        while self._living:
            _, living = self._living.popitem()
            await living.end()
        while self._folder is not None and self._databases:
            self._databases.popitem()[1].close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._started = False

    def hang_up(self) -> None:
        """Close every WebSocket with 1001: the process ends."""
        for sockets in self._sockets.values():
            sockets.end(1001)
        self._sockets.clear()

    def object(self, id: ObjectId) -> LiveObject:
        """The one object of an id. It comes into being with its first call."""
        self.start()
        living = self._living.get(id.digits)
        if living is None:
            self._make_room()
            living = self._living[id.digits] = LiveObject(self, id)
            if self.evict_after is not None and self._sweep is None:
                self._sweep = self.clock.call_later(self.evict_after, self._evict_idle)
        else:
            self._living.move_to_end(id.digits)
            living.id = living.id if living.id.name is not None else id
        return living

    def call(self, id: ObjectId, method: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Awaitable[Any]:
        """Run a method of an object."""
        return self.object(id).call(method, args, options)

    @property
    def alive(self) -> int:
        return len(self._living)

    def sockets(self, id: ObjectId) -> ObjectSockets:
        sockets = self._sockets.get(id.digits)
        if sockets is None:
            sockets = ObjectSockets(lambda method, args: self.call(id, method, args, {}), self.clock)
            self._sockets[id.digits] = sockets
        return sockets

    def forget(self, living: LiveObject) -> None:
        """An object was reset: its connections are lost, and the next call makes it anew."""
        if self._living.get(living.id.digits) is living:
            del self._living[living.id.digits]
            sockets = self._sockets.pop(living.id.digits, None)
            if sockets is not None:
                sockets.end(1006)

    async def evict(self, id: ObjectId) -> None:
        """Let an object's instance go once nothing runs in it. Its WebSockets and its storage stay."""
        living = self._living.get(id.digits)
        if living is not None:
            await living.rest()
            self.let_go(living)

    @property
    def idle(self) -> list[LiveObject]:
        return [living for living in self._living.values() if living.is_idle]

    def let_go(self, living: LiveObject) -> None:
        """Let the instance of an object go, if nothing runs in it."""
        digits = living.id.digits
        if self._living.get(digits) is not living or not living.is_idle:
            return
        del self._living[digits]
        sockets = self._sockets.get(digits)
        if sockets is not None and not sockets and sockets.auto_response is None:
            del self._sockets[digits]
        # In memory the database is all there is of it.
        database = None if self._folder is None else self._databases.pop(digits, None)
        if database is not None:
            database.close()

    def _evict_idle(self) -> None:
        assert self.evict_after is not None
        now = self.clock.monotonic()
        for living in [*self._living.values()]:
            if now - living.used >= self.evict_after:
                self.let_go(living)
        self._sweep = self.clock.call_later(self.evict_after, self._evict_idle) if self._living else None

    def _make_room(self) -> None:
        if self._folder is None or len(self._living) < _KEPT:
            return
        idle = next((living for living in self._living.values() if living.is_idle), None)
        if idle is not None:
            self.let_go(idle)

    def database(self, id: ObjectId) -> Database:
        database = self._databases.get(id.digits)
        if database is None:
            path = None if self._folder is None else self._folder / f"{id.digits}.sqlite"
            database = Database(path, timeout=self._timeout)
            database.insist(lambda: _create(database, id.name))
            # Now, outside of any transaction: within one SQLite would not begin to look at foreign keys.
            engine_of(database, self.clock, of_object=True)
            # The engine's limit is one of whole rows, and this one of a key and its value.
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE + _ROW)
            self._databases[id.digits] = database
        return database

    def stored(self) -> dict[str, Database | Path]:
        """The database of each object by the digits of its id, or its file, where it is not open."""
        files = () if self._folder is None else self._folder.glob("*.sqlite")
        return {**{file.stem: file for file in files}, **self._databases}

    def _stored_alarms(self) -> Iterator[tuple[ObjectId, int]]:
        for path in () if self._folder is None else self._folder.glob("*.sqlite"):
            try:
                with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                    id = id_from_digits(self.name, None, path.stem)
                    for (time,) in connection.execute("SELECT time FROM _cf_ALARM"):
                        name = name_of(connection, self.name, path.stem, id.jurisdiction)
                        yield ObjectId(path.stem, name, id.jurisdiction), time
            except (sqlite3.Error, DurableObjectError) as error:
                _log.warning(
                    "%s cannot be read, so that an alarm in it waits for a call of the object: %s", path, error
                )

    async def rest(self) -> None:
        """Wait until nothing runs in any object, the awaitables of `wait_until` included."""
        for living in [*self._living.values()]:
            await living.rest()

    def make(self, living: LiveObject) -> DurableObject[Any]:
        env = self.env() if inspect.isroutine(self.env) else self.env
        return self.cls(ObjectState(living), env)


def _create(database: Database, name: str | None) -> None:
    with database.transaction() as connection:
        run_script(connection, _SCHEMA)
        # An id cannot be read back, and elsewhere the same name has another.
        if name is not None:
            connection.execute("INSERT OR IGNORE INTO _cf_NAME VALUES (?)", (name.encode("utf-8", "surrogatepass"),))


def name_of(
    connection: sqlite3.Connection, namespace: str, digits: str, jurisdiction: DurableObjectJurisdiction | None = None
) -> str | None:
    """The name of an object by its database, where it was noted and makes its id."""
    for (raw,) in connection.execute("SELECT name FROM _cf_NAME"):
        name: str = raw.decode("utf-8", "surrogatepass")
        if id_from_name(namespace, jurisdiction, name).digits == digits:
            return name
    return None


class ObjectState(DurableObjectState):
    def __init__(self, living: LiveObject) -> None:
        self._object = living

    @property
    def storage(self) -> ObjectStorage:
        return self._object.storage

    @property
    def id(self) -> ObjectId:
        return self._object.id

    def wait_until(self, awaitable: Awaitable[object], /) -> None:
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        self._object.background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[object]) -> None:
        self._object.background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the object %s failed", self.id.name or self.id, exc_info=error)

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        return self._object.block(callback)

    def accept_web_socket(self, socket: DurableObjectWebSocket, tags: Sequence[str] = ()) -> None:
        self._object.sockets.accept(socket, tags)

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        return self._object.sockets.tagged(tag)

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        return [*carrier_of(socket).tags]

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        for text in () if pair is None else (pair.request, pair.response):
            if len(text) > MAX_AUTO_RESPONSE:
                raise DurableObjectError(
                    f"an automatic answer and its message are at most {MAX_AUTO_RESPONSE} characters, not {len(text)}"
                )
        self._object.sockets.auto_response = pair

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        return self._object.sockets.auto_response

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        return carrier_of(socket).answered

    def abort(self, reason: str | None = None) -> NoReturn:
        error = DurableObjectError(reason or "Application called abort() to reset Durable Object.")
        self._object.reset(error)
        # Every call has its answer. No Exception, so that error handling does not go on as if nothing were.
        raise asyncio.CancelledError(str(error))
