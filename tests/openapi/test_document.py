"""A whole application described: what stands before a route counts,
and errors look as its error handler writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from core.openapi.document import Described
from core.openapi.reading import openapi_path, openapi_paths, target
from core.openapi.written import as_json

SHOP = '''
"""A shop."""

import attrs

from core import (
    UNSET, AuthenticationError, Bindings, CoreError, D1Database, D1Error, KVNamespace, Next, Request, Response, Router,
    Unset, create_app, given
)
from core.handlers import before, declare, public
from core.http.websocket import WebSocket
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.body_limit import body_limit
from core.middleware.csrf import csrf
from core.middleware.etag import etag
from core.middleware.ip_restriction import ip_restriction
from core.middleware.rate_limit import rate_limit
from core.middleware.sessions import session_of, sessions
from core.middleware.timeout import timeout


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace
    DB: D1Database
    TOKEN: str


Req = Request[Env]
app = create_app(Env)
admin: Router[Env] = Router()


@attrs.frozen
class Item:
    """Something to buy."""

    id: int
    title: str = "nothing"
    """What it is called."""


@attrs.frozen
class User:
    name: str


@attrs.frozen
class Change:
    title: str | Unset = attrs.field(default=UNSET, validator=given(attrs.validators.max_len(80)))
    note: str | None | Unset = UNSET


class SoldOut(Exception):
    """Nothing is left."""


async def who(req: Req) -> User:
    if req.header("X-Api-Key") is None:
        raise CoreError(401, "Who are you?")
    return User("x")


async def challenged(req: Req) -> User:
    if not req.header("Authorization"):
        raise CoreError(401, "Log in", headers={"WWW-Authenticate": 'Digest realm="shop"'})
    return User("x")


async def by_cookie(req: Req) -> User:
    if "sid" not in req.cookies or req.cookies["sid"] == "":
        raise CoreError(401, "No cookie")
    return User("x")


async def guard(req: Req, res: Response, next: Next) -> None:
    """A middleware of the application's own."""
    if req.header("X-Old") is not None:
        raise CoreError(426, "Too old")
    await next()


def tracing(name: str) -> object:
    async def trace(req: Req, res: Response, next: Next) -> None:
        if not name:
            raise CoreError(424, "No trace")
        await next()

    return declare(trace, name="tracing")


def stepping() -> object:
    def step(req: Req, res: Response) -> None:
        if req.header("X-Step") == "no":
            raise CoreError(421, "Not here")

    return before(step, name="stepping")


@app.get("/first")
async def first(req: Req, res: Response) -> None:
    """Registered before everything else.

    So nothing stands before it.
    """
    res.json(Item(1))


app.use(timeout(duration=10, message="Too slow", status=504))
app.use("/admin", guard, admin)


@app.post("/items", rate_limit(kv_binding="COUNTERS", limit=1, window=60, on_store_error="closed"))
async def make(req: Req, res: Response) -> None:
    item = await req.json(Item)
    if not item.title:
        raise SoldOut
    res.status(201).header("Location", "/items/1").json({"item": item, "by": [item]})


@app.get("/items/:id", etag(), tracing("x"), stepping())
async def show(req: Req, res: Response) -> None:
    res.json({"title": await req.env.DB.prepare("SELECT title FROM items").first("title")})


@app.patch("/items/:id")
async def change_item(req: Req, res: Response) -> None:
    change = await req.json(Change)
    res.json(change if change.note is not UNSET else {"title": change.title})


@app.put("/small", body_limit(max_size=5), csrf(), ip_restriction(allow=["10.0.0.0/8"]))
async def small(req: Req, res: Response) -> None:
    res.json(await req.json(dict[str, int]))


@app.authenticated(who).get("/keyed")
async def keyed(req: Request[Env, User], res: Response) -> None:
    res.json(req.user)


@app.authenticated(challenged).get("/digested")
async def digested(req: Request[Env, User], res: Response) -> None:
    res.json(req.user)


@app.authenticated(by_cookie).get("/baked")
async def baked(req: Request[Env, User], res: Response) -> None:
    res.json(req.user)


@app.get("/remembered", sessions(kv_binding="COUNTERS", secret=lambda req: req.env.TOKEN))
async def remembered(req: Req, res: Response) -> None:
    res.text("yes")


visited = app.Router()
visited.use(sessions(kv_binding="COUNTERS", secret=lambda req: req.env.TOKEN))


async def visitor(req: Req) -> str:
    name: str | None = (await session_of(req)).get("name")
    if name is None:
        raise AuthenticationError(missing=True)
    return name


@visited.authenticated(visitor).get("/")
async def visit(req: Request[Env, str], res: Response) -> None:
    res.text(req.user)


app.use("/visited", visited)


@app.get("/open", public())
async def open_to_all(req: Req, res: Response) -> None:
    res.html("<p>")


@admin.get("/", bearer_auth(token=lambda req: req.env.TOKEN))
async def overview(req: Req, res: Response) -> None:
    res.send()


@admin.delete("/*", basic_auth(verify=lambda name, password, req: None))
async def clear(req: Req, res: Response) -> None:
    res.status(204).send()


@app.websocket("/live/:room")
async def live(req: Req, socket: WebSocket) -> None:
    """Talk."""


@app.on("PURGE", "/cache")
async def purge(req: Req, res: Response) -> None:
    res.text("")


@app.all("/any")
async def anything(req: Req, res: Response) -> None:
    res.text(req.method)


@app.not_found
async def nothing(req: Req, res: Response) -> None:
    res.status(404).json({"error": "Nothing here", "path": req.path})


@app.on_error
async def answer_error(err: Exception, req: Req, res: Response, next: Next) -> None:
    if isinstance(err, SoldOut):
        res.status(410).json({"error": "Sold out", "code": "SOLD_OUT"})
    elif isinstance(err, D1Error):
        res.status(503).json({"error": "Come back later"})
    elif isinstance(err, CoreError):
        res.status(err.status).json({"failure": err.body, "id": req.id})
    else:
        res.status(500).json({"failure": None})
'''


@pytest.fixture(scope="module")
def shop(describing: Callable[..., Described]) -> Described:
    return describing("shop", SHOP)


@pytest.fixture(scope="module")
def document(shop: Described) -> dict[str, Any]:
    return shop.document


def answers(operation: dict[str, Any]) -> list[str]:
    return list(operation["responses"])


def test_it_is_a_valid_document(document: dict[str, Any]) -> None:
    validate(document)


def test_a_route_that_is_registered_first_has_nothing_before_it(document: dict[str, Any]) -> None:
    operation = document["paths"]["/first"]["get"]
    assert answers(operation) == ["200", "default"]
    assert operation["summary"] == "Registered before everything else."
    assert operation["description"] == "So nothing stands before it."
    assert "tags" not in operation


def test_middleware_answers_with_its_own_options(document: dict[str, Any]) -> None:
    paths = document["paths"]
    assert answers(paths["/items"]["post"]) == ["201", "400", "410", "413", "422", "429", "503", "504", "default"]
    assert set(paths["/items"]["post"]["responses"]["429"]["headers"]) == {
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "Retry-After",
    }
    assert "Location" in paths["/items"]["post"]["responses"]["201"]["headers"]
    assert answers(paths["/items/{id}"]["get"]) == ["200", "304", "400", "421", "424", "503", "504", "default"]
    assert answers(paths["/small"]["put"]) == ["200", "400", "403", "413", "422", "504", "default"]
    assert "426" in answers(paths["/admin"]["get"])


def test_errors_look_as_the_error_handler_writes_them(document: dict[str, Any]) -> None:
    operation = document["paths"]["/items"]["post"]

    def body(status: str) -> Any:
        schema = operation["responses"][status]["content"]["application/json"]["schema"]
        return document["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    slow = body("504")["properties"]
    assert slow["failure"]["properties"]["error"] == {"type": "string", "const": "Too slow"}
    assert slow["id"] == {"type": "string"}
    assert body("410")["properties"]["code"] == {"type": "string", "const": "SOLD_OUT"}
    assert body("default") == {
        "type": "object",
        "properties": {"failure": {"type": "null"}},
        "required": ["failure"],
    }
    assert document["components"]["schemas"]["SoldOutError"] == body("410")


def test_a_path_that_no_route_has(document: dict[str, Any]) -> None:
    answer = document["components"]["responses"]["NotFound"]["content"]["application/json"]["schema"]
    assert answer["properties"]["path"] == {"type": "string"}


def test_authenticators_become_security_schemes(document: dict[str, Any]) -> None:
    schemes, paths = document["components"]["securitySchemes"], document["paths"]
    assert paths["/keyed"]["get"]["security"] == [{"x-api-key": []}]
    assert schemes["x-api-key"] == {"type": "apiKey", "in": "header", "name": "X-Api-Key"}
    assert paths["/digested"]["get"]["security"] == [{"digest": []}]
    assert schemes["digest"] == {"type": "http", "scheme": "digest"}
    assert paths["/baked"]["get"]["security"] == [{"sid": []}]
    assert paths["/remembered"]["get"]["security"] == [{}, {"session": []}]
    assert paths["/visited"]["get"]["security"] == [{"session": []}]
    assert paths["/admin"]["get"]["security"] == [{"bearer": []}]
    assert paths["/admin/{path}"]["delete"]["security"] == [{"basic": []}]
    assert paths["/open"]["get"]["security"] == []
    assert "security" not in paths["/first"]["get"]


def test_a_class_that_is_sent_and_read_differs_where_it_has_defaults(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["Item"] == {
        "type": "object",
        "description": "Something to buy.",
        "properties": {
            "id": {"type": "integer"},
            "title": {"type": "string", "description": "What it is called."},
        },
        "required": ["id", "title"],
    }
    assert schemas["ItemInput"]["required"] == ["id"]
    assert schemas["ItemInput"]["properties"]["title"]["default"] == "nothing"


def test_a_field_that_may_be_unset_is_optional_and_not_nullable_both_ways(document: dict[str, Any]) -> None:
    operation = document["paths"]["/items/{id}"]["patch"]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Change"}
    assert document["components"]["schemas"]["Change"] == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 80},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
    assert "ChangeInput" not in document["components"]["schemas"]


def test_methods_and_sockets_without_a_place_of_their_own(
    document: dict[str, Any], describing: Callable[..., Described]
) -> None:
    paths = document["paths"]
    assert paths["/cache"]["additionalOperations"]["PURGE"]["operationId"] == "purge"
    assert list(paths["/any"]) == ["get", "post", "put", "patch", "delete"]
    assert paths["/any"]["put"]["operationId"] == "anything_put"
    assert paths["/live/{room}"]["x-websocket"]["summary"] == "Talk."
    assert paths["/live/{room}"]["x-websocket"]["parameters"][0]["name"] == "room"
    older = describing("shop31", SHOP, "3.1").document
    assert older["openapi"].startswith("3.1")
    assert "PURGE" in older["paths"]["/cache"]["x-additional-operations"]
    validate(older)


def test_what_is_not_known_is_a_problem_at_its_line(shop: Described) -> None:
    assert [(Path(problem.path).name, problem.message) for problem in shop.problems] == [
        ("shop.py", "the type of a value is not known (Any). Give it a type")
    ]
    line = SHOP.splitlines()[shop.problems[0].line - 1]
    assert "SELECT title FROM items" in line


def test_answers_are_found_in_the_code(shop: Described) -> None:
    lines = SHOP.splitlines()
    path, line = shop.places["make", "201"]
    assert Path(path).name == "shop.py"
    assert "201" in lines[line - 1]
    assert "make" in lines[shop.places["make", ""][1]]


def test_nothing_depends_on_the_order_of_sets(shop: Described, describing: Callable[..., Described]) -> None:
    again = describing("shop_again", SHOP).document
    assert as_json(again) == as_json(shop.document)


def test_two_classes_and_two_handlers_of_one_name_are_told_apart(describing: Callable[..., Described]) -> None:
    described = describing(
        "twins",
        """
        import attrs
        from core import Request, Response, create_app

        app = create_app()

        class Outer:
            @attrs.frozen
            class Item:
                a: int

        @attrs.frozen
        class Item:
            b: "list[Item]"

        async def show(req: Request, res: Response, item: Outer.Item) -> None:
            res.json(item)

        def made(item: Item):
            async def show(req: Request, res: Response) -> None:
                res.json(item)
            return show

        async def plain(req: Request, res: Response) -> None:
            res.json(Outer.Item(1))

        app.get("/one", plain)
        app.get("/two", made(Item([])))
        app.get("/three", plain)
        """,
    )
    names = [name for name in described.document["components"]["schemas"] if "Item" in name]
    assert names == ["OuterItem", "TwinsItem"]
    ids = [item["get"]["operationId"] for item in described.document["paths"].values()]
    assert ids == ["get_one", "show", "get_three"]


def test_handlers_of_a_generic_object_have_the_types_that_it_was_made_with(
    describing: Callable[..., Described],
) -> None:
    described = describing(
        "generics",
        """
        from collections.abc import Awaitable, Callable
        from typing import Generic, TypeVar
        import attrs
        from core import CoreError, Request, Response, create_app

        T = TypeVar("T")
        New = TypeVar("New")
        app = create_app()

        @attrs.frozen
        class Room:
            id: int

        @attrs.frozen
        class Suite(Room):
            view: str

        @attrs.frozen
        class NewRoom:
            name: str

        @attrs.frozen
        class Page(Generic[T]):
            items: list[T]

        class Collection(Generic[T, New]):
            def __init__(
                self, load: Callable[[], Awaitable[list[T]]], new: type[New], make: Callable[[New], T], best: T | None
            ) -> None:
                self._load = load
                self._new = new
                self._make = make
                self._best = best

            async def index(self, req: Request, res: Response) -> None:
                res.json(Page(await self._load()))

            async def create(self, req: Request, res: Response) -> None:
                res.status(201).json(self._make(await req.json(self._new)))

            async def best(self, req: Request, res: Response) -> None:
                if self._best is None:
                    raise CoreError(404, "None")
                res.json(self._best)

        class Store:
            def __init__(self, rooms: list[Room]) -> None:
                self.rooms = rooms

            async def load(self) -> list[Room]:
                return self.rooms

            def make(self, floor: int, new: NewRoom) -> Room:
                return Room(floor)

        def make(new: NewRoom) -> Room:
            return Room(len(new.name))

        rooms = Collection(Store([]).load, NewRoom, make, Suite(1, "sea"))
        app.get("/rooms", rooms.index)
        app.post("/rooms", rooms.create)
        app.get("/rooms/best", rooms.best)

        async def no_suites() -> list[Suite]:
            return []

        mixed = Collection[Room, NewRoom](no_suites, NewRoom, make, None)
        app.get("/mixed", mixed.index)

        def both(c: Collection[T, New], d: Collection[T, New]) -> None:
            app.post("/both", c.create)

        both(rooms, mixed)
        """,
    )
    paths = described.document["paths"]

    def of(operation: Any, status: str) -> Any:
        return operation["responses"][status]["content"]["application/json"]["schema"]

    def named(name: str) -> Any:
        return {"$ref": f"#/components/schemas/{name}"}

    assert of(paths["/rooms"]["get"], "200") == named("Page_Room")
    assert of(paths["/mixed"]["get"], "200") == named("Page_Room"), "as it says of itself, not as it was given less"
    for made in (paths["/rooms"]["post"], paths["/both"]["post"]):
        assert made["requestBody"]["content"]["application/json"]["schema"] == named("NewRoom")
        assert of(made, "201") == named("Room")
    assert of(paths["/rooms/best"]["get"], "200") == named("Suite"), "which nothing sets again"
    assert described.problems == []


def test_the_methods_of_tuples_typed_dicts_and_classes_are_known(describing: Callable[..., Described]) -> None:
    described = describing(
        "methods",
        """
        from typing import NamedTuple, TypedDict, TypeVar
        from core import CoreError, Request, Response, create_app

        app = create_app()

        class Point(NamedTuple):
            x: int
            y: int = 0

        class Options(TypedDict, total=False):
            a: int
            b: str

        class Shape:
            @classmethod
            def made(cls) -> "Shape":
                raise CoreError(418, "Made")

            @staticmethod
            def sides() -> int:
                return 3

        class Square(Shape):
            @staticmethod
            def sides() -> int:
                raise CoreError(410, "Gone")

        S = TypeVar("S", bound=Shape)

        def sides(kind: type[S]) -> int:
            return kind.sides()

        @app.get("/tuple")
        async def tuples(req: Request, res: Response) -> None:
            res.json(Point(1)._replace(y=len(Point(2)._asdict())))

        @app.post("/dict")
        async def dicts(req: Request, res: Response) -> None:
            body = await req.json(Options)
            res.json({"a": body.get("a", 3), "keys": sorted(body.keys()), "copy": body.copy()})

        @app.get("/class")
        async def classes(req: Request, res: Response) -> None:
            shape = Shape()
            if req.path:
                type(shape).made()
            res.json(sides(Shape))
        """,
    )
    assert described.problems == []
    paths = described.document["paths"]
    assert answers(paths["/tuple"]["get"]) == ["200", "default"]
    assert answers(paths["/dict"]["post"]) == ["200", "400", "413", "422", "default"]
    assert answers(paths["/class"]["get"]) == ["200", "410", "418", "default"], "the subclass's too"


def test_a_type_that_has_itself_in_it_is_a_schema_of_its_own(describing: Callable[..., Described]) -> None:
    described = describing(
        "recursive",
        """
        from typing import TypeAlias, Union
        import attrs
        from core import Request, Response, create_app

        app = create_app()
        Json: TypeAlias = Union[dict[str, "Json"], list["Json"], str, int, float, bool, None]

        @attrs.frozen
        class Event:
            payload: Json
            cause: "Event | None" = None

        @app.post("/events")
        async def add(req: Request, res: Response) -> None:
            res.json(await req.json(Event))
        """,
    )
    schemas = described.document["components"]["schemas"]
    itself = {"$ref": "#/components/schemas/Json"}
    assert schemas["EventInput"]["properties"]["payload"] == itself
    assert schemas["Json"]["anyOf"][:2] == [
        {"type": "object", "additionalProperties": itself},
        {"type": "array", "items": itself},
    ]
    assert described.problems == []


def test_bounds_of_dates_and_decimals_and_choices_out_of_a_set(describing: Callable[..., Described]) -> None:
    described = describing(
        "bounds",
        """
        from datetime import date, time
        from decimal import Decimal
        import attrs
        from attrs.validators import and_, ge, gt, in_, le, lt, matches_re, not_
        from core import Request, Response, create_app

        app = create_app()

        @attrs.frozen
        class Offer:
            day: date = attrs.field(default=date(2026, 1, 1), validator=ge(date(2020, 1, 1)))
            until: time = attrs.field(validator=lt(time(18)), kw_only=True)
            price: Decimal = attrs.field(default=Decimal("1.50"), validator=[gt(Decimal(0)), le(Decimal("10.5"))])
            size: str = attrs.field(default="s", validator=in_({"s", "m", "l", "xl"}))
            odd: int = attrs.field(default=1, validator=not_(in_([0, 2])))
            rate: float = attrs.field(default=1.0, validator=le(float("inf")))
            name: str = attrs.field(default="ab", validator=and_(matches_re("a.*"), matches_re(".*b")))
            word: str = attrs.field(default="b", validator=ge("a"))

        @app.post("/offers")
        async def add(req: Request, res: Response) -> None:
            await req.json(Offer)
            res.send()
        """,
    )
    fields = described.document["components"]["schemas"]["Offer"]["properties"]
    assert fields == {
        "day": {"type": "string", "format": "date", "formatMinimum": "2020-01-01", "default": "2026-01-01"},
        "until": {"type": "string", "format": "time-local", "formatExclusiveMaximum": "18:00:00"},
        "price": {
            "type": "string",
            "format": "decimal",
            "formatExclusiveMinimum": "0",
            "formatMaximum": "10.5",
            "default": "1.50",
        },
        "size": {"type": "string", "enum": ["l", "m", "s", "xl"], "default": "s"},
        "odd": {"type": "integer", "not": {"enum": [0, 2]}, "default": 1},
        "rate": {"type": "number", "default": 1.0},
        "name": {"type": "string", "pattern": "^(?:a.*)$", "default": "ab"},
        "word": {"type": "string", "default": "b"},
    }
    bound, pattern = sorted(problem.message for problem in described.problems)
    assert "the validator pattern '^(?:.*b)$' beside another, in the class Offer, does not say what it holds" in pattern
    assert "the validator >= 'a', in the class Offer, does not say what it holds" in bound


@pytest.mark.parametrize("problem_details", [False, True])
def test_errors_of_one_name_are_told_apart_by_what_else_they_tell(
    describing: Callable[..., Described], problem_details: bool
) -> None:
    described = describing(
        f"named_{problem_details}",
        f"""
        from core import CoreError, Request, Response, create_app

        app = create_app(problem_details={problem_details})

        @app.get("/:id")
        async def show(req: Request, res: Response) -> None:
            id, which = req.params["id"], req.query.get("which", "")
            if which == "coded":
                raise CoreError(404, f"No {{id}}", code="NOT_FOUND")
            if which == "keyed":
                raise CoreError(404, f"No {{id}}", code="NOT_FOUND", key=id)
            if which == "counted":
                raise CoreError(404, f"No {{id}}", code="NOT_FOUND", key=id, in_all=len(id))
            if which == "numbered":
                raise CoreError(404, f"No {{id}}", code=1001)
            if which == "numbered otherwise":
                raise CoreError(404, f"No {{id}}", code=1002)
            if which == "said":
                raise CoreError(404, "No such note", key=id)
            raise CoreError(430, id)
        """,
    )
    names = [name for name in described.document["components"]["schemas"] if "No" in name or "4" in name]
    assert names == [
        "NoSuchNoteError",
        "NotFoundError",
        "NotFoundErrorWithCode",
        "NotFoundErrorWithCode1001",
        "NotFoundErrorWithCode1002",
        "NotFoundErrorWithCodeAndKey",
        "NotFoundErrorWithCodeAndKeyAndInAll",
        "Status430Error",
    ]


def test_errors_that_tell_the_same_are_called_after_their_operations(describing: Callable[..., Described]) -> None:
    described = describing(
        "named_by_operation",
        """
        from core import CoreError, Request, Response, create_app

        app = create_app()

        @app.get("/books/:id")
        async def show_book(req: Request, res: Response) -> None:
            raise CoreError(404, f"No book {req.id}", key=req.params["id"])

        @app.get("/pages/:id")
        async def show_page(req: Request, res: Response) -> None:
            if "few" in req.query:
                raise CoreError(404, f"No page {req.id}", key=None)
            raise CoreError(404, f"No page {req.id}", key=int(req.params["id"]))

        def shelf(req: Request) -> None:
            raise CoreError(404, f"No shelf {req.id}", key=[req.params["id"]])

        @app.get("/shelves/:id")
        async def show_shelf(req: Request, res: Response) -> None:
            shelf(req)

        @app.delete("/shelves/:id")
        async def drop_shelf(req: Request, res: Response) -> None:
            shelf(req)
        """,
    )
    operations = described.document["paths"]
    found = {
        operation["operationId"]: json.dumps(operation["responses"]["404"]["content"]["application/json"]["schema"])
        for item in operations.values()
        for operation in item.values()
    }
    assert {name: sorted(re.findall(r"/(\w+)\"", text)) for name, text in found.items()} == {
        "show_book": ["ShowBookNotFoundError"],
        "show_page": ["ShowPageNotFoundError", "ShowPageNotFoundError2"],
        "show_shelf": ["NotFoundErrorWithKey"],
        "drop_shelf": ["NotFoundErrorWithKey"],
    }


@pytest.mark.parametrize("change", ["del KEPT[key(req)]", "KEPT[key(req)] = 1", "KEPT[key(req)] += 1"])
def test_a_call_in_the_place_that_is_changed_is_read(describing: Callable[..., Described], change: str) -> None:
    described = describing(
        f"changed_{len(change)}",
        f"""
        from core import CoreError, Request, Response, create_app

        app = create_app()
        KEPT: dict[str, int] = {{}}

        def key(req: Request) -> str:
            if req.params["id"] not in KEPT:
                raise CoreError(404, "No such thing")
            return req.params["id"]

        @app.delete("/things/:id")
        async def drop(req: Request, res: Response) -> None:
            {change}
            res.status(204).send()
        """,
    )
    assert "404" in described.document["paths"]["/things/{id}"]["delete"]["responses"]
    assert described.problems == []


def test_what_may_be_set_again_is_not_described_as_it_is_at_the_start(describing: Callable[..., Described]) -> None:
    described = describing(
        "state_that_changes",
        """
        import attrs
        from core import Request, Response, create_app

        app = create_app()

        @attrs.frozen
        class State:
            name: str

        @attrs.frozen
        class Busy(State):
            job: str

        class Machine:
            def __init__(self) -> None:
                self.state: State = Busy("busy", "start")
                self.last: State | None = None
                self.word = "a"

            async def show(self, req: Request, res: Response) -> None:
                res.json({"state": self.state, "last": self.last, "word": self.word})

            async def stop(self, req: Request, res: Response) -> None:
                self.last, self.state = self.state, State("idle")
                setattr(self, "word", "b")
                res.send()

        machine = Machine()
        app.get("/object", machine.show)
        app.delete("/object", machine.stop)

        state: State = Busy("busy", "start")
        last: State | None = None
        word = "a"

        @app.get("/module")
        async def show(req: Request, res: Response) -> None:
            res.json({"state": state, "last": last, "word": word})

        @app.delete("/module")
        async def stop(req: Request, res: Response) -> None:
            global state, last, word
            last, state, word = state, State("idle"), "b"
            res.send()

        def register() -> None:
            state: State = Busy("busy", "start")
            last: State | None = None
            word = "a"

            @app.get("/closure")
            async def show_it(req: Request, res: Response) -> None:
                res.json({"state": state, "last": last, "word": word})

            @app.delete("/closure")
            async def stop_it(req: Request, res: Response) -> None:
                nonlocal state, last, word
                last, state, word = state, State("idle"), "b"
                res.send()

        register()
        counts = {"a": 1}
        nested = {"a": {"b": 1}}

        @app.get("/counts")
        async def counted(req: Request, res: Response) -> None:
            res.json(counts)

        @app.get("/nested")
        async def nests(req: Request, res: Response) -> None:
            res.json(nested)

        @app.post("/counts")
        async def count(req: Request, res: Response) -> None:
            counts["b"] = counts["a"] = 2
            nested["a"]["b"] = 2
            own = {"a": {"b": 1}}
            own["a"]["b"] = 2
            res.json(own)
        """,
    )
    assert described.problems == []
    paths = described.document["paths"]

    def sent(path: str, method: str = "get") -> Any:
        return paths[path][method]["responses"]["200"]["content"]["application/json"]["schema"]

    state = {"$ref": "#/components/schemas/State"}
    fields = {"state": state, "last": {"anyOf": [state, {"type": "null"}]}, "word": {"type": "string"}}
    for path in ("/object", "/module", "/closure"):
        assert sent(path)["properties"] == fields, path
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert sent("/counts") == counts
    assert sent("/nested") == sent("/counts", "post") == {"type": "object", "additionalProperties": counts}


def test_an_error_that_a_handler_passes_on_as_another_is_answered_as_that(describing: Callable[..., Described]) -> None:
    described = describing(
        "passing",
        """
        import contextlib
        from core import CoreError, Next, Request, Response, create_app

        app = create_app()

        class Missing(Exception):
            pass

        class Guard:
            async def __aenter__(self) -> None:
                raise CoreError(423, "Locked")

            async def __aexit__(self, *error: object) -> None:
                raise CoreError(424, "Failed")

        @app.on_error(Missing)
        async def missing(err: Missing, req: Request, res: Response, next: Next) -> None:
            res.status(404).json({"missing": True})

        @app.on_error(ZeroDivisionError)
        async def divided(err: ZeroDivisionError, req: Request, res: Response, next: Next) -> None:
            await next(Missing())

        @app.get("/divided")
        async def divides(req: Request, res: Response) -> None:
            res.json(1 / len(req.query.get("a") or ""))

        @app.get("/halved")
        async def halves(req: Request, res: Response) -> None:
            left = 1
            left //= len(req.path)
            res.json(left)

        @app.get("/entered")
        async def enters(req: Request, res: Response) -> None:
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(Guard())
                res.send()
        """,
    )
    assert described.problems == []
    paths = described.document["paths"]
    assert answers(paths["/divided"]["get"]) == answers(paths["/halved"]["get"]) == ["200", "404", "default"]
    assert answers(paths["/entered"]["get"]) == ["200", "423", "424", "default"]


def test_a_handler_from_elsewhere_is_a_problem(describing: Callable[..., Described]) -> None:
    described = describing(
        "elsewhere",
        """
        import functools
        from core import Request, Response, create_app
        from core.testing import FakeKVNamespace

        app = create_app()

        async def shown(req: Request, res: Response, *, word: str) -> None:
            res.json({"word": word})

        async def silent(req: Request, res: Response) -> None:
            pass

        class Page:
            async def __call__(self, req: Request, res: Response) -> None:
                res.text("page")

        app.get("/partial", functools.partial(shown, word="x"))
        app.get("/silent", silent)
        app.get("/object", Page())
        """,
    )
    paths = described.document["paths"]
    assert "word" in str(paths["/partial"]["get"]["responses"]["200"])
    assert "text/plain" in str(paths["/object"]["get"]["responses"]["200"])
    (problem,) = described.problems
    assert problem.message.startswith("silent sends nothing that can be seen here")


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/", ["/"]),
        ("/users/:id", ["/users/{id}"]),
        ("/files/*", ["/files/{path}"]),
        ("/users/:id{[0-9]+}/notes", ["/users/{id}/notes"]),
        ("/archive/:year?", ["/archive/{year}", "/archive"]),
        ("/:lang?", ["/{lang}", "/"]),
    ],
)
def test_paths_as_openapi_writes_them(path: str, written: list[str]) -> None:
    assert openapi_paths(path) == written
    assert openapi_path(path) == written[0]


LEVELS = '''
import attrs

from core import AuthenticationError, Bindings, CoreError, Next, Request, Response, Router, ValidationError, create_app
from core.middleware.optional import optional
from core.middleware.trusted_hosts import trusted_hosts
from core.pagination import cursor_of, page_of


@attrs.frozen
class Env(Bindings):
    pass


class OutOfStock(Exception):
    """Nothing is left."""


class NoSuchShelf(OutOfStock):
    """There was never anything."""


class Refused(ValidationError):
    """A rule of the shop."""


Req = Request[Env]
app = create_app(Env, problem_details=True, method_not_allowed=True)
shelves: Router[Env] = Router()


async def maybe(req: Req) -> int | None:
    if req.header("X-Key") is None:
        return None
    raise CoreError(401)


@app.get("/out")
async def out(req: Req, res: Response) -> None:
    raise OutOfStock()


@app.get("/rules")
async def rules(req: Req, res: Response) -> None:
    if req.header("X-Old") is not None:
        raise CoreError(410)
    raise Refused([{"path": "a", "message": "no"}], status=400)


@app.on_error(OutOfStock)
async def sold_out(err: OutOfStock, req: Req, res: Response, next: Next) -> None:
    res.status(409).json({"sold": True})


@shelves.on_error(NoSuchShelf)
async def no_shelf(err: NoSuchShelf, req: Req, res: Response, next: Next) -> None:
    res.status(404).json({"shelf": None})


@shelves.on_error(Refused, CoreError)
async def told(err: Refused | CoreError, req: Req, res: Response, next: Next) -> None:
    res.status(err.status).json({"told": err.message})


@shelves.authenticated(maybe).get("/:id")
async def shelf(req: Request[Env, int | None], res: Response) -> None:
    if req.params["id"] == "0":
        raise NoSuchShelf()
    if req.params["id"] == "1":
        raise OutOfStock()
    raise Refused([])


app.use("/shelves", shelves)


async def strict(req: Req) -> int:
    if req.signed_cookie("sid", "a secret") is None:
        raise AuthenticationError("Bearer", missing=True)
    return 1


@app.authenticated(optional(strict)).put("/pages", trusted_hosts(hosts=["example.test"], status=421))
async def pages(req: Request[Env, int | None], res: Response) -> None:
    req.require_match(None)
    page = page_of(req, most=50)
    cursor_of(req, str)
    res.file("page.html")
'''


@pytest.fixture(scope="module")
def levels(describing: Callable[..., Described]) -> dict[str, Any]:
    return describing("levels", LEVELS).document


def schema_of(document: dict[str, Any], path: str, status: str) -> tuple[str, Any]:
    ((media, content),) = document["paths"][path]["get"]["responses"][status]["content"].items()
    schema = content["schema"]
    return media, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def test_a_handler_answers_its_class_and_the_nearest_router_comes_first(levels: dict[str, Any]) -> None:
    validate(levels)
    assert "409" in answers(levels["paths"]["/out"]["get"])
    operation = levels["paths"]["/shelves/{id}"]["get"]
    assert {"401", "404", "409", "422"} <= set(answers(operation))
    assert schema_of(levels, "/shelves/{id}", "404")[1]["properties"] == {"shelf": {"type": "null"}}
    assert schema_of(levels, "/shelves/{id}", "409")[1]["properties"] == {"sold": {"type": "boolean", "const": True}}
    assert schema_of(levels, "/shelves/{id}", "422")[1]["properties"]["told"]["const"] == "Validation failed"
    assert schema_of(levels, "/shelves/{id}", "401")[1]["properties"]["told"]["const"] == "Unauthorized"


def test_errors_are_problem_details_where_the_application_asks_for_them(levels: dict[str, Any]) -> None:
    media, invalid = schema_of(levels, "/rules", "400")
    assert media == "application/problem+json"
    assert invalid["properties"]["title"]["const"] == "Bad Request"
    assert invalid["properties"]["detail"]["const"] == "Validation failed"
    assert invalid["properties"]["issues"]["type"] == "array"
    gone = schema_of(levels, "/rules", "410")[1]
    assert (gone["properties"]["title"]["const"], gone["required"]) == ("Gone", ["type", "title", "status"])
    responses = levels["components"]["responses"]
    assert list(responses["NotFound"]["content"]) == ["application/problem+json"]
    assert responses["MethodNotAllowed"]["headers"] == {"Allow": {"schema": {"type": "string"}}}


def test_an_authenticator_that_may_return_nobody_asks_for_nothing(levels: dict[str, Any]) -> None:
    assert levels["paths"]["/shelves/{id}"]["get"]["security"] == [{}, {"x-key": []}]


def test_helpers_of_a_request_and_files_are_known(levels: dict[str, Any]) -> None:
    operation = levels["paths"]["/pages"]["put"]
    wanted = ["200", "206", "304", "401", "412", "416", "421", "422", "default"]
    assert answers(operation) == wanted
    parameters = {(one["in"], one["name"]): one["schema"] for one in operation["parameters"]}
    assert parameters["query", "limit"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 20}
    assert {("query", "page"), ("query", "cursor"), ("header", "If-Match")} <= set(parameters)
    assert ("cookie", "sid") not in parameters, "which the security says"
    assert operation["security"] == [{}, {"sid": []}], "the cookie that it reads, whatever its challenge says"


def test_functions_that_call_each_other_without_end_are_read_once(describing: Callable[..., Described]) -> None:
    classes = "".join(
        f"""
class Node{number}(Node):
    def __init__(self, left: Node, right: Node) -> None:
        self.left = left
        self.right = right

    def run(self, env: dict[str, int]) -> int:
        if self.left is self.right:
            raise CoreError({400 + number}, "Broken")
        try:
            return self.left.run({{**env, "depth": 1}}) + self.right.run(env)
        except ValueError:
            return self.right.run(env)
"""
        for number in range(10)
    )
    described = describing(
        "endless",
        f"""
from core import CoreError, Request, Response, create_app

app = create_app()

class Node:
    def run(self, env: dict[str, int]) -> int:
        raise NotImplementedError
{classes}
def parsed(text: str) -> Node:
    return Node()

@app.post("/")
async def run(req: Request, res: Response) -> None:
    res.json(parsed(await req.text()).run({{}}))
""",
    )
    assert answers(described.document["paths"]["/"]["post"]) == ["200", *map(str, range(400, 410)), "default"]
    assert not described.problems


def test_descriptions_have_the_words_of_rfc_9110_under_every_python(shop: Described) -> None:
    words = {
        status: answer.get("description")
        for item in shop.document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
        for status, answer in operation.get("responses", {}).items()
    }
    assert (words["413"], words["422"]) == ("Content Too Large", "Unprocessable Content")


def test_a_status_out_of_a_table_a_function_or_a_property_is_known(describing: Callable[..., Described]) -> None:
    described = describing(
        "statuses_of_kinds",
        """
import enum
from http import HTTPStatus
from typing import ClassVar, Final, Literal

from core import App, CoreError, Next, Request, Response

app = App()
Kind = Literal["missing", "closed"]
NUMBERS: Final[dict[str, int]] = {"missing": 404, "closed": 409}
STATUSES: dict[Kind, HTTPStatus] = {"missing": HTTPStatus.GONE, "closed": HTTPStatus.LOCKED}
GROWING = {"missing": 404}

class Code(enum.StrEnum):
    MISSING = "missing"
    CLOSED = "closed"

    @property
    def status(self) -> int:
        return {Code.MISSING: 402, Code.CLOSED: 429}[self]

    @property
    def named(self) -> HTTPStatus:
        match self:
            case Code.MISSING:
                return HTTPStatus.NOT_FOUND
            case Code.CLOSED:
                return HTTPStatus.CONFLICT

class Failed(Exception):
    TABLE: ClassVar[dict[str, int]] = {"a": 451, "b": 421}

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def status(self) -> int:
        return self.TABLE[self.kind]

def status_of(kind: Kind) -> int:
    match kind:
        case "missing":
            return 404
        case "closed":
            return NUMBERS["closed"]

async def status_later(kind: Kind) -> int:
    return 410 if kind == "missing" else status_of(kind)

def again(depth: int) -> int:
    return again(depth - 1) if depth else 404

def kind_of(req: Request) -> Kind:
    return "missing" if req.query.get("missing") else "closed"

@app.get("/table")
async def table(req: Request, res: Response) -> None:
    res.status(NUMBERS[kind_of(req)]).json({})

@app.get("/one")
async def one(req: Request, res: Response) -> None:
    res.status(NUMBERS["closed"]).json({})

@app.get("/or")
async def otherwise(req: Request, res: Response) -> None:
    res.status(NUMBERS.get(kind_of(req), 500)).json({})

@app.get("/error")
async def error(req: Request, res: Response) -> None:
    raise CoreError(STATUSES[kind_of(req)], "No")

@app.get("/property")
async def attribute(req: Request, res: Response) -> None:
    res.status(Code(kind_of(req)).status).json({})

@app.get("/match")
async def matched(req: Request, res: Response) -> None:
    raise CoreError(Code(kind_of(req)).named, "No")

@app.get("/handled")
async def handled(req: Request, res: Response) -> None:
    raise Failed("a")

@app.get("/class")
async def of_class(req: Request, res: Response) -> None:
    res.status(Failed.TABLE["b"]).json({})

@app.get("/call")
async def called(req: Request, res: Response) -> None:
    res.status(status_of(kind_of(req))).json({})

@app.get("/await")
async def awaited(req: Request, res: Response) -> None:
    raise CoreError(await status_later(kind_of(req)), "No")

@app.post("/grow")
async def grow(req: Request, res: Response) -> None:
    GROWING[kind_of(req)] = 500
    res.status(GROWING["missing"]).json({})

@app.get("/local")
async def local(req: Request, res: Response) -> None:
    made = {"a": 401}
    made["b"] = 403
    res.status(made[req.query.get("key") or "a"]).json({})

async def pair_of(kind: Kind) -> tuple[int, dict[str, object]]:
    refused = 409, {"taken": kind}
    if kind == "closed":
        return refused
    return 404, {"missing": 1}

PAIRS = {"missing": (402, "pay"), "closed": (423, "locked")}

@app.get("/pair")
async def pair(req: Request, res: Response) -> None:
    status, body = await pair_of(kind_of(req))
    res.status(status).json(body)

@app.get("/pair-table")
async def pair_table(req: Request, res: Response) -> None:
    status, word = PAIRS[kind_of(req)]
    res.status(status).json({"word": word})

@app.get("/pair-either")
async def pair_either(req: Request, res: Response) -> None:
    status, body = await pair_of("missing") if req.query.get("key") else (200, {})
    res.status(status).json(body)

@app.get("/aliased")
async def aliased(req: Request, res: Response) -> None:
    first = {"a": 401}
    second = first
    second["b"] = 403
    res.status(first[req.query.get("key") or "a"]).json({})

LATER = GROWS = {"a": 401}
ALSO = GROWS
GROWS["b"] = 403

@app.get("/grown-later")
async def grown_later(req: Request, res: Response) -> None:
    res.status(ALSO[req.query.get("key") or "a"]).json({})

def several(more: tuple[int, ...]) -> tuple[int, ...]:
    return (404, *more, 409)

@app.get("/several")
async def of_several(req: Request, res: Response) -> None:
    status, body = several(())
    res.status(status).json(body)

@app.get("/nonlocal")
async def set_inside(req: Request, res: Response) -> None:
    status, body = await pair_of(kind_of(req))
    def worse() -> None:
        nonlocal status
        status = 500
    worse()
    res.status(status).json(body)

@app.get("/last")
async def last_of(req: Request, res: Response) -> None:
    first, *_, last = several(())
    res.status(last).json(first)

def few() -> tuple[int, ...]:
    return (404,)

@app.get("/few")
async def too_few(req: Request, res: Response) -> None:
    body, status = few()
    res.status(status).json(body)

@app.get("/any")
async def whichever(req: Request, res: Response) -> None:
    res.status(HTTPStatus(int(req.query.get("status") or 200))).json({})

class Grown:
    STATUSES = {"a": 404}

Grown.STATUSES["b"] = 410

@app.get("/class-grown")
async def class_grown(req: Request, res: Response) -> None:
    res.status(Grown.STATUSES[req.query.get("key") or "a"]).json({})

@app.get("/endless")
async def endless(req: Request, res: Response) -> None:
    res.status(again(1)).json({})

@app.on_error(Failed)
async def failed(err: Failed, req: Request, res: Response, next: Next) -> None:
    res.status(err.status).json({"kind": err.kind})
""",
    )
    unknown = ["2XX", "3XX", "4XX", "5XX"]
    assert {path: answers(*item.values())[:-1] for path, item in described.document["paths"].items()} == {
        "/table": ["404", "409"],
        "/one": ["409"],
        "/or": ["404", "409", "500"],
        "/error": ["410", "423"],
        "/property": ["402", "429"],
        "/match": ["404", "409"],
        "/handled": ["421", "451"],
        "/class": ["421"],
        "/call": ["404", "409"],
        "/await": ["404", "409", "410"],
        "/grow": unknown,
        "/local": unknown,
        "/pair": ["404", "409"],
        "/pair-table": ["402", "423"],
        "/pair-either": unknown,
        "/aliased": unknown,
        "/grown-later": unknown,
        "/several": unknown,
        "/nonlocal": unknown,
        "/last": unknown,
        "/few": unknown,
        "/any": unknown,
        "/class-grown": unknown,
        "/endless": unknown,
    }
    pair_body = described.document["paths"]["/pair"]["get"]["responses"]["404"]["content"]["application/json"]["schema"]
    assert len([each for each in described.problems if "status of this answer is not known" in str(each)]) == 12
    assert {word for each in pair_body["anyOf"] for word in each["properties"]} == {"taken", "missing"}


def test_a_union_that_a_literal_tells_apart_demands_it_of_those_who_send(describing: Callable[..., Described]) -> None:
    described = describing(
        "told_by_literals",
        """
from typing import Literal

import attrs
from core import Request, Response, create_app

app = create_app()

@attrs.frozen
class Percent:
    percent: int
    kind: Literal["percent", "part"] = "percent"
    level: Literal["a"] = "a"

@attrs.frozen
class Amount:
    amount: int
    note: str | None = None
    kind: Literal["amount"] = "amount"
    level: Literal["a"] = "a"

@attrs.frozen
class Free:
    reason: str
    note: str | None = None

@attrs.frozen
class Paid:
    by: str

@attrs.frozen
class Order:
    discount: Percent | Amount | None = None
    payment: Free | Paid | None = None

@app.post("/orders")
async def order(req: Request, res: Response) -> None:
    res.json(await req.json(Order))

@app.post("/amounts")
async def amount(req: Request, res: Response) -> None:
    res.json(await req.json(Amount))
""",
    )
    schemas = described.document["components"]["schemas"]
    links = [each["$ref"].rpartition("/")[2] for each in schemas["OrderInput"]["properties"]["discount"]["anyOf"][:2]]
    assert [schemas[name]["required"] for name in links] == [["percent", "kind"], ["amount", "kind"]]
    assert "default" not in schemas[links[1]]["properties"]["kind"]
    content = described.document["paths"]["/amounts"]["post"]["requestBody"]["content"]
    alone = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert schemas[alone]["required"] == ["amount"]
    assert schemas["FreeInput"]["required"] == ["reason"]


def headers(operation: Any) -> dict[str, list[str]]:
    """The headers of each answer, by its status."""
    return {status: sorted(each.get("headers", ())) for status, each in operation["responses"].items()}


def test_what_middleware_stages_is_on_the_answers_of_other_middleware(describing: Callable[..., Described]) -> None:
    described = describing(
        "staged_headers",
        """
import attrs
from core import Next, Request, Response, Router, create_app
from core.middleware.basic_auth import basic_auth
from core.middleware.etag import etag

app = create_app()

async def stamp(req: Request, res: Response, next: Next) -> None:
    res.header("X-Before", "1").header("Content-Language", "en")
    await next()
    res.header("X-After", "1")

app.use(stamp)
app.use("/closed", basic_auth(username="a", password=lambda req: "b"))
app.use("/tagged", etag())

@app.get("/closed")
async def closed(req: Request, res: Response) -> None:
    res.json({})

@attrs.frozen
class Id:
    id: int

@app.get("/tagged/:id{[0-9]+}")
async def tagged(req: Request, res: Response) -> None:
    req.params.parse(Id)
    res.header("X-Own", "1").json({})
""",
    )
    paths = described.document["paths"]
    both = ["X-After", "X-Before"]
    assert headers(paths["/closed"]["get"]) == {
        "200": ["Content-Language", *both],
        "401": ["WWW-Authenticate", "X-Before"],
        "default": ["X-Before"],
    }
    tagged = paths["/tagged/{id}"]["get"]
    assert headers(tagged) == {
        "200": ["Content-Language", "ETag", *both, "X-Own"],
        "304": ["Content-Language", "ETag", *both, "X-Own"],
        "400": ["X-Before"],
        "404": ["Content-Language", *both],
        "default": ["X-Before"],
    }
    assert set(tagged["responses"]["404"]["content"]["application/json"]["schema"]) == {"$ref"}


def test_a_class_with_validators_refuses_what_it_is_made_of(describing: Callable[..., Described]) -> None:
    described = describing(
        "validated_classes",
        """
import attrs
from core import CoreError, Next, Request, Response, create_app

app = create_app()

@attrs.frozen
class Line:
    quantity: int = attrs.field(default=1, validator=attrs.validators.ge(1))

@attrs.frozen
class Plain:
    quantity: int

@app.on_error(ValueError)
async def refused(err: ValueError, req: Request, res: Response, next: Next) -> None:
    raise CoreError(418)

@app.post("/made")
async def made(req: Request, res: Response) -> None:
    res.json(Line(quantity=len(await req.bytes())))

@app.post("/again")
async def again(req: Request, res: Response) -> None:
    res.json(attrs.evolve(Line(1), quantity=len(await req.bytes())))

@app.post("/plain")
async def plain(req: Request, res: Response) -> None:
    res.json([attrs.evolve(Plain(3), quantity=len(await req.bytes())), Line(), Line(2)])
""",
    )
    paths = described.document["paths"]
    assert {path: answers(paths[path]["post"]) for path in ("/made", "/again", "/plain")} == {
        "/made": ["200", "418", "default"],
        "/again": ["200", "418", "default"],
        "/plain": ["200", "default"],
    }


def test_an_error_handler_for_everything_answers_a_binding_that_is_away_as_its_branch_says(
    describing: Callable[..., Described],
) -> None:
    described = describing(
        "bindings_away",
        """
import attrs
from core import BindingError, Bindings, CoreError, KVNamespace, Next, Request, Response, create_app

@attrs.frozen
class Env(Bindings):
    KV: KVNamespace

app = create_app(Env)

@app.on_error(Exception)
async def failed(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    if not isinstance(err, CoreError):
        if isinstance(err, BindingError) and err.retryable:
            err = CoreError(503, "Service Unavailable", headers={"Retry-After": "1"})
        else:
            err = CoreError(500, "Internal Server Error")
    for name, value in err.headers.items():
        res.header(name, value)
    res.status(err.status).json({"code": err.message})

@app.get("/kept")
async def kept(req: Request[Env], res: Response) -> None:
    res.json(await req.env.KV.get("a"))

@app.get("/plain")
async def plain(req: Request[Env], res: Response) -> None:
    res.json(1)
""",
    )
    paths = described.document["paths"]

    def codes(path: str, status: str) -> set[str]:
        schema = paths[path]["get"]["responses"][status]["content"]["application/json"]["schema"]
        found = [target(described.document, each)["properties"]["code"] for each in schema.get("anyOf", [schema])]
        return {text for code in found for text in code.get("enum", [code.get("const")])}

    assert answers(paths["/plain"]["get"]) == ["200", "default"]
    assert codes("/plain", "default") == {"Internal Server Error"}
    assert answers(paths["/kept"]["get"]) == ["200", "503", "default"]
    assert "Service Unavailable" in codes("/kept", "503")
    assert "Retry-After" in paths["/kept"]["get"]["responses"]["503"]["headers"]
    assert "Internal Server Error" in codes("/kept", "default")


def test_a_body_that_is_read_whatever_the_method_belongs_to_methods_that_have_one(
    describing: Callable[..., Described],
) -> None:
    described = describing(
        "signed_requests",
        """
from core import CoreError, Request, Response, create_app

app = create_app()

async def signed(req: Request) -> str:
    if req.header("X-Signature") != str(hash(await req.bytes())):
        raise CoreError(401)
    return "me"

hooks = app.authenticated(signed)

@hooks.all("/hooks")
async def hook(req: Request[object, str], res: Response) -> None:
    res.json({})

@app.get("/search")
async def search(req: Request, res: Response) -> None:
    res.json(await req.json(list[str]))
""",
    )
    paths = described.document["paths"]
    assert [method for method, each in paths["/hooks"].items() if "requestBody" in each] == ["post", "put", "patch"]
    assert paths["/search"]["get"]["requestBody"]["required"]


def test_a_class_that_an_object_was_made_with_makes_its_instances(describing: Callable[..., Described]) -> None:
    described = describing(
        "made_by_a_class",
        """
        from collections.abc import Callable

        from core import CoreError, Request, Response, create_app


        class Items:
            def __init__(self, kind: str) -> None:
                self.kind = kind

            async def get(self, id: str) -> list[int]:
                if id == "0":
                    raise CoreError(410, "Gone", code="GONE")
                return [1]


        class Views:
            def __init__(self, items: Callable[[str], Items]) -> None:
                self.items = items

            async def show(self, req: Request, res: Response) -> None:
                res.json(await self.items("all").get(req.params["id"]))


        app = create_app()
        app.get("/items/:id", Views(Items).show)
        """,
    )
    assert described.problems == []
    assert answers(described.document["paths"]["/items/{id}"]["get"]) == ["200", "400", "410", "default"]


WIDE = """
from core import CoreError, KVNamespace, Bindings, Next, Request, Response, create_app
from core.errors import BindingError
import attrs

@attrs.frozen
class Env(Bindings):
    STORE: KVNamespace

app = create_app(Env)

def told(err: Exception) -> tuple[int, dict[str, object]]:
    if isinstance(err, BindingError):
        return 503, {"error": "Try again", "retryAfter": 5}
    return 500, {"error": "Sorry"}

@app.on_error(Exception)
async def failed(err: Exception, req: Request, res: Response, next: Next) -> None:
    if isinstance(err, CoreError):
        return await next()
    status, body = told(err)
    res.status(status).json({"error": None, **body, "id": req.id})

@app.get("/")
async def home(req: Request[Env], res: Response) -> None:
    res.text(await req.env.STORE.get("home") or "")

@app.not_found
async def missing(req: Request[Env], res: Response) -> None:
    res.status(404).header("X-Missing", req.path).json({"error": "No such page"})

OPERATIONS = {"add": 1, "mul": 2}

@app.get("/of/:name")
async def operation(req: Request[Env], res: Response) -> None:
    raise CoreError(404, "No such operation", known=list(OPERATIONS))

class Names:
    def __init__(self, store: KVNamespace) -> None:
        self.store = store

    async def of(self, name: str) -> str:
        found = await self.store.get(name)
        if found is None:
            raise CoreError(404, "No such name")
        return found

class Handlers:
    service = Names

    async def show(self, req: Request[Env], res: Response) -> None:
        res.json({"name": await self.service(req.env.STORE).of(req.params["name"])})

app.get("/names/:name", Handlers().show)

@attrs.frozen
class Upload:
    title: str

@app.post("/files")
async def upload(req: Request[Env], res: Response) -> None:
    form = await req.form()
    file = form.file("file")
    res.json({"title": form.parse(Upload).title, "size": file.size if file is not None else 0})
"""


def test_a_form_without_its_file_is_the_class_alone(describing: Callable[..., Described]) -> None:
    content = describing("wide_form", WIDE).document["paths"]["/files"]["post"]["requestBody"]["content"]
    assert content["application/x-www-form-urlencoded"]["schema"] == {"$ref": "#/components/schemas/Upload"}
    assert content["multipart/form-data"]["schema"]["allOf"][0] == {"$ref": "#/components/schemas/Upload"}


def test_the_keys_of_a_dict_are_the_items_of_a_list_of_it(describing: Callable[..., Described]) -> None:
    described = describing("wide_keys", WIDE)
    known = described.document["components"]["schemas"]["NoSuchOperationError"]["properties"]["known"]
    assert known == {"type": "array", "items": {"type": "string"}}
    assert described.problems == []


def test_a_class_that_a_class_has_in_an_attribute_makes_an_object(describing: Callable[..., Described]) -> None:
    described = describing("wide_names", WIDE)
    assert described.problems == []
    assert answers(described.document["paths"]["/names/{name}"]["get"]) == ["200", "400", "404", "default"]


def test_a_path_without_a_route_answers_with_the_headers_of_its_handler(describing: Callable[..., Described]) -> None:
    missing = describing("wide_missing", WIDE).document["components"]["responses"]["NotFound"]
    assert missing["headers"] == {"X-Missing": {"schema": {"type": "string"}}}


def test_what_each_of_several_objects_has_is_there_where_one_of_them_is_unpacked(
    describing: Callable[..., Described],
) -> None:
    schemas = describing("wide", WIDE).document["components"]["schemas"]
    (found,) = (each for each in schemas.values() if "retryAfter" in each["properties"])
    assert found["required"] == ["error", "id"]
    assert found["properties"]["error"] == {"type": "string", "enum": ["Try again", "Sorry"]}
