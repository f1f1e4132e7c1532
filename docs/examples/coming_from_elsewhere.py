"""Familiar things from Hono and FastAPI, in `core`."""

import attrs

from core import Bindings, CoreError, D1Database, Next, Request, Response, create_app
from core.middleware.cors import cors


# --8<-- [start:hono]
@attrs.frozen
class Env(Bindings):
    DB: D1Database


app = create_app(Env)
app.use(cors(origins=["https://example.com"]))


@app.use
async def timing(req: Request[Env], res: Response, next: Next) -> None:
    await next()
    res.header("X-Powered-By", "core")


@app.get("/posts/:id")
async def show(req: Request[Env], res: Response) -> None:
    post = await req.env.DB.prepare("SELECT id, title FROM posts WHERE id = ?").bind(req.params["id"]).first()
    if post is None:
        raise CoreError(404, "Post not found")
    res.json(post)


# --8<-- [end:hono]


# --8<-- [start:fastapi]
@attrs.frozen
class NewPost:
    title: str
    tags: list[str] = attrs.Factory(list[str])


@attrs.frozen
class Search:
    q: str = ""
    limit: int = 10


@app.post("/posts")
async def create(req: Request[Env], res: Response) -> None:
    post = await req.json(NewPost)
    post_id = await req.env.DB.prepare("INSERT INTO posts (title) VALUES (?) RETURNING id").bind(post.title).first("id")
    res.status(201).json({"id": post_id, "tags": post.tags})


@app.get("/posts")
async def search(req: Request[Env], res: Response) -> None:
    query = req.query.parse(Search)
    statement = req.env.DB.prepare("SELECT id, title FROM posts WHERE title LIKE ? LIMIT ?")
    res.json((await statement.bind(f"%{query.q}%", query.limit).all()).results)


# --8<-- [end:fastapi]
