"""`/articles/:slug/comments`: everyone reads them, who is signed in writes them and deletes their own."""

import attrs

from conduit.auth import Claims, User, current_user, token, viewer
from conduit.env import Env
from conduit.routes.articles import ownership
from conduit.routes.profiles import AUTHOR, Profile
from conduit.validation import filled
from core import CoreError, Request, Response, Router, optional

comments: Router[Env] = Router()
anyone = comments.authenticated(optional(token))
signed_in = comments.authenticated(token).authenticated(current_user)

COMMENTS = f"""
    SELECT c.id, c.body, c.created_at AS createdAt, c.updated_at AS updatedAt, {AUTHOR}
    FROM comments c JOIN users u ON u.id = c.author_id
"""


@attrs.frozen
class Comment:
    id: int
    body: str
    createdAt: str
    updatedAt: str
    author: Profile


@attrs.frozen
class NewComment:
    body: str = attrs.field(validator=filled)


@anyone.get("/:slug/comments", tool=True)
async def list_comments(req: Request[Env, Claims | None], res: Response) -> None:
    """List an article's comments, the oldest first."""
    article = await ownership(req.env, req.params["slug"])
    statement = req.env.DB.prepare(f"{COMMENTS} WHERE c.article_id = ?2 ORDER BY c.id")
    found = await statement.bind(viewer(req.user), article.id).all(Comment)
    res.json({"comments": found.results})


@signed_in.post("/:slug/comments")
async def create_comment(req: Request[Env, User], res: Response) -> None:
    """Comment on an article."""
    article = await ownership(req.env, req.params["slug"])
    new = await req.json(NewComment, key="comment")
    insert = req.env.DB.prepare("INSERT INTO comments (body, article_id, author_id) VALUES (?, ?, ?) RETURNING id")
    comment_id = await insert.bind(new.body, article.id, req.user.id).one("id")
    statement = req.env.DB.prepare(f"{COMMENTS} WHERE c.id = ?2")
    res.status(201).json({"comment": await statement.bind(req.user.id, comment_id).one(Comment)})


@signed_in.delete("/:slug/comments/:id")
async def delete_comment(req: Request[Env, User], res: Response) -> None:
    """Delete a comment of one's own."""
    article = await ownership(req.env, req.params["slug"])
    find = req.env.DB.prepare("SELECT author_id FROM comments WHERE id = ? AND article_id = ?")
    not_found = CoreError(404, "not found", field="comment")
    if await find.bind(req.params["id"], article.id).one("author_id", error=not_found) != req.user.id:
        raise CoreError(403, "forbidden", field="comment")
    await req.env.DB.prepare("DELETE FROM comments WHERE id = ?").bind(req.params["id"]).run()
    res.status(204).send()
