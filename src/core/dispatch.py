"""One request through its chain of middleware and handler.

Everything about order is decided here: which middleware stand before a route, how often `next` may
be called, what an error does after something was sent, when `on_send` hooks run and when a response
has left. This file does not know where requests come from, nor how routes are registered.

Chains are built once. A chain is a plain function that starts the first step and returns what it
awaits; a middleware's `next` does the same for the step after it, so no coroutine stands between
two steps but theirs. For a path without parameters the chain is kept under the path itself, and a
request to it costs one look into one dict.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from core.errors import CoreError, NextCalledTwiceError, NothingSentError
from core.handlers import ErrorHandler, Handler, Middleware, Next, Step, Traits, name_of, traits_of
from core.http.url import canonical_path, odd_in_path, split_path
from core.request import NO_PARAMS, FoundParams, Params, Request
from core.response import NULL_BODY_STATUSES, Block, Hook, Response
from core.routing.pattern import Pattern
from core.routing.scopes import Scope, Scopes
from core.routing.table import Leaf, Table

__all__ = ["ALL", "Dispatcher", "Entry"]

log: logging.Logger = logging.getLogger("core")

Run = Callable[[Any, Response], Awaitable[object]]
ALL = "*"
"""The method of an entry that answers every method."""
_LAST = 1 << 62
_KEPT_CHAINS = 1024
_NOT_FOUND = '{"error":"Not Found"}'


class Entry:
    """One thing that was registered, with its whole path: a route, or one middleware over a prefix."""

    __slots__ = ("handler", "method", "middleware", "pattern")

    def __init__(
        self,
        method: str | None,
        pattern: Pattern,
        middleware: Sequence[Middleware[Any, Any]],
        handler: Handler[Any, Any] | None = None,
    ) -> None:
        self.method: str | None = method
        """The method of a route, ALL for any; None for a middleware over a prefix."""
        self.pattern: Pattern = pattern
        self.middleware: Sequence[Middleware[Any, Any]] = middleware
        self.handler: Handler[Any, Any] | None = handler

    @property
    def label(self) -> str:
        """How messages name a route."""
        method = "any method" if self.method == ALL else self.method
        return f"{method} {self.pattern.text}"


class _Route:
    """A route with its chain, which is built when the first request comes for it."""

    __slots__ = ("chains", "entry", "maybe", "order", "run")

    def __init__(self, order: int, entry: Entry) -> None:
        self.order = order
        self.entry = entry
        self.run: Run | None = None
        self.maybe = False  # whether which middleware cover it depends on the request
        self.chains: dict[tuple[int, ...], Run] | None = None


class _Routes(Table[_Route]):
    """The routes of one method, and the chains of those of their paths that need no care."""

    __slots__ = ("chains",)

    def __init__(self) -> None:
        super().__init__()
        self.chains: dict[str, Run] = {}


class Dispatcher:
    """Runs requests through the entries that `load` gives, in their order."""

    def __init__(self, load: Callable[[], Iterable[Entry]]) -> None:
        self._load = load
        self.on_error: ErrorHandler[Any] | None = None
        self.not_found: Handler[Any, Any] | None = None
        self._tables: dict[str, _Routes] = {}
        self._any: _Routes = _Routes()
        self._scopes: Scopes[Middleware[Any, Any]] = Scopes()
        self._scoped = False
        # What answers a path that no route has: one chain, or one for each set of prefixes with middleware.
        self._nowhere: Run | None = None
        self._chains: dict[tuple[int, ...], Run] = {}
        self.stale: bool = True
        """Whether something was registered since the entries were loaded."""

    # -- one request

    async def respond(self, req: Request[Any, Any, Any], res: Response) -> None:
        """Run one request. Afterwards `res` has left: it is final, and its hooks have run.

        Raises nothing but what is no Exception: a cancelled request stays cancelled.
        """
        if self.stale:
            self._compile()
        try:
            table = self._tables.get(req.method) or self._any
            run = table.chains.get(req.path) or self._locate(req, table)
            await run(req, res)
            if not res.sent:
                raise self._nothing_sent(req)
        except Exception as error:  # whatever a handler raises is answered
            if res.sent or res.staged is not None or res.body is not None or res.status_code != 200:
                res.discard()
            if self.on_error is None:
                _answer(error, req, res)
            else:
                # Here and not in a coroutine of its own, which would take as long as the handler.
                try:
                    if isinstance(error, CoreError) and error.headers:
                        # A challenge or a time to come back belongs to the error, however the handler words it.
                        _stage_headers(error, res, cookies=False)
                    await self.on_error(error, req, res, partial(_fall_back, [error], req, res))
                    if not res.sent:
                        raise self._nothing_handled() from error
                except Exception as raised:
                    _answer_failed_handler(raised, error, req, res)
        except BaseException:
            res.discard()
            raise
        if req.method == "HEAD":
            _drop_body(res, measure=True)
        if res.status_code in NULL_BODY_STATUSES:
            _drop_body(res, measure=False)
            if res.status_code == 101:
                res.keep_for_upgrade()
                res.varies = ()
        if res.hooks is None:
            res.left = True
        else:
            _leave(req, res, res.hooks)

    async def run_within(self, req: Request[Any, Any, Any], res: Response, next: Next) -> None:
        """Run a request as one step of another chain: what matches nothing here goes on to `next`."""
        if self.stale:
            self._compile()
        params = req.params
        try:
            segments = ["", *split_path(req.path)]
            leaf = self._table(req.method).find(segments)
            scopes = self._scopes.covering(segments, _LAST if leaf is None else leaf.order)

            async def leave(req: Request[Any, Any, Any], res: Response) -> None:
                req.params = params  # type: ignore[misc]  # read-only for handlers
                await next()

            if leaf is None:
                await self._chain(scopes, leave)(req, res)
            else:
                req.params = Params(leaf.parameters(segments))  # type: ignore[misc]  # as above
                await self._chain(scopes, self._route_run(leaf.value, leave), leaf)(req, res)
        finally:
            req.params = params  # type: ignore[misc]  # as above

    # -- finding the chain

    def _locate(self, req: Request[Any, Any, Any], table: _Routes) -> Run:
        """The chain for a request that is not to a known path without parameters; sets `req.params`."""
        path = req.path
        head, slash, last = path.rpartition("/")
        leaf = table.tails.get(head)
        if leaf is not None and last.isalnum() and last.isascii() and slash and path not in table.static:
            # The path is canonical: what is before its last segment stands in the table as it is.
            params = req.params = FoundParams()  # type: ignore[misc]  # read-only for handlers
            params.found = {leaf.one: last}
            return leaf.value.run or self._route_chain(leaf, path.split("/"), req)
        # As `is_canonical` has it, without the call.
        if odd_in_path(path) is not None or "/." in path or path[:1] != "/":
            path = req.path = canonical_path(path)  # type: ignore[misc]  # as above
        segments = path.split("/")
        if "%" in path:
            try:
                segments = ["", *split_path(path)]
            except ValueError:
                return self._chain([*self._scopes.everywhere], _malformed)
            leaf = table.find(segments)
        elif segments[-1] == "" and len(segments) > 1:
            segments.pop()  # a trailing slash is ignored
            leaf = table.find(segments)
        else:
            leaf = table.static.get(path) or table.find_among_shapes(segments)
        if leaf is None:
            return self._missing_chain(segments)
        if leaf.names or leaf.rest:
            req.params = Params(leaf.parameters(segments))  # type: ignore[misc]  # as above
            table.keep_tail(leaf, segments)
        return leaf.value.run or self._route_chain(leaf, segments, req)

    def _table(self, method: str) -> _Routes:
        return self._tables.get(method) or self._any

    def _route_chain(self, leaf: Leaf[_Route], segments: list[str], req: Request[Any, Any, Any]) -> Run:
        route = leaf.value
        if not route.maybe:
            scopes, route.maybe = self._scopes.over(route.entry.pattern, route.order)
            if not route.maybe:
                run = route.run = self._chain(scopes, self._route_run(route), leaf)
                if route.entry.pattern.static:
                    self._keep(req.method, segments, run)
                return run
        scopes = self._scopes.covering(segments, route.order)
        key = tuple(scope.order for scope in scopes)
        if route.chains is None:
            route.chains = {}
        chain = route.chains.get(key)
        if chain is None:
            chain = self._chain(scopes, self._route_run(route), leaf)
            if len(route.chains) < _KEPT_CHAINS:
                route.chains[key] = chain
        return chain

    def _keep(self, method: str, segments: list[str], run: Run) -> None:
        """Keep the chain of a path without parameters under the path, for every spelling that needs no care."""
        path = "/".join(segments)
        table = self._table(method)
        if path == "" or path in table.static:
            table.chains[path or "/"] = run

    def _missing_chain(self, segments: list[str]) -> Run:
        if not self._scoped:
            if self._nowhere is None:
                self._nowhere = self._chain(self._scopes.everywhere, self._missing)
            return self._nowhere
        scopes = self._scopes.covering(segments, _LAST)
        key = tuple(scope.order for scope in scopes)
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chain(scopes, self._missing)
            if len(self._chains) < _KEPT_CHAINS:
                self._chains[key] = chain
        return chain

    # -- building chains

    def _chain(self, scopes: Sequence[Scope[Middleware[Any, Any]]], end: Run, leaf: Leaf[_Route] | None = None) -> Run:
        """The middleware of `scopes`, then `end`."""
        known = frozenset(leaf.names) if leaf is not None else frozenset[tuple[str, int]]()
        run = end
        plain: list[Middleware[Any, Any]] = []
        for scope in reversed(scopes):
            if known.issuperset(scope.names):
                plain.append(scope.value)
            else:
                # Its prefix names parameters that the route does not: it sees its own beside the route's.
                run = _link_with_own_parameters(scope.value, scope.names, _links(plain, run))
                plain = []
        return _links(plain, run)

    def _route_run(self, route: _Route, end: Run | None = None) -> Run:
        entry = route.entry
        run: Run
        if entry.handler is not None:
            run = cast("Run", entry.handler)
        else:
            order = route.order

            def go_on(req: Request[Any, Any, Any], res: Response) -> Awaitable[object]:
                return self._resume(req, res, order, end or self._missing)

            run = go_on
        return _links([_placed(middleware, entry.label) for middleware in reversed(entry.middleware)], run)

    async def _resume(self, req: Request[Any, Any, Any], res: Response, after: int, end: Run) -> None:
        """Go on behind the route of the order `after`: to the next that matches, or to the end."""
        segments = ["", *split_path(req.path)]
        leaf = next(self._table(req.method).matches(segments, after), None)
        before = _LAST if leaf is None else leaf.order
        scopes = self._scopes.covering(segments, before, after)
        run = end if leaf is None else self._route_run(leaf.value, end)
        params = req.params
        req.params = NO_PARAMS if leaf is None else Params(leaf.parameters(segments))  # type: ignore[misc]  # as above
        try:
            await self._chain(scopes, run, leaf)(req, res)
        finally:
            req.params = params  # type: ignore[misc]  # as above

    async def _missing(self, req: Request[Any, Any, Any], res: Response) -> None:
        if res.sent:
            return  # a middleware sent and then called next(): that answer stands
        if self.not_found is not None:
            await self.not_found(req, res)
        else:
            res.status(404)._send("json", _NOT_FOUND, "application/json")

    # -- failing

    def _nothing_handled(self) -> NothingSentError:
        return NothingSentError(
            f"the error handler {name_of(self.on_error)} ended without sending. Send something in it, or "
            "`await next(err)` for the default answer"
        )

    def _nothing_sent(self, req: Request[Any, Any, Any]) -> NothingSentError:
        label = f"{req.method} {req.path}"
        try:
            leaf = self._table(req.method).find(["", *split_path(req.path)])
        except ValueError:
            leaf = None
        if leaf is not None:
            entry = leaf.value.entry
            label = entry.label if entry.handler is None else f"{entry.label} ({name_of(entry.handler)})"
        return NothingSentError(
            f"the chain of {label} ended without sending anything. Send with res.json(…) or another method of `res`; "
            "in a middleware, `await next()` and do not forget the await"
        )

    # -- loading

    def _compile(self) -> None:
        """Load the entries. Routes of one method stand in one table; ALL stands in each."""
        tables: dict[str, _Routes] = {}
        any_method = _Routes()
        for_all: list[tuple[int, Entry, _Route]] = []
        scopes: Scopes[Middleware[Any, Any]] = Scopes()
        scoped = False
        entries = list(self._load())
        # HEAD is answered by GET without the body, from the same table unless there are routes for HEAD alone.
        get_methods = ("GET", "HEAD") if any(entry.method == "HEAD" for entry in entries) else ("GET",)
        for order, entry in enumerate(entries):
            if entry.method is None:
                scoped = scoped or bool(entry.pattern.parts)
                for middleware in entry.middleware:
                    scopes.add(order, entry.pattern, _placed(middleware, entry.pattern.text))
                continue
            route = _Route(order, entry)
            methods: Iterable[str]
            if entry.method == ALL:
                for_all.append((order, entry, route))
                any_method.add(order, entry.pattern, route)
                methods = tables
            else:
                methods = get_methods if entry.method == "GET" else (entry.method,)
                for method in methods:
                    if method not in tables:
                        table = tables[method] = _Routes()
                        for earlier, for_any, its_route in for_all:
                            table.add(earlier, for_any.pattern, its_route)
            for method in methods:
                tables[method].add(order, entry.pattern, route)
        if "GET" in tables:
            tables.setdefault("HEAD", tables["GET"])
        self._tables, self._any, self._scopes, self._scoped = tables, any_method, scopes, scoped
        self._nowhere, self._chains = None, {}
        self.stale = False


# -- links of a chain


def _placed(middleware: Middleware[Any, Any], place: str) -> Middleware[Any, Any]:
    """The middleware as it stands in one place, told apart by the place's name."""
    traits = traits_of(middleware)
    return middleware if traits is None or traits.placed is None else traits.placed(place)


def _links(chain: Iterable[Middleware[Any, Any]], follow: Run) -> Run:
    """What runs a chain and then `follow`; `chain` comes with its last first."""
    row: list[Traits] = []
    for middleware in chain:
        traits = traits_of(middleware)
        if traits is not None and traits.public:
            continue
        if traits is not None and traits.before is not None:
            row.insert(0, traits)
        else:
            follow, row = _link(middleware, _after(row, follow)), []
    return _after(row, follow)


def _after(row: Sequence[Traits], follow: Run) -> Run:
    """What runs a row of middleware that want no `next`, and then `follow`, unless one answers in its stead."""
    if not row:
        return follow
    every, hooks, block = _at_once(row)

    def run(req: Request[Any, Any, Any], res: Response) -> Awaitable[object]:
        if hooks:
            res.hooks = hooks.copy() if res.hooks is None else res.hooks + hooks
        if block is None:
            pass
        elif res.staged is None:
            res.staged = {}
            res.block = block  # as `put` has it, without the call
        else:
            res.put(block)
        for step in every:
            instead = step(req, res)
            if instead is not None:
                return instead
        return follow(req, res)

    return run


def _at_once(row: Sequence[Traits]) -> tuple[tuple[Step, ...], list[Hook], Block | None]:
    """The steps of a row of middleware, and what can be done ahead of them all.

    That is what is done for every response alike, where no step before it may end the chain or stages a header of the
    same name.
    """
    steps: list[Step] = []
    hooks: list[Hook] = []
    block: Block | None = None
    staged: frozenset[str] | None = frozenset()
    for traits in row:
        what = traits.always
        if what is None or staged is None or (isinstance(what, Block) and not what.taken.isdisjoint(staged)):
            steps.append(cast("Step", traits.before))
            staged = None if staged is None or traits.stages is None else staged | traits.stages
        elif isinstance(what, Block):
            block = what if block is None else block.joined[what]
        else:
            hooks.append(what)
    return tuple(steps), hooks, block


def _link(middleware: Middleware[Any, Any], follow: Run) -> Run:
    """A step that runs `middleware`, whose `next` starts `follow`."""

    def run(req: Request[Any, Any, Any], res: Response) -> Awaitable[object]:
        called = False

        def next(err: BaseException | None = None, /) -> Awaitable[Any]:
            nonlocal called
            if err is not None:
                raise err
            if called:
                raise _called_twice(middleware)
            called = True
            return follow(req, res)

        return middleware(req, res, next)

    return run


def _called_twice(middleware: object) -> NextCalledTwiceError:
    return NextCalledTwiceError(
        f"{name_of(middleware)} called next() twice. The rest of the chain runs once: keep what the first call gave"
    )


def _link_with_own_parameters(middleware: Middleware[Any, Any], names: tuple[tuple[str, int], ...], follow: Run) -> Run:
    """As `_link`, for a middleware whose prefix names parameters otherwise than the route does."""

    async def run(req: Request[Any, Any, Any], res: Response) -> None:
        theirs = req.params
        segments = ["", *split_path(req.path)]
        own = Params({**theirs, **{name: segments[index] for name, index in names}})

        async def follow_with_theirs(req: Request[Any, Any, Any], res: Response) -> None:
            req.params = theirs  # type: ignore[misc]  # read-only for handlers
            try:
                await follow(req, res)
            finally:
                req.params = own  # type: ignore[misc]  # as above

        req.params = own  # type: ignore[misc]  # as above
        try:
            await _links([middleware], follow_with_theirs)(req, res)
        finally:
            req.params = theirs  # type: ignore[misc]  # as above

    return run


async def _malformed(req: Request[Any, Any, Any], res: Response) -> None:
    raise CoreError(400, "Malformed path")


def _leave(req: Request[Any, Any, Any], res: Response, hooks: list[Hook]) -> None:
    """Let a response leave that middleware have something to do with."""
    if res.varies:
        res.keep_varies()
    res.left = True
    if hooks:
        status = res.status_code
        duration = req._elapsed()
        for hook in hooks:
            try:
                hook(req, status, duration)
            except Exception:
                log.exception("an on_send callback of %s %s raised", req.method, req.path)
    tokens = res.tokens
    while tokens is not None:
        # An application may have been called from another one, which finds its own values again.
        variable, token, tokens = tokens
        try:  # noqa: SIM105 - contextlib.suppress takes longer than the rest of this
            variable.reset(token)
        except ValueError:
            pass  # it was set in a task of its own, which took it along


# -- answers


async def _fall_back(
    errors: list[Exception], req: Request[Any, Any, Any], res: Response, err: BaseException | None = None, /
) -> None:
    """The `next` of the error handler: the default answer to the last of `errors`, which `err` joins."""
    if isinstance(err, Exception):
        errors.append(err)
    res.discard()
    _answer(errors[-1], req, res)


def _answer_failed_handler(raised: Exception, error: Exception, req: Request[Any, Any, Any], res: Response) -> None:
    """Answer `error` where the error handler raised: perhaps only the same error again."""
    if raised is not error:
        log.error("the error handler failed on %s %s", req.method, req.path, exc_info=raised)
        # An answer raised by the handler is one it chose; any other failure leaves the first error's.
        error = raised if isinstance(raised, CoreError) else error
    res.discard()
    _answer(error, req, res)


def _answer(error: Exception, req: Request[Any, Any, Any], res: Response) -> None:
    """The default answer to an error. Nothing of an unexpected error reaches the client."""
    if isinstance(error, CoreError):
        if error.headers:
            _stage_headers(error, res, cookies=True)
        try:
            res.status(error.status).json(error.body)
        except (TypeError, ValueError):
            log.exception("the metadata of CoreError(%s, %r) has no JSON form", error.status, error.message)
            res.discard()
            res.status(error.status).json({"error": error.message})
        return
    status: Any = getattr(error, "status", None)
    if status.__class__ is int and 400 <= status <= 499:
        message = getattr(error, "message", None)
        res.status(status).json({"error": message if isinstance(message, str) else str(error)})
        return
    log.error("%s %s failed", req.method, req.path, exc_info=error)
    res.status(status if status.__class__ is int and 500 <= status <= 599 else 500).json(
        {"error": "Internal Server Error"}
    )


def _stage_headers(error: CoreError, res: Response, *, cookies: bool) -> None:
    """Put an error's headers on the response. One that no response can have is logged and left out."""
    for name, value in error.headers.items():
        try:
            if cookies or name.lower() != "set-cookie":
                res.header(name, value)
        except (AttributeError, TypeError):
            log.exception("a header of CoreError(%s, %r) is none that HTTP allows", error.status, error.message)


def _drop_body(res: Response, *, measure: bool) -> None:
    """Take the body away; with `measure`, leave word of how long it was, as an answer to HEAD does."""
    body = res.body
    if body is not None:
        if measure and isinstance(body, str | bytes):
            length = len(body.encode() if isinstance(body, str) else body)
            if res.staged is None or "content-length" not in res.staged:
                res.header("content-length", str(length))
        res.body = None
    if not measure:
        res.content_type = None
        if res.staged is not None:
            res.staged.pop("content-length", None)
            if res.status_code != 304:
                res.staged.pop("content-type", None)
