"""A request as handlers see it: the message, the bindings, and the findings of middleware.

Typed in three ways: by its `Env`, by its user, and by the names of its path parameters. The first
two are covariant, so that a handler over a narrower environment or a wider user fits; that is why
everything typed by them is declared as a read-only property, although at run time these are plain
attributes: they are read on every request, and a property costs a call.

Whatever costs something (URL, headers, query, body) is worked out when it is first asked for. A host
derives from `Request` and answers for its own kind of message in the methods at the end.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, overload

from typing_extensions import TypeForm, TypeVar

from core import http
from core.context import system_clock
from core.errors import CoreError, DeveloperError

# By its name: a module with a `__getattr__` of its own never gives an attribute quickly.
from core.http.json import loads
from core.values import Fixed

if TYPE_CHECKING:
    from core.context import Clock, EdgeMetadata, ExecutionContext, RequestContext, StateKey
    from core.http.forms import Form, FormLimits, UploadedFile
    from core.signing import Secrets

    T = TypeVar("T")
    D = TypeVar("D")

MAX_JSON: Final = 1024 * 1024
"""The number of bytes of JSON that `Request.json` reads, unless a `body_limit` sets another."""

E_co = TypeVar("E_co", covariant=True, default=Any)
U_co = TypeVar("U_co", covariant=True, default=object)
K_contra = TypeVar("K_contra", contravariant=True, bound=str, default=str)


class Params(Fixed[str, str], Generic[K_contra]):
    """The parameters of the path that matched, percent-decoded, in order of appearance.

    `req.params["id"]` on `/users/:id`; the rest of `/files/*` is `req.params["*"]`. A name that the path has not
    raises KeyError, which lists the names there are.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, key: K_contra, /) -> str: ...  # type: ignore[override]  # narrower on purpose: only the path's own names

    def __missing__(self, key: str) -> NoReturn:
        names = ", ".join(f'"{name}"' for name in self) or "none at all"
        raise KeyError(f'the path has no parameter "{key}". It has {names}')

    def parse(self, type_: TypeForm[T], /) -> T:
        """The parameters as a `T`, an attrs class or TypedDict: texts become the annotated scalars.

            @attrs.frozen
            class Order:
                id: UUID
                year: int = attrs.field(validator=attrs.validators.ge(2000))

            order = req.params.parse(Order)      # on /orders/:year/:id

        Raises CoreError(404): a path whose parameters do not fit leads nowhere.
        """
        from core.validation.structure import structure

        try:
            return structure(dict(self.items()), type_, "strings")
        except ValueError:
            raise CoreError(404) from None


NO_PARAMS: Params[Any] = Params()


class Query(Fixed[str, str]):
    """The query string: names to their first values, percent-decoded, `+` read as a blank.

    As a mapping it has each name once, in order of appearance; `get_all` and `pairs` have those that came more than
    once. `query["page"]` is the first value of a name and raises KeyError where there is none; `get` gives None then.
    Bad escapes stay as they are and invalid UTF-8 becomes U+FFFD, as in a browser's URLSearchParams.
    """

    __slots__ = ("_pairs", "text")

    def __init__(self, text: str) -> None:
        self.text: str = text
        """The query string as it was sent, without the question mark."""
        self._pairs: list[tuple[str, str]] | None = None
        # The first value of each name, in order.
        keep = self._keep
        if "%" in text or "+" in text:
            for name, value in self.pairs:
                keep(name, value)
        else:
            # As `parse_query` has it, without the pairs.
            for piece in text.split("&"):
                if piece:
                    name, _, value = piece.partition("=")
                    keep(name, value)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All names and values, in order."""
        if self._pairs is None:
            from core.http.escapes import parse_query

            self._pairs = parse_query(self.text)
        return self._pairs

    if TYPE_CHECKING:

        @overload
        def get(self, name: str, /) -> str | None: ...
        @overload
        def get(self, name: str, /, default: str) -> str: ...
        @overload
        def get(self, name: str, /, default: D) -> str | D: ...
        def get(self, name: str, /, default: object = None) -> object:
            """The first value under `name`, or `default`."""

    def get_all(self, name: str, /) -> list[str]:
        """Every value under `name`, in order."""
        return [value for key, value in self.pairs if key == name]

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f'the query has no "{name}". Use req.query.get("{name}") for what may be missing')

    def __eq__(self, other: object) -> bool:
        return self.pairs == other.pairs if isinstance(other, Query) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other  # a dict has one of its own

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    def parse(self, type_: TypeForm[T], /) -> T:
        """The query as a `T`, an attrs class or TypedDict: texts become the annotated scalars.

        A field annotated as a list takes every value of its name. Unknown names are ignored.
        Raises ValidationError, which is answered with 422, with every mistake.

            @attrs.frozen
            class Page:
                page: int = 1
                limit: int = 20

            page = req.query.parse(Page)
        """
        from core.validation.structure import structure_texts

        return structure_texts(self.pairs, type_)


class Request(Generic[E_co, U_co, K_contra]):
    """A request, enriched by the framework. See the members; each is worked out when first asked for."""

    if TYPE_CHECKING:

        @property
        def env(self) -> E_co:
            """The bindings: one attribute per binding of the configuration file."""
            ...

        @property
        def ctx(self) -> RequestContext:
            """The execution context, for `wait_until` and `span`."""
            ...

        @property
        def params(self) -> Params[K_contra]:
            """The parameters of the path."""
            ...

        @property
        def user(self) -> U_co:
            """The user: the value that an authenticator returned or a middleware set, None before that."""
            ...

        @user.setter
        def user(self, value: object) -> None: ...

        @property
        def method(self) -> str:
            """The HTTP method, in capitals."""
            ...

        @property
        def path(self) -> str:
            """The path as received: dot segments resolved, still percent-encoded."""
            ...

        id: str
        """The request's id, set by the `request_id` middleware. Empty before that."""

    else:
        # The plain attributes behind the properties above.
        user = None

    # Set on every request, as `id` is, and no defaults of the class: those take ten times as long to read and to
    # replace.
    _query: Query | None

    _body: builtins.bytes | None = None
    _streamed = False
    # The result of `form`: the body in a file, or the error that it raised.
    _outcome: UploadedFile | Exception | None = None
    _form: tuple[FormLimits | None, Form] | None = None
    _most_json = MAX_JSON
    _clock: Clock = system_clock
    _start_time: float | None = None
    _state: State | None = None
    _cookies: Mapping[str, str] | None = None
    _users: dict[Any, Any] | None = None
    _known_users: Mapping[Any, Any] = {}  # those that a test names: their authenticators are not asked
    _app: Any = None  # the application, set by whoever serves it

    def __init__(self, message: http.Request, env: E_co, ctx: ExecutionContext) -> None:
        own: Any = self  # handlers only read these attributes
        own.params = NO_PARAMS
        self.id = ""
        self._query = None
        self._message = message
        own.method = message.method
        own.path = message.path
        own.env = env
        own.ctx = ctx
        clock: Clock = getattr(ctx, "clock", system_clock)  # the fakes' carries one
        if clock is not system_clock:
            # A clock of one's own moves by itself, so the moment of receipt is kept as it says.
            self._clock = clock
            self._start_time = clock.time()
        self.received: float = clock.monotonic()
        """The time at which the app received the request, on the monotonic clock, in seconds."""

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.path}>"

    @property
    def url(self) -> str:
        """The absolute URL."""
        return self._message.url

    @property
    def root_path(self) -> str:
        """The prefix under which a host mounts the application, percent-encoded; empty where it mounts at the root.

        It is in `url` and not in `path`, so that routes do not depend on it. A redirect to a path of this application
        begins with it: `res.redirect(f"{req.root_path}/login")`.
        """
        return ""

    @property
    def headers(self) -> http.HeadersView:
        """The headers of the request. They cannot be changed: findings of middleware go into `req.state`."""
        return http.HeadersView.of(self._message.headers)

    def header(self, name: str, /) -> str | None:
        """The value of a header, or None. Several of one name come joined with `, `."""
        return self.headers.get(name)

    @property
    def query(self) -> Query:
        """The query string."""
        query = self._query
        if query is None:
            query = self._query = Query(self.query_string)
        return query

    @property
    def query_string(self) -> str:
        """The query string as it was sent, without the question mark."""
        return self._message.query_string

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies of the request."""
        if self._cookies is None:
            self._cookies = http.cookies.parse_cookies(self.header("cookie") or "")
        return self._cookies

    def signed_cookie(self, name: str, secret: Secrets, /) -> str | None:
        """The value of a cookie that `res.cookie(…, secret=…)` set, or None where it is missing or was changed.

        With a list of secrets, values signed by any of them are taken. Raises ValueError for an empty secret.
        """
        from core.signing import keys_of, unsign

        keys = keys_of(secret)
        value = self.cookies.get(name)
        return None if value is None else unsign(f"cookie {name}", value, keys)

    def require_match(self, etag: str | None, /, *, required: bool = False) -> None:
        """Go on only if the client changes what it has seen: `If-Match` names `etag`, the tag of what there is now.

            found = await bucket.get(key)
            req.require_match(found.http_etag)      # before a PUT, PATCH or DELETE

        `etag` is written with its quotes, as in the header `ETag`; None where there is nothing. Without `If-Match` it
        goes on, unless it is `required`. Compares strongly: a weak tag never matches (RFC 9110, section 13.1.1). What
        changes between this and the write is not seen: let the store compare too (`only_if=`, `WHERE version = ?`).

        Raises CoreError(412) where the tag is another, and CoreError(428) where it is required and missing.
        """
        header = self.header("if-match")
        if header is None:
            if required:
                raise CoreError(428, "Precondition Required")
            return
        from core.http.conditional import match

        if not match(header, etag):
            raise CoreError(412, "Precondition Failed")

    def local_url(self, url: str | None, /, default: str = "/") -> str:
        """The path, query and fragment of `url` where it leads to this origin, else `default`: for redirects.

            res.redirect(req.local_url(req.query.get("next")))

        `url` is read as a browser reads it, so that neither `//evil.test` nor `/\\evil.test` leads away, nor
        `javascript:`. Its origin is that of `req.url`; behind a proxy that passes any `Host` on, use `trusted_hosts`.
        """
        if url is None:
            return default
        try:
            own = http.URL(self.url)
            found = http.URL(url, own)
        except TypeError:
            return default
        path = found.pathname
        # "//evil.test" is a path too: behind its own origin, and a host of another one when it is alone.
        if found.origin != own.origin or found.username or found.password or path.startswith("//"):
            return default
        return f"{path}{found.search}{found.hash}"

    @property
    def ip(self) -> str | None:
        """The client's address: the value of `Edge-Connecting-IP`, which hosts write and clients cannot."""
        return self.header("edge-connecting-ip")

    @property
    def edge(self) -> EdgeMetadata | None:
        """The location at which the request reached the edge, if the host knows."""
        return self._message.edge

    @property
    def clock(self) -> Clock:
        """The clock of this request: the machine's, or the one a test handed in with the context."""
        return self._clock

    @property
    def start_time(self) -> float:
        """The seconds since 1970 at which the app received the request. A timing middleware may overwrite it."""
        if self._start_time is None:
            self._start_time = self._clock.time() - (self._clock.monotonic() - self.received)
        return self._start_time

    @start_time.setter
    def start_time(self, value: float) -> None:
        self._start_time = value

    def _elapsed(self) -> float:
        """The milliseconds since the request was received."""
        return (self._clock.monotonic() - self.received) * 1000.0

    @property
    def state(self) -> State:
        """A dict for the values that an application adds to its requests; the key of a lifespan gives its value."""
        if self._state is None:
            self._state = State(self)
        return self._state

    @property
    def users(self) -> dict[object, object]:
        """The user that each authenticator returned on this request, so that none runs twice."""
        if self._users is None:
            self._users = dict(self._known_users)
        return self._users

    def to_http(self) -> http.Request:
        """This request as a standard value, to be passed on to a binding or another server.

            res.send(await req.env.ASSETS.fetch(req.to_http()))

        It has the method, the URL, the body, which is read as it is sent, and the headers without those of the client's
        connection (RFC 9110, section 7.6.1) and `Host`, which is the URL's. The opening of a WebSocket keeps its
        `Upgrade`, for the Durable Object that accepts it. For another server make a request of its parts:
        `http.Request(url, method=given.method, headers=given.headers, body=given.body)`.
        """
        from core.http.forwarding import end_to_end

        values, _ = end_to_end(self.headers)
        values.pop("host", None)
        if self._opens_websocket():
            values["upgrade"] = "websocket"
        body = None if self.method in ("GET", "HEAD") else self._body if self._body is not None else self.stream()
        return http.Request(self.url, method=self.method, headers=values, body=body, edge=self.edge, redirect="manual")

    async def is_disconnected(self) -> bool:
        """Return True if the client has gone away, so that nobody waits for the answer. It never waits.

        For work that takes long or asks repeatedly. A streamed body needs it not: it is closed when the client goes
        away. False where the host cannot know: in tests through `app.fetch`, in workers whose configuration lacks
        the compatibility flag `enable_request_signal`, and in a self-hosted workerd until a piece of a streamed answer
        cannot be written.
        """
        return False

    def url_for(self, handler: Callable[..., object], /, **params: object) -> str:
        """The path of a handler's route, as `App.url_for` gives it, below the `root_path` of this request.

        Raises DeveloperError outside an application: on a request that a program made itself.
        """
        app = self._app
        if app is None:
            raise DeveloperError("req.url_for(): this request did not come through an application. Use app.url_for(…)")
        path: str = self.root_path + app.url_for(handler, **params)
        return path

    # -- the body

    async def bytes(self) -> builtins.bytes:
        """The whole body. It is read once and remembered.

        Raises TypeError after `stream()`, which hands the body out without keeping it.
        """
        body = self._body
        if body is None:
            body = self._body = await (self._read_again() if self._streamed else self._read())
        return body

    @property
    def body_used(self) -> bool:
        """True if a body was read, or handed out by `stream()`. One that turned out to be empty does not count."""
        return bool(self._body) or self._streamed

    async def _read_again(self) -> builtins.bytes:
        """The body after it was read in pieces.

        Raises the error that reading it raised, and TypeError where nothing was kept.
        """
        outcome = self._outcome
        if outcome is None:
            raise TypeError(
                "the body was read by stream(), which keeps nothing, or not to its end. Read it with bytes() before that"
            )
        if isinstance(outcome, Exception):
            raise outcome
        return await outcome.bytes()

    async def text(self) -> str:
        """The whole body as UTF-8; invalid bytes become U+FFFD, and a byte order mark is dropped."""
        return http.streams.decode(await self.bytes())

    @overload
    async def json(self, /) -> Any: ...
    @overload
    async def json(self, type_: TypeForm[T], /, *, key: str | None = None) -> T: ...
    async def json(self, type_: object = Any, /, *, key: str | None = None) -> object:
        """The body parsed as JSON (RFC 8259), and structured as a `T` when one is given.

        `key` is the member of the body's object that is read, where clients send `{"order": {…}}`. Other members are
        ignored.

        Raises CoreError(400, "Invalid JSON"), also for values nested deeper than 200 levels, CoreError(413) for more
        than 1 MiB (`MAX_JSON`) unless a `body_limit` allows another size, and ValidationError, which is answered with
        422, with the path and message of every mistake, 100 at most. Nothing is converted that only looks alike: no
        "no" to True, no 1 to "1".

            order = await req.json(Order)
            order = await req.json(Order, key="order")
        """
        body = self._body
        if body is None:
            # As `bytes` does it, without the call.
            body = self._body = await (self._read_again() if self._streamed else self._read(self._most_json))
        if len(body) > self._most_json:
            raise CoreError(413, "Payload Too Large")
        try:
            value = loads(body)
        except ValueError:
            raise CoreError(400, "Invalid JSON") from None
        return value if type_ is Any and key is None else (_structure_sent or _load())(value, type_, key)

    async def form(self, limits: FormLimits | None = None, /) -> Form:
        """The fields and files of an urlencoded or multipart body. It is read once and remembered, and so is the body.

        Asked for again it is the same form with the same files; a body that was refused is refused again. Limits other
        than the first time's are held against the remembered body.

        Raises CoreError(415) for any other content type, 400 for a malformed body and 413 past a limit, TypeError after
        `stream()`.
        """
        known = self._form
        if known is not None and known[0] == limits:
            return known[1]
        from core.http.forms import read_form

        first = self._body is None and self._outcome is None
        try:
            form = await read_form(self.header("content-type"), self.stream(), limits, keep=first)
        except Exception as error:
            if first and self._streamed:
                self._outcome = error
            raise
        if isinstance(form._body, builtins.bytes):
            self._body = form._body
        elif first:
            self._outcome = form._body
        self._form = limits, form
        return form

    async def stream(self) -> AsyncIterator[builtins.bytes]:
        """The body in pieces as they come. It is not remembered: read it once, or after `bytes()` and the like.

        Raises TypeError when the body was handed out before.
        """
        if self._body is not None:
            if self._body:
                yield self._body
            return
        if self._streamed:
            outcome = self._outcome
            if outcome is None:
                raise TypeError(
                    "the body was already handed out by stream(). Read it once, and keep what is needed again"
                )
            if isinstance(outcome, Exception):
                raise outcome
            async for chunk in outcome:
                yield chunk
            return
        self._streamed = True
        async for chunk in self._chunks():
            yield chunk

    def _lost_body(self, error: Exception) -> Exception:
        """The error of a body that is not read to its end, which reading it again raises too."""
        self._streamed = True
        self._outcome = error
        return error

    def limit_body(self, most: int, error: Exception, /) -> None:
        """Let reading the body raise `error` once more than `most` bytes have come in. The smallest bound counts, and
        any counts in place of `MAX_JSON`.
        """
        self._most_json = most
        if self._body is not None or self._outcome is not None:
            if (len(self._body) if self._body is not None else getattr(self._outcome, "size", 0)) > most:
                raise error
            return
        unlimited = self._chunks

        async def chunks() -> AsyncIterator[builtins.bytes]:
            size = 0
            async for chunk in unlimited():
                size += len(chunk)
                if size > most:
                    raise self._lost_body(error)
                yield chunk

        async def read(most: int | None = None) -> builtins.bytes:
            self._streamed = True  # until it is whole: nobody takes the rest for it where reading is cancelled
            body = b"".join([chunk async for chunk in self._chunks()])
            self._streamed = False
            return body

        # On the instance, so that a request without a bound pays nothing.
        own: Any = self
        own._chunks, own._read = chunks, read

    # -- the members that a host gives for its own kind of message: url, headers, header, query_string, and these

    async def _read(self, most: int | None = None) -> builtins.bytes:
        """The whole body.

        A host may raise CoreError(413) where it is seen early that there are more than `most` bytes.
        """
        return await self._message.bytes()

    def _chunks(self) -> AsyncIterator[builtins.bytes]:
        return self._message.stream()

    def _opens_websocket(self) -> bool:
        # What a client says in a header decides only where a host is told of a handshake in no other way: a 101 on a
        # connection that goes on as HTTP would let the bytes behind it pass for a second answer.
        return (self.header("upgrade") or "").lower() == "websocket"


class State(dict[str, Any]):
    """The values that an application adds to one request.

    A key of `app.lifespan` gives the value of that lifespan, typed.
    """

    __slots__ = ("_req",)

    def __init__(self, req: Request[Any, Any, Any]) -> None:
        super().__init__()
        self._req = req

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: StateKey[T], /) -> T: ...
        @overload
        def __getitem__(self, key: str, /) -> Any: ...
        def __getitem__(self, key: object, /) -> object: ...

    def __missing__(self, key: object) -> object:
        of = getattr(key, "of", None)  # a StateKey, which few applications load
        if of is None:
            raise KeyError(key)
        return of(self._req)


AnyRequest = Request[Any, Any, Any]
"""A request as middleware sees it that runs before handlers of every kind."""

if TYPE_CHECKING:

    class OpenRequest(Request[Any, Any, Any]):
        """A request as hosts and the dispatcher see it: they set the attributes that handlers only read."""

        # In `Request` these are properties, for type checkers alone.
        env: Any
        ctx: RequestContext  # pyright: ignore[reportIncompatibleMethodOverride]
        params: Params[Any]  # pyright: ignore[reportIncompatibleMethodOverride]
        method: str  # pyright: ignore[reportIncompatibleMethodOverride]
        path: str  # pyright: ignore[reportIncompatibleMethodOverride]

else:
    OpenRequest = Request


_structure_sent: Callable[..., object] | None = None


def _load() -> Callable[..., object]:
    """Load what reads bodies into types, with the first of them."""
    global _structure_sent
    from core.validation.structure import structure_sent

    _structure_sent = structure_sent
    return structure_sent
