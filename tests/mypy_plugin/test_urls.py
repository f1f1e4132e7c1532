"""`url_for(handler, …)` against the paths of the handler's routes: a list of cases for both front ends."""

from __future__ import annotations

from tests.mypy_plugin.conftest import WRANGLER, Project

HEAD = """\
from core import Request, Response, Router, create_app
from env import Env

app = create_app(Env)
"""


def test_the_arguments_are_those_of_the_path(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """

@app.get("/users/:id/posts/:post")
async def show(req: Request[Env], res: Response) -> None:
    res.redirect(req.url_for(show, id=1, post=2))
    res.redirect(req.url_for(show, id=1, pots=2))
    #^ core-params: url_for(show, pots=…): the path /users/:id/posts/:post has no parameter pots. Did you mean post?
    res.redirect(req.url_for(show, id=1))
    #^ core-params: url_for(show): the path /users/:id/posts/:post needs post. Give post=…
    res.redirect(app.url_for(show))
    #^ core-params: url_for(show): the path /users/:id/posts/:post needs id and post. Give id=…, post=…

@app.get("/about")
async def about(req: Request[Env], res: Response) -> None:
    app.url_for(about), req.url_for(about)
    req.url_for(about, id=req.id)
    #^ core-params: url_for(about, id=…): the path /about has no parameter id. It has none. Write /:id where it belongs

@app.get("/files/*")
async def files(req: Request[Env], res: Response) -> None:
    app.url_for(files, **{"*": "a/b.txt"})
    app.url_for(files)
    #^ core-params: url_for(files): the path /files/* needs *. Give **{"*": …}
    app.url_for(files, **{"*": "../b.txt"})
    #^ core-params: url_for(files, *="../b.txt"): the route /files/* does not match this value. Give another one

@app.get("/any/*/of/:id")
async def nameless(req: Request[Env], res: Response) -> None:
    app.url_for(nameless, id=1)
    #^ core-params: url_for(nameless): the path /any/*/of/:id has a * for any segment, which no argument fills. Give it a name: /:name
""",
    )
    project.check()


def test_an_optional_parameter_may_be_missing_and_several_routes_are_all_asked(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """

@app.get("/archive/:year/:month?")
@app.get("/latest")
async def archive(req: Request[Env], res: Response) -> None:
    app.url_for(archive), app.url_for(archive, year=1), app.url_for(archive, year=1, month=2)
    app.url_for(archive, month=2)
    #^ core-params: url_for(archive): no route of it has just month. Give those of /archive/:year/:month? or /latest
    app.url_for(archive, yaer=2)
    #^ core-params: url_for(archive, yaer=…): the path /archive/:year/:month? or /latest has no parameter yaer. Did you mean year?

@app.on("PUT", "/a/:one")
async def twice(req: Request[Env], res: Response) -> None: ...

app.get("/b/:two", twice)
app.url_for(twice, one=1), app.url_for(twice, two=1)
app.url_for(twice)
#^ core-params: url_for(twice): no route of it is without parameters. Give those of /a/:one or /b/:two
app.url_for(twice, one=1, two=1)
#^ core-params: url_for(twice): no route of it has just one and two. Give those of /a/:one or /b/:two
""",
    )
    project.check()


def test_a_value_that_is_written_out_fits_the_pattern(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
from core.http.websocket import WebSocket

NAME = "first"

@app.get("/users/:id{[0-9]+}")
async def show(req: Request[Env], res: Response) -> None:
    app.url_for(show, id=7), app.url_for(show, id="7"), app.url_for(show, id=req.params["id"])
    app.url_for(show, id="me")
    #^ core-params: url_for(show, id="me"): the route /users/:id{[0-9]+} does not match this value. Give another one
    app.url_for(show, id=NAME)
    #^ core-params: url_for(show, id="first"): the route /users/:id{[0-9]+} does not match this value. Give another one

@app.get("/things/:id{[0-9]+}")
@app.get("/things/:id{[a-z]+}")
async def things(req: Request[Env], res: Response) -> None:
    app.url_for(things, id=7), app.url_for(things, id="me")
    app.url_for(things, id="ME")
    #^ core-params: url_for(things, id="ME"): the route /things/:id{[0-9]+} does not match this value. Give another one

@app.websocket("/rooms/:name")
async def room(req: Request[Env], socket: WebSocket) -> None:
    app.url_for(room, name="a/b")
    app.url_for(room, name="..")
    #^ core-params: url_for(room, name=".."): the route /rooms/:name does not match this value. Give another one
    app.url_for(room, nam="x")
    #^ core-params: url_for(room, nam=…): the path /rooms/:name has no parameter nam. Did you mean name?
""",
    )
    project.check()


def test_a_prefix_that_is_put_together_brings_its_parameters(project: Project) -> None:
    project.usual()
    project.write(
        "users.py",
        """
        from core import Request, Response, Router
        from env import Env

        users: Router[Env] = Router()
        teams: Router[Env] = Router()
        posts: Router[Env] = Router()

        @users.get("/:id")
        async def show(req: Request[Env], res: Response) -> None:
            req.url_for(show, org="a", id=1), req.url_for(team, org="a", id=1), req.url_for(post, x="a", id=1)
            req.url_for(show, id=1)
            #^ core-params: url_for(show): the path /v1/orgs/:org/users/:id needs org. Give org=…
            req.url_for(team, team=1, id=1)
            #^ core-params: url_for(team, team=…): the path /v1/:org/teams/:id has no parameter team. It has org and id

        @teams.get("/:id")
        async def team(req: Request[Env], res: Response) -> None:
            req.params["org"]

        @posts.get("/:id")
        async def post(req: Request[Env], res: Response) -> None:
            req.url_for(post)
            #^ core-params: url_for(post): the path /:id needs id. Give id=…
        """,
    )
    project.write(
        "app.py",
        HEAD
        + """
import os
from users import posts, teams, users

VERSION = "v1"
ORGS = "/" + VERSION + "/orgs/:org"
app.use(ORGS + "/users", users)
app.use(f"/{VERSION}/:org/teams", teams)
app.use("/" + os.environ["PREFIX"], posts)
""",
    )
    project.check()


def test_a_prefix_brings_its_parameters(project: Project) -> None:
    project.usual()
    project.write(
        "users.py",
        """
        from core import Request, Response, Router
        from env import Env

        users: Router[Env] = Router()

        @users.get("/:id")
        async def show(req: Request[Env], res: Response) -> None:
            req.url_for(show, org="a", id=1)
            req.url_for(show, id=1)
            #^ core-params: url_for(show): the path /orgs/:org/users/:id needs org. Give org=…
        """,
    )
    project.write(
        "orgs.py",
        """
        from core import Router
        from env import Env
        from users import users

        orgs: Router[Env] = Router()
        orgs.use("/:org/users", users)
        """,
    )
    project.write(
        "app.py",
        HEAD
        + """
from orgs import orgs
from users import show

app.use("/orgs", orgs)
app.url_for(show, org="a", id=1)
app.url_for(show, id=1, ogr="a")
#^ core-params: url_for(show, ogr=…): the path /orgs/:org/users/:id has no parameter ogr. Did you mean org?

inner = app.Router()

@inner.get("/")
async def home(req: Request[Env], res: Response) -> None: ...

app.use(inner)
app.use("/in/:language", inner)
app.url_for(home), app.url_for(home, language="de")
app.url_for(home, lang="de")
#^ core-params: url_for(home, lang=…): the path / or /in/:language has no parameter lang. Did you mean language?
""",
    )
    project.check()


def test_handlers_of_other_modules(project: Project) -> None:
    project.usual()
    project.write(
        "handlers.py",
        """
        from core import Request, Response
        from env import Env

        async def show(req: Request[Env], res: Response) -> None: ...

        async def listed(req: Request[Env], res: Response) -> None: ...

        class Views:
            async def edit(self, req: Request[Env], res: Response) -> None: ...
        """,
    )
    project.write(
        "routes.py",
        """
        import handlers
        from core import App
        from env import Env
        from handlers import show as page

        views = handlers.Views()

        def register(app: App[Env]) -> None:
            app.get("/pages/:id", page)
            app.get("/lists", handlers.listed)
            app.put("/pages/:id", views.edit)
        """,
    )
    project.write(
        "app.py",
        HEAD
        + """
import handlers
from handlers import listed, show
from routes import register, views

register(app)
app.url_for(show, id=1), app.url_for(handlers.show, id=1), app.url_for(views.edit, id=1)
app.url_for(show)
#^ core-params: url_for(show): the path /pages/:id needs id. Give id=…
app.url_for(handlers.listed, id=1)
#^ core-params: url_for(listed, id=…): the path /lists has no parameter id. It has none. Write /:id where it belongs
app.url_for(views.edit)
#^ core-params: url_for(edit): the path /pages/:id needs id. Give id=…
""",
    )
    project.check()


def test_a_handler_of_no_route(project: Project) -> None:
    project.usual()
    project.write("wrangler.toml", WRANGLER + '\n[triggers]\ncrons = ["0 * * * *"]\n')
    project.write(
        "handlers.py",
        """
        from core import Request, Response
        from env import Env

        async def lost(req: Request[Env], res: Response) -> None: ...

        async def listed(req: Request[Env], res: Response) -> None: ...
        """,
    )
    project.write("table.py", "from handlers import listed\n\nTABLE = {'/x/:id': listed}\n")
    project.write(
        "app.py",
        HEAD
        + """
from core import ExecutionContext, Next, ScheduledEvent
from handlers import listed, lost
from table import TABLE

for path, handler in TABLE.items():
    app.get(path, handler)

async def limit(req: Request[Env], res: Response, next: Next) -> None: ...

@app.get("/limited", limit)
async def limited(req: Request[Env], res: Response) -> None: ...

@app.scheduled("0 * * * *")
async def hourly(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None: ...

app.url_for(limited), app.url_for(limit)
#^ core-params: url_for(limit): it is not the handler of a route. Register it, or name the function that was registered
app.url_for(hourly)
#^ core-params: url_for(hourly): it is not the handler of a route. Register it, or name the function that was registered
app.url_for(lost)
#^ core-params: url_for(lost): it is not the handler of a route. Register it, or name the function that was registered
app.url_for(listed, id=1)
""",
    )
    project.check()


def test_nothing_is_said_of_what_is_not_known(project: Project) -> None:
    project.usual()
    project.write(
        "parts.py",
        """
        from core import Request, Response, Router
        from env import Env

        router: Router[Env] = Router()
        alone: Router[Env] = Router()

        @router.get("/:id")
        async def show(req: Request[Env], res: Response) -> None: ...

        @alone.get("/:id")
        async def single(req: Request[Env], res: Response) -> None:
            req.url_for(single, id=1, org=2), req.url_for(single, id=1)
            req.url_for(single, org=2)
            #^ core-params: url_for(single): the path /:id needs id. Give id=…
        """,
    )
    project.write(
        "app.py",
        HEAD
        + """
import functools
from collections.abc import Awaitable, Callable
from typing import Any
from parts import alone, router, show

def prefix() -> str:
    return "/x/:a"

def mount(application: Any, routers: list[Router[Env]]) -> None:
    for one in routers:
        application.use("/:org", one)

app.use(prefix(), router)
mount(app, [alone])
app.url_for(show, id=1, a=1), app.url_for(show, id=1, org=1)

@functools.cache
def other() -> str:
    return ""

class Own:
    def url_for(self, handler: object, **params: object) -> str:
        return ""

def computed(params: dict[str, str], own: Own) -> None:
    app.url_for(plain, **params)
    own.url_for(plain)
    own.url_for(other)

@app.get("/plain/:id")
async def plain(req: Request[Env], res: Response) -> None: ...

@app.get(prefix())
async def dynamic(req: Request[Env], res: Response) -> None:
    app.url_for(dynamic), app.url_for(dynamic, a=1)

class Mine:
    def register(self, application: Any) -> None:
        application.get("/elsewhere/:x", twice)

@app.get("/here")
async def twice(req: Request[Env], res: Response) -> None:
    app.url_for(twice, x=1)

def chosen(handler: Callable[..., Awaitable[None]]) -> str:
    return app.url_for(handler, x=1)

def wrapped(handler: Callable[[Request[Env], Response], Awaitable[None]]) -> Callable[[Request[Env], Response], Awaitable[None]]:
    return handler

@wrapped
@app.get("/wrapped/:id")
async def inside(req: Request[Env], res: Response) -> None:
    app.url_for(inside)

def factory(path: str) -> None:
    @app.get(path)
    async def made(req: Request[Env], res: Response) -> None:
        app.url_for(made, anything=1)
""",
    )
    project.check()


def test_a_value_that_no_path_matches_is_found_through_the_names_that_have_it(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """

NOTHING = ""

@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    empty, name = "", req.params["id"]
    nothing = ""
    again = nothing
    app.url_for(show, id=name), app.url_for(show, id=req.params["id"]), app.url_for(show, id=str(1))
    app.url_for(show, id="")
    #^ core-params: url_for(show, id=""): the route /users/:id does not match this value. Give another one
    app.url_for(show, id=again)
    #^ core-params: url_for(show, id=""): the route /users/:id does not match this value. Give another one
    app.url_for(show, id=NOTHING)
    #^ core-params: url_for(show, id=""): the route /users/:id does not match this value. Give another one
    app.url_for(show, id=f"{NOTHING}")
    #^ core-params: url_for(show, id=""): the route /users/:id does not match this value. Give another one
""",
    )
    project.check()
