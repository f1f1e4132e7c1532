"""`url_for(handler, …)` against the paths of the handler's routes: a list of cases for both front ends."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

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
    print(req.url_for(show, id=1, post=2))
    print(req.url_for(show, id=1, pots=2))
    #^ core-params: url_for(show, pots=…): the path /users/:id/posts/:post has no parameter pots. Did you mean post?
    print(req.url_for(show, id=1))
    #^ core-params: url_for(show): the path /users/:id/posts/:post needs post. Give post=…
    print(app.url_for(show))
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
