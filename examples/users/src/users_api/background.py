"""Work that nobody waits for: it runs after the response has left, through `ctx.wait_until`."""

from typing import Protocol

from core import D1Database


class HasDB(Protocol):
    """Any Env with the database will do."""

    @property
    def DB(self) -> D1Database: ...


async def record_event(env: HasDB, kind: str, user_id: int, request_id: str) -> None:
    """Keep what happened to a user, for those who ask later."""
    statement = env.DB.prepare("INSERT INTO events (user_id, kind, request_id) VALUES (?, ?, ?)")
    await statement.bind(user_id, kind, request_id).run()
