"""One request: its chain run, its errors answered, and its response finalized.

Decided here: when `on_send` hooks run and when a response is final. Which chain a request has is decided in `finder`,
how one is built in `chain`, and who answers an error, and how, in `answers`. This file does not
know where requests come from, nor how routes are registered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from core.dispatch.answers import NOT_FOUND, ErrorHandlers, Failures, answer_error, drop_body, drop_null_body
from core.dispatch.finder import NO_CHAINS, Finder
from core.errors import NULL_BODY_STATUSES, CoreError, NothingSentError
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.routing.table import Route
    from core.types import Handler

log: logging.Logger = logging.getLogger("core")


class Dispatcher:
    """Runs requests through the routes that `load` gives, in their order.

    `error_handlers` are the application's own. An error that none of them answers has a default answer: as problem
    details (RFC 9457) with `problem_details`. With `method_not_allowed` a known path refuses other methods by a 405.
    """

    def __init__(
        self,
        load: Callable[[], Iterable[Route]],
        error_handlers: ErrorHandlers,
        *,
        method_not_allowed: bool = False,
        problem_details: bool = False,
    ) -> None:
        self.method_not_allowed = method_not_allowed
        self.problem_details = problem_details
        self.failures: Failures = Failures(
            error_handlers, partial(answer_error, as_problem=True) if problem_details else answer_error
        )
        self.finder: Finder = Finder(load, self._answer_missing, self.failures.catch)
        self.not_found: Handler[Any, Any] | None = None

    def reload(self) -> None:
        """Load the routes and the error handlers anew, since something was registered."""
        self.finder.reload()
        self.failures.nearest.clear()

    # -- one request

    async def respond(self, req: AnyRequest, res: Response) -> None:
        """Run one request. Afterwards `res` is finalized, and its hooks have run.

        A cancelled request stays cancelled. Nothing else that a handler raises leaves a request without an answer:
        neither `SystemExit` nor the cancellation of another task. `core.hosts.asgi` has these lines too, which saves a
        coroutine.
        """
        finder = self.finder
        own: Any = req  # whose parameters handlers only read
        try:
            chain = finder.chains.get(req.method, NO_CHAINS).get(req.path)
            if chain is None:
                chain, own.params, own.path = finder.find(req.method, req.path)
            returned = await chain(req, res)
            if not res.sent:
                raise self.nothing_sent(req, returned)
        except Exception as error:  # whatever a handler raises is answered
            await self.failures.answer(error, req, res)
        except BaseException as error:
            self.failures.end(error, req, res)
        self.finish(req, res)

    def finish(self, req: AnyRequest, res: Response) -> None:
        """Finalize the response of a chain that has ended, and run its hooks."""
        if req.method == "HEAD":
            drop_body(req, res)
        if res.status_code in NULL_BODY_STATUSES:
            drop_null_body(req, res, self.failures.default_answer)
        hooks = res.hooks
        if hooks is None:
            res.finalized = True
            return
        if res.varies:
            res.keep_varies()
        res.finalized = True
        if hooks:
            duration = req._elapsed()
            for hook in hooks:
                try:
                    hook(req, res.status_code, duration)
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

    def nothing_sent(self, req: AnyRequest, returned: object) -> NothingSentError:
        """The error of a chain that ended without an answer; `returned` is its value."""
        from core.explain.unanswered import nothing_sent

        route, middleware = self.finder.route_of(req.method, req.path)
        if route is None:
            return nothing_sent(f"{req.method} {req.path}", self.not_found, middleware, returned)
        return nothing_sent(route.label, route.handler, middleware, returned)

    # -- answering a path without a route

    async def _answer_missing(self, req: AnyRequest, res: Response) -> None:
        if res.sent:
            return  # a middleware sent and then called next(): that answer counts
        if self.method_not_allowed:
            allowed = self.finder.allowed_methods(req.path)
            if allowed and req.method not in allowed:
                raise CoreError(405, headers={"Allow": ", ".join(allowed)})
        if self.not_found is not None:
            await self.not_found(req, res.status(404))
        elif self.problem_details:
            self.failures.default_answer(CoreError(404), req, res)
        else:
            res.status(404)._send("json", NOT_FOUND, "application/json")
