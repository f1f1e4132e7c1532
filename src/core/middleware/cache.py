"""Whole answers kept and given again, as a shared cache may (RFC 9111).

Decided here: which answers may be kept at all. Nothing that could be one person's: no answer to a request with
`Authorization` or a body, none that sets a cookie or says `private` or `no-store`, none to a request
with cookies or a user unless it says `public`, and never across the headers that `Vary` names. All of this is
read from the response that leaves, since middleware outside of this one may add to it until then;
the answer that is kept is the one of the chain inside. Where it is kept is the store's business: a
process's memory, or a key-value namespace.
"""

from __future__ import annotations

import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Protocol

import attrs
from typing_extensions import TypeForm, TypeVar

from core.bindings.kv import KVNamespace
from core.errors import DeveloperError, OptionError
from core.handlers import declare
from core.http import json
from core.http.dates import read_date
from core.http.streams import encode
from core.middleware import options
from core.middleware.memory import Memory
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next

__all__ = ["CacheStore", "Cached", "MemoryCache", "cache"]

E = TypeVar("E", default=Any)

log: logging.Logger = logging.getLogger("core")

_SAFE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_STATUSES = frozenset((200, 203, 204, 301, 308, 404, 405, 410, 414, 501))
_seconds = re.compile(r"\d{1,10}", re.ASCII).fullmatch
_MOST_VARY = 16
_REFUSALS = frozenset(("private", "no-store", "no-cache"))
# Headers of this one connection, or of this one moment.
_NOT_KEPT = frozenset(
    ("connection", "keep-alive", "date", "age", "transfer-encoding", "upgrade", "server-timing", "cache-status")
)


@attrs.frozen
class Cached:
    """A kept answer, or, with `vary` and no body, the names of the headers that distinguish the answers under a URL."""

    status: int
    headers: dict[str, str]
    body: bytes
    content_type: str | None
    stored: float
    """The time it was stored, in seconds since 1970."""
    expires: float
    """Until when it may be given again, in seconds since 1970."""
    vary: tuple[str, ...] = ()
    since: float = 0.0
    """Answers that were stored under the URL up to this time, in seconds since 1970, are not given again."""


class CacheStore(Protocol):
    """Keeps answers by key."""

    async def get(self, key: str, req: Any, /) -> Cached | None:
        """Return the kept answer, or None."""
        ...

    async def put(self, key: str, value: Cached, req: Any, /) -> None:
        """Keep an answer, until it expires or longer."""
        ...


class MemoryCache(Memory):
    """Answers in this process's memory, at most `max_bytes` of bodies, headers and keys; the longest unused go first.

    An answer that alone is larger is not kept.
    """

    def __init__(self, *, max_bytes: int = 16 * 1024 * 1024) -> None:
        super().__init__()
        self._most = options.integer("MemoryCache", "max_bytes", max_bytes, least=0, unit="bytes")

    def clear(self) -> None:
        """Keep no answer any more."""
        self._values: dict[str, Cached] = {}
        self._size = 0

    async def get(self, key: str, req: Any, /) -> Cached | None:
        """Return the kept answer, or None."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    async def put(self, key: str, value: Cached, req: Any, /) -> None:
        """Keep an answer."""
        self._forget(key)
        size = _size(key, value)
        if size > self._most:
            return
        self._values[key] = value
        self._size += size
        while self._size > self._most:
            self._forget(next(iter(self._values)))

    def _forget(self, key: str) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._size -= _size(key, value)


def _size(key: str, value: Cached) -> int:
    # Clients choose the keys, which hold the URL and the headers that `Vary` names.
    headers = sum(len(name) + len(text) for name, text in value.headers.items())
    return len(key) + len(value.body) + headers + sum(map(len, value.vary)) + 512


class _KVCache:
    """Answers in a key-value namespace, where other datacenters find them too, up to a minute later."""

    def __init__(self, binding: str | Callable[[Any], KVNamespace]) -> None:
        self._binding = binding

    async def get(self, key: str, req: Any, /) -> Cached | None:
        kv: KVNamespace = options.resolve("cache", self._binding, req)
        text = await kv.get(f"cache|{options.digest(key)}")
        if text is None:
            return None
        fields: dict[str, Any] = json.loads(text)
        fields |= {"body": b64decode(fields["body"]), "vary": tuple(fields["vary"])}
        return Cached(**fields)

    async def put(self, key: str, value: Cached, req: Any, /) -> None:
        kv: KVNamespace = options.resolve("cache", self._binding, req)
        fields = {**attrs.asdict(value), "body": b64encode(value.body).decode()}
        # KV refuses a shorter life than 60 seconds; `expires` inside says when it really is over.
        ttl = max(60, int(value.expires - value.stored) + 1)
        await kv.put(f"cache|{options.digest(key)}", json.dumps(fields), expiration_ttl=ttl)


def cache(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    store: CacheStore | None = None,
    kv_binding: str | Callable[[Request[E, Any, Any]], KVNamespace] | None = None,
    max_age: int | None = None,
    max_body: int = 1024 * 1024,
    name: str = "core",
) -> Middleware[E, object]:
    """Keep answers to GET, and give them again while they are fresh.

    `store`: `MemoryCache()` by default; or `kv_binding`, a namespace by name or by a function of the request.
    `max_age`: seconds for answers that say nothing themselves; without it only those with `Cache-Control: max-age` or
    `s-maxage`, or with `Expires`, are kept. `max_body`: bytes up to which a body is kept; streams never are.
    A given answer has `Age`, and every answer `Cache-Status` (RFC 9211) with `name`.

    Kept is the answer that the chain behind this middleware made: register `request_id`, `cors` and authentication
    before it, and middleware that belongs to the answer behind it. One that refuses clients, such as `ip_restriction`
    and `rate_limit`, is an OrderError behind it: a kept answer would never pass it. Whether it may be kept is read from
    the response that leaves: `Vary`, `Cache-Control`, `Expires` and `Set-Cookie` count whoever staged them. A request
    with a body is neither given a kept answer nor is its own kept. A POST, PUT, PATCH or DELETE that succeeds takes
    back the answers under its own URL (RFC 9111, section 4.4). A store that fails is logged, and the request answered
    as if there were none. Raises OptionError.
    """
    options.named_env("cache", env)
    if store is not None and kv_binding is not None:
        raise OptionError("cache() keeps answers in one place. Give either store or kv_binding")
    if max_age is not None:
        options.integer("cache", "max_age", max_age, least=1, unit="seconds")
    options.integer("cache", "max_body", max_body, least=0, unit="bytes")
    if not options.word(name):
        raise options.refuse("cache", "name", name, "must be a token")
    if kv_binding is not None:
        if not callable(kv_binding):
            options.text("cache", "kv_binding", kv_binding)
        answers: CacheStore = _KVCache(kv_binding)
    else:
        answers = store if store is not None else MemoryCache()

    async def look_up(key: str, req: AnyRequest) -> Cached | None:
        try:
            found = await answers.get(key, req)
            if found is not None and found.vary:
                since, found = found.since, await answers.get(_variant(key, found.vary, req), req)
                found = found if found is not None and found.stored > since else None
        except DeveloperError:
            raise
        except Exception:
            log.exception("cache() could not read what it keeps for %s", req.path)
            return None
        return found if found is not None and req.clock.time() < found.expires else None

    async def keep(key: str, value: Cached, req: AnyRequest) -> None:
        try:
            before = await answers.get(key, req) or value
            value = attrs.evolve(value, since=before.since)
            if value.vary:
                expires = max(before.expires, value.expires)
                await answers.put(key, attrs.evolve(value, body=b"", headers={}, expires=expires), req)
                key = _variant(key, value.vary, req)
            await answers.put(key, attrs.evolve(value, vary=()), req)
        except Exception:
            log.exception("cache() could not keep the answer to %s", req.path)

    async def forget(key: str, req: AnyRequest) -> None:
        """Give nothing again that was kept under a URL (RFC 9111, section 4.4)."""
        try:
            found = await answers.get(key, req)
            if found is not None:
                now = req.clock.time()
                expires = found.expires if found.vary else now
                await answers.put(key, attrs.evolve(found, body=b"", headers={}, expires=expires, since=now), req)
        except DeveloperError:
            raise
        except Exception:
            log.exception("cache() could not forget what it keeps for %s", req.path)

    async def serve(req: AnyRequest, res: Response, next: Next, /) -> None:
        wishes = _directives(req.header("cache-control"))
        if (
            req.method not in ("GET", "HEAD")
            or req.header("authorization") is not None
            or req.header("range") is not None
            or "no-store" in wishes
            # A body could take part in the answer, and is not part of the key.
            or req.header("content-length") not in (None, "0")
            or req.header("transfer-encoding") is not None
        ):
            await next()
            if req.method not in _SAFE and res.status_code < 400:
                await forget(req.url, req)
            return
        # The host is a part: one application may answer for several.
        key = req.url
        if "no-cache" not in wishes:
            found = await look_up(key, req)
            if found is not None:
                _give(found, req, res, name)
                return
        before: dict[str, str] = res.unblocked().copy()
        await next()
        staged: dict[str, str] = res.unblocked()
        own = {header: value for header, value in staged.items() if before.get(header) != value}
        said = _directives(staged.get("cache-control"))
        data = _whole_body(res, max_body)
        res.header("cache-status", f"{name}; fwd=miss")
        if req.method != "GET" or data is None or res.status_code not in _STATUSES or said.keys() & _REFUSALS:
            return
        if (nonce := req.state.get("csp_nonce")) is not None and str(nonce).encode() in data:
            return  # the policy of the next answer names another, and its page's scripts would not run
        lasting = {header: value for header, value in own.items() if header not in _NOT_KEPT}
        made = Cached(res.status_code, lasting, data, res.content_type, 0.0, 0.0)

        def decide(req: AnyRequest, status: int, duration_ms: float) -> None:
            # An answer that was refused after all is not kept; a 304 says that the client has this very answer.
            if status in (made.status, 304):
                value = _dated(made, req, res, max_age)
                if value is not None:
                    req.ctx.wait_until(keep(key, value, req))

        res.on_finalize(decide)

    return declare(serve, name="cache", repeats=True)


def _give(found: Cached, req: AnyRequest, res: Response, name: str) -> None:
    for header, value in found.headers.items():
        if header == "vary":
            for part in value.split(","):
                res.append("vary", part.strip())
        else:
            res.header(header, value)
    res.header("age", str(max(0, int(req.clock.time() - found.stored))))
    res.header("cache-status", f"{name}; hit")
    res.status(found.status).send(found.body)
    res.content_type = found.content_type


def _whole_body(res: Response, max_body: int) -> bytes | None:
    """The body that was sent, where it is whole and not too long."""
    body = res.body
    if not res.sent or not isinstance(body, str | bytes | None):
        return None
    data = b"" if body is None else encode(body) if isinstance(body, str) else body
    return data if len(data) <= max_body else None


def _dated(made: Cached, req: AnyRequest, res: Response, max_age: int | None) -> Cached | None:
    """An answer with the time it may be kept, and the names of its `Vary`; None where it must not be kept.

    It goes by all that is staged when the response leaves.
    """
    staged = res.unblocked()
    said = _directives(staged.get("cache-control"))
    if res.set_cookies or said.keys() & _REFUSALS or req.body_used:
        return None
    personal = req.header("cookie") is not None or req.user is not None or bool(req.users)
    if personal and "public" not in said:
        return None
    names = tuple(sorted({part.strip().lower() for part in staged.get("vary", "").split(",") if part.strip()}))
    if "*" in names or len(names) > _MOST_VARY or not all(map(options.word, names)):
        return None
    now = req.clock.time()
    # For how long an answer that came from elsewhere was under way or kept there.
    age = staged.get("age", "")
    stored = now - (int(age) if _seconds(age) else 0)
    expires = stored + _life(said, staged, max_age, now)
    return attrs.evolve(made, stored=stored, expires=expires, vary=names) if expires > now else None


def _life(said: dict[str, str], staged: dict[str, str], max_age: int | None, now: float) -> int:
    """For how many seconds an answer is fresh (RFC 9111, section 4.2.1)."""
    for directive in ("s-maxage", "max-age"):
        if directive in said:
            return int(said[directive]) if _seconds(said[directive]) else 0
    if "expires" in staged:
        # A value that is not a date, such as "0", is one in the past (section 5.3).
        expires, date = (read_date(staged.get(name), now) for name in ("expires", "date"))
        return 0 if expires is None else expires - int(now if date is None else date)
    return max_age or 0


def _directives(header: str | None) -> dict[str, str]:
    """The directives of a `Cache-Control` header, in lower case."""
    found: dict[str, str] = {}
    for part in (header or "").split(","):
        directive, _, value = part.strip().partition("=")
        if directive:
            # Of two values of one directive the first counts (RFC 9111, section 4.2.1).
            found.setdefault(directive.strip().lower(), value.strip().strip('"'))
    return found


def _variant(key: str, names: tuple[str, ...], req: AnyRequest) -> str:
    # Each value with its length, so that no value can be taken for another's end.
    values = [req.header(name) for name in names]
    return key + "".join(
        f"\n{name}:{-1 if value is None else len(value)}:{value or ''}"
        for name, value in zip(names, values, strict=True)
    )
