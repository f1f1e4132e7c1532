"""The runtime's own Durable Objects: namespaces and their stubs, and the state of an object.

A stub's method is called by its own name on the other side, with its arguments in order: JavaScript knows no keyword
arguments. Where the namespace is annotated with the object's class, keywords are put in their places; what has no
place travels in one last object under `KEYWORDS`, which our own side of the call takes apart again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    call_js,
    call_now,
    date_of,
    from_js,
    is_null,
    js_bytes,
    js_options,
    js_value,
    none_of,
    options,
    translated,
    translator,
    unwrap,
)
from core.backends.workerd.rpc import rpc_method
from core.backends.workerd.spans import parent_to_send
from core.bindings.calls import BoundHook, Hookable
from core.bindings.durable_object import (
    DurableObject,
    DurableObjectId,
    DurableObjectNamespace,
    DurableObjectState,
    DurableObjectStorage,
    DurableObjectStub,
    DurableObjectTransaction,
    SqlStorage,
    SqlStorageCursor,
    StorageOperations,
    SyncKvStorage,
    sql_binding,
)
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
from core.context import require_awaitable
from core.errors import (
    BindingTypeError,
    DurableObjectError,
    DurableObjectTypeError,
    DurableObjectValueError,
)
from core.http import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from core.bindings.durable_object import ReadOptions, WriteOptions

T = TypeVar("T")

_error = translator(DurableObjectError, TypeError=DurableObjectTypeError, RangeError=DurableObjectValueError)


class WorkerdDurableObjectId(DurableObjectId):
    """`DurableObjectId` over the runtime's."""

    __slots__ = ("_id",)

    def __init__(self, id: Any) -> None:
        self._id = unwrap(id)

    def __str__(self) -> str:
        return str(self._id.toString())

    def __repr__(self) -> str:
        return f"<DurableObjectId {self}>"

    @property
    def name(self) -> str | None:
        name: str | None = attribute(self._id, "name")
        return name

    @property
    def jurisdiction(self) -> Any:
        return attribute(self._id, "jurisdiction")

    def equals(self, other: DurableObjectId, /) -> bool:
        return str(self) == str(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerdDurableObjectId) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class WorkerdDurableObjectNamespace(Hookable, DurableObjectNamespace[Any]):
    """`DurableObjectNamespace` over the object that the runtime has under the binding's name."""

    def __init__(self, namespace: Any, cls: Any = None) -> None:
        self._namespace = unwrap(namespace)
        self._cls = cls

    def id_from_name(self, name: str) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._namespace.idFromName, name))

    def id_from_string(self, id: str) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._namespace.idFromString, id))

    def new_unique_id(self, *, jurisdiction: str | None = None) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._namespace.newUniqueId, **options(jurisdiction=jurisdiction)))

    def get(self, id: Any, *, location_hint: str | None = None) -> Any:
        if not isinstance(id, WorkerdDurableObjectId):
            raise DurableObjectTypeError(
                f"get() takes an id, as id_from_name() and id_from_string() give them, not {type(id).__name__}"
            )
        given = options(locationHint=location_hint)
        try:
            self._namespace.idFromString(str(id))
        except bridge().JsException:
            raise DurableObjectTypeError("Durable Object ID is not valid for this namespace.") from None
        return WorkerdDurableObjectStub(lambda: _call(self._namespace.get, id._id, **given), self._cls, self._hook)

    def get_by_name(self, name: str, *, location_hint: str | None = None) -> Any:
        return self.get(self.id_from_name(name), location_hint=location_hint)

    def jurisdiction(self, jurisdiction: str) -> WorkerdDurableObjectNamespace:
        confined = WorkerdDurableObjectNamespace(_call(self._namespace.jurisdiction, jurisdiction), self._cls)
        confined._hook = self._hook
        return confined


class WorkerdDurableObjectStub(Hookable, DurableObjectStub):
    """A stub: `fetch`, `id`, `name`, and every method of the object under its own name.

    The runtime's stub is broken for good once its object was reset, so a new one is got after a call that failed.
    """

    __slots__ = ("_cls", "_get", "_hook", "_kept")

    def __init__(self, get: Callable[[], Any], cls: Any, hook: BoundHook | None) -> None:
        self._get = get
        self._cls = cls
        self._hook = hook
        self._kept: Any = get()

    def _call_target(self) -> tuple[Any, ...]:
        return (self.name or str(self.id),)

    @property
    def id(self) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(self._stub().id)

    @property
    def name(self) -> str | None:
        name: str | None = attribute(self._stub(), "name")
        return name

    def _stub(self) -> Any:
        if self._kept is None:
            self._kept = self._get()
        return self._kept

    async def _fetch(self, request: Request, /) -> Response:
        from core.backends.workerd.fetch import fetch_through

        try:
            return await fetch_through(self._stub(), request, _error, parent_to_send())
        except Exception:
            self._kept = None
            raise

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or not _may_be_called(self._cls, name):
            raise AttributeError(
                f"{getattr(self._cls, '__name__', 'the object')} has no public async method {name}. Only those can be "
                "called on a stub"
            )

        async def call(*args: Any, **keywords: Any) -> Any:
            try:
                return await rpc_method(self._stub(), name, self._cls, _error)(*args, **keywords)
            except Exception:
                self._kept = None
                raise

        return call if self._hook is None else self._hook.around(name, call, self._call_target())


def _may_be_called(cls: Any, name: str) -> bool:
    """Return True if a class has a method that a stub may call; anything may where the class is not known."""
    if not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return True
    import inspect

    # The methods of the base class are for the runtime to call, whether or not the class has its own.
    return not hasattr(DurableObject, name) and inspect.iscoroutinefunction(getattr(cls, name, None))


# An object's own side -------------------------------------------------------------------------------------------------


class WorkerdDurableObjectState(DurableObjectState):
    """`DurableObjectState` over the runtime's."""

    __slots__ = ("_id", "_state", "_storage")

    def __init__(self, state: Any) -> None:
        self._state = unwrap(state)
        self._id: WorkerdDurableObjectId | None = None
        self._storage: WorkerdStorage | None = None

    @property
    def id(self) -> WorkerdDurableObjectId:
        if self._id is None:
            self._id = WorkerdDurableObjectId(self._state.id)
        return self._id

    @property
    def storage(self) -> WorkerdStorage:
        if self._storage is None:
            self._storage = WorkerdStorage(self._state.storage)
        return self._storage

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        proxy = bridge().create_proxy(task)
        self._state.waitUntil(proxy)
        task.add_done_callback(lambda _: proxy.destroy())

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        across = bridge()
        # A promise of our own: the error of a coroutine would reach the calls that it breaks as a traceback of
        # Python's.
        section = across.js.Promise.withResolvers()
        running: list[asyncio.Future[T]] = []

        async def run() -> T:
            try:
                value = await callback()
            except BaseException as error:
                from core.explain.diagnosis import words_of

                section.reject(across.js.Error.new(words_of(error)))
                raise
            section.resolve()
            return value

        def begin() -> Any:
            running.append(asyncio.ensure_future(run()))
            return section.promise

        proxy = across.create_proxy(begin)
        promise = self._state.blockConcurrencyWhile(proxy)

        async def wait() -> T:
            try:
                await promise
            except across.JsException as error:
                if running and running[0].done():
                    return running[0].result()
                raise translated(error, _error) from None
            finally:
                proxy.destroy()
            return running[0].result()

        waiting = asyncio.ensure_future(wait())
        # Left unawaited, its error still resets the object; asyncio need not say so a second time.
        waiting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting

    def accept_web_socket(self, socket: DurableObjectWebSocket, tags: Sequence[str] = ()) -> None:
        from core.backends.workerd.object_socket import accept

        accept(self._state, socket, [*dict.fromkeys(tags)])

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        from core.backends.workerd.object_socket import WorkerdSocketCarrier

        found = _call(self._state.getWebSockets, *(() if tag is None else (tag,)))
        carriers = [WorkerdSocketCarrier(socket) for socket in found]
        return [DurableObjectWebSocket(carrier) for carrier in carriers if not carrier.is_closed]

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        return [str(tag) for tag in _call(self._state.getTags, _js_socket(socket))]

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        given: tuple[Any, ...] = ()
        if pair is not None:
            given = (_call(bridge().js.WebSocketRequestResponsePair.new, pair.request, pair.response),)
        _call(self._state.setWebSocketAutoResponse, *given)

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        pair = none_of(_call(self._state.getWebSocketAutoResponse))
        return None if pair is None else WebSocketRequestResponsePair(str(pair.request), str(pair.response))

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        at = none_of(_call(self._state.getWebSocketAutoResponseTimestamp, _js_socket(socket)))
        return None if at is None else date_of(at)

    def abort(self, reason: str | None = None) -> None:
        state, across = self._state, bridge()
        from pyodide.ffi import create_once_callable

        # Aborting at once would end JavaScript under Python's feet, in the middle of this very call.
        across.js.queueMicrotask(create_once_callable(lambda: state.abort(*(() if reason is None else (reason,)))))
        raise DurableObjectError(reason or "Durable Object reset because it called abort()")


def _js_socket(socket: DurableObjectWebSocket) -> Any:
    from core.backends.workerd.object_socket import WorkerdSocketCarrier

    carrier = socket.carrier
    if not isinstance(carrier, WorkerdSocketCarrier):
        raise DurableObjectError("the WebSocket is of another engine")
    return carrier.js_socket


class _Operations(Hookable, StorageOperations):
    """Operations shared by storage and a transaction."""

    __slots__ = ("_storage",)

    def __init__(self, storage: Any) -> None:
        self._storage = unwrap(storage)

    async def _get(self, keys: Any, /, **given: Unpack[ReadOptions]) -> Any:
        return from_js(await call_js(_error, self._storage.get, _keys(keys), **js_options(**given)))

    async def _list(self, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = from_js(await call_js(_error, self._storage.list, **js_options(**given)))
        return found

    async def _put(self, key: Any, value: Any = ..., /, **given: Unpack[WriteOptions]) -> None:
        if isinstance(key, str):
            if value is ...:
                raise DurableObjectTypeError("put() takes a key and a value, or a dict of both")
            await call_js(_error, self._storage.put, key, _copied(value), **js_options(**given))
        else:
            await call_js(_error, self._storage.put, _copied(dict(key)), **js_options(**given))

    async def _delete(self, keys: Any, /, **given: Unpack[WriteOptions]) -> Any:
        return from_js(await call_js(_error, self._storage.delete, _keys(keys), **js_options(**given)))

    async def _get_alarm(self, **given: Unpack[ReadOptions]) -> int | None:
        found = none_of(await call_js(_error, self._storage.getAlarm, **js_options(**given)))
        return None if found is None else int(found)

    async def _set_alarm(self, scheduled_time: datetime | float, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._storage.setAlarm, _time(scheduled_time), **js_options(**given))

    async def _delete_alarm(self, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._storage.deleteAlarm, **js_options(**given))


class WorkerdTransaction(_Operations, DurableObjectTransaction):
    """`DurableObjectTransaction` over the runtime's."""

    __slots__ = ()

    def rollback(self) -> None:
        _call(self._storage.rollback)


class WorkerdStorage(_Operations, DurableObjectStorage):
    """`DurableObjectStorage` over the runtime's."""

    __slots__ = ("_kv", "_sql")

    def __init__(self, storage: Any) -> None:
        super().__init__(storage)
        self._sql: WorkerdSqlStorage | None = None
        self._kv: WorkerdSyncKv | None = None

    async def _delete_all(self, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._storage.deleteAll, **js_options(**given))

    async def transaction(self, closure: Callable[[Any], Awaitable[T]], /) -> T:
        kept: list[Any] = []
        failed: list[BaseException] = []

        async def run(transaction: Any) -> None:
            try:
                kept.append(await closure(WorkerdTransaction(transaction)))
            except BaseException as error:
                failed.append(error)
                raise

        proxy = bridge().create_proxy(run)
        try:
            await call_js(_error, self._storage.transaction, proxy)
        except BaseException:
            if failed:
                raise failed[0] from None
            raise
        finally:
            proxy.destroy()
        value: T = kept[-1]
        return value

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        kept: list[Any] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                kept.append(closure())
            except BaseException as error:
                failed.append(error)
                raise

        proxy = bridge().create_proxy(run)
        try:
            _call(self._storage.transactionSync, proxy)
        except BaseException:
            if failed:
                raise failed[0] from None
            raise
        finally:
            proxy.destroy()
        value: T = kept[-1]
        return value

    async def sync(self) -> None:
        await call_js(_error, self._storage.sync)

    async def get_current_bookmark(self) -> str:
        return str(await call_js(_error, self._storage.getCurrentBookmark))

    async def get_bookmark_for_time(self, timestamp: datetime | float, /) -> str:
        return str(await call_js(_error, self._storage.getBookmarkForTime, _time(timestamp)))

    async def on_next_session_restore_bookmark(self, bookmark: str, /) -> str:
        return str(await call_js(_error, self._storage.onNextSessionRestoreBookmark, bookmark))

    @property
    def sql(self) -> WorkerdSqlStorage:
        if self._sql is None:
            self._sql = WorkerdSqlStorage(self._storage.sql)
        return self._sql

    @property
    def kv(self) -> WorkerdSyncKv:
        if self._kv is None:
            self._kv = WorkerdSyncKv(self._storage.kv)
        return self._kv


class WorkerdSyncKv(SyncKvStorage):
    """`SyncKvStorage` over the runtime's."""

    __slots__ = ("_kv",)

    def __init__(self, kv: Any) -> None:
        self._kv = kv

    def get(self, key: str, /) -> Any:
        return from_js(_call(self._kv.get, key))

    def list(self, **keys: Any) -> Iterator[tuple[str, Any]]:
        for entry in _call(self._kv.list, **_range(**keys)):
            yield str(entry[0]), from_js(entry[1])

    def put(self, key: str, value: Any, /) -> None:
        _call(self._kv.put, key, _copied(value))

    def delete(self, key: str, /) -> bool:
        return bool(_call(self._kv.delete, key))


class WorkerdSqlStorage(SqlStorage):
    """`SqlStorage` over the runtime's."""

    __slots__ = ("_sql",)

    def __init__(self, sql: Any) -> None:
        self._sql = sql

    @property
    def database_size(self) -> int:
        return int(self._sql.databaseSize)

    def exec(self, query: str, /, *bindings: Any) -> WorkerdSqlCursor:
        outgoing = [_sql_value(sql_binding(value)) for value in bindings]
        return WorkerdSqlCursor(_call(self._sql.exec, query, *outgoing))


class WorkerdSqlCursor(SqlStorageCursor):
    """`SqlStorageCursor` over the runtime's."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def column_names(self) -> list[str]:
        return [str(name) for name in self._cursor.columnNames]

    @property
    def rows_read(self) -> int:
        return int(self._cursor.rowsRead)

    @property
    def rows_written(self) -> int:
        return int(self._cursor.rowsWritten)

    def __iter__(self) -> WorkerdSqlCursor:
        return self

    def __next__(self) -> dict[str, Any]:
        step = _call(self._cursor.next)
        if step.done:
            raise StopIteration
        return _sql_row(step.value)

    def to_array(self) -> list[dict[str, Any]]:
        return [_sql_row(row) for row in _call(self._cursor.toArray)]

    def one(self) -> dict[str, Any]:
        return _sql_row(_call(self._cursor.one))

    def raw(self) -> Iterator[list[Any]]:
        for row in _call(self._cursor.raw):
            yield [_sql_cell(value) for value in row]


def _copied(value: Any) -> Any:
    try:
        return js_value(value)
    except (BindingTypeError, bridge().ConversionError) as error:
        raise DurableObjectTypeError(f"the value cannot be stored: {error}") from None


def _sql_value(value: str | float | bytes | None) -> Any:
    if value is None:
        return bridge().jsnull
    return js_bytes(value) if isinstance(value, bytes) else value


def _sql_row(row: Any) -> dict[str, Any]:
    return {str(entry[0]): _sql_cell(entry[1]) for entry in row.object_entries()}


def _sql_cell(value: Any) -> Any:
    if is_null(value):
        return None
    return bytes_of(value) if isinstance(value, bridge().JsProxy) else value


# Arguments and errors -------------------------------------------------------------------------------------------------


def _range(
    *,
    start: str | None = None,
    start_after: str | None = None,
    end: str | None = None,
    prefix: str | None = None,
    reverse: bool = False,
    limit: int | None = None,
) -> dict[str, Any]:
    return options(start=start, startAfter=start_after, end=end, prefix=prefix, reverse=reverse or None, limit=limit)


def _keys(keys: Any) -> Any:
    return keys if isinstance(keys, str) else bridge().to_js(list(keys))


def _time(time: datetime | float) -> float:
    if isinstance(time, datetime):
        from core.backends.workerd.conversion import js_date

        return float(js_date(time).getTime())
    return time


def _call(method: Any, *args: Any, **given: Any) -> Any:
    return call_now(_error, method, *args, **given)
