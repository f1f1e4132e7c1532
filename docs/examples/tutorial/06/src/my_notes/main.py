"""The application: global middleware, routers, and what happens to errors, in this order."""

from core import CoreError, ExecutionContext, MessageBatch, Next, Request, Response, create_app, public
from core.hosts.workers import durable_object, entrypoint
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs

from my_notes.activity import Activity as _Activity
from my_notes.env import Env
from my_notes.events import NoteWritten, count_words
from my_notes.routes.accounts import accounts
from my_notes.routes.activity import activity
from my_notes.routes.files import files
from my_notes.routes.notes import notes

app = create_app(Env, default_deny=True)  # every route is public(), or behind app.authenticated(…)
app.use(request_id())
app.use(logger())
app.use(secure_hdrs())

app.use("/accounts", public(), accounts)
app.use("/notes", notes, files)
app.use("/activity", activity)


@app.get("/health", public())
async def health(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})


@app.queue("my-notes-written")
async def consume(batch: MessageBatch[NoteWritten], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await count_words(env, message.body)
        message.ack()


@app.on_error(CoreError)
async def answer_error(err: CoreError, req: Request[Env], res: Response, next: Next) -> None:
    """Add the request's id to what a client is told, so that it can name the line in the log."""
    for name, value in err.headers.items():
        res.header(name, value)
    res.status(err.status).json({**err.body, "requestId": req.id})


# What the hosted platform looks for in this module: the application, and each class of Durable Objects.
Default = entrypoint(app)
Activity = durable_object(_Activity, Env)
