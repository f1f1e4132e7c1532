"""`/tags`: what articles are tagged with, the most frequent first."""

import attrs

from conduit.env import Env
from core import Request, Response, Router

tags: Router[Env] = Router()


@attrs.frozen
class Tag:
    name: str


@tags.get("/", tool=True)
async def list_tags(req: Request[Env], res: Response) -> None:
    """List all tags, the most frequent first."""
    statement = req.env.DB.prepare(
        "SELECT value AS name FROM articles, json_each(tag_list) GROUP BY value ORDER BY count(*) DESC, value"
    )
    found = await statement.all(Tag)
    res.json({"tags": [row.name for row in found.results]})
