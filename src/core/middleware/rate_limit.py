"""A limit on the requests of a client per window.

Decided here: which counter a request belongs to, the values of the headers, and the answer when the
store fails. How exactly is counted is the store's business (`rate_limit_stores.py`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypeForm, TypeVar

from core.bindings.kv import KVNamespace
from core.errors import CoreError, DeveloperError, OptionError
from core.handlers import declare
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from core.middleware.rate_limit_stores import RateLimitStore
    from core.types import Middleware, Next

    E = TypeVar("E", default=Any)

__all__ = ["rate_limit"]


log: logging.Logger = logging.getLogger("core")

_MOST_KEY_BYTES = 64
_MOST_POLICY_BYTES = 128
_SECRET = r"(?i:bearer|basic|token|digest)\b|[A-Za-z0-9_\-+/=.~]{20}"


def rate_limit(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    kv_binding: str | Callable[[Request[E, Any, Any]], KVNamespace] | None = None,
    limit: int | Callable[[Request[E, Any, Any]], int | Awaitable[int]],
    window: int,
    key_fn: Callable[[Request[E, Any, Any]], str | Awaitable[str | None] | None] | None = None,
    message: str = "Too Many Requests",
    name: str | None = None,
    store: RateLimitStore | None = None,
    on_store_error: Literal["open", "closed"] = "open",
    skip: Callable[[Request[E, Any, Any]], bool | Awaitable[bool]] | None = None,
    cost: Callable[[Request[E, Any, Any]], int | Awaitable[int]] | None = None,
) -> Middleware[E, object]:
    """Let each client make at most `limit` requests per `window` seconds; the rest get 429.

    Windows are fixed and begin at multiples of `window`. Every response carries `X-RateLimit-Limit`, `-Remaining` and
    `-Reset` (Unix seconds), a 429 also `Retry-After` (seconds).

    `kv_binding`: the key-value namespace that counts, by its name on `Env` or by a function of the request. Counts in
    KV are shared by all datacenters but late by up to a minute, and take one write a second per key: a client spread
    over many places gets further than `limit`. `store` takes its place with something more exact: see `KVStore`,
    `DurableObjectStore`, `PlatformStore` and `MemoryStore` in `core.middleware.rate_limit_stores`.
    `limit`: a number, or a function of the request. `cost`: how much of it a request takes, 1 by default.
    `key_fn`: the key that a client is counted under; `req.ip` by default, IPv6 by its /64 network. None, or a missing
    ip, is one bucket that all such requests share. Long and secret-looking keys are hashed before they are stored.
    `name`: the counter's name. Limiters of one name share their counters; by default each one has its own on each route
    or mount where it stands, so that one value on two routes lets a client make `limit` requests to each.
    `on_store_error`: whether requests pass (`"open"`) or get 503 (`"closed"`) while the store fails; logged either way.
    The headers then have the count of this isolate alone. `skip`: requests that are neither counted nor limited.

    Functions may be async. Raises OptionError.
    """
    options.named_env("rate_limit", env)
    if (kv_binding is None) == (store is None):
        raise OptionError(
            'rate_limit() counts in one place. Give either kv_binding, for example kv_binding="COUNTERS", or store'
        )
    if kv_binding is not None and not callable(kv_binding):
        options.text("rate_limit", "kv_binding", kv_binding)
    if not callable(limit):
        options.integer("rate_limit", "limit", limit, least=1)
    options.integer("rate_limit", "window", window, least=1, unit="seconds")
    options.text("rate_limit", "message", message)
    options.one_of("rate_limit", "on_store_error", on_store_error, ("open", "closed"))
    for option, function in (("key_fn", key_fn), ("skip", skip), ("cost", cost)):
        if function is not None and not callable(function):
            raise options.refuse("rate_limit", option, function, "must be a function of the request")
    if name is not None:
        options.text("rate_limit", "name", name)
    if store is not None and not callable(getattr(store, "take", None)):
        raise options.refuse("rate_limit", "store", store, "must have `async def take(self, hit)`")
    counts = store
    fixed_limit = None if callable(limit) else str(limit)
    warned = False

    async def client_of(req: AnyRequest) -> str:
        nonlocal warned
        if key_fn is None:
            ip = req.ip
            if ip:
                return _network(ip)
            key = None
        else:
            key = await options.awaited(key_fn(req))
            if key is not None and not isinstance(key, str):
                raise DeveloperError(f"rate_limit(key_fn=…) must give a str or None, not {type(key).__name__}")
        if not key:
            if not warned:
                warned = True
                log.warning(
                    "rate_limit() on %s %s has no %s: all such requests share one counter",
                    req.method,
                    req.path,
                    "client address" if key_fn is None else "key from key_fn",
                )
            return ""
        return _stored_form(key)

    def for_location(place: str, number: int = 1) -> Middleware[E, object]:
        # Nothing in it can be taken for the separator that the stores put behind it.
        own = f"{place}{'' if number == 1 else f' ({number})'}:{fixed_limit or 'variable'}:{window}"
        counter = own if name is None else name
        if len(counter.encode("utf-8", "surrogatepass")) > _MOST_POLICY_BYTES:
            counter = f"sha256:{options.digest(counter)}"
        policy = counter.replace("%", "%25").replace("|", "%7C")

        async def guard(req: Request[E, Any, Any], res: Response, next: Next, /) -> None:
            nonlocal counts
            if skip is not None and await options.awaited(skip(req)):
                await next()
                return
            # Loaded with the first request that is counted: a start takes as long with a limit as without.
            from core.middleware.rate_limit_stores import Hit, KVStore, Taken

            if counts is None:
                assert kv_binding is not None
                counts = KVStore(kv_binding)
            most = limit if not callable(limit) else await options.awaited(limit(req))
            price = 1 if cost is None else await options.awaited(cost(req))
            if type(most) is not int or type(price) is not int or price < 0:
                raise DeveloperError(
                    f"rate_limit(): limit and cost must be ints, and cost not below 0, not {most!r} and {price!r}"
                )
            now = req.clock.time()
            start = int(now // window) * window
            reset = start + window
            writes: list[Callable[[], Awaitable[None]]] = []
            key = f"{policy}|{await client_of(req)}"
            hit = Hit(key, price, most, window, start, now, req, writes.append)
            failed = False
            try:
                taken = await counts.take(hit)
            except DeveloperError:
                raise  # a binding that is not there is a mistake, and no failure that passes
            except Exception:
                log.exception("rate_limit() could not count a request of %s %s", req.method, req.path)
                failed = True
                taken = Taken(on_store_error == "open", None if hit.known is None else hit.known + price)
            if taken.used is not None:
                left = 0 if failed and not taken.allowed else max(0, most - taken.used)
                headers = {
                    "x-ratelimit-limit": str(most),
                    "x-ratelimit-reset": str(reset),
                    "x-ratelimit-remaining": str(left),
                }
                res.staged = headers if res.staged is None else res.staged | headers
            if failed and not taken.allowed:
                raise CoreError(503, "Service Unavailable")
            if not taken.allowed:
                res.header("retry-after", str(max(1, ceil(reset - now))))
                await next(CoreError(429, message))
                return
            if writes:
                res.on_send(lambda status, duration_ms: _write(writes, req))
            try:
                await next()
            except Exception:
                raise
            except BaseException:
                # A client that goes away before the answer has made its request all the same.
                _write(writes, req)
                raise

        return declare(guard, name="rate_limit", for_location=for_location, refuses=True)

    return for_location("")


def _write(writes: list[Callable[[], Awaitable[None]]], req: AnyRequest) -> None:
    while writes:
        req.ctx.wait_until(_logged(writes.pop(0)))


async def _logged(write: Callable[[], Awaitable[None]]) -> None:
    try:
        await write()
    except Exception as error:
        # It is made up for by the next write: no trace, since KV refuses more than one a second as a matter of course.
        log.warning("rate_limit() could not write a count: %s: %s", type(error).__name__, error)


def _network(ip: str) -> str:
    """An address as clients are counted: IPv4 whole, IPv6 by its /64, of which one client has all.

    IPv4 written as IPv6 (`::ffff:192.0.2.1`) is the IPv4 address. Anything else stays as it is.
    """
    if ":" not in ip:
        return _stored_form(ip)
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(ip.partition("%")[0].strip("[]"))
    except ValueError:
        return _stored_form(ip)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"


def _stored_form(key: str) -> str:
    """A client's key as it may be stored: itself, or its hash where it is long or looks like a secret."""
    if (
        len(key.encode("utf-8", "surrogatepass")) <= _MOST_KEY_BYTES
        and not re.search(_SECRET, key)
        and key.isprintable()
    ):
        return key
    return f"sha256:{options.digest(key)}"
