"""`/articles`: lists, the feed, single articles, and who has favourited them."""

import json
import os
import re

import attrs
from attrs.validators import ge, le

from conduit.auth import Claims, User, current_user, token, viewer
from conduit.env import Env
from conduit.routes.profiles import AUTHOR, Profile
from conduit.validation import filled
from core import UNSET, CoreError, Request, Response, Router, Unset, given, optional
from core.pagination import read_page

articles: Router[Env] = Router()
anyone = articles.authenticated(optional(token))
signed_in = articles.authenticated(token).authenticated(current_user)

MOST_PER_PAGE = 100

# As the viewer ?1 sees it. Lists come without the body.
SUMMARY = f"""
    a.slug, a.title, a.description, a.tag_list AS tagList, a.created_at AS createdAt, a.updated_at AS updatedAt,
    EXISTS (SELECT 1 FROM favorites f WHERE f.article_id = a.id AND f.user_id = ?1) AS favorited,
    (SELECT count(*) FROM favorites f WHERE f.article_id = a.id) AS favoritesCount, {AUTHOR}
"""
ARTICLES = "articles a JOIN users u ON u.id = a.author_id"
FILTERED = f"""
    {ARTICLES}
    WHERE (?2 IS NULL OR u.username = ?2)
    AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(a.tag_list) WHERE value = ?3))
    AND (?4 IS NULL OR a.id IN (
        SELECT f.article_id FROM favorites f JOIN users fan ON fan.id = f.user_id WHERE fan.username = ?4
    ))
"""
FOLLOWED = f"{ARTICLES} WHERE u.id IN (SELECT followed_id FROM follows WHERE follower_id = ?1)"


@attrs.frozen
class Page:
    limit: int = attrs.field(default=20, validator=ge(1))
    offset: int = attrs.field(default=0, validator=[ge(0), le(2**31)])


@attrs.frozen
class Filter(Page):
    author: str | None = None
    tag: str | None = None
    favorited: str | None = None


@attrs.frozen
class Summary:
    slug: str
    title: str
    description: str
    tagList: list[str]
    createdAt: str
    updatedAt: str
    favorited: bool
    favoritesCount: int
    author: Profile


@attrs.frozen
class Article(Summary):
    body: str


@attrs.frozen
class Ownership:
    id: int
    author_id: int


@attrs.frozen
class NewArticle:
    title: str = attrs.field(validator=filled)
    description: str = attrs.field(validator=filled)
    body: str = attrs.field(validator=filled)
    tagList: list[str] = attrs.field(factory=list[str])


@attrs.frozen
class ArticleChange:
    title: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    description: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    body: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    tagList: list[str] | Unset = UNSET


@anyone.get("/")
async def list_articles(req: Request[Env, Claims | None], res: Response) -> None:
    """List articles, the newest first: all, or those of an author, with a tag, or that somebody has favourited."""
    query = req.query.parse(Filter)
    filters = (viewer(req.user), query.author, query.tag, query.favorited)
    rows = req.env.DB.prepare(f"SELECT {SUMMARY} FROM {FILTERED} ORDER BY a.id DESC LIMIT ?5 OFFSET ?6").as_(Summary)
    page = rows.bind(*filters, min(query.limit, MOST_PER_PAGE), query.offset)
    count = req.env.DB.prepare(f"SELECT count(*) FROM {FILTERED}").bind(*filters)
    found, total = await read_page(req.env.DB, page, count)
    res.json({"articles": found, "articlesCount": total})


@signed_in.get("/feed")
async def feed(req: Request[Env, User], res: Response) -> None:
    """List the articles of those whom the user follows, the newest first."""
    query = req.query.parse(Page)
    rows = req.env.DB.prepare(f"SELECT {SUMMARY} FROM {FOLLOWED} ORDER BY a.id DESC LIMIT ?2 OFFSET ?3").as_(Summary)
    page = rows.bind(req.user.id, min(query.limit, MOST_PER_PAGE), query.offset)
    count = req.env.DB.prepare(f"SELECT count(*) FROM {FOLLOWED}").bind(req.user.id)
    found, total = await read_page(req.env.DB, page, count)
    res.json({"articles": found, "articlesCount": total})


@anyone.get("/:slug", tool=True)
async def get_article(req: Request[Env, Claims | None], res: Response) -> None:
    """Show an article."""
    res.json(await article(req.env, req.params["slug"], viewer(req.user)))


@signed_in.post("/")
async def create_article(req: Request[Env, User], res: Response) -> None:
    """Write an article."""
    new = await req.json(NewArticle, key="article")
    slug = slug_of(new.title)
    statement = req.env.DB.prepare(
        "INSERT INTO articles (slug, title, description, body, tag_list, author_id) VALUES (?, ?, ?, ?, ?, ?)"
    )
    await statement.bind(slug, new.title, new.description, new.body, tags_of(new.tagList), req.user.id).run()
    res.status(201).json(await article(req.env, slug, req.user.id))


@signed_in.put("/:slug")
async def update_article(req: Request[Env, User], res: Response) -> None:
    """Change what is given of one's own article."""
    article_id = await own_article(req.env, req.params["slug"], req.user)
    change = await req.json(ArticleChange, key="article")
    statement = req.env.DB.prepare(
        "UPDATE articles SET slug = iif(title = ?1, slug, ?2), title = ?1, description = ?3, body = ?4, tag_list = ?5, "
        "updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?6 RETURNING slug"
    )
    slug = UNSET if change.title is UNSET else slug_of(change.title)
    tags = UNSET if change.tagList is UNSET else tags_of(change.tagList)
    new_slug = await statement.bind(change.title, slug, change.description, change.body, tags, article_id).one("slug")
    res.json(await article(req.env, new_slug, req.user.id))


@signed_in.delete("/:slug")
async def delete_article(req: Request[Env, User], res: Response) -> None:
    """Delete an article of one's own."""
    article_id = await own_article(req.env, req.params["slug"], req.user)
    await req.env.DB.prepare("DELETE FROM articles WHERE id = ?").bind(article_id).run()
    res.status(204).send()


@signed_in.post("/:slug/favorite", tool=True)
async def favorite(req: Request[Env, User], res: Response) -> None:
    """Take an article among the favourites."""
    statement = req.env.DB.prepare(
        "INSERT INTO favorites (user_id, article_id) SELECT ?, id FROM articles WHERE slug = ? ON CONFLICT DO NOTHING"
    )
    await statement.bind(req.user.id, req.params["slug"]).run()
    res.json(await article(req.env, req.params["slug"], req.user.id))


@signed_in.delete("/:slug/favorite", tool=True)
async def unfavorite(req: Request[Env, User], res: Response) -> None:
    """Take an article from the favourites."""
    statement = req.env.DB.prepare(
        "DELETE FROM favorites WHERE user_id = ? AND article_id = (SELECT id FROM articles WHERE slug = ?)"
    )
    await statement.bind(req.user.id, req.params["slug"]).run()
    res.json(await article(req.env, req.params["slug"], req.user.id))


async def article(env: Env, slug: str, viewer_id: int | None) -> dict[str, Article]:
    statement = env.DB.prepare(f"SELECT {SUMMARY}, a.body FROM {ARTICLES} WHERE a.slug = ?2")
    return {"article": await statement.bind(viewer_id, slug).one(Article, error=not_found())}


async def ownership(env: Env, slug: str) -> Ownership:
    statement = env.DB.prepare("SELECT id, author_id FROM articles WHERE slug = ?")
    return await statement.bind(slug).one(Ownership, error=not_found())


async def own_article(env: Env, slug: str, user: User) -> int:
    """The article's id. Raises 404 where there is none, and 403 where it is somebody else's."""
    found = await ownership(env, slug)
    if found.author_id != user.id:
        raise CoreError(403, "forbidden", field="article")
    return found.id


def not_found() -> CoreError:
    return CoreError(404, "not found", field="article")


def slug_of(title: str) -> str:
    """The words of the title, and what tells it from other articles of the same title."""
    return re.sub(r"[\W_]+", "-", f"{title.lower()} {os.urandom(4).hex()}").strip("-")


def tags_of(tags: list[str]) -> str:
    return json.dumps(sorted(set(tags)))
