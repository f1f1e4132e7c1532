"""`/notes`: list, read and write notes."""

import attrs
from core import CoreError, Request, Response, Router

from my_notes.env import Env

notes: Router[Env] = Router()


@attrs.frozen
class Note:
    id: int
    text: str


@attrs.frozen
class NewNote:
    text: str = attrs.field(validator=attrs.validators.max_len(10_000))


@notes.get("/")
async def list_notes(req: Request[Env], res: Response) -> None:
    found = await req.env.DB.prepare("SELECT id, text FROM notes ORDER BY id LIMIT 100").all(Note)
    res.json({"notes": found.results})


@notes.get("/:id")
async def get_note(req: Request[Env], res: Response) -> None:
    note = await req.env.DB.prepare("SELECT id, text FROM notes WHERE id = ?").bind(req.params["id"]).first(Note)
    if note is None:
        raise CoreError(404, "Note not found")
    reads = int(await req.env.READS.get(f"reads:{note.id}") or "0") + 1
    req.ctx.wait_until(req.env.READS.put(f"reads:{note.id}", str(reads)))
    res.json({"id": note.id, "text": note.text, "reads": reads})


@notes.post("/")
async def create_note(req: Request[Env], res: Response) -> None:
    new = await req.json(NewNote)
    statement = req.env.DB.prepare("INSERT INTO notes (text) VALUES (?) RETURNING id")
    note_id: int = await statement.bind(new.text).first("id")
    res.status(201).json({"id": note_id})
