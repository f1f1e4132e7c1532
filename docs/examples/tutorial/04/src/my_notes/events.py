"""Events of notes, as a queue carries them, and the work that follows."""

from typing import Protocol

import attrs
from core import D1Database


@attrs.frozen
class NoteWritten:
    note_id: int


class HasDB(Protocol):
    """Any Env with the database will do."""

    @property
    def DB(self) -> D1Database: ...


async def count_words(env: HasDB, event: NoteWritten) -> None:
    """Count the words of a note. A queue delivers at least once: counting twice gives the same number."""
    text: str | None = await env.DB.prepare("SELECT text FROM notes WHERE id = ?").bind(event.note_id).first("text")
    if text is not None:
        update = env.DB.prepare("UPDATE notes SET words = ? WHERE id = ?")
        await update.bind(len(text.split()), event.note_id).run()
