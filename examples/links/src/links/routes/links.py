"""The links: a page of one's own, a page of each with its clicks, and `/:slug`, which leads away."""

import secrets

import attrs
from attrs.validators import and_, matches_re, max_len

from core import Request, Response, Router, conflict, describe, http, optional, public
from links.auth import User, auth
from links.cache import Target, forget, look_up, remember
from links.env import Env
from links.messages import Click
from links.pages import render

links: Router[Env] = Router()
anyone = links.authenticated(optional(auth))
signed_in = links.authenticated(auth)


@attrs.frozen
class Place:
    slug: str = attrs.field(validator=matches_re("[A-Za-z0-9_-]{1,32}"))


@attrs.frozen
class NewLink:
    url: str = attrs.field(validator=and_(matches_re(r"https?://\S+"), max_len(2000)))
    slug: str = attrs.field(default="", validator=matches_re("[A-Za-z0-9_-]{0,32}"))


@attrs.frozen
class Link:
    id: int
    slug: str
    url: str
    clicks: int


@anyone.get("/", public())
async def home(req: Request[Env, User | None], res: Response) -> None:
    """The own links, or the form to sign in."""
    if req.user is None:
        res.html(render("sign-in.html"))
        return
    newest = req.env.DB.prepare("SELECT id, slug, url, clicks FROM links WHERE owner = ? ORDER BY id DESC LIMIT 100")
    found = await newest.bind(req.user.sub).all(Link)
    res.html(render("links.html", links=found.results))


@signed_in.post("/links")
async def shorten(req: Request[Env, User], res: Response) -> None:
    """Make a short link, with a name of one's own or a random one."""
    new = (await req.form()).parse(NewLink)
    slug = new.slug or secrets.token_urlsafe(5)
    insert = req.env.DB.prepare("INSERT INTO links (slug, url, owner) VALUES (?, ?, ?) RETURNING id, url")
    with conflict("slug"):
        target = await insert.bind(slug, new.url, req.user.sub).one(Target)
    await remember(req.env, slug, target)
    res.redirect(f"/links/{slug}", 303)


@signed_in.get("/links/:slug")
async def show(req: Request[Env, User], res: Response) -> None:
    """The page of an own link, on which its clicks are seen while they happen."""
    link = await own(req)
    res.html(render("link.html", link=link, short=http.URL(req.url).origin + req.url_for(follow, slug=link.slug)))


@signed_in.get("/links/:slug/live")
@describe(answers={101: None, 426: None})
async def listen(req: Request[Env, User], res: Response) -> None:
    """A WebSocket that says the number of clicks, now and whenever it changes."""
    link = await own(req)
    res.send(await req.env.LIVE.get_by_name(str(link.id)).fetch(req.to_http()))


@signed_in.post("/links/:slug/delete")
async def delete(req: Request[Env, User], res: Response) -> None:
    link = await own(req)
    await req.env.DB.prepare("DELETE FROM links WHERE id = ?").bind(link.id).run()
    await forget(req.env, link.slug)
    await req.env.LIVE.get_by_name(str(link.id)).end()
    res.redirect("/", 303)


@links.get("/:slug", public())
async def follow(req: Request[Env], res: Response) -> None:
    """Lead to where a link leads, and have the click counted."""
    slug = req.params.parse(Place).slug
    target = await look_up(req.env, slug)
    req.ctx.wait_until(req.env.CLICKS.send(Click(target.id, slug)))  # nobody waits for being counted
    res.header("Cache-Control", "no-store").redirect(target.url)


async def own(req: Request[Env, User]) -> Link:
    """The link that the path names, or 404: of somebody else's nobody learns that it is there."""
    find = req.env.DB.prepare("SELECT id, slug, url, clicks FROM links WHERE slug = ? AND owner = ?")
    return await find.bind(req.params["slug"], req.user.sub).one(Link)
