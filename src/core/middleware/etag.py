"""`ETag` for whole bodies, and 304 for who has the same already. Its cost is one hash per answer."""

from __future__ import annotations

from core.handlers import declare
from core.http.conditional import none_match
from core.http.streams import encode
from core.request import AnyRequest
from core.response import Response
from core.types import Middleware, Next

__all__ = ["etag"]


def etag(*, weak: bool = False) -> Middleware[object, object]:
    """Give answers of 200 to GET and HEAD an `ETag`, and answer 304 where `If-None-Match` names it.

    A tag that the handler set itself is kept and compared. Streams, errors and other statuses are left alone.
    `weak`: whether tags promise equal meaning (`W/"…"`) rather than equal bytes.
    Register it before middleware that changes the body (`compress`) to spare that work too, or behind it to tag the
    changed body.
    """

    async def tag(req: AnyRequest, res: Response, next: Next, /) -> None:
        await next()
        if res.status_code != 200 or not res.sent or (req.method != "GET" and req.method != "HEAD"):
            return
        value = None if res.staged is None else res.staged.get("etag")
        if value is None:
            body = res.body
            if body is None or not isinstance(body, str | bytes):
                return
            from hashlib import sha256

            data = encode(body) if isinstance(body, str) else body
            value = f'{"W/" if weak else ""}"{sha256(data).hexdigest()[:32]}"'
            res.header("etag", value)
        if not none_match(req.header("if-none-match"), value):
            # The body is dropped when the response is finalized, and the headers that describe it with it.
            res.status(304)
            for name in ("content-encoding", "content-length", "content-range"):
                res.header(name, None)

    return declare(tag, name="etag")
