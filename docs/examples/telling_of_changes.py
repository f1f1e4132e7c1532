"""An MCP server whose clients hear of changes: what `docs/how-to/mcp.md` shows."""

import attrs

from core import Bindings, CoreError, DurableObjectNamespace, KVNamespace, Request, Response, create_app
from core.mcp import MCP, Subscriptions


# --8<-- [start:changes]
@attrs.frozen
class Env(Bindings):
    NOTES: KVNamespace
    LISTEN: DurableObjectNamespace[Subscriptions]


app = create_app(Env)
mcp = MCP(app, "notes", subscriptions=lambda env: env.LISTEN)


@app.put("/notes/:id")
async def write(req: Request[Env], res: Response) -> None:
    await req.env.NOTES.put(req.params["id"], await req.text())
    await mcp.changed(req.env, f"notes://{req.params['id']}")
    res.status(204).send()


# --8<-- [end:changes]


@mcp.resource("notes://{id}")
async def note(req: Request[Env], id: str) -> str:
    """A note."""
    text = await req.env.NOTES.get(id)
    if text is None:
        raise CoreError(404)
    return text
