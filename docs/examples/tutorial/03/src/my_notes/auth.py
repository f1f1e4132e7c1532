"""Authentication: a token that this application has signed."""

import attrs
from core import CoreError, Request
from core.middleware.jwt import jwt_auth
from my_notes.env import Env


@attrs.frozen
class User:
    sub: str

    @property
    def id(self) -> int:
        return int(self.sub)


auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=User)


async def require_own_note(req: Request[Env, User], note_id: str) -> int:
    """The id of a note of the user's. Somebody else's note is answered as one that does not exist."""
    statement = req.env.DB.prepare("SELECT id FROM notes WHERE id = ? AND owner = ?")
    found: int | None = await statement.bind(note_id, req.user.id).first("id")
    if found is None:
        raise CoreError(404, "Note not found")
    return found
