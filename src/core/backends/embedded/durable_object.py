"""The embedded Durable Objects: Python classes, one instance per id, each with a database of its own.

What is promised: calls run in the event loop's thread, so an object is never in two threads; storage never lets
another call in between, since no storage method waits for anything (the platform's input gate, by construction);
what a call wrote without waiting in between is kept together, and its answer leaves only after it is kept (the output
gate). While `block_concurrency_while` or a transaction runs, no other call begins. As on the platform, a call that
waits for something else (another object, a timer) lets others in meanwhile.

One process at a time has a namespace's objects: the second one to call gets an error that says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import logging
import math
import os
import secrets
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeAlias, TypeVar, cast
from urllib.parse import quote
from weakref import WeakKeyDictionary

import attrs

from core.backends.embedded.clone import CloneError, copy_value, dump, load
from core.backends.embedded.d1 import Engine, Refused, engine_of
from core.backends.embedded.store import Database, Gate, Store
from core.bindings.durable_object import (
    AlarmInvocationInfo,
    DurableObject,
    DurableObjectId,
    DurableObjectJurisdiction,
    DurableObjectLocationHint,
    DurableObjectTransaction,
    SqlStorageValue,
)
from core.context import Clock, TimerHandle
from core.errors import (
    DurableObjectError,
    DurableObjectTypeError,
    DurableObjectValueError,
    UnsupportedBindingError,
)

if TYPE_CHECKING:
    from core.http import Request, Response

__all__ = ["EmbeddedDurableObjectNamespace", "ObjectId", "ObjectState", "ObjectStorage", "Objects"]

T = TypeVar("T")
Pairs: TypeAlias = "list[tuple[bytes, bytes]]"  # inside the storage `list` is a method's name
D = TypeVar("D", bound=DurableObject[Any])

MAX_KEY: Final = 2048
MAX_VALUE: Final = 2_000_000
MAX_PAIRS: Final = 128
BLOCK_TIMEOUT: Final = 30.0
ALARM_RETRIES: Final = 6
ALARM_BACKOFF: Final = 2.0

# How many objects of a namespace are kept with their files open; the one that was idle for longest goes first.
_KEPT: Final = 128

_log = logging.getLogger("core.durable_object")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS _cf_KV (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _cf_ALARM (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  time INTEGER NOT NULL,
  scheduled INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  mark TEXT NOT NULL
);
"""

# What no stub has, though the class does.
_NOT_REMOTE: Final = frozenset({"alarm", "ctx", "env"})


@attrs.frozen(eq=False)
class ObjectId:
    """The id of an object. `str()` gives its 64 hex digits; two of the same digits are equal."""

    digits: str
    name: str | None = None
    jurisdiction: DurableObjectJurisdiction | None = None

    def __str__(self) -> str:
        return self.digits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectId) and other.digits == self.digits

    def __hash__(self) -> int:
        return hash(self.digits)

    def equals(self, other: DurableObjectId, /) -> bool:
        """Whether both name the same object."""
        return str(other) == self.digits


class EmbeddedDurableObjectNamespace(Generic[D]):
    """The objects of the class `cls` under `name` in `store`. Two namespaces of one name are one.

    `env` is what the objects get as `env`, or a function that gives it when the first object is made: the Env has the
    namespace in it, so the namespace comes first. Call `start` once the event loop runs, so that alarms from before a
    restart go off. `gate` sees every call first, and may refuse it: how a fake records calls and injects faults.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        cls: type[D],
        env: Any = None,
        *,
        gate: Gate | None = None,
        jurisdiction: DurableObjectJurisdiction | None = None,
    ) -> None:
        self.objects: Objects = _objects_of(store, name, cls, env)
        self._gate = gate
        self._jurisdiction: DurableObjectJurisdiction | None = jurisdiction

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.objects.cls.__name__} in {self.objects.place}>"

    def start(self) -> None:
        """Take up the alarms that were set before. Call it with the event loop running."""
        self.objects.start()

    async def close(self) -> None:
        """End every object, after the calls that are running."""
        await self.objects.close()

    def id_from_name(self, name: str) -> ObjectId:
        """Return the id of a name. See `DurableObjectNamespace.id_from_name`."""
        key = self._key(self._jurisdiction)
        return ObjectId(_digits(key, _mac(key, _name(name))), name, self._jurisdiction)

    def id_from_string(self, id: str) -> ObjectId:
        """Return the id of these digits. See `DurableObjectNamespace.id_from_string`."""
        digits = str(id).lower()
        if len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
            raise DurableObjectTypeError("Invalid Durable Object ID: must be 64 hex digits")
        head = bytes.fromhex(digits[:32])
        allowed = _JURISDICTIONS if self._jurisdiction is None else (self._jurisdiction,)
        for jurisdiction in allowed:
            if _digits(self._key(jurisdiction), head) == digits:
                return ObjectId(digits, None, jurisdiction)
        raise DurableObjectTypeError("Durable Object ID is not valid for this namespace.")

    def new_unique_id(self, *, jurisdiction: DurableObjectJurisdiction | None = None) -> ObjectId:
        """Return a new id. See `DurableObjectNamespace.new_unique_id`."""
        where = jurisdiction or self._jurisdiction
        return ObjectId(_digits(self._key(where), secrets.token_bytes(16)), None, where)

    def get(self, id: DurableObjectId, *, location_hint: DurableObjectLocationHint | None = None) -> D:
        """Return a stub. See `DurableObjectNamespace.get`."""
        known = self.id_from_string(str(id))
        whole = ObjectId(known.digits, id.name, known.jurisdiction)
        # A stub is what its class says about the methods that can be called from afar, and nothing else.
        return cast("D", _Stub(self.objects, whole, self._gate))

    def get_by_name(self, name: str, *, location_hint: DurableObjectLocationHint | None = None) -> D:
        """Return the stub of a name. See `DurableObjectNamespace.get_by_name`."""
        return self.get(self.id_from_name(name), location_hint=location_hint)

    def jurisdiction(self, jurisdiction: DurableObjectJurisdiction) -> EmbeddedDurableObjectNamespace[D]:
        """Return this namespace within a jurisdiction. See `DurableObjectNamespace.jurisdiction`."""
        if jurisdiction not in _JURISDICTIONS:
            raise DurableObjectTypeError(f'"{jurisdiction}" is no jurisdiction: eu, fedramp, fedramp-high or us')
        confined = cast("EmbeddedDurableObjectNamespace[D]", object.__new__(EmbeddedDurableObjectNamespace))
        confined.objects, confined._gate, confined._jurisdiction = self.objects, self._gate, jurisdiction
        return confined

    def _key(self, jurisdiction: str | None) -> bytes:
        place = self.objects.name if jurisdiction is None else f"{self.objects.name}\0{jurisdiction}"
        return hashlib.sha256(place.encode()).digest()


_JURISDICTIONS: Final[Sequence[DurableObjectJurisdiction | None]] = (None, "eu", "fedramp", "fedramp-high", "us")


def _name(name: object) -> bytes:
    if not isinstance(name, str):
        raise DurableObjectTypeError(f"The name of a Durable Object must be a str, not {type(name).__name__}")
    return name.encode("utf-8", "surrogatepass")


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")[:16]


def _digits(key: bytes, head: bytes) -> str:
    return (head + _mac(key, head)).hex()


class _Stub:
    """An object from afar: its id, `fetch`, and the public async methods of its class."""

    __slots__ = ("_gate", "_objects", "id")

    def __init__(self, objects: Objects, id: ObjectId, gate: Gate | None) -> None:
        self._objects = objects
        self._gate = gate
        self.id = id

    @property
    def name(self) -> str | None:
        return self.id.name

    def __repr__(self) -> str:
        return f"<stub of {self._objects.cls.__name__} {self.id.name or self.id}>"

    async def fetch(self, request: Request | str, /) -> Response:
        if isinstance(request, str):
            from core.http import Request as StandardRequest

            request = StandardRequest(request)
        return cast("Response", await self._call("fetch", (request,), {}))

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        cls = self._objects.cls
        found = None if method.startswith("_") or method in _NOT_REMOTE else getattr(cls, method, None)
        if not inspect.iscoroutinefunction(found):
            why = "is not public" if method.startswith("_") else "is not an async method of the class"
            raise AttributeError(
                f"{cls.__name__}.{method} cannot be called on a stub: it {why}. A stub has the public async methods, "
                "fetch, id and name",
                name=method,
                obj=self,
            )
        return partial(self._remote, method)

    async def _remote(self, method: str, /, *args: Any, **options: Any) -> Any:
        try:
            args, options = copy_value(args, "the arguments"), copy_value(options, "the arguments")
        except CloneError as error:
            raise _uncloneable(f"{self._objects.cls.__name__}.{method}: {error}") from error
        result = await self._call(method, args, options)
        try:
            return copy_value(result, "the result")
        except CloneError as error:
            raise _uncloneable(f"{self._objects.cls.__name__}.{method}: {error}") from error

    async def _call(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self._gate is not None:
            await self._gate(method, (self.id.name or str(self.id), *args), options)
        return await self._objects.object(self.id).call(method, args, options)


def _uncloneable(message: str) -> DurableObjectTypeError:
    error = DurableObjectTypeError(message)
    error.js_name = "DataCloneError"
    return error


# ---------------------------------------------------------------------- the objects of a namespace

_known: WeakKeyDictionary[Store, dict[str, Objects]] = WeakKeyDictionary()


def _objects_of(store: Store, name: str, cls: type[DurableObject[Any]], env: Any) -> Objects:
    """The objects of a name in a store: every namespace of that name shares them."""
    here = _known.setdefault(store, {})
    objects = here.get(name)
    if objects is None:
        objects = here[name] = Objects(store, name, cls, env)
    elif objects.cls is not cls:
        raise ValueError(
            f"the Durable Objects {name!r} are of the class {objects.cls.__name__} already, not {cls.__name__}"
        )
    elif env is not None:
        objects.env = env
    return objects


class Objects:
    """All objects of a namespace: those that live, where the others are stored, and whose alarm goes off when."""

    def __init__(self, store: Store, name: str, cls: type[DurableObject[Any]], env: Any) -> None:
        self.name = name
        self.cls = cls
        self.env = env
        self.clock: Clock = store.clock
        self._timeout = store.busy_timeout
        self._folder = None if store.path is None else store.path / "durable_objects" / quote(name, safe="")
        # In memory an object's database must outlive its instance.
        self._databases: dict[str, Database] = {}
        # A fake in a test is closed by nobody.
        weakref.finalize(self, _close_all, self._databases).atexit = False
        self._living: OrderedDict[str, _Object] = OrderedDict()
        self._timers: dict[str, TimerHandle] = {}
        self._alarms = store.database("durable_objects", f"{name}.alarms")
        self._lock: int | None = None
        self._started = False
        self._alarms.insist(self._set_up)

    @property
    def place(self) -> str:
        """Where they are stored, for errors."""
        return ":memory:" if self._folder is None else str(self._folder)

    def start(self) -> None:
        """Lock the namespace for this process, and take up the alarms that were set before."""
        if self._started:
            return
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            from core.backends.embedded.queue import lock_file

            self._lock = lock_file(str(self._folder / "namespace.lock"))
            if self._lock is None:
                raise DurableObjectError(
                    f"the Durable Objects in {self.place} belong to another process that is still running. "
                    "An object lives in one process: end that one, or give this one another state directory"
                )
        self._started = True
        for digits, name, time in self._alarms.connection.execute("SELECT object, name, time FROM alarms").fetchall():
            self._plan(ObjectId(digits, name), time)

    async def close(self) -> None:
        """End every object, after the calls that are running."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while self._living:
            _, living = self._living.popitem()
            await living.end()
        if self._folder is not None:
            _close_all(self._databases)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._started = False

    def object(self, id: ObjectId) -> _Object:
        """The one object of an id. It comes into being with its first call."""
        self.start()
        living = self._living.get(id.digits)
        if living is None:
            self._make_room()
            living = self._living[id.digits] = _Object(self, id)
        else:
            self._living.move_to_end(id.digits)
            living.id = living.id if living.id.name is not None else id
        return living

    def forget(self, living: _Object) -> None:
        """An object was reset: the next call makes it anew."""
        if self._living.get(living.id.digits) is living:
            del self._living[living.id.digits]

    def _make_room(self) -> None:
        if self._folder is None or len(self._living) < _KEPT:
            return
        for digits, living in self._living.items():
            if living.is_idle:
                del self._living[digits]
                database = self._databases.pop(digits, None)
                if database is not None:
                    database.close()
                return

    def database(self, id: ObjectId) -> Database:
        """The database of an object."""
        database = self._databases.get(id.digits)
        if database is None:
            path = None if self._folder is None else self._folder / f"{id.digits}.sqlite"
            database = Database(path, timeout=self._timeout)
            database.insist(lambda: _create(database))
            self._databases[id.digits] = database
        return database

    def make(self, state: ObjectState) -> DurableObject[Any]:
        """A new instance."""
        env = self.env() if inspect.isroutine(self.env) else self.env
        return self.cls(state, env)

    # ------------------------------------------------------------------ alarms

    def note_alarm(self, id: ObjectId, time: int | None) -> None:
        """Remember that an object may have an alarm at a time. The object's own database has the last word."""
        connection = self._alarms.connection
        if time is None:
            connection.execute("DELETE FROM alarms WHERE object = ?", (id.digits,))
        else:
            connection.execute(
                "INSERT INTO alarms VALUES (?, ?, ?) ON CONFLICT (object) DO UPDATE SET time = excluded.time",
                (id.digits, id.name, time),
            )
        self._plan(id, time)

    def _plan(self, id: ObjectId, time: int | None) -> None:
        before = self._timers.pop(id.digits, None)
        if before is not None:
            before.cancel()
        if time is not None:
            wait = max(0.0, time / 1000 - self.clock.time())
            self._timers[id.digits] = self.clock.call_later(wait, lambda: self._ring(id))

    def _ring(self, id: ObjectId) -> None:
        self._timers.pop(id.digits, None)
        self.object(id).ring()

    def _set_up(self) -> None:
        self._alarms.connection.execute(
            "CREATE TABLE IF NOT EXISTS alarms (object TEXT NOT NULL PRIMARY KEY, name TEXT, time INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )


def _close_all(databases: dict[str, Database]) -> None:
    while databases:
        databases.popitem()[1].close()


def _create(database: Database) -> None:
    with database.transaction() as connection:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)


class _Object:
    """One object: its instance while it lives, the calls that run in it, and what makes others wait."""

    def __init__(self, objects: Objects, id: ObjectId) -> None:
        self.objects = objects
        self.id = id
        self.storage: ObjectStorage = ObjectStorage(self)
        self.blocked: asyncio.Future[None] | None = None
        self.broken: BaseException | None = None
        self._instance: DurableObject[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._alarm_task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it."""
        return not self._tasks and self.blocked is None and self._alarm_task is None

    @property
    def has_alarm_handler(self) -> bool:
        """Whether its class says what an alarm does."""
        return self.objects.cls.alarm is not DurableObject.alarm

    async def call(self, method: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Run a method in it, as a task of its own: a caller that goes away does not end it."""
        task = asyncio.get_running_loop().create_task(self._run(method, args, options))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self.broken is not None:
                raise _reset(self.broken) from self.broken
            raise

    async def _run(self, method: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        try:
            instance = await self._enter()
            return await getattr(instance, method)(*args, **options)
        finally:
            # The answer leaves only after what it was based on is safe.
            self.storage.commit()

    async def _enter(self) -> DurableObject[Any]:
        """The instance, once nothing blocks it."""
        if self._instance is None and self.broken is None:
            try:
                self._instance = self.objects.make(ObjectState(self))
            except BaseException:
                self.storage.roll_back()
                self.objects.forget(self)
                raise
        while self.blocked is not None:
            # From inside a section too: a call that comes back to the object waits, and after 30 seconds fails.
            await asyncio.shield(self.blocked)
        if self.broken is not None:
            raise _reset(self.broken) from self.broken
        assert self._instance is not None
        return self._instance

    def block(self, callback: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        """Run `callback` with no other call beginning. What it raises resets the object."""
        # Entered here and not in the task: the call that made the object must find it blocked.
        section = self._enter_section() if self._may_enter() else None
        task = asyncio.get_running_loop().create_task(self._block(callback, section))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Whoever does not await it learns of its failure from the calls that it broke.
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return task

    async def _block(self, callback: Callable[[], Awaitable[T]], section: _Section | None) -> T:
        try:
            return await self.exclusively(callback, section)
        except BaseException as error:
            if self.broken is None:
                self.reset(error)
            raise

    async def exclusively(self, action: Callable[[], Awaitable[T]], section: _Section | None = None) -> T:
        """Run `action` with no other call beginning, and no other's storage at hand. After 30 seconds, reset."""
        if section is None:
            await self.turn()
            section = self._enter_section()
        inside = _inside.set(self)
        running = asyncio.ensure_future(action())
        too_long = self.objects.clock.call_later(BLOCK_TIMEOUT, running.cancel)
        try:
            return await running
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not running.cancelled() or self.broken is not None or (current is not None and current.cancelling()):
                running.cancel()
                raise
            error = DurableObjectError(
                "A call to blockConcurrencyWhile() in a Durable Object waited for too long. "
                "The call was canceled and the Durable Object was reset."
            )
            self.reset(error)
            raise error from None
        finally:
            too_long.cancel()
            _inside.reset(inside)
            self.blocked = section.before
            section.ended.set_result(None)

    def _may_enter(self) -> bool:
        # Inside a critical section another one begins at once.
        return self.blocked is None or _inside.get() is self

    def _enter_section(self) -> _Section:
        section = _Section(self.blocked, asyncio.get_running_loop().create_future())
        self.blocked = section.ended
        return section

    async def turn(self) -> None:
        """Wait until no critical section runs but those that this task is in."""
        while not self._may_enter():
            assert self.blocked is not None
            await asyncio.shield(self.blocked)

    def reset(self, why: BaseException) -> None:
        """Let go of the instance: what runs fails with `why`, what was written but not kept is gone."""
        self.broken = why
        self.storage.roll_back()
        self.objects.forget(self)
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()

    async def end(self) -> None:
        """Wait for what runs, and let go."""
        while self._tasks or self._alarm_task is not None:
            waiting = {*self._tasks}
            if self._alarm_task is not None:
                waiting.add(self._alarm_task)
            await asyncio.wait(waiting)
        self.storage.commit()

    def ring(self) -> None:
        """The alarm's time has come, if the storage says so too."""
        if self._alarm_task is None:
            self._alarm_task = asyncio.get_running_loop().create_task(self._alarm())

    async def sound_now(self) -> bool:
        """Let the alarm go off whatever the time, and say whether one was set."""
        row = self.storage.alarm_row()
        if row is None:
            return False
        self.storage.postpone(row, math.floor(self.objects.clock.time() * 1000), retries=row.retries)
        self.ring()
        task = self._alarm_task
        if task is not None:
            await asyncio.shield(task)
        return True

    async def _alarm(self) -> None:
        try:
            await self._sound()
        except Exception:
            _log.exception("the alarm of %r failed", self.id)
        finally:
            self._alarm_task = None
        later = self.storage.alarm_row()
        if later is not None:
            self.objects.note_alarm(self.id, later.time)

    async def _sound(self) -> None:
        storage = self.storage
        row = storage.alarm_row()
        if row is None:
            self.objects.note_alarm(self.id, None)
            return
        if row.time > self.objects.clock.time() * 1000:
            return
        storage.sounding = row.mark
        try:
            await self.call("alarm", (AlarmInvocationInfo(row.retries, row.retries > 0, row.scheduled),), {})
        except Exception:
            storage.sounding = None
            again = row.retries < ALARM_RETRIES
            _log.exception(
                "the alarm of %s %s failed; %s",
                self.objects.cls.__name__,
                self.id.name or self.id,
                "it is tried again" if again else "it failed too often and is given up",
            )
            wait = ALARM_BACKOFF * 2**row.retries
            storage.postpone(
                row, math.floor((self.objects.clock.time() + wait) * 1000) if again else None, retries=row.retries + 1
            )
        else:
            storage.sounding = None
            storage.postpone(row, None)
        if storage.alarm_row() is None:
            self.objects.note_alarm(self.id, None)


@attrs.frozen(eq=False)
class _Section:
    """A critical section: the one that it is in, and the future that its end fulfils."""

    before: asyncio.Future[None] | None
    ended: asyncio.Future[None]


_inside: ContextVar[_Object | None] = ContextVar("inside", default=None)


def _reset(why: BaseException) -> BaseException:
    """What a call gets that a reset ended: the reason itself when it is ours, else an error that names it."""
    if isinstance(why, DurableObjectError):
        return DurableObjectError(str(why))
    return DurableObjectError(f"The Durable Object was reset: {type(why).__name__}: {why}")


class ObjectState:
    """What an object has for itself. See `DurableObjectState`."""

    def __init__(self, living: _Object) -> None:
        self._object = living
        self.storage: ObjectStorage = living.storage
        self._waiting: set[asyncio.Future[Any]] = set()

    @property
    def id(self) -> ObjectId:
        """The object's id."""
        return self._object.id

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Let `awaitable` run on. See `DurableObjectState.wait_until`."""
        task = asyncio.ensure_future(awaitable)
        self._waiting.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._waiting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the object %s failed", self.id.name or self.id, exc_info=error)

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        """Run `callback` alone. See `DurableObjectState.block_concurrency_while`."""
        return self._object.block(callback)

    def abort(self, reason: str | None = None) -> NoReturn:
        """Reset the object. See `DurableObjectState.abort`."""
        error = DurableObjectError(reason or "Application called abort() to reset Durable Object.")
        self._object.reset(error)
        raise error


# ---------------------------------------------------------------------- storage


@attrs.frozen
class _AlarmRow:
    """An alarm as it is stored. `mark` tells one setting of it from the next."""

    time: int
    scheduled: int
    retries: int
    mark: str


_MISSING: Final[Any] = object()


class _Operations:
    """What storage and a transaction have in common."""

    _storage: ObjectStorage

    async def _check(self, operation: str) -> None:
        """Raise if nothing can be done here any more; wait while another's transaction is open."""
        raise NotImplementedError

    async def get(self, keys: Any, /, *, allow_concurrency: bool = False, no_cache: bool = False) -> Any:
        """Return a value, or several. See `DurableObjectStorage.get`."""
        await self._check("get()")
        if isinstance(keys, str):
            return self._storage.read(_key(keys))
        raws = sorted({_key(key) for key in _several(keys)})
        values = [(raw, self._storage.read(raw, _MISSING)) for raw in raws]
        return {raw.decode(): value for raw, value in values if value is not _MISSING}

    async def list(
        self,
        *,
        start: str | None = None,
        start_after: str | None = None,
        end: str | None = None,
        prefix: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
        allow_concurrency: bool = False,
        no_cache: bool = False,
    ) -> dict[str, Any]:
        """Return a range of values. See `DurableObjectStorage.list`."""
        await self._check("list()")
        return dict(self._storage.scan(start, start_after, end, prefix, reverse, limit))

    async def put(
        self,
        key: Any,
        value: Any = _MISSING,
        /,
        *,
        allow_concurrency: bool = False,
        allow_unconfirmed: bool = False,
        no_cache: bool = False,
    ) -> None:
        """Store a value, or several. See `DurableObjectStorage.put`."""
        await self._check("put()")
        if isinstance(key, str):
            if value is _MISSING:
                raise DurableObjectTypeError("put() called with undefined value.")
            self._storage.write([(_key(key), _value(value))])
            return
        given = key  # not narrowed by what follows
        if not isinstance(key, Mapping) or value is not _MISSING:
            raise DurableObjectTypeError(
                "put() may only be called with a single key-value pair and optional options as put(key, value, options) "
                "or with multiple key-value pairs and optional options as put(entries, options)"
            )
        entries: Mapping[Any, Any] = given
        if len(entries) > MAX_PAIRS:
            raise DurableObjectValueError(
                f"Maximum number of key value pairs is {MAX_PAIRS}. {len(entries)} pairs were provided."
            )
        self._storage.write([(_key(name), _value(item)) for name, item in entries.items()])

    async def delete(
        self,
        keys: Any,
        /,
        *,
        allow_concurrency: bool = False,
        allow_unconfirmed: bool = False,
        no_cache: bool = False,
    ) -> Any:
        """Delete a key, or several. See `DurableObjectStorage.delete`."""
        await self._check("delete()")
        if isinstance(keys, str):
            return self._storage.remove([_key(keys)]) > 0
        return self._storage.remove([_key(key) for key in _several(keys)])

    async def get_alarm(self, *, allow_concurrency: bool = False) -> int | None:
        """Return when the alarm goes off. See `DurableObjectStorage.get_alarm`."""
        await self._check("getAlarm()")
        row = self._storage.alarm_row()
        return None if row is None or row.mark == self._storage.sounding else row.time

    async def set_alarm(
        self, scheduled_time: datetime | float, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False
    ) -> None:
        """Set the alarm. See `DurableObjectStorage.set_alarm`."""
        await self._check("setAlarm()")
        self._storage.write_alarm(_milliseconds(scheduled_time))

    async def delete_alarm(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        """Take the alarm back. See `DurableObjectStorage.delete_alarm`."""
        await self._check("deleteAlarm()")
        self._storage.remove_alarm()


class ObjectStorage(_Operations):
    """The storage of one object. See `DurableObjectStorage`."""

    def __init__(self, living: _Object) -> None:
        self._storage = self
        self._object = living
        self._open: Database | None = None
        self._commit_soon: asyncio.Handle | None = None
        self._transactions = 0
        # The alarm that is being handled: it does not count as set.
        self.sounding: str | None = None

    @property
    def sql(self) -> _Sql:
        """The SQL database."""
        return _Sql(self)

    @property
    def kv(self) -> _SyncKv:
        """The keys and values, without waiting."""
        return _SyncKv(self)

    async def delete_all(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        """Delete everything. See `DurableObjectStorage.delete_all`."""
        await self._object.turn()
        if self._transactions:
            raise DurableObjectError("Cannot call deleteAll() within a transaction")
        self.commit()
        connection = self.connection
        with self._database.transaction():
            connection.execute("PRAGMA defer_foreign_keys = ON")
            for kind, name in connection.execute(
                "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger', 'table')"
                " AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
                # A virtual table takes its shadows with it, so it goes before them.
                " ORDER BY type = 'table', sql NOT LIKE 'CREATE VIRTUAL%'"
            ).fetchall():
                quoted = name.replace('"', '""')
                connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')
            connection.execute("DELETE FROM _cf_KV")
            connection.execute("DELETE FROM _cf_ALARM")
        self._object.objects.note_alarm(self._object.id, None)

    async def transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]], /) -> T:
        """Run `closure` as one. See `DurableObjectStorage.transaction`."""
        return await self._object.exclusively(lambda: self._transaction(closure))

    async def _transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]]) -> T:
        savepoint = self._begin()
        transaction = _Transaction(self)
        try:
            result = await closure(transaction)
        except BaseException:
            transaction.end(rolled_back=True)
            self._undo(savepoint)
            raise
        rolled_back = transaction.rolled_back
        transaction.end(rolled_back=rolled_back)
        if rolled_back:
            self._undo(savepoint)
        else:
            self._keep(savepoint)
        return result

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        """Run `closure` as one. See `DurableObjectStorage.transaction_sync`."""
        savepoint = self._begin()
        try:
            result = closure()
        except BaseException:
            self._undo(savepoint)
            raise
        self._keep(savepoint)
        return result

    async def sync(self) -> None:
        """Keep what was written. See `DurableObjectStorage.sync`."""
        self.commit()

    async def get_current_bookmark(self) -> str:
        """Not embedded. See `DurableObjectStorage.get_current_bookmark`."""
        return _no_bookmarks()

    async def get_bookmark_for_time(self, timestamp: datetime | float, /) -> str:
        """Not embedded. See `DurableObjectStorage.get_bookmark_for_time`."""
        return _no_bookmarks()

    async def on_next_session_restore_bookmark(self, bookmark: str, /) -> str:
        """Not embedded. See `DurableObjectStorage.on_next_session_restore_bookmark`."""
        return _no_bookmarks()

    async def _check(self, operation: str) -> None:
        await self._object.turn()

    # ------------------------------------------------------------------ transactions

    @property
    def _database(self) -> Database:
        if self._object.broken is not None:
            raise _reset(self._object.broken)
        if self._open is None:
            self._open = self._object.objects.database(self._object.id)
        return self._open

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection to the object's database."""
        return self._database.connection

    @property
    def engine(self) -> Engine:
        """What runs the object's own SQL."""
        return engine_of(self._database, self._object.objects.clock)

    def writing(self) -> sqlite3.Connection:
        """The connection, inside the transaction that keeps together what is written without waiting in between."""
        connection = self.connection
        if not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
            self._commit_soon = asyncio.get_running_loop().call_soon(self._commit_idle)
        return connection

    def _commit_idle(self) -> None:
        self._commit_soon = None
        if not self._transactions:
            self.commit()

    def commit(self) -> None:
        """Keep what was written, unless a transaction of the application's is still open."""
        if self._commit_soon is not None:
            self._commit_soon.cancel()
            self._commit_soon = None
        if self._open is not None and not self._transactions and self._open.connection.in_transaction:
            self._open.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo what was written and not kept."""
        self._transactions = 0
        if self._commit_soon is not None:
            self._commit_soon.cancel()
            self._commit_soon = None
        if self._open is not None and self._open.connection.in_transaction:
            self._open.connection.execute("ROLLBACK")

    def _begin(self) -> str:
        connection = self.writing()
        self._transactions += 1
        savepoint = f"_cf_savepoint_{self._transactions}"
        connection.execute(f"SAVEPOINT {savepoint}")
        return savepoint

    def _keep(self, savepoint: str) -> None:
        self.connection.execute(f"RELEASE {savepoint}")
        self._transactions -= 1
        self.commit()
        self._tell_alarm()

    def _undo(self, savepoint: str) -> None:
        if self._object.broken is not None:
            return
        self.connection.execute(f"ROLLBACK TO {savepoint}")
        self.connection.execute(f"RELEASE {savepoint}")
        self._transactions -= 1
        self.commit()
        self._tell_alarm()

    # ------------------------------------------------------------------ keys and values

    def read(self, raw: bytes, missing: Any = None) -> Any:
        """The value under a key."""
        found = self.connection.execute("SELECT value FROM _cf_KV WHERE key = ?", (raw,)).fetchone()
        return missing if found is None else load(found[0])

    def write(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Store values under keys that are in order, all or none."""
        checked: Pairs = []
        for raw, data in pairs:
            if len(raw) + len(data) > MAX_VALUE:
                raise DurableObjectValueError(
                    f"Keys and values together cannot be larger than {MAX_VALUE} bytes. "
                    f"A pair of size {len(raw) + len(data)} was provided."
                )
            checked.append((raw, data))
        self.writing().executemany(
            "INSERT INTO _cf_KV VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", checked
        )

    def remove(self, raws: Iterable[bytes]) -> int:
        """Delete keys, and say how many were there."""
        connection = self.writing()
        return sum(connection.execute("DELETE FROM _cf_KV WHERE key = ?", (raw,)).rowcount for raw in raws)

    def scan(
        self,
        start: str | None,
        start_after: str | None,
        end: str | None,
        prefix: str | None,
        reverse: bool,
        limit: int | None,
    ) -> Iterator[tuple[str, Any]]:
        """Keys and values of a range, in the order of the keys' bytes."""
        if start is not None and start_after is not None:
            raise DurableObjectTypeError("list() cannot be called with both start and startAfter values.")
        if limit is not None and limit <= 0:
            raise DurableObjectTypeError("List limit must be positive.")
        conditions: list[str] = []
        values: list[Any] = []
        for condition, bound in (("key >= ?", start), ("key > ?", start_after), ("key < ?", end)):
            if bound is not None:
                conditions.append(condition)
                values.append(bound.encode("utf-8", "surrogatepass"))
        if prefix:
            raw = prefix.encode("utf-8", "surrogatepass")
            # UTF-8 has no byte 0xff: there is always a next one.
            conditions += ["key >= ?", "key < ?"]
            values += [raw, raw[:-1] + bytes([raw[-1] + 1])]
        sql = "SELECT key, value FROM _cf_KV"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        sql += f" ORDER BY key{' DESC' if reverse else ''}"
        if limit is not None:
            sql += " LIMIT ?"
            values.append(limit)
        for key, value in self.connection.execute(sql, values).fetchall():
            yield key.decode(), load(value)

    # ------------------------------------------------------------------ the alarm

    def alarm_row(self) -> _AlarmRow | None:
        """The alarm that is set."""
        if self._object.broken is not None:
            # Asked after a reset, for what comes next: the database knows.
            self._open = self._object.objects.database(self._object.id)
            connection = self._open.connection
        else:
            connection = self.connection
        found = connection.execute("SELECT time, scheduled, retries, mark FROM _cf_ALARM").fetchone()
        return None if found is None else _AlarmRow(*found)

    def write_alarm(self, time: int) -> None:
        """Set the alarm. A time that has passed means now."""
        if time <= 0:
            raise DurableObjectTypeError("setAlarm() cannot be called with an alarm time <= 0")
        if not self._object.has_alarm_handler:
            raise DurableObjectError(
                "Your Durable Object class must have an alarm() handler in order to call setAlarm()"
            )
        time = max(time, math.floor(self._object.objects.clock.time() * 1000))
        # Noted before it is kept: an alarm too many is looked at in vain, one too few would never go off.
        self._object.objects.note_alarm(self._object.id, time)
        self.writing().execute(
            "INSERT OR REPLACE INTO _cf_ALARM VALUES (1, ?, ?, 0, ?)", (time, time, secrets.token_hex(8))
        )

    def remove_alarm(self) -> None:
        """Take the alarm back."""
        self.writing().execute("DELETE FROM _cf_ALARM")

    def postpone(self, row: _AlarmRow, time: int | None, *, retries: int = 0) -> None:
        """Move an alarm, or be done with it, unless it was set anew meanwhile."""
        connection = self._object.objects.database(self._object.id).connection
        if time is None:
            connection.execute("DELETE FROM _cf_ALARM WHERE mark = ?", (row.mark,))
        else:
            connection.execute("UPDATE _cf_ALARM SET time = ?, retries = ? WHERE mark = ?", (time, retries, row.mark))

    def _tell_alarm(self) -> None:
        """After a transaction, the alarm may be another than was noted within it."""
        row = self.alarm_row()
        if row is not None:
            self._object.objects.note_alarm(self._object.id, row.time)


class _Transaction(_Operations):
    """The storage inside `transaction`. See `DurableObjectTransaction`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage
        self._ended = False
        self.rolled_back = False

    async def _check(self, operation: str) -> None:
        self._refuse_late(operation)

    def _refuse_late(self, operation: str) -> None:
        if self.rolled_back:
            raise DurableObjectError(f"Cannot {operation} on rolled back transaction")
        if self._ended:
            raise DurableObjectError(
                f"Cannot call {operation} on transaction that has already committed: "
                "did you move `txn` outside of the closure?"
            )

    def rollback(self) -> None:
        """Undo it. See `DurableObjectTransaction.rollback`."""
        if not self.rolled_back:
            self._refuse_late("rollback()")
            self.rolled_back = True

    def end(self, *, rolled_back: bool) -> None:
        """Refuse whatever comes after the closure."""
        self._ended = True
        self.rolled_back = rolled_back


class _SyncKv:
    """The keys and values, without waiting. See `SyncKvStorage`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def get(self, key: str, /) -> Any:
        return self._storage.read(_key(key))

    def list(
        self,
        *,
        start: str | None = None,
        start_after: str | None = None,
        end: str | None = None,
        prefix: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[str, Any]]:
        return self._storage.scan(start, start_after, end, prefix, reverse, limit)

    def put(self, key: str, value: Any, /) -> None:
        self._storage.write([(_key(key), _value(value))])

    def delete(self, key: str, /) -> bool:
        return self._storage.remove([_key(key)]) > 0


class _Cursor:
    """The rows of one `exec`. See `SqlStorageCursor`."""

    def __init__(self, columns: list[str], rows: list[Any], written: int) -> None:
        self.column_names = columns
        self.rows_read: int = len(rows)
        self.rows_written = written
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[dict[str, SqlStorageValue]]:
        return self

    def __next__(self) -> dict[str, SqlStorageValue]:
        return dict(zip(self.column_names, next(self._rows), strict=True))

    def to_array(self) -> list[dict[str, SqlStorageValue]]:
        return [*self]

    def one(self) -> dict[str, SqlStorageValue]:
        rows = self.to_array()
        if len(rows) != 1:
            got = "no" if not rows else "multiple"
            raise DurableObjectError(f"Expected exactly one result from SQL query, but got {got} results.")
        return rows[0]

    def raw(self) -> Iterator[list[SqlStorageValue]]:
        return ([*row] for row in self._rows)


class _Sql:
    """The object's own SQL database. See `SqlStorage`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    @property
    def database_size(self) -> int:
        connection = self._storage.connection
        (pages,), (size,) = (connection.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
        return int(pages) * int(size)

    def exec(self, query: str, /, *bindings: SqlStorageValue) -> _Cursor:
        engine = self._storage.engine
        # A statement that fails undoes only itself; what was written before it in this turn stays.
        connection = self._storage.writing()
        connection.execute("SAVEPOINT _cf_exec")
        try:
            columns, rows, numbers = engine.inside(query, bindings)
        except (Refused, sqlite3.Error) as error:
            connection.execute("ROLLBACK TO _cf_exec")
            message = str(error) if isinstance(error, Refused) else engine.explain(error)
            raise DurableObjectError(message) from error
        finally:
            connection.execute("RELEASE _cf_exec")
        return _Cursor(columns, rows, numbers[1])


# ---------------------------------------------------------------------- what comes in


def _key(key: object) -> bytes:
    if not isinstance(key, str):
        raise DurableObjectTypeError(f"A key must be a str, not {type(key).__name__}")
    raw = key.encode("utf-8", "replace")
    if len(raw) > MAX_KEY:
        raise DurableObjectValueError(
            f"Keys cannot be larger than {MAX_KEY} bytes. A key of size {len(raw)} was provided."
        )
    return raw


def _several(keys: Any) -> list[Any]:
    several = [*keys]
    if len(several) > MAX_PAIRS:
        raise DurableObjectValueError(f"Maximum number of keys is {MAX_PAIRS}. {len(several)} keys were provided.")
    return several


def _value(value: Any) -> bytes:
    try:
        return dump(value)
    except CloneError as error:
        raise _uncloneable(str(error)) from error


def _milliseconds(time: object) -> int:
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise DurableObjectTypeError(f"{time!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
        return math.floor(time.timestamp() * 1000)
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not math.isfinite(time):
        raise DurableObjectTypeError(f"An alarm's time must be a datetime, or milliseconds since 1970, not {time!r}")
    return math.floor(time)


def _no_bookmarks() -> NoReturn:
    raise UnsupportedBindingError(
        "Bookmarks (point-in-time recovery) of Durable Objects are not embedded: only the platform has them"
    )
