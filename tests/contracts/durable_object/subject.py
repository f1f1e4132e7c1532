"""The object that the cases call: a worker under test has to have this class, the same for every implementation."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from functools import wraps
from typing import Any, TypeVar, cast

import attrs
from tests.contracts.contract import Contract, MovingClock

from core.bindings.durable_object import (
    AlarmInvocationInfo,
    DurableObject,
    DurableObjectNamespace,
    DurableObjectState,
    DurableObjectTransaction,
)
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair, web_socket_pair
from core.errors import CoreError
from core.http import Request, Response
from core.http.escapes import parse_query
from core.http.websocket import WebSocketClosed

T = TypeVar("T")


@attrs.frozen
class Point:
    """A value that goes in and out of a typed call."""

    x: int
    tags: tuple[str, ...] = ()


@attrs.frozen
class Pair:
    """A row of `sql`."""

    a: int
    b: str | None = None


class Colour(Enum):
    """A value that has a name of its own."""

    RED = "red"


class Word(StrEnum):
    """A text that has a class of its own."""

    HI = "hi"


class Level(IntEnum):
    """A number that has a class of its own."""

    LOW = 1


class OutOfStock(Exception):
    """An error that is made of more than a message."""

    def __init__(self, item: str, *, left: int) -> None:
        super().__init__(f"{left} of {item}")
        self.item = item
        self.left = left


class Unsayable(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise LookupError("in the text")


class Subject(DurableObject[Any]):
    """The object that the cases call."""

    def __init__(self, ctx: DurableObjectState, env: Any) -> None:
        super().__init__(ctx, env)
        self.loaded: Any = None
        self.running = 0
        self.most_running = 0
        if ctx.storage.kv.get("fails") == "constructor":
            raise LookupError("in the constructor")
        ctx.block_concurrency_while(self.load)

    async def load(self) -> None:
        """Read something before anything else happens."""
        await asyncio.sleep(0)
        if await self.ctx.storage.get("fails") == "section":
            raise LookupError("in the section")
        self.loaded = await self.ctx.storage.get("loaded") or "nothing"

    async def get_loaded(self) -> Any:
        """Return the value that `load` read."""
        return self.loaded

    async def increment(self, by: int = 1) -> int:
        """Count, with nothing but storage in between."""
        count = (await self.ctx.storage.get("count") or 0) + by
        await self.ctx.storage.put("count", count)
        return cast("int", count)

    async def alone(self) -> int:
        """Be in a critical section, and say how many were at most."""

        async def section() -> None:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.running -= 1

        await self.ctx.block_concurrency_while(section)
        return self.most_running

    async def move(self, point: Point, *, by: int) -> Point:
        """A call with types of its own."""
        return Point(point.x + by, (*point.tags, "moved"))

    async def keep(self, values: list[int]) -> int:
        """Change the argument."""
        values.append(0)
        return len(values)

    async def put_and_fail(self, key: str, value: Any) -> None:
        """Write, and raise."""
        await self.ctx.storage.put(key, value)
        raise LookupError("after the put")

    async def give_object(self) -> object:
        """Return a value that cannot be copied."""
        return object()

    async def refuse(self, *, client: bool) -> None:
        """Raise an answer to the client, or an error of the application's own."""
        if client:
            raise CoreError(409, "taken", headers={"Retry-After": "1"}, by=["me"])
        raise OutOfStock("tea", left=2)

    async def raise_key_error(self) -> None:
        """Raise an error whose words are not its argument."""
        raise KeyError("k")

    async def fail_without_words(self) -> None:
        """Raise an error that has no text."""
        raise Unsayable

    async def put(self, key: Any, *value: Any) -> None:
        """Call `put` of storage."""
        await self.ctx.storage.put(key, *value)

    async def store(self, value: Any) -> None:
        """Store a value that only the object has: `value` within its own list."""
        await self.ctx.storage.put("k", [value])

    async def store_colour(self) -> None:
        """Store a value that could not come with a call."""
        await self.ctx.storage.put("k", Colour.RED)

    async def echo(self, value: Any) -> Any:
        """The same again."""
        return value

    async def get(self, key: Any) -> Any:
        """Call `get` of storage."""
        return await self.ctx.storage.get(key)

    async def remove(self, key: Any) -> Any:
        """Call `delete` of storage."""
        return await self.ctx.storage.delete(key)

    async def listed(self, **options: Any) -> list[str]:
        """The keys of storage's `list`."""
        return [*(await self.ctx.storage.list(**options))]

    async def wipe(self) -> None:
        """Call `delete_all` of storage, once the clients that left are gone: each close is noted there."""
        for _ in range(1000):
            if not self.ctx.get_web_sockets():
                break
            await asyncio.sleep(0.001)
        await self.ctx.storage.delete_all()

    async def kv(self) -> Any:
        """The keys and values without waiting."""
        kv = self.ctx.storage.kv
        kv.put("b", 2)
        kv.put("a", 1)
        assert kv.get("a") == 1
        assert kv.get("nope") is None
        assert kv.delete("a") is True
        assert kv.delete("a") is False
        return [list(pair) for pair in kv.list()]

    async def transact(self, how: str) -> Any:
        """A transaction that ends well, fails or is rolled back."""

        async def body(txn: DurableObjectTransaction) -> str:
            await txn.put({"a": how, "b": how})
            assert await txn.get("a") == how
            await asyncio.sleep(0)
            await txn.delete("gone")
            if how == "fail":
                raise LookupError("in the transaction")
            if how == "rollback":
                txn.rollback()
            return how

        return await self.ctx.storage.transaction(body)

    async def transact_sync(self, how: str) -> str:
        """A transaction that waits for nothing."""

        def body() -> str:
            self.ctx.storage.kv.put("a", how)
            if how == "fail":
                raise LookupError("in the transaction")
            return how

        return self.ctx.storage.transaction_sync(body)

    async def use_late(self) -> None:
        """A transaction's handle after its end."""
        kept: list[DurableObjectTransaction] = []

        async def body(txn: DurableObjectTransaction) -> None:
            kept.append(txn)

        await self.ctx.storage.transaction(body)
        await kept[0].put("late", 1)

    async def sql(self, query: str, *bindings: Any) -> Any:
        """The rows of one `exec`."""
        return self.ctx.storage.sql.exec(query, *bindings).to_array()

    async def sql_one(self, query: str) -> Any:
        """The only row."""
        return self.ctx.storage.sql.exec(query).one()

    async def sql_cursor(self) -> Any:
        """Return the other facts of a cursor."""
        sql = self.ctx.storage.sql
        sql.exec("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        cursor = sql.exec("SELECT a, b FROM t ORDER BY a")
        assert cursor.column_names == ["a", "b"]
        assert next(cursor) == {"a": 1, "b": "x"}
        assert [*cursor.raw()] == [[2, "y"]]
        assert cursor.to_array() == []
        assert sql.database_size > 0
        return cursor.rows_read

    async def sql_typed(self, query: str, *bindings: Any) -> list[Pair]:
        """The rows of one `exec` as a class: one by one, then the rest."""
        cursor = self.ctx.storage.sql.exec(query, *bindings)
        typed = cursor.as_(Pair)
        assert typed.column_names == cursor.column_names
        return [next(typed), *typed.to_array(), *cursor]

    async def sql_typed_one(self, query: str) -> Pair:
        """The only row as a class."""
        return self.ctx.storage.sql.exec(query).as_(Pair).one()

    async def sql_transaction(self) -> Any:
        """SQL and values in one transaction that fails."""

        async def body(txn: DurableObjectTransaction) -> None:
            self.ctx.storage.sql.exec("INSERT INTO t VALUES (99, 'no')")
            await txn.put("k", "no")
            raise LookupError("in the transaction")

        with contextlib.suppress(LookupError):
            await self.ctx.storage.transaction(body)
        count = self.ctx.storage.sql.exec("SELECT count(*) AS n FROM t WHERE a = 99").one()
        return [count["n"], await self.ctx.storage.get("k")]

    async def arm(self, milliseconds: float) -> None:
        """Set the alarm."""
        await self.ctx.storage.set_alarm(milliseconds)

    async def arm_at(self, when: datetime) -> None:
        """Set the alarm by a datetime."""
        await self.ctx.storage.set_alarm(when)

    async def armed(self) -> int | None:
        """Return the time of the alarm."""
        return await self.ctx.storage.get_alarm()

    async def disarm(self) -> None:
        """Take the alarm back."""
        await self.ctx.storage.delete_alarm()

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        """Note that it went off, fail as often as was asked for, and set it again if that was asked for."""
        rings: list[Any] = await self.ctx.storage.get("rings") or []
        inside = await self.ctx.storage.get_alarm()
        await self.ctx.storage.put("rings", [*rings, [info.retry_count, info.is_retry, inside]])
        failures = await self.ctx.storage.get("failures") or 0
        if failures:
            await self.ctx.storage.put("failures", failures - 1)
            raise LookupError("in the alarm")
        again = await self.ctx.storage.get("again")
        if again is not None:
            await self.ctx.storage.delete("again")
            await self.ctx.storage.set_alarm(again)

    async def rings(self) -> Any:
        """Return the calls that `alarm` noted."""
        return await self.ctx.storage.get("rings") or []

    async def abort(self) -> None:
        """Reset the object."""
        await self.ctx.storage.put("before", 1)
        self.ctx.abort("because")

    async def collect(self) -> int:
        """Collect garbage as Python does by itself: it walks through the frames of what runs. How much it found."""
        return gc.collect(1)

    async def abort_and_go_on(self) -> str:
        """Reset the object, and take no notice of it."""
        with contextlib.suppress(BaseException):
            self.ctx.abort("because")
        with contextlib.suppress(BaseException):
            self.ctx.storage.kv.put("after", 1)
        return "went on"

    async def fail_in_section(self, key: str, *, caught: bool) -> str:
        """Fail in a critical section, and perhaps take no notice of it."""

        async def section() -> None:
            await self.ctx.storage.put(key, "in the section")
            raise LookupError("in the section")

        try:
            await self.ctx.block_concurrency_while(section)
        except BaseException:
            if not caught:
                raise
        return "went on"

    async def violate(self, key: str, *, pause: bool) -> str:
        """Write a value that cannot be kept, and report that it was."""
        await self.ctx.storage.put(key, 1)
        self.ctx.storage.sql.exec("INSERT INTO child VALUES (99)")
        if pause:
            with contextlib.suppress(BaseException):
                await asyncio.sleep(0.01)
        return "stored"

    async def violate_in_transaction(self, key: str) -> str:
        """The same in a transaction."""

        async def body(txn: DurableObjectTransaction) -> None:
            await txn.put(key, 1)
            self.ctx.storage.sql.exec("INSERT INTO child VALUES (99)")

        with contextlib.suppress(BaseException):
            await self.ctx.storage.transaction(body)
        return "stored"

    async def get_most_running(self) -> int:
        """Return a count that exists only in memory."""
        return self.most_running

    async def fetch(self, request: Request, /) -> Response:
        """Open a WebSocket where one is asked for; else answer with the request."""
        if request.headers.get("upgrade") == "websocket":
            return self.open_socket(dict(parse_query(request.url.partition("?")[2])))
        return Response(f"{request.method} {request.url} {await request.text()}", status=201)

    def open_socket(self, asked: dict[str, str]) -> Response:
        """Accept a WebSocket under the tags that were asked for."""
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(server, [tag for tag in asked.get("tags", "").split(",") if tag])
        server.serialize_attachment({"name": asked.get("name")})
        if "welcome" in asked:
            server.send(asked["welcome"])
        return Response.websocket(client, headers={"Sec-WebSocket-Protocol": "chat"})

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes, /) -> None:
        """Act on the message: each case has its own."""
        if isinstance(message, bytes):
            socket.send(b"bytes:" + message)
            return
        verb, _, rest = message.partition(":")
        match verb:
            case "all":
                for member in self.ctx.get_web_sockets():
                    member.send(f"{socket.deserialize_attachment()['name']}: {rest}")
            case "tagged":
                tag, _, text = rest.partition(":")
                for member in self.ctx.get_web_sockets(tag):
                    member.send(text)
            case "tags":
                socket.send(",".join(self.ctx.get_tags(socket)))
            case "same":
                socket.send(str([socket == member and socket is member for member in self.ctx.get_web_sockets()]))
            case "keep":
                socket.serialize_attachment({"name": rest})
            case "attach":
                socket.serialize_attachment("x" * int(rest))
            case "close":
                socket.close(int(rest), "as asked")
                socket.close(1000)
                try:
                    socket.send("after the close")
                except WebSocketClosed:
                    await self.ctx.storage.put("refused", len(self.ctx.get_web_sockets()))
            case "automatic":
                pair = WebSocketRequestResponsePair("ping", rest) if rest else None
                self.ctx.set_web_socket_auto_response(pair)
                assert self.ctx.get_web_socket_auto_response() == pair
            case "answered":
                at = self.ctx.get_web_socket_auto_response_timestamp(socket)
                socket.send("never" if at is None else f"in {'UTC' if at.tzinfo is UTC else at.tzinfo}")
            case "abort":
                self.ctx.abort("because")
            case "wait":
                await asyncio.sleep(0.01)
                socket.send(rest)
            case _:
                raise LookupError(message)

    async def web_socket_close(
        self, socket: DurableObjectWebSocket, code: int, reason: str, was_clean: bool, /
    ) -> None:
        """Note the close, and say it to the others."""
        closes: list[object] = await self.ctx.storage.get("closes") or []
        members = self.ctx.get_web_sockets()
        await self.ctx.storage.put("closes", [*closes, [code, reason, was_clean, socket in members]])
        for member in members:
            member.send(f"{socket.deserialize_attachment()['name']} left")

    async def accept_twice(self) -> None:
        """Accept one WebSocket two times."""
        _, server = web_socket_pair()
        self.ctx.accept_web_socket(server)
        self.ctx.accept_web_socket(server)

    async def accept_under(self, tags: list[str]) -> None:
        """Accept a WebSocket under tags."""
        self.ctx.accept_web_socket(web_socket_pair()[1], tags)

    async def forget_to_accept(self) -> None:
        """Answer with a WebSocket that nobody accepted."""
        Response.websocket(web_socket_pair()[0])

    async def count_sockets(self, tag: str | None = None) -> int:
        """Return how many WebSockets there are."""
        return len(self.ctx.get_web_sockets(tag))

    def local(self) -> str:
        """Not async, so not for a stub."""
        return "local"

    async def _private(self) -> str:
        return "private"


async def clean(namespace: DurableObjectNamespace[Subject]) -> None:
    """Empty the objects that the cases use, and close their WebSockets."""
    await namespace.get_by_name("one").wipe()
    await namespace.get_by_name("two").wipe()


contract: Contract[DurableObjectNamespace[Subject]] = Contract("durable_object", clean)
Subjects = DurableObjectNamespace[Subject]


def case(*, timed: bool = False) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Add the decorated function to the contract, as a case of the object `one` alone: `(one)`, `(one, clock)`."""

    def add(body: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @wraps(body)
        async def of_one(subjects: Subjects, *clock: MovingClock) -> None:
            await body(subjects.get_by_name("one"), *clock)

        return contract.case(timed=timed)(of_one)

    return add
