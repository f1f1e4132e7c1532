"""The application: global middleware, routers, and what happens to errors, in this order."""

import logging

from core import CoreError, ExecutionContext, MessageBatch, Next, Request, Response, create_app, public
from core.hosts.workers import entrypoint
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs

from my_notes.env import Env
from my_notes.events import NoteWritten, count_words
from my_notes.routes.accounts import accounts
from my_notes.routes.files import files
from my_notes.routes.notes import notes

log = logging.getLogger(__name__)

app = create_app(Env, default_deny=True)  # every route is public(), or behind app.authenticated(…)
app.use(request_id())
app.use(logger())
app.use(secure_hdrs())

app.use("/accounts", public(), accounts)
app.use("/notes", notes, files)


@app.get("/health", public())
async def health(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})


@app.queue("my-notes-written")
async def consume(batch: MessageBatch[NoteWritten], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await count_words(env, message.body)
        message.ack()


@app.on_error
async def answer_error(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    """Add the request's id to every error, so that a client can name the line in the log."""
    if not isinstance(err, CoreError):
        log.error("%s %s failed", req.method, req.path, exc_info=err)
        err = CoreError(500, "Internal Server Error")
    for name, value in err.headers.items():
        res.header(name, value)
    res.status(err.status).json({**err.body, "requestId": req.id})


Default = entrypoint(app)  # what the hosted platform looks for; core dev, core serve and tests use `app`
