"""Sessions: the data that a server keeps of a visitor, in a key-value namespace, under a signed cookie.

Decided here: that an id is only ever made by this server (a cookie without its signature, or whose
session is gone, begins a new one), that a new id is given when someone logs in (`regenerate`), and
that no request pays for a session it does not touch.

Two requests of one visitor may run at the same time. So the changes of one of them are put onto the data that is kept
by then, key by key, and a session that ended stays ended: its id is marked under a key of its own, which is read with
it, so that no write of a request that began before can bring it back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Literal

from typing_extensions import TypeForm, TypeVar

from core.bindings.kv import KVNamespace
from core.errors import DeveloperError
from core.handlers import declare
from core.http import json
from core.middleware import options
from core.middleware.authentication import SecretGiver, secrets_of
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next
from core.values import is_object

__all__ = ["Session", "session_of", "sessions"]

E = TypeVar("E", default=Any)

_KEY = "session"
_DESTROYED, _RENEWED = "destroyed", "renewed"
# A mark outlives every write that was under way when it was made, and every read by another datacenter before it.
_LONGER = 3600


class Session(MutableMapping[str, Any]):
    """The data of one visitor: a dict of JSON values. Changes are kept when the response is finalized."""

    def __init__(self, id: str | None, values: dict[str, Any]) -> None:
        self._values = values
        self.id = id
        """The id, None for a session that was not kept yet."""
        self.old_ids: dict[str, str] = {}
        """Ids that end with this request, and how."""
        self.carried: bool = id is not None
        """True if its values are those of the session that was opened, and fall with it."""
        self.changed: bool = False
        self._read: str | None = None

    @property
    def is_new(self) -> bool:
        """True if the visitor brought none."""
        return self.id is None

    def regenerate(self) -> None:
        """Go on under a new id. Call it when someone logs in or gains rights, or an id planted before would work."""
        self._end(_RENEWED)

    def destroy(self) -> None:
        """Forget everything, here and at the visitor's. Call it when someone logs out.

        Requests of the same session that run meanwhile keep nothing any more.
        """
        self._end(_DESTROYED)
        self.old_ids = dict.fromkeys(self.old_ids, _DESTROYED)
        self._values.clear()
        self.carried = False

    def _end(self, how: str) -> None:
        if self.id is not None:
            self.old_ids[self.id] = how
        self.id = None
        self.changed = True

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        if value.__class__ in (dict, list) and self._read is None:
            self._read = json.dumps(self._values)  # it may be changed in place, which only a comparison shows
        return value

    def __setitem__(self, key: str, value: object) -> None:
        if not isinstance(key, str):
            raise TypeError(f"session[{key!r}]: a key is a str")
        self._values[key] = value
        self.changed = True

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self.changed = True

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Session of {len(self)} values>"

    def was_changed(self) -> bool:
        """Return True if there is something to keep."""
        return self.changed or (self._read is not None and self._read != json.dumps(self._values))

    def put_onto(self, before: dict[str, object], newest: dict[str, object]) -> None:
        """Take over `newest`, which another request kept, with the changes of this one since `before`."""
        for key, value in self._values.items():
            if key not in before or json.dumps(value) != json.dumps(before[key]):
                newest[key] = value
        for key in before.keys() - self._values.keys():
            newest.pop(key, None)
        self._values = newest


async def session_of(req: AnyRequest) -> Session:
    """The session of a request, read when first asked for.

    Raises DeveloperError where `sessions()` is not registered.
    """
    opened: Callable[[], Awaitable[Session]] | None = req.state.get(_KEY)
    if opened is None:
        raise DeveloperError(
            "session_of(req): no sessions() is registered before this route. Register it with app.use(sessions(…))"
        )
    return await opened()


def sessions(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    kv_binding: str | Callable[[Request[E, Any, Any]], KVNamespace],
    secret: SecretGiver[E],
    max_age: int = 14 * 24 * 3600,
    cookie: str = "__Host-session",
    same_site: Literal["Strict", "Lax", "None"] = "Lax",
    secure: bool = True,
    path: str = "/",
) -> Middleware[E, object]:
    """Remember visitors: `session = await session_of(req)` in a handler is a dict that is kept between requests.

    `kv_binding`: where sessions are kept, by name or by a function of the request. `secret`: gives the key that signs
    the cookie, for example `lambda req: req.env.SESSION_SECRET`, or a list while one key takes over from another: the
    first signs, and cookies of each of them are known. `max_age`: seconds a session lives after it was last
    kept, at least 60; it is kept again when half of that has gone by.
    `cookie`, `same_site`, `secure`, `path`: the cookie's; it is always `HttpOnly`. Over plain http, for development,
    use `secure=False, cookie="session"`.

    A session is kept before the response leaves, so that the visitor's next request finds it; in another datacenter KV
    may show an older one for up to a minute. Call `session.regenerate()` when someone logs in and `session.destroy()`
    when someone logs out. Of two requests at the same time each keeps the keys that it changed, unless they run in two
    isolates and write within the same moment; a session that one of them destroyed keeps nothing of the other. Raises
    OptionError.
    """
    options.named_env("sessions", env)
    if not callable(kv_binding):
        options.text("sessions", "kv_binding", kv_binding)
    if not callable(secret):
        raise options.refuse(
            "sessions", "secret", "…", "must be a function, such as lambda req: req.env.SESSION_SECRET"
        )
    options.integer("sessions", "max_age", max_age, least=60, unit="seconds")
    from core.http.cookies import set_cookie

    attributes: Any = {"path": path, "secure": secure, "http_only": True, "same_site": same_site}
    try:
        set_cookie(cookie, "", **attributes)
    except (TypeError, ValueError) as error:
        raise options.refuse("sessions", "cookie", cookie, f"cannot be set: {error}") from None

    all_closing: dict[str | None, _Closing] = {}

    async def remember(req: AnyRequest, res: Response, next: Next, /) -> None:
        found: Session | None = None
        brought: str | None = None
        text: str | None = None
        stored_at = 0.0

        async def keys() -> list[bytes]:
            return secrets_of("sessions", "secret", secret, await options.awaited(secret(req)))

        async def opened() -> Session:
            nonlocal found, brought, text, stored_at
            if found is None:
                # An answer made from a session is only for the one who sent its cookie.
                res.vary("Cookie")
                kv: KVNamespace = options.resolve("sessions", kv_binding, req)
                id = req.signed_cookie(cookie, await keys())
                stored, ended = (None, None) if id is None else await _read(kv, id)
                if found is None:  # another task of the handler may have opened it meanwhile
                    values, stored_at = _values_of(stored if ended is None else None, req.clock.time())
                    brought, text = (None, None) if values is None else (id, stored)
                    found = Session(brought, values or {})
            return found

        async def close() -> None:
            session = found
            if session is None:
                return
            now = req.clock.time()
            aged = session.id is not None and now - stored_at > max_age / 2
            if not session.was_changed() and not aged:
                return
            closing = all_closing.setdefault(brought, _Closing())
            closing.requests += 1
            try:
                await keep(session, now, closing)
            finally:
                closing.requests -= 1
                if not closing.requests:
                    del all_closing[brought]

        async def keep(session: Session, now: float, closing: _Closing) -> None:
            kv: KVNamespace = options.resolve("sessions", kv_binding, req)
            if brought is not None and session.carried:
                newest, ended = await _read(kv, brought)
                newest = closing.newest or newest
                # Who only got a new id elsewhere may get one here too: a form that is sent twice logs in twice.
                renewed = ended == _RENEWED and session.id is None
                if not renewed and (ended is not None or newest is None):
                    return
                if newest is not None and newest != text:
                    before, after = (_values_of(stored, now)[0] for stored in (text, newest))
                    session.put_onto(before or {}, after or {})
            if session:
                if session.id is None:
                    session.id = _new_id()
                stored: str | None = json.dumps({"at": int(now), "values": dict(session)})
                if session.id == brought:
                    closing.newest = stored
                while stored is not None:
                    await kv.put(_stored(session.id), stored, expiration_ttl=max_age)
                    # An older write of another request may have come after this one: the last to end writes the newest.
                    stored = closing.newest if session.id == brought and closing.newest != stored else None
                res.cookie(cookie, session.id, max_age=max_age, secret=await keys(), **attributes)
                # The answer is one visitor's now, and no cache's.
                if res.staged is None or "cache-control" not in res.staged:
                    res.header("cache-control", "private, no-store")
            elif session.id is not None:
                session.old_ids[session.id] = _DESTROYED
            # After the new id was kept and given out: a failure here costs nobody the session.
            for old, how in session.old_ids.items():
                await _end(kv, old, how, max_age)
            if not session and req.cookies.get(cookie) is not None:
                res.cookie(cookie, "", max_age=0, **attributes)

        req.state[_KEY] = opened
        try:
            await next()
        except Exception:
            await close()  # changes of a handler before it refused count: failed logins, for one
            raise
        await close()

    return declare(remember, name="sessions", provides=("req.session",))


class _Closing:
    """The newest data of one session in this isolate, while requests of the session are being finalized."""

    __slots__ = ("newest", "requests")

    def __init__(self) -> None:
        self.newest: str | None = None
        self.requests = 0


def _new_id() -> str:
    from base64 import urlsafe_b64encode
    from os import urandom

    return urlsafe_b64encode(urandom(24)).decode()


def _stored(id: str) -> str:
    """The key of a session: a hash, so that who may list the namespace cannot take sessions over."""
    return f"session|{options.digest(id)}"


def _ended(id: str) -> str:
    """The key of the mark that a session has ended."""
    return f"{_stored(id)}|ended"


async def _read(kv: KVNamespace, id: str) -> tuple[str | None, str | None]:
    """Return a session's data, and the reason of its end, if it ended: one call for both."""
    found = await kv.get([_stored(id), _ended(id)])
    return found.get(_stored(id)), found.get(_ended(id))


async def _end(kv: KVNamespace, id: str, how: str, max_age: int) -> None:
    """End a session for good. The mark comes first, so that there is no moment at which it could be brought back."""
    await kv.put(_ended(id), how, expiration_ttl=max_age + _LONGER)
    await kv.delete(_stored(id))


def _values_of(stored: str | None, now: float) -> tuple[dict[str, object] | None, float]:
    if stored is None:
        return None, now
    try:
        document = json.loads(stored)
        values, at = document["values"], float(document["at"])
    except (ValueError, KeyError, TypeError):
        return None, now
    return (values, at) if is_object(values) else (None, now)
