"""`/tags`: what articles are tagged with, the most frequent first."""

from conduit.env import Env
from core import Request, Response, Router

tags: Router[Env] = Router()


@tags.get("/")
async def list_tags(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare(
        "SELECT value AS tag FROM articles, json_each(tag_list) GROUP BY value ORDER BY count(*) DESC, value"
    )
    found = await statement.all()
    res.json({"tags": [row["tag"] for row in found.results]})
