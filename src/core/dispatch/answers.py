"""The default answers: to an error, to a path without a route, to HEAD and to a status that has no body.

Nothing of an unexpected error reaches the client; `core.errors.CoreError` is the one that a client is told. The
statuses and bodies are those of RFC 9110; an application may choose the bodies of RFC 9457. This file does not know
chains or routes.

Decided here too: which error handler answers which error, what `next(err)` does in one, and what becomes of an error
that a handler raises.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from core.errors import CoreError, NothingSentError, phrase_of, plain_status
from core.handlers import name_of
from core.http.streams import close, encode
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.dispatch.chain import Run
    from core.types import ErrorHandler

log: logging.Logger = logging.getLogger("core")

DefaultAnswer = Callable[[Exception, AnyRequest, Response], None]
"""Answers an error that no error handler answers: `answer_error`."""
ErrorHandlers = Mapping[type[Exception], "ErrorHandler[Any]"]
"""The error handlers of one router, by the class of errors that each was registered for."""

NOT_FOUND = '{"error":"Not Found"}'
"""The JSON body for a path that no route matches."""
FAILED = '{"error":"Internal Server Error"}'
"""The JSON body where nothing else can be said."""

_CLASSES_MOST = 256


async def refuse_malformed(req: AnyRequest, res: Response) -> None:
    """The end of the chain for a path with malformed escapes."""
    raise CoreError(400, "Malformed path")


def discard(req: AnyRequest, res: Response) -> None:
    """Take back what was sent. A stream that nobody is going to read is closed, beside the request."""
    body = res.body
    res.discard()
    abandon(req, body)


def abandon(req: AnyRequest, body: object) -> None:
    """Have a body closed that was sent and that no client gets."""
    if body is not None and not isinstance(body, str | bytes):
        req.ctx.wait_until(close(body))


def answer_error(error: Exception, req: AnyRequest, res: Response, *, as_problem: bool = False) -> None:
    """The default answer to an error: `{"error": message, **metadata}`, or problem details (RFC 9457).

    Of a problem `title` is the standard phrase of the status and `detail` the message. Metadata are extension members;
    one called `type`, `title`, `detail` or `instance` replaces that member.
    """
    try:
        answered = _for_client(error, req)
        body: Mapping[str, object] = answered.body
        bare: dict[str, object] = {"error": answered.message}
        if as_problem:
            bare = {"type": "about:blank", "title": phrase_of(answered.status), "status": answered.status}
            if answered.message != bare["title"]:
                bare["detail"] = answered.message
            body = {**bare, **answered.metadata, "status": answered.status}
        _send(answered, body, bare, res)
    except Exception:  # the error's own attributes and methods are the program's
        log.exception("the answer to an error of %s %s failed", req.method, req.path)
        res.discard()
        res.status(500)._send("json", FAILED, "application/json")
    if as_problem:
        res.content_type = "application/problem+json"


def body_failed(error: Exception, req: AnyRequest) -> None:
    """Log the error of a streamed body. Its status has left: the client finds that the body breaks off."""
    from core.explain.diagnosis import log_failure

    log_failure(error, "%s %s failed in the middle of its body", req.method, req.path)


async def logged(awaitable: Awaitable[object]) -> None:
    """Await work that was given to `wait_until`. Its error is logged and harms nothing."""
    try:
        await awaitable
    except Exception as error:
        from core.explain.diagnosis import log_failure

        log_failure(error, "background work given to wait_until failed")


def _for_client(error: Exception, req: AnyRequest) -> CoreError:
    """An error as the client is told it. Nothing of an unexpected error reaches the client: it is logged."""
    if isinstance(error, CoreError):
        return error
    status = plain_status(getattr(error, "status", None)) or 500
    if 400 <= status <= 499:
        # Only its `message` is meant for others: its text may name hosts, keys and statements.
        message = getattr(error, "message", None)
        return CoreError(status, message if isinstance(message, str) else None)
    from core.errors.bindings import BindingError
    from core.explain.diagnosis import log_failure

    log_failure(error, "%s %s failed", req.method, req.path)
    if isinstance(error, BindingError) and error.retryable:
        # A node of the cluster is away, an object was reset, a connection lost: it may be well again in a moment.
        return CoreError(503, headers={"Retry-After": "1"})
    return CoreError(status if 500 <= status <= 599 else 500, "Internal Server Error")


def _send(error: CoreError, body: Mapping[str, object], bare: Mapping[str, object], res: Response) -> None:
    """Send an error with its headers; `bare` is the body without its metadata."""
    if error.headers:
        stage_error_headers(error, res, cookies=True)
    try:
        res.status(error.status).json(body)
    except (TypeError, ValueError):
        log.exception("the metadata of CoreError(%s, %r) has no JSON form", error.status, error.message)
        res.discard()
        res.status(error.status).json(bare)


def stage_error_headers(error: CoreError, res: Response, *, cookies: bool) -> None:
    """Put an error's headers on the response. One that no response can have is logged and left out."""
    for name, value in error.headers.items():
        try:
            if cookies or name.lower() != "set-cookie":
                res.header(name, value)
        except (AttributeError, TypeError):
            log.exception("a header of CoreError(%s, %r) is not one that HTTP allows", error.status, error.message)


def drop_body(req: AnyRequest, res: Response) -> None:
    """Take the body away for an answer to HEAD, and stage its length."""
    body = res.body
    if isinstance(body, str | bytes):
        res.header("content-length", str(len(encode(body) if isinstance(body, str) else body)))
    res.body = None
    abandon(req, body)


def drop_null_body(req: AnyRequest, res: Response, answer: DefaultAnswer) -> None:
    """Take the body away for a status that has none, with the headers that describe it.

    A 101 on a connection that opens no WebSocket becomes a 426, sent by `answer`: a client would take the bytes that
    follow a switch of protocols for the next answer. One that hands the connection over becomes a 403 for a page of
    another site, which a browser lets connect with the user's cookies, unless the response's
    `Access-Control-Allow-Origin` names the site.
    """
    abandon(req, res.body)
    res.body = res.content_type = None
    if res.staged is not None:
        res.staged.pop("content-length", None)
        if res.status_code != 304:
            res.staged.pop("content-type", None)
    if res.status_code != 101:
        return
    if res.upgrade is None or not req._opens_websocket():
        log.error(
            "%s %s answered 101 on a connection that opens no WebSocket: 426 was sent instead", req.method, req.path
        )
        discard(req, res)
        answer(CoreError(426, headers={"Upgrade": "websocket"}), req, res)
    elif res.upgrade.peer is not None and is_cross_site(req, res):
        discard(req, res)
        answer(CoreError(403, "Forbidden", code="CROSS_SITE_REQUEST"), req, res)
    else:
        res.keep_for_upgrade()
        res.varies = ()


def is_cross_site(req: AnyRequest, res: Response) -> bool:
    """Return True for a page of another site, unless `Access-Control-Allow-Origin` on the response names the site."""
    origin = req.header("origin")
    if origin is None or res.unblocked().get("access-control-allow-origin") in ("*", origin):
        return False
    from core.http.url import is_same_origin

    return not is_same_origin(origin, req.url)


class Failures:
    """The error handlers of an application, and the default answer behind them."""

    def __init__(self, handlers: ErrorHandlers, default_answer: DefaultAnswer) -> None:
        self.handlers: ErrorHandlers = handlers
        """The application's own; those of a router stand before them in the levels of `answer`."""
        self.levels: tuple[ErrorHandlers, ...] = (handlers,)
        self.nearest: dict[type[Exception], ErrorHandler[Any] | None] = _Nearest(handlers)
        """The application's handler for each class of errors that was met. Cleared when another is registered."""
        self.default_answer: DefaultAnswer = default_answer
        self.on_failure: Callable[[Exception], object] | None = None
        """Called with every error that is going to be answered, by `core dev` and in tests."""

    def catch(self, levels: tuple[ErrorHandlers, ...], follow: Run) -> Run:
        """A chain that runs `follow`, and answers its error where the first of the levels has a handler for it."""
        above = (*levels, self.handlers)

        async def run(req: AnyRequest, res: Response) -> None:
            try:
                await follow(req, res)
            except Exception as error:
                if _handler_for(error, levels[:1]) is None:
                    raise
                await self.answer(error, req, res, above)

        return run

    async def answer(
        self,
        error: Exception,
        req: AnyRequest,
        res: Response,
        levels: tuple[ErrorHandlers, ...] | None = None,
        tried: tuple[ErrorHandler[Any], ...] = (),
    ) -> None:
        """Take back what was sent, and answer an error by the first handler in `levels` that was not `tried`, or by the
        default answer. Without `levels` those of the application answer it.
        """
        if self.on_failure is not None and not tried:
            self.on_failure(error)
        if res.sent or res.staged is not None or res.status_code != 200:
            discard(req, res)
        handler = _handler_for(error, levels or self.levels, tried) if levels or tried else self.nearest[type(error)]
        if handler is None:
            self.default_answer(error, req, res)
            return
        next = partial(_go_on, self, [error], req, res, levels, tried, handler)  # quicker to make than a closure
        try:
            if isinstance(error, CoreError) and error.headers:
                # A challenge or a time to come back belongs to the error, however the handler words it.
                stage_error_headers(error, res, cookies=False)
            await handler(error, req, res, next)
            if not res.sent:
                raise NothingSentError(
                    f"the error handler {name_of(handler)} ended without sending. Send something in it, or "
                    "`await next(err)` for the default answer"
                ) from error
        except Exception as raised:
            await self.answer(_last_error(raised, error, req), req, res, levels, (*tried, handler))
        except BaseException as raised:
            self.end(raised, req, res)

    def end(self, error: BaseException, req: AnyRequest, res: Response) -> None:
        """Take back what was sent, and answer what is no Exception, or raise it where it ends the request itself."""
        discard(req, res)
        from core.explain.unanswered import unanswerable

        failure = unanswerable(error)
        if failure is None:
            raise error
        if self.on_failure is not None:
            self.on_failure(failure)
        self.default_answer(failure, req, res)


def _go_on(
    failures: Failures,
    last: list[Exception],
    req: AnyRequest,
    res: Response,
    levels: tuple[ErrorHandlers, ...] | None,
    tried: tuple[ErrorHandler[Any], ...],
    handler: ErrorHandler[Any],
    err: BaseException | None = None,
    /,
) -> Awaitable[None]:
    """The `next(err)` of an error handler."""
    if isinstance(err, Exception):
        last[0] = err
    return failures.answer(last[0], req, res, levels, (*tried, handler))


def _handler_for(
    error: Exception, levels: Iterable[ErrorHandlers], tried: Collection[ErrorHandler[Any]] = ()
) -> ErrorHandler[Any] | None:
    """The handler for an error: of the nearest router that has one, that for the nearest class; none of `tried`."""
    for handlers in levels:
        if handlers:
            for cls in type(error).__mro__:
                handler = handlers.get(cls)
                if handler is not None and handler not in tried:
                    return handler
    return None


class _Nearest(dict[type[Exception], "ErrorHandler[Any] | None"]):
    """The handler of one router for each class of errors, looked for once.

    A program may make classes without end, so the table begins anew at some number.
    """

    def __init__(self, handlers: ErrorHandlers) -> None:
        self._handlers = handlers

    def __missing__(self, cls: type[Exception]) -> ErrorHandler[Any] | None:
        if len(self) >= _CLASSES_MOST:
            self.clear()
        handlers = self._handlers
        found = self[cls] = next((handlers[base] for base in cls.__mro__ if base in handlers), None)
        return found


def _last_error(raised: Exception, error: Exception, req: AnyRequest) -> Exception:
    """The error to answer where the handler of `error` raised: perhaps only the same error again.

    A CoreError is the answer that the handler chose, and no failure of it; any other leaves the first error's, and is
    logged.
    """
    if raised is error or isinstance(raised, CoreError):
        return raised
    log.error("the error handler failed on %s %s", req.method, req.path, exc_info=raised)
    return error
