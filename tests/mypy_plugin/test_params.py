"""`core-params` and `core-order`: path parameters, handlers in their place, and the order of middleware."""

from __future__ import annotations

import pytest
from tests.mypy_plugin.conftest import Project

from core.handlers import info_of
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.program.extensions import declared

HEAD = """\
from typing import Any, Final, Literal
from core import Next, Request, Response, Router, create_app
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from env import Env
"""


def test_an_optional_segment_is_no_parameter_for_certain(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        HEAD
        + """
app = create_app(Env)
other = Router[Env]()

@app.get("/:name/:scope?")
async def required(req: Request[Env], res: Response) -> None:
    res.json({"name": req.params["name"], "scope": req.params["scope"]})
    #^ core-params: req.params["scope"]: the path /:name/:scope? matches without scope too, where this raises. Write req.params.get("scope")

@other.get("/:id{[0-9]+}?")
async def below(req: Request[Env], res: Response) -> None:
    res.json(last(req))

def last(req: Request[Env]) -> str:
    return req.params["id"]
    #^ core-params: req.params["id"]: the path /other/:id{[0-9]+}? matches without id too, where this raises. Write req.params.get("id")

app.use("/other", other)

@app.get("/a/b/:scope?")
async def asked(req: Request[Env], res: Response) -> None:
    if "scope" in req.params:
        res.json(req.params["scope"])
        return
    res.json(None)

@app.get("/a/b/c/:scope?")
async def read(req: Request[Env], res: Response) -> None:
    res.json(req.params["scope"] if req.params.get("scope") else None)

@app.get("/a/b/c/d/:scope?")
async def tried(req: Request[Env], res: Response) -> None:
    try:
        res.json(req.params["scope"])
    except KeyError:
        res.json(None)
""",
    )
    project.check()


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

@attrs.frozen
class Span:
    from_: int = attrs.field(alias="since")
    _to: int

@app.get("/spans/:since/:to")
async def span(req: Request[Env], res: Response) -> None:
    req.params.parse(Span)

@app.get("/spans/:since")
async def open_span(req: Request[Env], res: Response) -> None:
    req.params.parse(Span)
    #^ core-params: req.params.parse(Span): the path /spans/:since has no parameter to. It has since

@app.get("/orders/:year")
async def orders(req: Request[Env], res: Response) -> None:
    res.json(req.params.parse(ByYear))
    print(req.params.parse(Order).year)
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
