"""A bound on request bodies, kept with or without a length from the client."""

from __future__ import annotations

from core.errors import CoreError
from core.handlers import declare
from core.middleware import options
from core.request import AnyRequest
from core.response import Response
from core.types import Middleware, Next

__all__ = ["body_limit"]


def body_limit(*, max_size: int, message: str = "Payload Too Large", status: int = 413) -> Middleware[object, object]:
    """Refuse bodies of more than `max_size` bytes with 413.

    A `Content-Length` that is too large is refused before the handler runs. A body without a length, or with a wrong
    one, is refused when more has come in; reading it raises the CoreError then. Nothing beyond the bound is kept in
    memory. Of two on one chain the smaller counts. Raises OptionError.
    """
    options.integer("body_limit", "max_size", max_size, least=0, unit="bytes")
    options.text("body_limit", "message", message)
    options.status("body_limit", status)

    async def limit(req: AnyRequest, res: Response, next: Next, /) -> None:
        length = req.header("content-length")
        # A number of thousands of digits is refused by its length: to read it would be work.
        if (
            length is not None
            and length.isascii()
            and length.isdigit()
            and (len(length) > 30 or int(length) > max_size)
        ):
            raise CoreError(status, message)
        req.limit_body(max_size, CoreError(status, message))
        await next()

    return declare(limit, name="body_limit")
