"""Files, pages of a list, signed cookies, redirects and conditions: what `docs/how-to/around-answers.md` shows."""

from pathlib import Path

import attrs

from core import Bindings, CoreError, D1Database, Request, Response, Secret, create_app
from core.pagination import cursor_of, page_of, read_page

HERE = Path(__file__).parent


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    COOKIE_SECRET: Secret


@attrs.frozen
class Article:
    id: int
    title: str
    version: int


app = create_app(Env)


# --8<-- [start:file]
@app.get("/report")
async def report(req: Request[Env], res: Response) -> None:
    res.file(HERE / "around_answers.py", filename="Bericht für 2026.py")


# --8<-- [end:file]


# --8<-- [start:page]
@app.get("/articles")
async def articles(req: Request[Env], res: Response) -> None:
    page = page_of(req, limit=20, most=100)
    rows = req.env.DB.prepare("SELECT id, title, version FROM articles ORDER BY id LIMIT ? OFFSET ?").as_(Article)
    count = req.env.DB.prepare("SELECT count(*) FROM articles")
    found, total = await read_page(req.env.DB, rows.bind(page.limit, page.offset), count)
    res.header("Link", page.link(req, total=total)).json(found)


# --8<-- [end:page]


# --8<-- [start:cursor]
@app.get("/feed")
async def feed(req: Request[Env], res: Response) -> None:
    cursor = cursor_of(req, int)
    rows = req.env.DB.prepare("SELECT id, title, version FROM articles WHERE id > ? ORDER BY id LIMIT ?")
    found = await rows.bind(cursor.after or 0, cursor.limit + 1).all(Article)
    shown, after = cursor.cut(found.results, lambda article: article.id)
    res.header("Link", cursor.link(req, after)).json(shown)


# --8<-- [end:cursor]


# --8<-- [start:cookie]
@app.post("/cart/:id")
async def remember(req: Request[Env], res: Response) -> None:
    res.cookie("cart", req.params["id"], secret=req.env.COOKIE_SECRET, http_only=True, secure=True)
    res.redirect(req.local_url(req.query.get("next"), default="/cart"), status=303)


@app.get("/cart")
async def cart(req: Request[Env], res: Response) -> None:
    res.json({"cart": req.signed_cookie("cart", req.env.COOKIE_SECRET)})


# --8<-- [end:cookie]


# --8<-- [start:match]
@attrs.frozen
class Change:
    title: str


@app.put("/articles/:id")
async def change(req: Request[Env], res: Response) -> None:
    find = req.env.DB.prepare("SELECT id, title, version FROM articles WHERE id = ?")
    article = await find.bind(req.params["id"]).first(Article)
    if article is None:
        raise CoreError(404, "Not Found")
    req.require_match(f'"{article.version}"', required=True)
    new = await req.json(Change)
    update = req.env.DB.prepare("UPDATE articles SET title = ?, version = version + 1 WHERE id = ? AND version = ?")
    written = await update.bind(new.title, article.id, article.version).run()
    if written.meta.changes == 0:
        raise CoreError(412, "Precondition Failed")
    res.header("ETag", f'"{article.version + 1}"').status(204).send()


# --8<-- [end:match]
