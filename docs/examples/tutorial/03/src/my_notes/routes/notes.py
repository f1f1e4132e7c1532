"""`/notes`: everybody lists, reads and writes their own notes."""

import attrs
from core import CoreError, Request, Response, Router
from my_notes.env import Env

from my_notes.auth import User, auth

notes: Router[Env] = Router()
mine = notes.authenticated(auth)


@attrs.frozen
class Note:
    id: int
    text: str


@attrs.frozen
class NewNote:
    text: str = attrs.field(validator=attrs.validators.max_len(10_000))


@mine.get("/")
async def list_notes(req: Request[Env, User], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, text FROM notes WHERE owner = ? ORDER BY id LIMIT 100")
    found = await statement.bind(req.user.id).all(Note)
    res.json({"notes": found.results})


@mine.get("/:id")
async def get_note(req: Request[Env, User], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, text FROM notes WHERE id = ? AND owner = ?")
    note = await statement.bind(req.params["id"], req.user.id).first(Note)
    if note is None:
        raise CoreError(404, "Note not found")
    reads = int(await req.env.READS.get(f"reads:{note.id}") or "0") + 1
    req.ctx.wait_until(req.env.READS.put(f"reads:{note.id}", str(reads)))
    res.json({"id": note.id, "text": note.text, "reads": reads})


@mine.post("/")
async def create_note(req: Request[Env, User], res: Response) -> None:
    new = await req.json(NewNote)
    statement = req.env.DB.prepare("INSERT INTO notes (text, owner) VALUES (?, ?) RETURNING id")
    note_id: int = await statement.bind(new.text, req.user.id).first("id")
    res.status(201).json({"id": note_id})
