"""The runtime's own Durable Objects: namespaces and their stubs, and the state of an object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeForm, TypeVar, Unpack

from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    call_js,
    call_now,
    date_of,
    from_js,
    is_null,
    js_error,
    js_value,
    none_of,
    options,
    translated,
    translator,
)
from core.backends.workerd.engine import JsBacked, JsEngine
from core.backends.workerd.rpc import rpc_method
from core.backends.workerd.spans import parent_to_send
from core.bindings.calls import BoundHook, Hookable
from core.bindings.durable_object import (
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
    can_be_called,
    sql_binding,
)
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
from core.context import require_awaitable
from core.errors import BindingTypeError, DurableObjectError, DurableObjectTypeError, DurableObjectValueError
from core.http import Request, Response

if TYPE_CHECKING:
    from core.bindings.durable_object import ReadOptions, WriteOptions

T = TypeVar("T")
R = TypeVar("R", default=dict[str, Any])

_error = translator(DurableObjectError, TypeError=DurableObjectTypeError, RangeError=DurableObjectValueError)


class WorkerdDurableObjectId(JsBacked, DurableObjectId):
    def __str__(self) -> str:
        return str(self._js.toString())

    def __repr__(self) -> str:
        return f"<DurableObjectId {self}>"

    @property
    def name(self) -> str | None:
        name: str | None = attribute(self._js, "name")
        return name

    @property
    def jurisdiction(self) -> Any:
        return attribute(self._js, "jurisdiction")

    def equals(self, other: DurableObjectId, /) -> bool:
        return str(self) == str(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerdDurableObjectId) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class WorkerdDurableObjectNamespace(JsEngine, DurableObjectNamespace[Any]):
    def __init__(self, namespace: object, cls: object = None, hook: BoundHook | None = None) -> None:
        super().__init__(namespace, hook)
        self._cls = cls

    def id_from_name(self, name: str) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._js.idFromName, name))

    def id_from_string(self, id: str) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._js.idFromString, id))

    def new_unique_id(self, *, jurisdiction: str | None = None) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(_call(self._js.newUniqueId, **options(jurisdiction=jurisdiction)))

    def get(self, id: object, *, location_hint: str | None = None) -> object:
        if not isinstance(id, WorkerdDurableObjectId):
            raise DurableObjectTypeError(
                f"get() takes an id, as id_from_name() and id_from_string() give them, not {type(id).__name__}"
            )
        given = options(location_hint=location_hint)
        try:
            self._js.idFromString(str(id))
        except bridge().JsException:
            raise DurableObjectTypeError("Durable Object ID is not valid for this namespace.") from None
        return WorkerdDurableObjectStub(lambda: _call(self._js.get, id._js, **given), self._cls, self._hook)

    def get_by_name(self, name: str, *, location_hint: str | None = None) -> object:
        return self.get(self.id_from_name(name), location_hint=location_hint)

    def jurisdiction(self, jurisdiction: str) -> WorkerdDurableObjectNamespace:
        return WorkerdDurableObjectNamespace(_call(self._js.jurisdiction, jurisdiction), self._cls, self._hook)


class WorkerdDurableObjectStub(Hookable, DurableObjectStub):
    """A stub: `fetch`, `id`, `name`, and every method of the object under its own name.

    The runtime's stub is broken for good once its object was reset, so a new one is got after a call that failed.
    """

    def __init__(self, get: Callable[[], object], cls: object, hook: BoundHook | None) -> None:
        self._get = get
        self._cls = cls
        self._hook = hook
        self._kept: Any = get()

    def _call_target(self) -> tuple[object, ...]:
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

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[object]]:
        if name.startswith("_") or not _may_be_called(self._cls, name):
            raise AttributeError(
                f"{getattr(self._cls, '__name__', 'the object')} has no public async method {name}. Only those can be "
                "called on a stub"
            )

        async def call(*args: object, **keywords: object) -> object:
            try:
                return await rpc_method(self._stub(), name, self._cls, _error)(*args, **keywords)
            except Exception:
                self._kept = None
                raise

        return call if self._hook is None else self._hook.around(name, call, self._call_target())


def _may_be_called(cls: object, name: str) -> bool:
    """Return True if a class has a method that a stub may call; anything may where the class is not known."""
    # `Any` is a class since Python 3.11.
    return cls is Any or not isinstance(cls, type) or getattr(cls, "_is_protocol", False) or can_be_called(cls, name)


# An object's own side -------------------------------------------------------------------------------------------------


class WorkerdDurableObjectState(JsBacked, DurableObjectState):
    def __init__(self, state: object) -> None:
        super().__init__(state)
        self._storage = WorkerdStorage(self._js.storage)

    @property
    def id(self) -> WorkerdDurableObjectId:
        return WorkerdDurableObjectId(self._js.id)

    @property
    def storage(self) -> WorkerdStorage:
        return self._storage

    def wait_until(self, awaitable: Awaitable[object], /) -> None:
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        proxy = bridge().create_proxy(task)
        self._js.waitUntil(proxy)
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
                section.reject(js_error(error))
                raise
            section.resolve()
            return value

        def begin() -> object:
            running.append(asyncio.ensure_future(run()))
            return section.promise

        proxy = across.create_proxy(begin)
        promise = self._js.blockConcurrencyWhile(proxy)

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

        accept(self._js, socket, [*dict.fromkeys(tags)])

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        from core.backends.workerd.object_socket import WorkerdSocketCarrier, socket_of

        found = _call(self._js.getWebSockets, *(() if tag is None else (tag,)))
        return [socket_of(socket) for socket in found if not WorkerdSocketCarrier(socket).is_closed]

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        return [str(tag) for tag in _call(self._js.getTags, _js_socket(socket))]

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        given: tuple[object, ...] = ()
        if pair is not None:
            given = (_call(bridge().js.WebSocketRequestResponsePair.new, pair.request, pair.response),)
        _call(self._js.setWebSocketAutoResponse, *given)

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        pair = none_of(_call(self._js.getWebSocketAutoResponse))
        return None if pair is None else WebSocketRequestResponsePair(str(pair.request), str(pair.response))

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        at = none_of(_call(self._js.getWebSocketAutoResponseTimestamp, _js_socket(socket)))
        return None if at is None else date_of(at)

    def abort(self, reason: str | None = None) -> None:
        # It ends JavaScript where it is. A call of Python that is under way then never returns, and its frame stays in
        # the chain of those that run: Python's next garbage collection goes around in that chain for ever. So
        # JavaScript calls it, when no call of Python is left, and with nothing of Python between them.
        given = () if reason is None else (reason,)
        bridge().js.queueMicrotask(self._js.abort.bind(self._js, *given))
        raise DurableObjectError(reason or "Durable Object reset because it called abort()")


def _js_socket(socket: DurableObjectWebSocket) -> object:
    from core.backends.workerd.object_socket import WorkerdSocketCarrier

    carrier = socket.carrier
    if not isinstance(carrier, WorkerdSocketCarrier):
        raise DurableObjectError("the WebSocket is of another engine")
    return carrier.js_socket


class _Operations(JsEngine, StorageOperations):
    """Operations shared by storage and a transaction."""

    async def _get(self, keys: object, /, **given: Unpack[ReadOptions]) -> object:
        return from_js(await call_js(_error, self._js.get, _keys(keys), **options(**given)))

    async def _list(self, **given: object) -> dict[str, object]:
        found: dict[str, object] = from_js(await call_js(_error, self._js.list, **options(**given)))
        return found

    async def _put(self, key: Any, value: object = ..., /, **given: Unpack[WriteOptions]) -> None:
        if isinstance(key, str):
            if value is ...:
                raise DurableObjectTypeError("put() takes a key and a value, or a dict of both")
            await call_js(_error, self._js.put, key, _copied(value), **options(**given))
        else:
            await call_js(_error, self._js.put, _copied(dict(key)), **options(**given))

    async def _delete(self, keys: object, /, **given: Unpack[WriteOptions]) -> object:
        return from_js(await call_js(_error, self._js.delete, _keys(keys), **options(**given)))

    async def _get_alarm(self, **given: Unpack[ReadOptions]) -> int | None:
        found = none_of(await call_js(_error, self._js.getAlarm, **options(**given)))
        return None if found is None else int(found)

    async def _set_alarm(self, scheduled_time: datetime | float, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._js.setAlarm, _time(scheduled_time), **options(**given))

    async def _delete_alarm(self, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._js.deleteAlarm, **options(**given))


class WorkerdTransaction(_Operations, DurableObjectTransaction):
    def rollback(self) -> None:
        _call(self._js.rollback)


class WorkerdStorage(_Operations, DurableObjectStorage):
    async def _delete_all(self, **given: Unpack[WriteOptions]) -> None:
        await call_js(_error, self._js.deleteAll, **options(**given))

    async def transaction(self, closure: Callable[[Any], Awaitable[T]], /) -> T:
        kept: list[T] = []
        failed: list[BaseException] = []

        async def run(transaction: object) -> None:
            try:
                kept.append(await closure(WorkerdTransaction(transaction)))
            except BaseException as error:
                failed.append(error)
                raise

        proxy = bridge().create_proxy(run)
        try:
            await call_js(_error, self._js.transaction, proxy)
        except BaseException:
            if failed:
                raise failed[0] from None
            raise
        finally:
            proxy.destroy()
        return kept[-1]

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        kept: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                kept.append(closure())
            except BaseException as error:
                failed.append(error)
                raise

        proxy = bridge().create_proxy(run)
        try:
            _call(self._js.transactionSync, proxy)
        except BaseException:
            if failed:
                raise failed[0] from None
            raise
        finally:
            proxy.destroy()
        return kept[-1]

    async def sync(self) -> None:
        await call_js(_error, self._js.sync)

    async def get_current_bookmark(self) -> str:
        return str(await call_js(_error, self._js.getCurrentBookmark))

    async def get_bookmark_for_time(self, timestamp: datetime | float, /) -> str:
        return str(await call_js(_error, self._js.getBookmarkForTime, _time(timestamp)))

    async def on_next_session_restore_bookmark(self, bookmark: str, /) -> str:
        return str(await call_js(_error, self._js.onNextSessionRestoreBookmark, bookmark))

    @property
    def sql(self) -> WorkerdSqlStorage:
        return WorkerdSqlStorage(self._js.sql)

    @property
    def kv(self) -> WorkerdSyncKv:
        return WorkerdSyncKv(self._js.kv)


class WorkerdSyncKv(JsBacked, SyncKvStorage):
    def get(self, key: str, /) -> object:
        return from_js(_call(self._js.get, key))

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
        given = options(start=start, start_after=start_after, end=end, prefix=prefix, reverse=reverse, limit=limit)
        for entry in _call(self._js.list, **given):
            yield str(entry[0]), from_js(entry[1])

    def put(self, key: str, value: object, /) -> None:
        _call(self._js.put, key, _copied(value))

    def delete(self, key: str, /) -> bool:
        return bool(_call(self._js.delete, key))


class WorkerdSqlStorage(JsBacked, SqlStorage):
    @property
    def database_size(self) -> int:
        return int(self._js.databaseSize)

    def exec(self, query: str, /, *bindings: object) -> WorkerdSqlCursor:
        outgoing = [js_value(sql_binding(value)) for value in bindings]
        return WorkerdSqlCursor(_call(self._js.exec, query, *outgoing))


class WorkerdSqlCursor(JsBacked, SqlStorageCursor[R]):
    def __init__(self, js: object, read: Callable[[dict[str, object]], Any] = lambda row: row) -> None:
        super().__init__(js)
        self._read = read

    def as_(self, type_: TypeForm[T], /) -> WorkerdSqlCursor[T]:
        from core.validation.rows import structure_row

        return WorkerdSqlCursor(self._js, lambda row: structure_row(row, type_))

    @property
    def column_names(self) -> list[str]:
        return [str(name) for name in self._js.columnNames]

    @property
    def rows_read(self) -> int:
        return int(self._js.rowsRead)

    @property
    def rows_written(self) -> int:
        return int(self._js.rowsWritten)

    def __iter__(self) -> WorkerdSqlCursor[R]:
        return self

    def __next__(self) -> R:
        step = _call(self._js.next)
        if step.done:
            raise StopIteration
        return self._row(step.value)

    def to_array(self) -> list[R]:
        return [self._row(row) for row in _call(self._js.toArray)]

    def one(self) -> R:
        return self._row(_call(self._js.one))

    def _row(self, js: Any) -> R:
        row: R = self._read({str(entry[0]): _sql_cell(entry[1]) for entry in js.object_entries()})
        return row

    def raw(self) -> Iterator[list[Any]]:
        for row in _call(self._js.raw):
            yield [_sql_cell(value) for value in row]


def _copied(value: object) -> Any:
    try:
        return js_value(value)
    except BindingTypeError as error:
        raise DurableObjectTypeError(f"the value cannot be stored: {error}") from None


def _sql_cell(value: object) -> object:
    if is_null(value):
        return None
    return bytes_of(value) if isinstance(value, bridge().JsProxy) else value


# Arguments and errors -------------------------------------------------------------------------------------------------


def _keys(keys: Any) -> object:
    return keys if isinstance(keys, str) else bridge().to_js(list(keys))


def _time(time: datetime | float) -> float:
    if isinstance(time, datetime):
        return float(_copied(time).getTime())
    return time


def _call(method: object, *args: object, **given: object) -> Any:
    return call_now(_error, method, *args, **given)
