"""A queue: a route that sends, a consumer that works."""

import attrs

from core import Bindings, ExecutionContext, KVNamespace, MessageBatch, Queue, Request, Response, create_app


# --8<-- [start:env]
@attrs.frozen
class Mail:
    to: str
    subject: str


@attrs.frozen
class Env(Bindings):
    OUTBOX: Queue[Mail]
    SENT: KVNamespace


# --8<-- [end:env]


app = create_app(Env)


# --8<-- [start:send]
@app.post("/invitations")
async def invite(req: Request[Env], res: Response) -> None:
    mail = await req.json(Mail)
    await req.env.OUTBOX.send(mail)
    res.status(202).json({"ok": True})


# --8<-- [end:send]


# --8<-- [start:consume]
@app.queue("outbox")
async def deliver(batch: MessageBatch[Mail], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        # At least once: a message may come a second time, so what it does must not matter twice.
        if await env.SENT.get(message.id) is None:
            await env.SENT.put(message.id, message.body.to)
        message.ack()


# --8<-- [end:consume]
