"""Work that nobody waits for."""

import attrs

from core import Bindings, ExecutionContext, KVNamespace, Request, Response, ScheduledEvent, create_app


@attrs.frozen
class Env(Bindings):
    STATS: KVNamespace


app = create_app(Env)


# --8<-- [start:after]
async def note_visit(stats: KVNamespace, page: str) -> None:
    await stats.put(f"last:{page}", "visited")


@app.get("/pages/:page")
async def show(req: Request[Env], res: Response) -> None:
    req.ctx.wait_until(note_visit(req.env.STATS, req.params["page"]))
    res.json({"page": req.params["page"]})


# --8<-- [end:after]


# --8<-- [start:cron]
@app.scheduled("0 3 * * *")
async def tidy(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    page = await env.STATS.list(prefix="last:")
    for key in page.keys:
        await env.STATS.delete(key.name)


# --8<-- [end:cron]
