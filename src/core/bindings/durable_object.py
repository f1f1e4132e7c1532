"""Durable Objects: namespaces that give stubs, the members of an object, and the class to derive from.

A Durable Object is one instance per id in the whole world, with storage of its own, to which calls come one at a
time. A namespace gives stubs that are typed as the object's own class, so that a remote call is checked as a local
one would be. This file knows no engine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, overload, runtime_checkable

from typing_extensions import TypedDict, TypeForm, TypeVar, Unpack

from core.bindings import binding_call
from core.bindings.numbers import MAX_SAFE_INTEGER, TOO_LARGE
from core.errors import DurableObjectTypeError
from core.http.streams import well_formed
from core.values import frozen

if TYPE_CHECKING:
    from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
    from core.http import Request, Response

__all__ = [
    "AlarmInvocationInfo",
    "DurableObject",
    "DurableObjectId",
    "DurableObjectJurisdiction",
    "DurableObjectLocationHint",
    "DurableObjectNamespace",
    "DurableObjectState",
    "DurableObjectStorage",
    "DurableObjectStub",
    "DurableObjectTransaction",
    "SqlStorage",
    "SqlStorageCursor",
    "SqlStorageValue",
    "StorageOperations",
    "SyncKvStorage",
    "object_class",
    "sql_binding",
]

T = TypeVar("T")
Keys: TypeAlias = list[str]  # beside a method named list the class body cannot say it
E_co = TypeVar("E_co", covariant=True, default=Any)

DurableObjectJurisdiction: TypeAlias = Literal["eu", "fedramp", "fedramp-high", "us"]
"""The jurisdiction that an object must stay in."""

DurableObjectLocationHint: TypeAlias = Literal[
    "wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"
]
"""The region an object should live in. Only the very first `get` of an object can decide it."""

SqlStorageValue: TypeAlias = str | int | float | bytes | None
"""The value of a column of `storage.sql`."""

R = TypeVar("R", default=dict[str, SqlStorageValue])


def sql_binding(value: object) -> str | float | bytes | None:
    """A value as `storage.sql` binds it, wherever it runs: every number is a REAL, as in D1; True is 1 and False 0.

    NaN becomes NULL, as SQLite has it. Half a surrogate pair, which UTF-8 cannot say, becomes U+FFFD. Raises
    DurableObjectTypeError for whole numbers beyond 2**53 - 1 and for any other type.
    """
    given: Any = value  # not narrowed by what follows
    match value:
        case None | float() | bytes():
            return value
        case str():
            return well_formed(value)
        case int():
            if abs(value) > MAX_SAFE_INTEGER:
                raise DurableObjectTypeError(f"{value} {TOO_LARGE}")
            return float(value)
        case bytearray() | memoryview():
            return bytes(given)
        case _:
            raise DurableObjectTypeError(
                f"{type(value).__name__} cannot be bound. Bind None, bool, int, float, str or bytes"
            )


@runtime_checkable
class DurableObjectId(Protocol):
    """The id of one object: 64 hex digits, as `str()` gives them."""

    @property
    def name(self) -> str | None:
        """The name it was made from, when it was made with `id_from_name`."""
        ...

    @property
    def jurisdiction(self) -> DurableObjectJurisdiction | None:
        """The jurisdiction it was made for."""
        ...

    def equals(self, other: DurableObjectId, /) -> bool:
        """Return True if both name the same object; `==` says the same."""
        ...


@runtime_checkable
class DurableObjectStub(Protocol):
    """The stub of an object. The object's own `async` methods come on top: `await stub.increment(by=2)`.

    A call raises the method's error; a stub is good for any number of calls.
    """

    @property
    def id(self) -> DurableObjectId:
        """The object's id."""
        ...

    @property
    def name(self) -> str | None:
        """The object's name, when the stub was got by one."""
        ...

    @binding_call
    async def fetch(self, request: Request, /) -> Response:
        """Hand a request to the object's `fetch`."""
        raise AssertionError


T_co = TypeVar("T_co", covariant=True, default=DurableObjectStub)


@runtime_checkable
class DurableObjectNamespace(Protocol[T_co]):
    """The objects of one class. `T` is that class, or a Protocol of the methods that may be called on it.

        class Env(Bindings):
            COUNTERS: DurableObjectNamespace[Counter]

        count = await req.env.COUNTERS.get_by_name("visits").increment()

    Stubs are typed as `T`; only its `async` methods (and `fetch`, `id`, `name`) exist on a stub.
    """

    def id_from_name(self, name: str) -> DurableObjectId:
        """The id that belongs to `name`: always the same one."""
        ...

    def id_from_string(self, id: str) -> DurableObjectId:
        """The id that `str(id)` gave. Raises DurableObjectTypeError for anything but an id of this namespace."""
        ...

    def new_unique_id(self, *, jurisdiction: DurableObjectJurisdiction | None = None) -> DurableObjectId:
        """An id that no object has yet. Keep `str(id)`, there is no other way back to the object."""
        ...

    def get(self, id: DurableObjectId, *, location_hint: DurableObjectLocationHint | None = None) -> T_co:
        """The stub of an object, which comes into being with its first call.

        Raises DurableObjectTypeError for an id of another namespace.
        """
        ...

    def get_by_name(self, name: str, *, location_hint: DurableObjectLocationHint | None = None) -> T_co:
        """The stub of the object of that name."""
        ...

    def jurisdiction(self, jurisdiction: DurableObjectJurisdiction) -> DurableObjectNamespace[T_co]:
        """This namespace confined to a jurisdiction. Its names belong to other objects than here."""
        ...


@frozen
class AlarmInvocationInfo:
    """Why `alarm` is called: the number of failures before, and the time it was set for, in milliseconds since 1970."""

    retry_count: int
    is_retry: bool
    scheduled_time: int


if TYPE_CHECKING:

    class ReadOptions(TypedDict, total=False):
        """The options of a read of storage."""

        allow_concurrency: bool
        no_cache: bool

    class WriteOptions(ReadOptions, total=False):
        """The options of a write of storage."""

        allow_unconfirmed: bool


class StorageOperations(Protocol):
    """Reads, writes and the alarm: the same inside a transaction and outside one."""

    @overload
    async def get(self, key: str, /, **options: Unpack[ReadOptions]) -> Any: ...
    @overload
    async def get(self, keys: Keys, /, **options: Unpack[ReadOptions]) -> dict[str, Any]: ...
    @binding_call
    async def get(self, keys: Any, /, *, allow_concurrency: bool = False, no_cache: bool = False) -> Any:
        """The value under a key or None; of a list of at most 128 keys a dict, sorted, of those that are there."""
        raise AssertionError

    @binding_call
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
        """The values from `start` (or after `start_after`) up to, not with, `end`, in the order of UTF-8 bytes.

        Raises DurableObjectTypeError for `start` beside `start_after`, and for a `limit` below 1.
        """
        raise AssertionError

    @overload
    async def put(self, key: str, value: Any, /, **options: Unpack[WriteOptions]) -> None: ...
    @overload
    async def put(self, entries: Mapping[str, Any], /, **options: Unpack[WriteOptions]) -> None: ...
    @binding_call
    async def put(
        self,
        key: Any,
        value: Any = ...,
        /,
        *,
        allow_concurrency: bool = False,
        allow_unconfirmed: bool = False,
        no_cache: bool = False,
    ) -> None:
        """Store a value, or at most 128 at once.

        Keys are at most 2048 bytes, keys and values together 2 000 000. Values are None, bool, int, float, str, bytes,
        datetime, and lists, dicts and sets of them: copies of the given values, never the same object. What is stored
        has no class: an attrs instance comes back as the dict of its fields, and a tuple as a list.
        """
        raise AssertionError

    @overload
    async def delete(self, key: str, /, **options: Unpack[WriteOptions]) -> bool: ...
    @overload
    async def delete(self, keys: Keys, /, **options: Unpack[WriteOptions]) -> int: ...
    @binding_call
    async def delete(
        self, keys: Any, /, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False, no_cache: bool = False
    ) -> Any:
        """Delete a key and say whether it was there, or at most 128 keys and say how many were."""
        raise AssertionError

    @binding_call
    async def get_alarm(self, *, allow_concurrency: bool = False) -> int | None:
        """Return the time of the alarm, in milliseconds since 1970, or None.

        While `alarm` runs, None unless set again.
        """
        raise AssertionError

    @binding_call
    async def set_alarm(
        self, scheduled_time: datetime | float, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False
    ) -> None:
        """Have `alarm` called at a time (a number is milliseconds since 1970); one in the past means now.

        An object has one alarm: a second call moves it. `alarm` is called at least once; when it raises, it is
        called again after 2, 4, 8, 16, 32 and 64 seconds. Raises DurableObjectTypeError for a time of 0 or below.
        """
        raise AssertionError

    @binding_call
    async def delete_alarm(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        """Take the alarm back. Inside `alarm` it also stops the retries."""
        raise AssertionError


class DurableObjectTransaction(StorageOperations, Protocol):
    """The storage of an object inside `transaction`. All of it is kept, or none."""

    def rollback(self) -> None:
        """Undo the transaction. Nothing else can be done with it after that."""
        ...


@runtime_checkable
class SyncKvStorage(Protocol):
    """The keys and values of `storage`, without waiting."""

    def get(self, key: str, /) -> Any:
        """The value under `key`, or None."""
        ...

    def list(
        self,
        *,
        start: str | None = None,
        start_after: str | None = None,
        end: str | None = None,
        prefix: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterable[tuple[str, Any]]:
        """Keys and values, as `DurableObjectStorage.list` orders them."""
        ...

    def put(self, key: str, value: Any, /) -> None:
        """Store a value."""
        ...

    def delete(self, key: str, /) -> bool:
        """Delete a key and say whether it was there."""
        ...


@runtime_checkable
class SqlStorageCursor(Protocol[R]):
    """The rows of one `exec`: dicts, or what `as_` names. Iterating goes on where it stopped; it cannot go back."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        ...

    @property
    def rows_read(self) -> int:
        """Rows read so far."""
        ...

    @property
    def rows_written(self) -> int:
        """Rows written."""
        ...

    def as_(self, type_: TypeForm[T], /) -> SqlStorageCursor[T]:
        """The same rows, from the next one on, each as a `T`.

            for message in self.ctx.storage.sql.exec("SELECT id, text FROM messages").as_(Message):
                ...

        A row that is no `T` raises a StructureError with its mistakes.
        """
        ...

    def __iter__(self) -> Iterator[R]:
        """The rows that were not read yet."""
        ...

    def __next__(self) -> R:
        """The next row."""
        ...

    def to_array(self) -> list[R]:
        """All rows that were not read yet."""
        ...

    def one(self) -> R:
        """The only row. Raises DurableObjectError when there is none, or more than one."""
        ...

    def raw(self) -> Iterator[list[SqlStorageValue]]:
        """The rows that were not read yet, as lists of values."""
        ...


@runtime_checkable
class SqlStorage(Protocol):
    """The object's own SQL database."""

    @property
    def database_size(self) -> int:
        """Its size in bytes."""
        ...

    def exec(self, query: str, /, *bindings: SqlStorageValue) -> SqlStorageCursor:
        """Run one or more statements; the bindings are those of the last one, whose rows come back.

        One that fails is undone; those before it in the same text stay done. Numbers are bound as REAL, as D1 binds
        them: `? / ?` of 7 and 2 is 3.5, and a TEXT column makes `"5.0"` of 5; write `CAST(? AS INTEGER)` or bind a str
        where that matters. True is 1 and False 0, NaN is NULL. Raises DurableObjectTypeError for a whole number beyond
        2**53 - 1 and for other types.

        Transactions are begun with `transaction` and `transaction_sync`, never with SQL. Raises DurableObjectError with
        SQLite's message.
        """
        ...


@runtime_checkable
class DurableObjectStorage(StorageOperations, Protocol):
    """The storage of one object: keys and values in order, a SQL database, and one alarm.

    Writes that are made without an `await` between them are kept together or not at all. Writes are seen
    at once; an answer is sent only after the writes it was based on are safe. Where it cannot be kept (the disk is
    full, a deferred constraint is violated), calls that are running fail with DurableObjectError whatever they answer,
    and the next call makes the object anew from the data kept before.
    """

    @binding_call
    async def delete_all(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        """Delete all keys, the whole SQL database and the alarm."""
        raise AssertionError

    async def transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]], /) -> T:
        """Run `closure` with all it does kept or undone as one. An error that it raises undoes all, and is raised.

        Nothing else reaches the object meanwhile.
        """
        ...

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        """The same for a `closure` that waits for nothing."""
        ...

    async def sync(self) -> None:
        """Return when all that was written so far is safe."""
        ...

    async def get_current_bookmark(self) -> str:
        """A mark of the present state, to come back to."""
        ...

    async def get_bookmark_for_time(self, timestamp: datetime | float, /) -> str:
        """A mark of the state at a time of the last 30 days (a number is milliseconds since 1970)."""
        ...

    async def on_next_session_restore_bookmark(self, bookmark: str, /) -> str:
        """Come back to a mark when the object starts next. Gives a mark to undo that with."""
        ...

    @property
    def sql(self) -> SqlStorage:
        """The SQL database."""
        ...

    @property
    def kv(self) -> SyncKvStorage:
        """The keys and values, without waiting."""
        ...


@runtime_checkable
class DurableObjectState(Protocol):
    """The state of one object: its id, its storage, and the order of its events."""

    @property
    def id(self) -> DurableObjectId:
        """The object's id."""
        ...

    @property
    def storage(self) -> DurableObjectStorage:
        """The object's storage."""
        ...

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Let `awaitable` run on. An object lives on while it waits for anything; this is for likeness with `ctx`."""
        ...

    def block_concurrency_while(self, callback: Callable[[], Awaitable[T]], /) -> Awaitable[T]:
        """Run `callback` with no other call reaching the object, for up to 30 seconds.

        It begins at once and may be left unawaited, in `__init__` for one: every call waits until it has ended.
        What it raises resets the object: calls that are running fail with DurableObjectError, and what it wrote since
        it last waited for anything but its storage is undone. Use `storage.transaction` to undo all of it.
        """
        ...

    def accept_web_socket(self, socket: DurableObjectWebSocket, tags: Sequence[str] = ()) -> None:
        """Accept the object's end of a WebSocket: its events come to `web_socket_message`, `_close` and `_error`.

            client, server = web_socket_pair()
            self.ctx.accept_web_socket(server, ["member"])
            return Response.websocket(client)

        The connection stays open while the object is evicted, and a message makes the object anew. It ends with the
        process, and with `abort`. `tags`: at most 10 of at most 256 characters each, to find it again by. An object has
        at most 32 768 WebSockets.

        Raises DurableObjectError for more of any, and for a WebSocket that was accepted already.
        """
        ...

    def get_web_sockets(self, tag: str | None = None) -> list[DurableObjectWebSocket]:
        """Return the WebSockets that the object has not closed, those with `tag` where one is given, in any order.

        While `web_socket_close` runs, the one that its client closes is still among them.
        """
        ...

    def get_tags(self, socket: DurableObjectWebSocket, /) -> list[str]:
        """Return the tags that a WebSocket was accepted with."""
        ...

    def set_web_socket_auto_response(self, pair: WebSocketRequestResponsePair | None = None, /) -> None:
        """Answer every message that is `pair.request` with `pair.response`, on all WebSockets, without waking the
        object.

        None ends it. Raises DurableObjectError for texts of more than 2048 characters.
        """
        ...

    def get_web_socket_auto_response(self) -> WebSocketRequestResponsePair | None:
        """Return the pair that `set_web_socket_auto_response` has set, or None."""
        ...

    def get_web_socket_auto_response_timestamp(self, socket: DurableObjectWebSocket, /) -> datetime | None:
        """Return when a WebSocket last got an automatic answer, in UTC; None if it never did."""
        ...

    def abort(self, reason: str | None = None) -> None:
        """Reset the object: calls that are running fail, the next one makes it anew from its storage.

        Its WebSockets are lost: their clients see 1006. It does not return, and catching its exception changes nothing:
        the call's answer is DurableObjectError.
        """
        ...


class DurableObject(Generic[E_co]):
    """The class that Durable Objects derive from. A stub can call its public `async` methods.

        class Counter(DurableObject[Env]):
            async def increment(self, by: int = 1) -> int:
                count = (await self.ctx.storage.get("count") or 0) + by
                await self.ctx.storage.put("count", count)
                return count

    `ctx` and `env` are there when `__init__` runs, too. Values go in and out as copies, as they would between
    machines: None, bool, int, float, str, bytes, datetime, attrs classes, and lists, dicts and sets of them.
    """

    ctx: DurableObjectState
    env: E_co

    def __init__(self, ctx: DurableObjectState, env: E_co) -> None:
        self.ctx = ctx
        self.env = env

    @property
    def id(self) -> DurableObjectId:
        """The object's id; a stub has it, too."""
        return self.ctx.id

    @property
    def name(self) -> str | None:
        """The object's name, when it has one; a stub has it, too."""
        return self.ctx.id.name

    async def fetch(self, request: Request, /) -> Response:
        """Answer a request that was given to the stub's `fetch`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no fetch. Write async def fetch(self, request) to answer requests, "
            "or call one of its methods on the stub"
        )

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        """Do the work that the alarm was set for."""
        raise NotImplementedError(
            f"{type(self).__name__} has no alarm. Write async def alarm(self, info) before calling set_alarm"
        )

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes, /) -> None:
        """Take a message of a WebSocket that `ctx.accept_web_socket` accepted.

        Messages are taken in their order. While one waits for anything but storage, the next may be taken: what has to
        be sent in order is sent before. An error that it raises is logged, and the WebSocket stays open.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no web_socket_message. Write async def web_socket_message(self, socket, message) "
            "before accepting WebSockets"
        )

    async def web_socket_close(
        self, socket: DurableObjectWebSocket, code: int, reason: str, was_clean: bool, /
    ) -> None:
        """Act on the close of a WebSocket, whoever began it.
        `code` is 1006, and `was_clean` False, for a lost connection.

        The object's half of closing is done when this returns. Without it nothing more happens.
        """

    async def web_socket_error(self, socket: DurableObjectWebSocket, error: Exception, /) -> None:
        """Learn that a WebSocket failed otherwise than by losing its connection."""


def can_be_called(cls: type, method: str) -> bool:
    """Return True if a class has a method that a stub may call: those of the base class are for the runtime to call."""
    import inspect

    public = not method.startswith("_") and not hasattr(DurableObject, method)
    return public and inspect.iscoroutinefunction(getattr(cls, method, None))


def object_class(value: object) -> type[DurableObject[Any]] | None:
    """The application's class of Durable Objects that a name of the main module stands for, or None.

    `Counter = durable_object(Counter, Env)` puts the hosted platform's class under the name that the configuration has;
    every other place takes the application's own, which that class keeps.
    """
    own: object = vars(value).get("__core_class__", value) if isinstance(value, type) else None
    whole: Any = own  # narrowed, it would be a class of objects whose Env nobody knows
    if not isinstance(own, type) or not issubclass(own, DurableObject) or own is DurableObject:
        return None
    found: type[DurableObject[Any]] = whole
    return found
