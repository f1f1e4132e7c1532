"""An MCP server beside a small API: what `docs/how-to/mcp.md` shows."""

from typing import Annotated, Literal

import attrs

from core import Bindings, CoreError, KVNamespace, Request, Response, Secret, create_app
from core.mcp import MCP, Message, ToolError
from core.middleware.bearer_auth import bearer_auth


# --8<-- [start:server]
@attrs.frozen
class Env(Bindings):
    NOTES: KVNamespace
    MCP_SECRET: Secret
    ADMIN_TOKEN: Secret


@attrs.frozen
class Note:
    id: int
    title: str


app = create_app(Env)
mcp = MCP(app, "notes", secret=lambda req: req.env.MCP_SECRET)
# --8<-- [end:server]


# --8<-- [start:tool]
@mcp.tool(read_only=True)
async def note(req: Request[Env], id: Annotated[int, "The number of the note"]) -> Note:
    """One note, by its number."""
    found = await req.env.NOTES.get_json(str(id), Note)
    if found is None:
        raise ToolError(f"There is no note {id}. List the notes to see which there are")
    return found


# --8<-- [end:tool]


# --8<-- [start:expose]
@app.put("/notes/:id")
async def put_note(req: Request[Env], res: Response) -> None:
    """Write a note, whether it is there or not."""
    given = await req.json(Note)
    if str(given.id) != req.params["id"]:
        raise CoreError(422, "id and the path differ")
    await req.env.NOTES.put_json(str(given.id), given)
    res.json(given)


@app.get("/notes")
async def list_notes(req: Request[Env], res: Response) -> None:
    """The numbers of all notes."""
    found = await req.env.NOTES.list()
    res.json({"ids": [int(key.name) for key in found.keys]})


mcp.expose(list_notes)
# --8<-- [end:expose]


# --8<-- [start:ask]
@attrs.frozen
class Confirm:
    sure: bool


@mcp.tool(destructive=True)
async def delete_note(req: Request[Env], id: int) -> str:
    """Delete a note, once the person at the client has agreed."""
    answer = await mcp.ask(req, Confirm, f"Delete note {id}?")
    if answer is None or not answer.sure:
        return "Nothing was deleted"
    await req.env.NOTES.delete(str(id))
    return f"Note {id} is deleted"


# --8<-- [end:ask]


# --8<-- [start:progress]
@mcp.tool
async def import_notes(req: Request[Env], titles: list[str]) -> int:
    """Write a note for each title; the number of notes written."""
    for number, title in enumerate(titles, start=1):
        await req.env.NOTES.put_json(str(number), Note(number, title))
        await mcp.progress(req, number, len(titles))
    return len(titles)


# --8<-- [end:progress]


# --8<-- [start:resource]
@mcp.resource("notes://{id}", ttl=60)
async def note_resource(req: Request[Env], id: int) -> Note:
    """A note."""
    found = await req.env.NOTES.get_json(str(id), Note)
    if found is None:
        raise CoreError(404)
    return found


@mcp.prompt
async def summarise(req: Request[Env], style: Literal["short", "long"]) -> Message:
    """A summary of all notes."""
    return Message(f"Write a {style} summary of the notes.")


# --8<-- [end:resource]


# --8<-- [start:rights]
admin = bearer_auth(Env, token=lambda req: req.env.ADMIN_TOKEN)
private = MCP(
    app,
    "notes-admin",
    path="/admin/mcp",
    behind=admin,
    authorization_servers=["https://login.example"],
    scopes=["notes:admin"],
)


@private.tool
async def count(req: Request[Env, object]) -> int:
    """The number of notes."""
    return len((await req.env.NOTES.list()).keys)


# --8<-- [end:rights]
