"""`core-params` and `core-order`: path parameters, handlers in their place, and the order of middleware."""

from __future__ import annotations

import pytest
from tests.mypy_plugin.conftest import Project

from core.analysis.extensions import declared
from core.handlers import info_of
from core.middleware.logger import logger
from core.middleware.request_id import request_id

HEAD = """\
from typing import Any, Final, Literal
from core import Next, Request, Response, Router, create_app
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from env import Env
"""


def test_a_parameter_that_the_path_has_not_is_told(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
app = create_app(Env)
PATH: Final = "/orgs/:org/users/:id"

@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(req.params["id"])
    res.json(req.params["idd"])
    #^ core-params: req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?
    p = req.params
    p["id"], p["user"]
    #^ core-params: req.params["user"]: the path /users/:id has no parameter user. It has id
    def inner() -> str:
        return req.params["ID"]
    #^ core-params: req.params["ID"]: the path /users/:id has no parameter ID. It has id
    name = "computed"
    for name in ("a", "b"):
        req.params[name]
    req.params.get("nope")
    if "nope" in req.params:
        pass

@app.get(PATH)
async def long(req: Request[Env], res: Response) -> None:
    req.params["org"], req.params["id"]
    req.params["name"]
    #^ core-params: req.params["name"]: the path /orgs/:org/users/:id has no parameter name. It has org and id

@app.get("/files/*")
@app.get("/again/:id")
async def two(req: Request[Env], res: Response) -> None:
    req.params["*"], req.params["id"]
    req.params["x"]
    #^ core-params: req.params["x"]: the path /files/* has no parameter x. It has *

async def plain(req: Request[Env], res: Response) -> None:
    req.params["x"]
    #^ core-params: req.params["x"]: the path /plain has no parameter x. It has none. Write /:x where it belongs

app.get("/plain", plain)

async def elsewhere(req: Request[Env], res: Response) -> None:
    req.params["anything"]
""",
    )
    project.check()


def test_a_handler_that_another_module_registers_has_that_module_s_paths(project: Project) -> None:
    project.usual().write(
        "handlers.py",
        """
        from core import Request, Response
        from env import Env

        async def show(req: Request[Env], res: Response) -> None:
            req.params["id"]
            req.params["idd"]
            #^ core-params: req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?

        async def twice(req: Request[Env], res: Response) -> None:
            req.params["a"], req.params["b"]
            req.params["c"]
            #^ core-params: req.params["c"]: the path /a/:a has no parameter c. It has a

        async def unknown(req: Request[Env], res: Response) -> None:
            req.params["x"]

        class Pages:
            async def page(self, req: Request[Env], res: Response) -> None:
                req.params["pag"]
                #^ core-params: req.params["pag"]: the path /pages/:page has no parameter pag. Did you mean page?
        """,
    )
    project.write(
        "app.py",
        """
        import sys

        import handlers
        from core import create_app
        from env import Env
        from handlers import Pages, show as shown, twice, unknown

        app = create_app(Env)
        pages = Pages()
        app.get("/users/:id", handlers.show)
        app.get("/a/:a", twice)
        app.get("/b/:b", twice)
        app.get("/x/" + sys.argv[0], unknown)
        app.post("/y", unknown)
        app.get("/pages/:page", pages.page)
        """,
    )
    project.check()
    project.edit("app.py", "/users/:id", "/users/:idd")
    assert [line for line in project.mypy() if "users" in line] == [
        'handlers.py:5: error: req.params["id"]: the path /users/:idd has no parameter id. Did you mean idd?  [core-params]'
    ]


def test_a_class_of_parameters_has_the_paths_own(project: Project) -> None:
    project.usual()
    project.write(
        "shapes.py",
        """
        from typing import TypedDict
        import attrs

        class ByYear(TypedDict):
            year: int
        """,
    )
    project.write(
        "elsewhere.py",
        """
        from core import Request, Response
        from env import Env
        from shapes import ByYear

        async def listed(req: Request[Env], res: Response) -> None:
            res.json(req.params.parse(ByYear))
            #^ core-params: req.params.parse(ByYear): the path /lists/:yeer has no parameter year. Did you mean yeer?
        """,
    )
    project.write(
        "app.py",
        HEAD
        + """
import attrs
from elsewhere import listed
from shapes import ByYear

app = create_app(Env)
router = Router[Env]()
app.get("/lists/:yeer", listed)

@attrs.frozen
class Order:
    id: int
    year: int
    part: str = "all"

@app.get("/orders/:year/:id/:part?")
async def order(req: Request[Env], res: Response) -> None:
    params = req.params
    req.params.parse(Order), params.parse(ByYear)

@app.get("/orders/:year")
async def orders(req: Request[Env], res: Response) -> None:
    res.json(req.params.parse(ByYear))
    res.json(req.params.parse(Order).year)
    #^ core-params: req.params.parse(Order): the path /orders/:year has no parameter id. It has year
    req.query.parse(Order)

@app.get("/none")
async def none(req: Request[Env], res: Response) -> None:
    req.params.parse(Order)
    #^ core-params: req.params.parse(Order): the path /none has no parameter id. It has none. Write /:id where it belongs

@router.get("/within")
async def within(req: Request[Env], res: Response) -> None:
    req.params.parse(ByYear)

app.use("/by/:year", router)
""",
    )
    project.check()


def test_a_router_may_get_parameters_from_its_prefix(project: Project) -> None:
    project.usual().write(
        "users.py",
        HEAD
        + """
users: Router[Env] = Router()

@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    req.params["org"], req.params["id"]
    req.params["idd"]
    #^ core-params: req.params["idd"]: the path /:id has no parameter idd. Did you mean id?
""",
    )
    project.write("app.py", HEAD + '\nfrom users import users\napp = create_app(Env)\napp.use("/orgs/:org", users)\n')
    project.check()
    project.edit("app.py", "/orgs/:org", "/orgs")
    assert [line for line in project.mypy() if "org" in line] == [
        'users.py:11: error: req.params["org"]: the path /:id has no parameter org. It has id  [core-params]'
    ]
    project.edit("app.py", '"/orgs"', 'f"/orgs/{1}"')
    assert project.mypy() == []


def test_a_handler_s_own_names_are_checked_against_the_path(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
app = create_app(Env)

@app.get("/orgs/:org")
async def good(req: Request[Env, object, Literal["org"]], res: Response) -> None: ...

@app.get("/firms/:id")
#^ core-params: bad reads :org, which the path /firms/:id does not have: it has id. Register it on a path with :org
async def bad(req: Request[Env, object, Literal["org"]], res: Response) -> None: ...

@app.on("PURGE", "/x")
#^ core-params: both reads :a and :b, which the path /x does not have: it has no parameters. Register it on a path with :a and :b
async def both(req: Request[Env, object, Literal["a", "b"]], res: Response) -> None: ...

app.get("/first/:org", good)
app.get("/:orgs", good)
#^ core-params: good reads :org, which the path /:orgs does not have: it has orgs. Register it on a path with :org

router: Router[Env] = Router()

@router.get("/:id")
#^ core-params: under reads :nope, which the path /:id does not have: it has id. Register it on a path with :nope
async def under(req: Request[Env, object, Literal["org", "nope"]], res: Response) -> None: ...

app.use("/a/:org", router)
""",
    )
    project.check()


def test_a_handler_comes_last(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
app = create_app(Env)

async def guard(req: Request[Env], res: Response, next: Next) -> None: ...
async def show(req: Request[Env], res: Response) -> None: ...

class Shower:
    async def __call__(self, req: Request[Env], res: Response) -> None: ...

app.get("/a", guard, show)
app.get("/b", show, guard)
#^ core-params: show is a handler (req, res) and ends the chain, so everything after it in get("/b") never runs. Put it last
app.get("/c", Shower(), show)
#^ core-params: Shower() is a handler (req, res) and ends the chain, so everything after it in get("/c") never runs. Put it last

@app.post("/d", guard)
async def d(req: Request[Env], res: Response) -> None: ...

@app.post("/e", guard, show)
#^ core-params: show is a handler (req, res) and ends the chain, so everything after it in post("/e") never runs. Put it last
async def e(req: Request[Env], res: Response) -> None: ...
""",
    )
    project.check()


def test_a_path_that_cannot_be_registered_is_told(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
app = create_app(Env)

@app.get("users")
#^ core-params: the path "users" must begin with "/". Write "/users"
async def users(req: Request[Env], res: Response) -> None: ...

@app.get("/{id}")
#^ core-params: "/{id}": a parameter begins with a colon. Write :id
async def braces(req: Request[Env], res: Response) -> None: ...

@app.get("/:id{(a+)+}")
#^ core-params: "/:id{(a+)+}": {(a+)+} can read 'a' in two ways at one place, which may take long. Write pieces of which the next character decides, such as [0-9]{4}-[0-9]{2}, [a-z]+(-[a-z]+)* or [^.]+\\.(png|jpe?g), or check the value in the handler
async def slow(req: Request[Env], res: Response) -> None: ...
""",
    )
    project.check()


def test_only_proven_reversals_of_middleware_are_told(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
good = create_app(Env)
good.use(request_id())
good.use(logger(), request_id())
scoped = create_app(Env)
scoped.use("/a", logger())
scoped.use("/b", request_id())
debugging = create_app(Env)
if __debug__:
    debugging.use(logger())
else:
    debugging.use(request_id())
debugging.get("/x", request_id())

bad = create_app(Env)
bad.use(logger())
bad.use("/a", request_id())
#^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first

once = create_app(Env)
once.use(logger(), request_id())
#^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first

def make() -> None:
    app = create_app(Env)
    log = logger(format="long")
    app.use(log)
    if __debug__:
        app.use(request_id())
        #^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first

route = create_app(Env)
async def show(req: Request[Env], res: Response) -> None: ...
route.get("/a", logger(), show)
route.get("/b", request_id(), show)
route.get("/c", logger(), request_id(), show)
#^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first

top = create_app(Env)
inner: Router[Env] = Router()
inner.use(request_id())
top.use(logger())
top.use("/inner", inner)
#^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first
""",
    )
    project.check()


PREFIXED = """
from core import Request, Response, Router, create_app
from core.middleware.logger import logger
from env import Env

app = create_app(Env)
app.use(logger())
router: Router[Env] = Router()

@router.get("/x/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["shop"])
"""


def test_a_prefix_that_a_function_returns_may_have_any_parameter(project: Project) -> None:
    project.usual()
    made = 'def prefix(name: str) -> str:\n    return "/" + ":" + name\n\napp.use(prefix("shop"), router)\n'
    project.write("app.py", PREFIXED + made)
    project.check()


def test_a_string_anywhere_may_be_the_prefix_of_a_parameter_of_that_name_alone(project: Project) -> None:
    project.usual()
    wrong = 'res.text(req.params["stop"])\n    #^ core-params: req.params["stop"]: the path /x/:id has no parameter stop. It has id\n'
    written = PREFIXED + f"    {wrong}"
    project.write("app.py", written + '\nPREFIXES = {"shop": "/:shop"}\napp.use(PREFIXES["shop"], router)\n')
    project.check()


@pytest.mark.parametrize(
    "prefix",
    [
        'BASE + "/:shop"',
        'f"{BASE}/:shop"',
        '"/" + "shops/:shop"',
        '"/" + ":shop"',
        '"/:" + NAME',
        'f"/:{NAME}"',
        'f"{BASE}/:{NAME}"',
        '"/:shop{[a-z]+}"',
        '"/" + ":" + NAME',
        '"/:%s" % NAME',
    ],
)
def test_a_prefix_that_is_put_together_may_bring_its_parameter(prefix: str, project: Project) -> None:
    project.usual()
    made = f'BASE = "/shops"\nNAME = "".join(["shop"])\nPREFIX = {prefix}\napp.use(PREFIX, router)\n'
    project.write("app.py", PREFIXED + made)
    project.check()


def test_what_middleware_is_said_to_read_and_provide_is_what_it_declares() -> None:
    for maker in (logger, request_id):
        promise = declared().middleware[f"{maker.__module__}.{maker.__qualname__}"]
        traits = info_of(maker())
        assert traits is not None
        said = (promise.name, frozenset(promise.reads), frozenset(promise.provides))
        assert said == (traits.name, traits.reads, traits.provides)
