"""The stores that count for rate limits: four behind one protocol.

Each decides how exact it is. `KVStore` is the specification's: cheap, shared by all datacenters, and
late by up to a minute. `DurableObjectStore` is exact, at the price of one hop to the object.
`PlatformStore` asks the platform's own limiter, which gives no counts. `MemoryStore` counts in this
process alone. The over-use that each lets through is measured in `benchmarks/rate_limit.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol

import attrs
from typing_extensions import TypeVar

from core.bindings.kv import KVNamespace
from core.middleware import options
from core.middleware.memory import Memory

__all__ = ["DurableObjectStore", "Hit", "KVStore", "MemoryStore", "PlatformStore", "RateLimitStore", "Taken"]

E = TypeVar("E", default=Any)

# How many clients one isolate remembers. The oldest go first; their counts in KV stay.
_MOST_COUNTERS = 10_000


@attrs.define(eq=False)
class Hit:
    """One request that asks to be let through."""

    key: str
    """The counter: policy and client, without the window. At most 256 characters."""
    cost: int
    """The units it takes from the limit; mostly 1."""
    limit: int
    """The units per window."""
    window: int
    """The window, in seconds."""
    start: int
    """The start of the current window, in seconds since 1970; a multiple of `window`."""
    now: float
    """The time, in seconds since 1970."""
    req: Any
    """The request, for its bindings."""
    after: Callable[[Callable[[], Awaitable[None]]], None]
    """Lets work run through `ctx.wait_until` once the response was sent."""
    known: int | None = 0
    """The units used in the window as far as the store knows without asking anyone, for the headers while it fails; a
    store sets it before it raises. None for one that gives no counts.
    """


@attrs.frozen(eq=False)
class Taken:
    """A store's answer: whether a request is let through, and how much of the window is used.

    `used` counts this request too where it was let through; None where the store cannot tell.
    """

    allowed: bool
    used: int | None


class RateLimitStore(Protocol):
    """Counts requests per key in fixed windows.

    A request that is refused must change nothing. An error that `take` raises is a failure of the store:
    `rate_limit(on_store_error=…)` decides then.
    """

    async def take(self, hit: Hit, /) -> Taken:
        """Let a request through, and count it, or refuse it."""
        ...


class MemoryStore(Memory):
    """Counts in this process: exact within it, unknown to every other isolate.

    For tests, a single process, and limits that protect this process alone. It keeps at most `most_keys` clients and
    forgets the longest unseen first.
    """

    def __init__(self, *, most_keys: int = _MOST_COUNTERS) -> None:
        super().__init__()
        self._most = options.integer("MemoryStore", "most_keys", most_keys, least=1)

    def clear(self) -> None:
        """Count from the beginning."""
        self._counts: dict[str, tuple[int, int]] = {}
        """The newest window of each key, and how much of it is used."""

    async def take(self, hit: Hit, /) -> Taken:
        """Count, if there is room."""
        start, used = self._counts.get(hit.key, (hit.start, 0))
        if start != hit.start:
            used = 0
        if used + hit.cost > hit.limit:
            return Taken(False, used)
        used += hit.cost
        self._counts.pop(hit.key, None)  # to the end of the line: the front is who was not seen for the longest
        self._counts[hit.key] = (hit.start, used)
        if len(self._counts) > self._most:
            del self._counts[next(iter(self._counts))]
        return Taken(True, used)


@attrs.define(eq=False)
class _Count:
    """This isolate's count of one client's window: what is in KV, what is on its way, and what is not sent yet."""

    kv: KVNamespace
    start: int
    known: int = 0
    on_its_way: int = 0
    pending: int = 0
    writing: bool = False

    def total(self) -> int:
        # The pending part is in nobody's count yet, so it comes on top of the count in KV.
        return max(self.known, self.on_its_way) + self.pending


class KVStore(Generic[E]):
    """Counts in a key-value namespace, as the specification says, merged with the count of this isolate.

    Real KV takes one write a second per key, and other datacenters read a value up to 60 seconds old. So clients of
    one isolate cannot pass the limit, but a client whose requests are spread over n isolates or datacenters may pass
    it up to n times within a window, and a window below a minute says little. Where that matters use
    `DurableObjectStore`.

    `binding` is the namespace's name on `Env`, or a function of the request. A counter's key holds the policy, the
    window's start and the client; it expires after the window, at least 60 seconds from the last write, which is the
    least that KV keeps a key.
    """

    def __init__(self, binding: str | Callable[[Any], KVNamespace]) -> None:
        self.binding = binding
        # By namespace too: one application may be served over several, as tests do.
        self._counts: dict[tuple[int, str], _Count] = {}

    async def take(self, hit: Hit, /) -> Taken:
        """Read, decide, and write the count after the response."""
        kv: KVNamespace = options.resolve("rate_limit", self.binding, hit.req)
        policy, _, client = hit.key.partition("|")
        name = f"ratelimit|{policy}|{hit.start}|{client}"
        try:
            stored = _count_of(await kv.get(name))
        except Exception:
            hit.known = self._count(kv, hit).total()
            raise
        # From here to the return nothing is awaited, so requests at the same time each see the count of the last one.
        count = self._count(kv, hit)
        count.known = max(count.known, stored)
        used = count.total()
        if used + hit.cost > hit.limit:
            return Taken(False, used)
        count.pending += hit.cost
        # KV refuses a shorter life than 60 seconds.
        ttl = max(60, hit.start + hit.window - int(hit.now))

        async def write() -> None:
            # One write carries all that is pending, since KV takes but one a second: who comes second has nothing to
            # do.
            if count.writing:
                return
            count.writing = True
            try:
                while count.pending:
                    carried, count.on_its_way, count.pending = count.pending, count.total(), 0
                    try:
                        await kv.put(name, str(count.on_its_way), expiration_ttl=ttl)
                    except BaseException:
                        count.pending += carried
                        count.on_its_way = 0
                        raise
                    count.known = max(count.known, count.on_its_way)
            finally:
                count.writing = False

        hit.after(write)
        return Taken(True, used + hit.cost)

    def _count(self, kv: KVNamespace, hit: Hit) -> _Count:
        counts, key = self._counts, (id(kv), hit.key)
        count = counts.pop(key, None)
        if count is None or count.kv is not kv or count.start != hit.start:
            count = _Count(kv, hit.start)
        counts[key] = count  # to the end of the line: the front is who was not seen for the longest
        if len(counts) > _MOST_COUNTERS:
            del counts[next(iter(counts))]
        return count


def _count_of(stored: object) -> int:
    """A stored count. A value of another form was written by someone else, and counts as nothing."""
    text = stored.decode("ascii", "replace") if isinstance(stored, bytes) else stored
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 16 else 0


class DurableObjectStore(Generic[E]):
    """Counts in one Durable Object per client: exact across all isolates and datacenters.

    `binding` is the namespace's name on `Env`, or a function of the request; its class is `RateLimiterObject`, which
    the worker exports and the configuration names. Each counted request costs a call to where the object lives.
    """

    def __init__(self, binding: str | Callable[[Any], object]) -> None:
        self.binding = binding

    async def take(self, hit: Hit, /) -> Taken:
        """Ask the client's object."""
        namespace = options.resolve("rate_limit", self.binding, hit.req)
        stub = namespace.get_by_name(hit.key)
        # One number crosses over: how much is used, or -1 - used for a refusal.
        answer = int(await stub.take(hit.start, hit.window, hit.cost, hit.limit))
        return Taken(True, answer) if answer >= 0 else Taken(False, -1 - answer)


class PlatformStore(Generic[E]):
    """Asks the platform's rate-limit binding, which is fast and local to a datacenter.

    It has limit and period in the configuration file, which win over the options here, and gives no counts: the
    headers that would hold them are left out. A refused request counts there as the platform decides.
    `binding` is its name on `Env`, or a function of the request.
    """

    def __init__(self, binding: str | Callable[[Any], object]) -> None:
        self.binding = binding

    async def take(self, hit: Hit, /) -> Taken:
        """Ask the platform."""
        limiter = options.resolve("rate_limit", self.binding, hit.req)
        hit.known = None
        outcome: Any = await limiter.limit(key=hit.key)
        success: Any = getattr(outcome, "success", None)
        return Taken(bool(outcome["success"] if success is None else success), None)
