"""The default answers: to an error, to a path without a route, to HEAD and to a status that has no body.

Nothing of an unexpected error reaches the client; `core.errors.CoreError` is the one that a client is told. The statuses
and bodies are those of RFC 9110. This file does not know chains or routes.
"""

from __future__ import annotations

import logging

from core.errors import CoreError, plain_status
from core.http.streams import encode
from core.request import AnyRequest
from core.response import Response

__all__ = [
    "NOT_FOUND",
    "answer_error",
    "answer_failed_handler",
    "answer_last_error",
    "drop_body",
    "drop_null_body",
    "refuse_malformed",
    "stage_error_headers",
]

log: logging.Logger = logging.getLogger("core")

NOT_FOUND = '{"error":"Not Found"}'
"""The JSON body for a path that no route matches."""


async def refuse_malformed(req: AnyRequest, res: Response) -> None:
    """The end of the chain for a path with malformed escapes."""
    raise CoreError(400, "Malformed path")


def answer_error(error: Exception, req: AnyRequest, res: Response) -> None:
    """The default answer to an error. Nothing of an unexpected error reaches the client."""
    if isinstance(error, CoreError):
        if error.headers:
            stage_error_headers(error, res, cookies=True)
        try:
            res.status(error.status).json(error.body)
        except (TypeError, ValueError):
            log.exception("the metadata of CoreError(%s, %r) has no JSON form", error.status, error.message)
            res.discard()
            res.status(error.status).json({"error": error.message})
        return
    status = plain_status(getattr(error, "status", None)) or 500
    if 400 <= status <= 499:
        # Only its `message` is meant for others: its text may name hosts, keys and statements.
        message = getattr(error, "message", None)
        res.status(status).json({"error": message if isinstance(message, str) else _phrase(status)})
        return
    log.error("%s %s failed", req.method, req.path, exc_info=error)
    res.status(status if 500 <= status <= 599 else 500).json({"error": "Internal Server Error"})


def _phrase(status: int) -> str:
    """The reason phrase of a status of 400 to 499 (RFC 9110, section 15.5); an unknown one is treated as 400."""
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return HTTPStatus.BAD_REQUEST.phrase


async def answer_last_error(
    errors: list[Exception], req: AnyRequest, res: Response, err: BaseException | None = None, /
) -> None:
    """The `next` of the error handler: the default answer to the last of `errors`, which `err` joins."""
    if isinstance(err, Exception):
        errors.append(err)
    res.discard()
    answer_error(errors[-1], req, res)


def answer_failed_handler(raised: Exception, error: Exception, req: AnyRequest, res: Response) -> None:
    """Answer `error` where the error handler raised: perhaps only the same error again."""
    if raised is not error:
        log.error("the error handler failed on %s %s", req.method, req.path, exc_info=raised)
        # A CoreError raised by the handler is the answer that it chose; any other failure leaves the first error's.
        error = raised if isinstance(raised, CoreError) else error
    res.discard()
    answer_error(error, req, res)


def stage_error_headers(error: CoreError, res: Response, *, cookies: bool) -> None:
    """Put an error's headers on the response. One that no response can have is logged and left out."""
    for name, value in error.headers.items():
        try:
            if cookies or name.lower() != "set-cookie":
                res.header(name, value)
        except (AttributeError, TypeError):
            log.exception("a header of CoreError(%s, %r) is not one that HTTP allows", error.status, error.message)


def drop_body(res: Response) -> None:
    """Take the body away for an answer to HEAD, and stage its length."""
    body = res.body
    if isinstance(body, str | bytes):
        length = len(encode(body) if isinstance(body, str) else body)
        if res.staged is None or "content-length" not in res.staged:
            res.header("content-length", str(length))
    res.body = None


def drop_null_body(req: AnyRequest, res: Response) -> None:
    """Take the body away for a status that has none, with the headers that describe it.

    A 101 on a connection that opens no WebSocket becomes a 426: a client would take the bytes that follow a switch of
    protocols for the next answer.
    """
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
        res.discard()
        answer_error(CoreError(426, "Upgrade Required", headers={"Upgrade": "websocket"}), req, res)
    else:
        res.keep_for_upgrade()
        res.varies = ()
