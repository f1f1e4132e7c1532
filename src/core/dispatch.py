"""One request: its chain run, its errors answered, and its response finalized.

Decided here: the effect of an error after something was sent, when `on_send` hooks run and when a response is final.
Which chain a request has is decided in `core.finding`, how one is built in `core.chain`, the default answers in
`core.answers`. This file does not know where requests come from, nor how routes are registered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from core.answers import (
    NOT_FOUND,
    DefaultAnswer,
    ErrorHandlers,
    answer_error,
    answer_problem,
    discard,
    drop_body,
    drop_null_body,
    find_error_handler,
    last_error,
    stage_error_headers,
)
from core.chain import Run
from core.errors import NULL_BODY_STATUSES, CoreError, NothingSentError
from core.finding import LAST, ChainFinder, Entry, build_scoped
from core.handlers import name_of
from core.http.paths import split_path
from core.request import AnyRequest, OpenRequest, Params
from core.response import Hook, NarrowingHooks, Response

if TYPE_CHECKING:
    from core.shapes import ErrorHandler, Handler, Next

__all__ = ["Dispatcher"]

log: logging.Logger = logging.getLogger("core")


class Dispatcher(ChainFinder):
    """Runs requests through the entries that `load` gives, in their order.

    `error_handlers` are the application's own. An error that none of them answers has a default answer: as problem
    details (RFC 9457) with `problem_details`. With `method_not_allowed` a known path refuses other methods by a 405.
    """

    def __init__(
        self,
        load: Callable[[], Iterable[Entry]],
        error_handlers: ErrorHandlers,
        *,
        method_not_allowed: bool = False,
        problem_details: bool = False,
    ) -> None:
        super().__init__(load)
        self.error_handlers = error_handlers
        self.method_not_allowed = method_not_allowed
        self.problem_details = problem_details
        self.default_answer: DefaultAnswer = answer_problem if problem_details else answer_error
        self.on_failure: Callable[[Exception], object] | None = None
        """Called with every error that is going to be answered, by `core dev` and in tests."""
        self.not_found: Handler[Any, Any] | None = None
        # The application's error handler, where it has one for all errors and no other.
        self._only_handler: ErrorHandler[Any] | None = None
        self._end: Run = self._answer_missing
        if method_not_allowed or problem_details:
            self._end = self._answer_missing_by_choice

    @property
    def on_error(self) -> ErrorHandler[Any] | None:
        """The application's handler for every error, if it has one."""
        return self.error_handlers.get(Exception)

    def _compile(self) -> None:
        super()._compile()
        self._only_handler = self.on_error if len(self.error_handlers) == 1 else None

    # -- one request

    async def respond(self, req: AnyRequest, res: Response) -> None:
        """Run one request. Afterwards `res` is finalized, and its hooks have run.

        A cancelled request stays cancelled. Nothing else that a handler raises leaves a request without an answer:
        neither `SystemExit` nor the cancellation of another task.
        """
        if self.stale:
            self._compile()
        try:
            table = self._tables[req.method]
            run = table.chains.get(req.path) or self._find_chain(req, table)
            returned = await run(req, res)
            if not res.sent:
                raise self._nothing_sent(req, returned)
        except Exception as error:  # whatever a handler raises is answered
            if res.sent or res.staged is not None or res.body is not None or res.status_code != 200:
                discard(req, res)
            if self.on_failure is not None:
                self.on_failure(error)
            handler = self._only_handler
            if handler is None:
                if self.error_handlers:
                    await self._answer(error, req, res, (self.error_handlers,))
                else:
                    self.default_answer(error, req, res)
            else:
                # As `_answer` has it, without a coroutine of its own, which would cost as much as the handler.
                try:
                    if isinstance(error, CoreError) and error.headers:
                        # A challenge or a time to come back belongs to the error, however the handler words it.
                        stage_error_headers(error, res, cookies=False)
                    await handler(error, req, res, partial(self._answer_next, [error], req, res))
                    if not res.sent:
                        raise _nothing_handled(handler) from error
                except Exception as raised:
                    discard(req, res)
                    self.default_answer(last_error(raised, error, req), req, res)
        except BaseException as stray:
            discard(req, res)
            from core.unanswered import unanswerable

            failure = unanswerable(stray)
            if failure is None:
                raise
            if self.on_failure is not None:
                self.on_failure(failure)
            self.default_answer(failure, req, res)
        if req.method == "HEAD":
            drop_body(req, res)
        if res.status_code in NULL_BODY_STATUSES:
            drop_null_body(req, res, self.default_answer)
        if res.hooks is None:
            res.finalized = True
        else:
            _finish(req, res, res.hooks)

    async def run_within(self, req: AnyRequest, res: Response, next: Next) -> None:
        """Run a request as one step of another chain: a path that matches nothing here goes on to `next`."""
        if self.stale:
            self._compile()
        own = cast("OpenRequest", req)
        params = own.params
        try:
            segments = ["", *split_path(own.path)]
            leaf = self._tables[own.method].find(segments)
            scopes = self._scopes.covering(segments, LAST if leaf is None else leaf.order)

            async def go_on(req: OpenRequest, res: Response) -> None:
                req.params = params
                await next()

            if leaf is None:
                await build_scoped(scopes, go_on)(own, res)
            else:
                own.params = Params(leaf.parameters(segments))
                await self._build_whole(scopes, leaf, go_on)(own, res)
        finally:
            own.params = params

    # -- answering a path without a route

    async def _answer_missing(self, req: AnyRequest, res: Response) -> None:
        if res.sent:
            return  # a middleware sent and then called next(): that answer counts
        if self.not_found is not None:
            await self.not_found(req, res)
        else:
            res.status(404)._send("json", NOT_FOUND, "application/json")

    async def _answer_missing_by_choice(self, req: AnyRequest, res: Response) -> None:
        """As `_answer_missing`, for an application that chose a 405 or problem details."""
        if self.method_not_allowed and not res.sent:
            allowed = self._allowed_methods(["", *split_path(req.path)])
            if allowed and req.method not in allowed:
                raise CoreError(405, headers={"Allow": ", ".join(allowed)})
        if self.problem_details and self.not_found is None and not res.sent:
            self.default_answer(CoreError(404), req, res)
        else:
            await self._answer_missing(req, res)

    # -- failing

    def _catch(self, levels: tuple[ErrorHandlers, ...], follow: Run) -> Run:
        """Run `follow`, and answer its error by the first of the levels, where that has a handler for it."""

        async def run(req: AnyRequest, res: Response) -> None:
            try:
                await follow(req, res)
            except Exception as error:
                if find_error_handler(error, levels[:1]) is None:
                    raise
                if self.on_failure is not None:
                    self.on_failure(error)
                discard(req, res)
                await self._answer(error, req, res, levels)

        return run

    async def _answer(
        self,
        error: Exception,
        req: AnyRequest,
        res: Response,
        levels: Sequence[ErrorHandlers],
        tried: tuple[ErrorHandler[Any], ...] = (),
    ) -> None:
        """Answer an error by the first of the handlers that were not tried, or by the default answer."""
        handler = find_error_handler(error, levels, tried)
        if handler is None:
            self.default_answer(error, req, res)
            return
        tried = (*tried, handler)
        try:
            if isinstance(error, CoreError) and error.headers:
                stage_error_headers(error, res, cookies=False)
            await handler(error, req, res, partial(self._answer_next, [error], req, res, levels=levels, tried=tried))
            if not res.sent:
                raise _nothing_handled(handler) from error
        except Exception as raised:
            discard(req, res)
            await self._answer(last_error(raised, error, req), req, res, levels, tried)

    async def _answer_next(
        self,
        errors: list[Exception],
        req: AnyRequest,
        res: Response,
        err: BaseException | None = None,
        /,
        *,
        levels: Sequence[ErrorHandlers] = (),
        tried: tuple[ErrorHandler[Any], ...] = (),
    ) -> None:
        """The `next` of an error handler: the last of `errors`, which `err` joins, goes to the handlers not tried."""
        if isinstance(err, Exception):
            errors.append(err)
        discard(req, res)
        await self._answer(errors[-1], req, res, levels, tried)

    def _nothing_sent(self, req: AnyRequest, returned: object) -> NothingSentError:
        from core.unanswered import nothing_sent

        try:
            segments = ["", *split_path(req.path)]
        except ValueError:
            segments = [""]
        leaf = self._tables[req.method].find(segments)
        if leaf is None:
            steps = [scope.value for scope in self._scopes.covering(segments, LAST)]
            return nothing_sent(f"{req.method} {req.path}", self.not_found, steps, returned)
        route = leaf.value
        steps = [scope.value for scope in self._scopes.covering(segments, route.order)] + route.middleware
        return nothing_sent(route.entry.label, route.entry.handler, steps, returned)


def _nothing_handled(handler: ErrorHandler[Any]) -> NothingSentError:
    return NothingSentError(
        f"the error handler {name_of(handler)} ended without sending. Send something in it, or `await next(err)` for "
        "the default answer"
    )


def _finish(req: AnyRequest, res: Response, hooks: list[Hook]) -> None:
    """Finalize a response that has hooks, names of `Vary` or context variables."""
    if res.varies:
        res.keep_varies()
    if hooks.__class__ is not list:
        cast("NarrowingHooks", hooks).narrow(req, res)
    res.finalized = True
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
