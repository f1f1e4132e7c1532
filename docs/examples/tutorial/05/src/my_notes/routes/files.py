"""`/notes/:id/file`: one file for each note, in the bucket."""

from core import CoreError, Request, Response, Router
from core.bindings.r2 import FixedLengthStream
from core.middleware.body_limit import body_limit

from my_notes.auth import User, auth, require_own_note
from my_notes.env import Env

files: Router[Env] = Router()
mine = files.authenticated(auth)

LARGEST = 10_000_000


@mine.put("/:id/file", body_limit(max_size=LARGEST))
async def put_file(req: Request[Env, User], res: Response) -> None:
    note_id = await require_own_note(req, req.params["id"])
    length = req.header("Content-Length")
    if length is None or not length.isdigit():
        raise CoreError(411, "A file needs a Content-Length")
    # Piece by piece: the file is never held in memory as a whole.
    body = FixedLengthStream(req.stream(), int(length))
    await req.env.FILES.put(f"notes/{note_id}", body)
    res.status(204).send()


@mine.get("/:id/file")
async def get_file(req: Request[Env, User], res: Response) -> None:
    note_id = await require_own_note(req, req.params["id"])
    found = await req.env.FILES.get(f"notes/{note_id}")
    if found is None:
        raise CoreError(404, "This note has no file")
    # Saved and never shown: a page that somebody uploaded must not run on this origin.
    res.header("Content-Disposition", "attachment").header("ETag", found.http_etag)
    res.stream(found.body, content_type="application/octet-stream")
