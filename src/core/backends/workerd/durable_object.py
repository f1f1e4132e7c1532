"""The runtime's own Durable Objects: namespaces and their stubs, and the state of an object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeForm, TypeVar, Unpack

from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    date_of,
    from_js,
    js_error,
    none_of,
    translated,
)
from core.backends.workerd.engine import JsBacked, JsEngine, JsMethod, js_attribute, js_call
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
from core.errors import DurableObjectError, DurableObjectTypeError
from core.http import Request, Response

if TYPE_CHECKING:
    from core.bindings.durable_object import WriteOptions

T = TypeVar("T")
R = TypeVar("R", default=dict[str, Any])


class _ObjectEngine(JsEngine):
    _errors = DurableObjectError


class WorkerdDurableObjectId(JsBacked, DurableObjectId):
    name: JsMethod = js_attribute("name", none_of)
    jurisdiction: JsMethod = js_attribute("jurisdiction", none_of)

    def __str__(self) -> str:
        return str(self._js.toString())

    def __repr__(self) -> str:
        return f"<DurableObjectId {self}>"

    def equals(self, other: DurableObjectId, /) -> bool:
        return str(self) == str(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerdDurableObjectId) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class WorkerdDurableObjectNamespace(_ObjectEngine, DurableObjectNamespace[Any]):
    def __init__(self, namespace: object, cls: object = None, hook: BoundHook | None = None) -> None:
        super().__init__(namespace, hook)
        self._cls = cls

    id_from_name: JsMethod = js_call(DurableObjectNamespace.id_from_name, WorkerdDurableObjectId)
    id_from_string: JsMethod = js_call(DurableObjectNamespace.id_from_string, WorkerdDurableObjectId)
    new_unique_id: JsMethod = js_call(DurableObjectNamespace.new_unique_id, WorkerdDurableObjectId)

    def get(self, id: object, *, location_hint: str | None = None) -> object:
        if not isinstance(id, WorkerdDurableObjectId):
            raise DurableObjectTypeError(
                f"get() takes an id, as id_from_name() and id_from_string() give them, not {type(id).__name__}"
            )
        try:
            self._js.idFromString(str(id))
        except bridge().JsException:
            raise DurableObjectTypeError("Durable Object ID is not valid for this namespace.") from None
        get = partial(self._now, "get", id._js, location_hint=location_hint)
        return WorkerdDurableObjectStub(get, self._cls, self._hook)

    def get_by_name(self, name: str, *, location_hint: str | None = None) -> object:
        return self.get(self.id_from_name(name), location_hint=location_hint)

    def jurisdiction(self, jurisdiction: str) -> WorkerdDurableObjectNamespace:
        return WorkerdDurableObjectNamespace(self._now("jurisdiction", jurisdiction), self._cls, self._hook)


class WorkerdDurableObjectStub(Hookable, DurableObjectStub):
    """A stub: `fetch`, `id`, `name`, and every method of the object under its own name.

    The runtime's stub is broken for good once its object was reset, so a new one is got after a call that failed.
    """

    def __init__(self, get: Callable[[], object], cls: object, hook: BoundHook | None) -> None:
        self._get = get
        self._cls = cls
        self._hook = hook
        self._current: Any = get()

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
        if self._current is None:
            self._current = self._get()
        return self._current

    async def _fetch(self, request: Request, /) -> Response:
        from core.backends.workerd.fetch import fetch_through

        try:
            return await fetch_through(self._stub(), request, DurableObjectError, parent_to_send())
        except Exception:
            self._current = None
            raise

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[object]]:
        if name.startswith("_") or not _may_be_called(self._cls, name):
            raise AttributeError(
                f"{getattr(self._cls, '__name__', 'the object')} has no public async method {name}. Only those can be "
                "called on a stub"
            )

        async def call(*args: object, **keywords: object) -> object:
            try:
                return await rpc_method(self._stub(), name, self._cls, DurableObjectError)(*args, **keywords)
            except Exception:
                self._current = None
                raise

        return call if self._hook is None else self._hook.around(name, call, self._call_target())


def _may_be_called(cls: object, name: str) -> bool:
    """Return True if a class has a method that a stub may call; anything may where the class is not known."""
    # `Any` is a class since Python 3.11.
    return cls is Any or not isinstance(cls, type) or getattr(cls, "_is_protocol", False) or can_be_called(cls, name)


# An object's own side -------------------------------------------------------------------------------------------------


class WorkerdDurableObjectState(_ObjectEngine, DurableObjectState):
    id: JsMethod = js_attribute("id", WorkerdDurableObjectId)
    storage: JsMethod = cached_property(lambda self: WorkerdStorage(self._js.storage))

    def wait_until(self, awaitable: Awaitable[object], /) -> None:
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        proxy = bridge().create_proxy(task)
        self._js.waitUntil(proxy)
        task.add_done_callback(lambda _: proxy.destroy())

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        across = bridge()
        # A promise of our own: a coroutine's error would reach the calls that it breaks as a traceback of Python's.
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
                raise translated(error, DurableObjectError) from None
            finally:
                proxy.destroy()
            return running[0].result()

        waiting = asyncio.ensure_future(wait())
        # Left unawaited, its error still resets the object; asyncio need not say so a second time.
        waiting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting

    def accept_web_socket(self, socket: DurableObjectWebSocket, tags: Sequence[str] = ()) -> None:
        from core.backends.workerd.object_socket import accept

        accept(self, socket, [*dict.fromkeys(tags)])

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        from core.backends.workerd.object_socket import WorkerdSocketCarrier, socket_of

        found = self._now("getWebSockets", *(() if tag is None else (tag,)))
        return [socket_of(socket) for socket in found if not WorkerdSocketCarrier(socket).is_closed]

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        return [str(tag) for tag in self._now("getTags", _js_socket(socket))]

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        cls = _ObjectEngine(bridge().js.WebSocketRequestResponsePair)
        given = () if pair is None else (cls._now("new", pair.request, pair.response),)
        self._now("setWebSocketAutoResponse", *given)

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        pair = self._now("getWebSocketAutoResponse")
        return None if pair is None else WebSocketRequestResponsePair(str(pair.request), str(pair.response))

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        at = self._now("getWebSocketAutoResponseTimestamp", _js_socket(socket))
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
    return carrier._js


class WorkerdSyncKv(_ObjectEngine, SyncKvStorage):
    get: JsMethod = js_call(SyncKvStorage.get)
    delete: JsMethod = js_call(SyncKvStorage.delete, bool)
    list: JsMethod = js_call(
        SyncKvStorage.list, lambda entries: ((str(entry[0]), from_js(entry[1])) for entry in entries)
    )

    def put(self, key: str, value: object, /) -> None:
        self._now("put", key, value)


class WorkerdSqlStorage(_ObjectEngine, SqlStorage):
    database_size: JsMethod = js_attribute("databaseSize", int)

    def exec(self, query: str, /, *bindings: object) -> WorkerdSqlCursor:
        return WorkerdSqlCursor(self._now("exec", query, *map(sql_binding, bindings)))


class WorkerdSqlCursor(_ObjectEngine, SqlStorageCursor[R]):
    column_names: JsMethod = js_attribute("columnNames", lambda names: [*map(str, names)])
    rows_read: JsMethod = js_attribute("rowsRead", int)
    rows_written: JsMethod = js_attribute("rowsWritten", int)

    def __init__(self, js: object, read: Callable[[dict[str, object]], Any] = lambda row: row) -> None:
        super().__init__(js)
        self._read = read

    def as_(self, type_: TypeForm[T], /) -> WorkerdSqlCursor[T]:
        from core.validation.rows import structure_row

        return WorkerdSqlCursor(self._js, lambda row: structure_row(row, type_))

    def __iter__(self) -> WorkerdSqlCursor[R]:
        return self

    def __next__(self) -> R:
        step = self._now("next")
        if step.done:
            raise StopIteration
        return self._row(step.value)

    def to_array(self) -> list[R]:
        return [self._row(row) for row in self._now("toArray")]

    def one(self) -> R:
        return self._row(self._now("one"))

    def _row(self, js: Any) -> R:
        row: R = self._read({str(entry[0]): _sql_cell(entry[1]) for entry in js.object_entries()})
        return row

    def raw(self) -> Iterator[list[Any]]:
        for row in self._now("raw"):
            yield [_sql_cell(value) for value in row]


def _sql_cell(value: object) -> object:
    found = none_of(value)
    return bytes_of(found) if isinstance(found, bridge().JsProxy) else found


@contextmanager
def _calling(run: Callable[..., object], errors: list[BaseException]) -> Generator[object]:
    """A proxy of a function, for JavaScript to call meanwhile. Its own error is raised: JavaScript makes another."""
    proxy = bridge().create_proxy(run)
    try:
        yield proxy
    except BaseException:
        if errors:
            raise errors[0] from None
        raise
    finally:
        proxy.destroy()


class _Operations(_ObjectEngine, StorageOperations):
    _get = js_call(StorageOperations.get)
    _list = js_call(StorageOperations.list)
    _delete = js_call(StorageOperations.delete)
    _get_alarm = js_call(StorageOperations.get_alarm, lambda at: None if at is None else int(at))
    _set_alarm = js_call(StorageOperations.set_alarm)
    _delete_alarm = js_call(StorageOperations.delete_alarm)

    async def _put(self, key: Any, value: object = ..., /, **given: Unpack[WriteOptions]) -> None:
        await self._call("put", *((key,) if value is ... else (key, value)), **given)


class WorkerdTransaction(_Operations, DurableObjectTransaction):
    rollback: JsMethod = js_call(DurableObjectTransaction.rollback)


class WorkerdStorage(_Operations, DurableObjectStorage):
    sql: JsMethod = js_attribute("sql", WorkerdSqlStorage)
    kv: JsMethod = js_attribute("kv", WorkerdSyncKv)
    _delete_all = js_call(DurableObjectStorage.delete_all)
    sync: JsMethod = js_call(DurableObjectStorage.sync)
    get_current_bookmark: JsMethod = js_call(DurableObjectStorage.get_current_bookmark, str)
    get_bookmark_for_time: JsMethod = js_call(DurableObjectStorage.get_bookmark_for_time, str)
    on_next_session_restore_bookmark: JsMethod = js_call(DurableObjectStorage.on_next_session_restore_bookmark, str)

    async def transaction(self, closure: Callable[[Any], Awaitable[T]], /) -> T:
        values: list[T] = []
        errors: list[BaseException] = []

        async def run(transaction: object) -> None:
            try:
                values.append(await closure(WorkerdTransaction(transaction)))
            except BaseException as error:
                errors.append(error)
                raise

        with _calling(run, errors) as proxy:
            await self._call("transaction", proxy)
        return values[-1]

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        values: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                values.append(closure())
            except BaseException as error:
                errors.append(error)
                raise

        with _calling(run, errors) as proxy:
            self._now("transactionSync", proxy)
        return values[-1]
