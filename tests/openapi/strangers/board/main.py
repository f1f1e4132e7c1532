"""A board of messages: pages and forms for people, sessions, server-sent events and a WebSocket for their browsers."""

import html
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import attrs

from core import Bindings, CoreError, KVNamespace, Next, Request, Response, Secret, ValidationError, create_app, http
from core.http.sse import Event
from core.http.websocket import WebSocket
from core.middleware.csrf import csrf
from core.middleware.etag import etag
from core.middleware.server_timing import server_timing
from core.middleware.sessions import session_of, sessions

# Every page of the board is made of these.

PAGE = "<!doctype html><title>{title}</title><main>{body}</main>"


def render(title: str, *parts: str) -> str:
    return PAGE.format(title=html.escape(title), body="".join(parts))


def link(href: str, text: str) -> str:
    return f'<a href="{html.escape(href)}">{html.escape(text)}</a>'


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    BOARD: KVNamespace
    SESSION_SECRET: Secret
    TITLE: str = "The board"


@dataclass
class Message:
    author: str
    text: str
    stars: int = 0
    tags: list[str] = field(default_factory=list[str])


class Point(NamedTuple):
    x: float
    y: float


class Forbidden(CoreError):
    def __init__(self, why: Literal["nobody", "author"]) -> None:
        super().__init__(403 if why == "author" else 401, "Forbidden", why=why)


app = create_app(Env)
app.use(server_timing(), sessions(kv_binding="SESSIONS", secret=lambda req: req.env.SESSION_SECRET))
app.use(csrf())


async def messages_of(env: Env) -> dict[str, Message]:
    stored = await env.BOARD.get_json("messages", dict[str, Message])
    return stored or {}


async def keep(env: Env, messages: Mapping[str, Message]) -> None:
    await env.BOARD.put("messages", json.dumps({id: asdict(message) for id, message in messages.items()}))


async def visitor(req: Request[Env]) -> str:
    session = await session_of(req)
    name: str | None = session.get("name")
    if name is None:
        raise Forbidden("nobody")
    return name


# -- pages


@app.get("/", etag())
async def index(req: Request[Env], res: Response) -> None:
    messages = await messages_of(req.env)
    res.html(render(req.env.TITLE, *(f"<p>{link(f'/messages/{id}', m.text)}</p>" for id, m in messages.items())))


@app.get("/login")
async def login_page(req: Request[Env], res: Response) -> None:
    res.html(render("Log in", '<form method="post"><input name="name"><button>Log in</button></form>'))


@app.post("/login")
async def login(req: Request[Env], res: Response) -> None:
    form = await req.form()
    name = form.text("name")
    if not name:
        res.status(422).html(render("Log in", "<p>What is your name?</p>"))
        return
    session = await session_of(req)
    session["name"] = name
    session.regenerate()
    res.redirect(req.local_url(req.query.get("next"), default="/"), status=303)


@app.post("/logout")
async def logout(req: Request[Env], res: Response) -> None:
    (await session_of(req)).destroy()
    res.redirect("/login", status=303)


pages = app.Router()


@pages.on_error(CoreError)
async def error_page(err: CoreError, req: Request[Env], res: Response, next: Next) -> None:
    if err.status == 401:
        res.redirect("/login", status=303)
    else:
        res.status(err.status).html(render(str(err.status), html.escape(err.message)))


@pages.get("/:id")
async def message_page(req: Request[Env], res: Response) -> None:
    message = (await messages_of(req.env)).get(req.params["id"])
    if message is None:
        raise CoreError(404, "No such message")
    res.html(render(message.author, f"<p>{html.escape(message.text)}</p>"))


@attrs.frozen
class Writing:
    text: str = attrs.field(validator=attrs.validators.min_len(1))
    tags: list[str] = attrs.field(factory=list[str])


@pages.post("/")
async def write(req: Request[Env], res: Response) -> None:
    author = await visitor(req)
    form = (await req.form()).parse(Writing)
    messages = await messages_of(req.env)
    id = str(len(messages) + 1)
    await keep(req.env, {**messages, id: Message(author, form.text, tags=form.tags)})
    res.redirect(f"/messages/{id}", status=303)


app.use("/messages", pages)

# -- what the pages fetch

api = app.Router()


@api.get("/messages")
async def list_messages(req: Request[Env], res: Response) -> None:
    messages = await messages_of(req.env)
    wanted = req.query.get_all("tag")
    res.json([{"id": id, **asdict(m)} for id, m in messages.items() if not wanted or set(wanted) & set(m.tags)])


@api.get("/messages/:id")
async def get_message(req: Request[Env], res: Response) -> None:
    match (await messages_of(req.env)).get(req.params["id"]):
        case None:
            raise CoreError(404, "No such message")
        case Message() as message:
            res.json(message)


async def _change(req: Request[Env], by: int) -> Message:
    messages = await messages_of(req.env)
    message = messages.get(req.params["id"])
    if message is None:
        raise CoreError(404, "No such message")
    message.stars += by
    await keep(req.env, messages)
    return message


for verb, amount in (("star", 1), ("unstar", -1)):

    def _register(verb: str, amount: int) -> None:
        async def change(req: Request[Env], res: Response) -> None:
            await visitor(req)
            res.json({"stars": (await _change(req, amount)).stars})

        change.__name__ = verb
        api.post(f"/messages/:id/{verb}", change)

    _register(verb, amount)


@api.delete("/messages/:id")
async def remove(req: Request[Env], res: Response) -> None:
    name = await visitor(req)
    messages = await messages_of(req.env)
    message = messages.pop(req.params["id"], None)
    if message is None:
        raise CoreError(404, "No such message")
    if message.author != name:
        raise Forbidden("author")
    await keep(req.env, messages)
    res.status(204).send()


@api.get("/me")
async def who(req: Request[Env], res: Response) -> None:
    session = await session_of(req)
    res.json({"name": session.get("name"), "known": "name" in session})


@api.get("/tags", etag())
async def tags(req: Request[Env], res: Response) -> None:
    counted = Counter(tag for m in (await messages_of(req.env)).values() for tag in m.tags)
    res.json(dict(counted.most_common(10)))


def total(messages: Iterable[Message]) -> tuple[int, float]:
    stars = [message.stars for message in messages]
    return sum(stars), (sum(stars) / len(stars) if stars else 0.0)


@api.get("/dashboard")
async def dashboard(req: Request[Env], res: Response) -> None:
    messages = await messages_of(req.env)
    stars, mean = total(messages.values())
    best = max(messages.values(), key=lambda m: m.stars, default=None)
    series = [Point(float(n), float(m.stars)) for n, m in enumerate(messages.values())]
    answer: dict[str, Any] = {"stars": stars, "mean": mean, "series": series}
    if best is not None:
        answer["best"] = best
    res.json(answer)


@api.put("/settings/:name{theme|language}")
async def set_setting(req: Request[Env], res: Response) -> None:
    name = await visitor(req)
    value = await req.json(str)
    allowed = {"theme": ["light", "dark"], "language": ["en", "de"]}[req.params["name"]]
    if value not in allowed:
        raise ValidationError([{"path": "", "message": f"must be one of {', '.join(allowed)}"}])
    session = await session_of(req)
    session[req.params["name"]] = value
    res.json({"name": name, req.params["name"]: value})


async def stars_of(env: Env, turns: int) -> AsyncIterator[Event]:
    for turn in range(turns):
        stars, mean = total((await messages_of(env)).values())
        yield Event(event="stars", id=str(turn), data={"turn": turn, "stars": stars, "mean": mean})


@api.get("/events")
async def events(req: Request[Env], res: Response) -> None:
    turns = req.query.get("turns") or "3"
    if not turns.isdecimal():
        raise CoreError(400, "turns is a number")
    res.header("X-Accel-Buffering", "no").sse(stars_of(req.env, min(int(turns), 100)))


@api.get("/log")
async def log(req: Request[Env], res: Response) -> None:
    async def lines() -> AsyncIterator[str]:
        for id, message in (await messages_of(req.env)).items():
            yield json.dumps({"id": id, "author": message.author}) + "\n"

    res.stream(lines(), content_type="application/x-ndjson")


@api.get("/raw")
async def raw(req: Request[Env], res: Response) -> Response:
    stored = await req.env.BOARD.get("messages")
    return res.send(http.Response(stored or "{}", headers={"Content-Type": "application/json"}))


app.use("/api", api)


@app.websocket("/live")
async def live(req: Request[Env], socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(f"{await visitor(req)}: {message!s}")


@app.not_found
async def nothing(req: Request[Env], res: Response) -> None:
    if "text/html" in (req.header("Accept") or ""):
        res.status(404).html(render("404", link("/", "Back to the board")))
    else:
        res.status(404).json({"error": "Nothing here", "path": req.path})
