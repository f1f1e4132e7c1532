"""An API in the forms that engineers use, described and asked: each answer is in the document, or a finding is."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401
import pytest
from openapi_spec_validator import validate
from tests.support.libraries import with_libraries

from core.openapi.contract import Contract
from core.openapi.document import Described, describe
from core.openapi.facts import ApplicationFacts, objects_in
from core.openapi.gather import gather
from core.openapi.program import Program
from core.openapi.routes import application_facts
from core.openapi.written import as_json, meaning
from core.testing import Client, FakeKVNamespace

FORMS = r'''
import contextlib
import enum
import functools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, ClassVar, Generic, Literal, Protocol, TypedDict, TypeVar

import attrs

from core import Bindings, CoreError, KVNamespace, Next, Request, Response, Router, create_app, describe
from core.http.sse import Event

T = TypeVar("T")


@attrs.frozen
class Env(Bindings):
    SETTINGS: KVNamespace


Req = Request[Env]
app = create_app(Env)
LEAST = 3


class Zone(enum.Enum):
    WEST = "west"
    EAST = "east"
    NORTH = "north"


class Access(enum.Flag):
    READ = 1
    WRITE = 4


class Row(TypedDict):
    zeta: int
    alpha: str
    zone: Zone


@attrs.frozen
class Named:
    name: str = attrs.field(validator=attrs.validators.min_len(LEAST))


def even(instance: object, attribute: object, value: int) -> None:
    if value % 2:
        raise ValueError("is odd")


describe(even, holds={"multipleOf": 2})


@attrs.frozen
class Item(Named):
    """Something to buy."""

    price: int = attrs.field(default=10, validator=[attrs.validators.ge(LEAST - 3), even])
    sku: str = attrs.field(default="ab1", validator=attrs.validators.matches_re(re.compile("[a-c]+x?[0-9]", re.IGNORECASE)))


@attrs.frozen
class User:
    id: int
    email: str


@attrs.frozen
class Page(Generic[T]):
    items: list[T]
    total: int


# -- helpers whose effects are those of their call


def created(res: Response, location: str, item: object) -> None:
    res.status(201).header("Location", location).json(item)


def fail(res: Response, status: int, code: str = "FAILED") -> None:
    res.status(status).json({"error": code})


def page(items: list[T]) -> Page[T]:
    return Page(items, len(items))


class ShopError(CoreError):
    def __init__(self, code: str, *, status: int = 409) -> None:
        super().__init__(status, f"Sorry: {code}", code=code)


class CodedError(CoreError):
    code: ClassVar[str] = "CODED"
    number: ClassVar[int] = 400

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(self.number, message, code=self.code, **details)


class RoomMissing(CodedError):
    code = "ROOM_MISSING"
    number = 404

    def __init__(self, room: str) -> None:
        super().__init__("No such room", room=room)


async def retry(load: Callable[[], Awaitable[T]], times: int = 2) -> T:
    for _ in range(times):
        try:
            return await load()
        except TimeoutError:
            continue
    raise CoreError(503, "Try later")


async def load_item() -> Item:
    if LEAST > 100:
        raise CoreError(418, "Teapot")
    return Item("abc")


@app.post("/items")
async def make_item(req: Req, res: Response) -> None:
    created(res, "/items/1", await req.json(Item))


@app.get("/gone")
async def gone(req: Req, res: Response) -> None:
    fail(res, 410, "GONE")


@app.get("/retried")
async def retried(req: Req, res: Response) -> None:
    res.json(await retry(load_item))


@app.get("/users")
async def users(req: Req, res: Response) -> None:
    res.json(page([User(1, "a@b.c")]))


@app.get("/names")
async def names(req: Req, res: Response) -> None:
    res.json(page(["a"]))


@app.get("/taken/:id")
async def taken(req: Req, res: Response) -> None:
    if req.params["id"] == "1":
        raise ShopError("TAKEN")
    if req.params["id"] == "2":
        raise ShopError("LOCKED", status=423)
    res.json({"link": req.url_for(gone), "free": True})


def counting(count: Callable[[str], Awaitable[int]]) -> Callable[[Req, Response], Awaitable[None]]:
    async def counted(req: Req, res: Response) -> None:
        """Count."""
        res.json({"count": await count(req.path)})

    return counted


async def length(text: str) -> int:
    """Not the handler."""
    return len(text)


app.get("/counted", counting(length))


@app.get("/rooms/:id")
async def room(req: Req, res: Response) -> None:
    raise RoomMissing(req.params["id"])


# -- decorators with and without wraps


def logged(fn: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return wrapper


def guarded(role: str) -> Callable[[Callable[[Req, Response], Awaitable[None]]], Callable[[Req, Response], Awaitable[None]]]:
    def decorate(fn: Callable[[Req, Response], Awaitable[None]]) -> Callable[[Req, Response], Awaitable[None]]:
        async def inner(req: Req, res: Response) -> None:
            if req.header("X-Role") != role:
                raise CoreError(403, "Not yours", role=role)
            await fn(req, res)

        return inner

    return decorate


@app.get("/logged")
@logged
async def logged_one(req: Req, res: Response) -> None:
    """Logged."""
    res.status(202).json({"logged": True})


@app.delete("/guarded")
@guarded("admin")
async def guarded_one(req: Req, res: Response) -> None:
    """Guarded."""
    res.status(204).send()


@logged
async def checked_amount(req: Req) -> int:
    if req.query.get("amount") is None:
        raise CoreError(400, "No amount", code="NO_AMOUNT")
    return 1


@app.get("/amount")
async def amount(req: Req, res: Response) -> None:
    found: int = await checked_amount(req)
    res.json({"amount": found})


# -- a Protocol, and what implements it


class Store(Protocol):
    async def find(self, key: str) -> dict[str, Any]: ...


class KVStore:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    async def find(self, key: str) -> dict[str, Any]:
        if key == "none":
            raise CoreError(404, "No such key")
        return {"key": key, "prefix": self.prefix}


class Service:
    def __init__(self, store: Store) -> None:
        self.store = store

    async def show(self, req: Req, res: Response) -> None:
        """Show one."""
        res.json(await self.store.find(req.params["key"]))


service = Service(KVStore("x"))
app.get("/store/:key", service.show)


async def through_protocol(store: Store, res: Response) -> None:
    res.json(await store.find("none"))


@app.get("/protocol")
async def protocol(req: Req, res: Response) -> None:
    await through_protocol(KVStore("y"), res)


# -- factories, lambdas, partials, loops, objects


def listing(kind: str, cls: type[T], sample: T) -> Callable[[Req, Response], Awaitable[None]]:
    async def handler(req: Req, res: Response) -> None:
        res.json({"kind": kind, "items": [sample]})

    return handler


app.get("/list/items", listing("item", Item, Item("abc")))
app.get("/list/users", listing("user", User, User(1, "e")))


async def shown(req: Req, res: Response, *, word: str, status: int) -> None:
    res.status(status).json({"word": word})


app.get("/partial", functools.partial(shown, word="hello", status=203))


class Health:
    def __init__(self, status: int) -> None:
        self.answered = status

    async def __call__(self, req: Req, res: Response) -> None:
        res.status(self.answered).text("ok")


app.get("/health", Health(200))

for zone in Zone:

    @app.get(f"/zones/{zone.value}")
    async def show_zone(req: Req, res: Response) -> None:
        res.json({"zone": zone})


async def fast(res: Response) -> None:
    res.json({"way": "fast"})


async def slow(res: Response) -> None:
    res.status(202).json({"way": "slow"})


WAYS = {"fast": fast, "slow": slow}


@app.get("/ways/:way")
async def ways(req: Req, res: Response) -> None:
    way = WAYS.get(req.params["way"])
    if way is None:
        raise CoreError(404, "No way")
    await WAYS[req.params["way"]](res)


# -- middleware


async def stamped(req: Req, res: Response, next: Next) -> None:
    res.header("X-Before", "1")
    await next()
    res.headers["X-After"] = "1"


async def caught(req: Req, res: Response, next: Next) -> None:
    try:
        await next()
    except CoreError as error:
        res.status(error.status).json({"caught": error.message})


staged: Router[Env] = Router()
app.use("/staged", stamped, caught, staged)


@staged.get("/fine")
async def fine(req: Req, res: Response) -> None:
    if req.query.get("text"):
        res.header("X-Text", "1").text("x")
        return
    res.header("X-Json", "1").json(Row(zeta=1, alpha="a", zone=Zone.EAST))


@staged.get("/failing")
async def failing(req: Req, res: Response) -> None:
    raise CoreError(409, "Busy")


# -- error handlers that raise, and that pass on


class Sold(Exception):
    pass


class Late(Exception):
    pass


class Odd(Exception):
    pass


errors: Router[Env] = Router()


@errors.on_error(Sold)
async def on_sold(err: Exception, req: Req, res: Response, next: Next) -> None:
    raise CoreError(410, "Sold", code="SOLD")


@errors.on_error(Late)
async def on_late(err: Exception, req: Req, res: Response, next: Next) -> None:
    await next(CoreError(408, "Late"))


@errors.on_error(Odd)
async def on_odd(err: Exception, req: Req, res: Response, next: Next) -> None:
    if req.query.get("pass"):
        await next(err)
        return
    fail(res, 422, "ODD")


@errors.on_error(ValueError)
async def on_value(err: Exception, req: Req, res: Response, next: Next) -> None:
    res.status(400).json({"value": str(err)})


@errors.on_error(LookupError)
async def on_lookup(err: Exception, req: Req, res: Response, next: Next) -> None:
    res.status(404).json({"key": str(err)})


@errors.on_error(ArithmeticError)
async def on_arithmetic(err: Exception, req: Req, res: Response, next: Next) -> None:
    res.status(422).json({"zero": True})


@errors.on_error(ConnectionError)
async def on_connection(err: Exception, req: Req, res: Response, next: Next) -> None:
    res.status(502).json({"away": True})


@errors.get("/of-python/:n")
async def of_python(req: Req, res: Response) -> None:
    n = int(req.params["n"])
    res.json({"share": 1 / n, "zone": [1, 2][n], "word": {"0": "zero"}[str(n)]})


app.use("/errors", errors)


@errors.get("/:kind")
async def errs(req: Req, res: Response) -> None:
    match req.params["kind"]:
        case "sold":
            raise Sold
        case "late":
            raise Late
        case "odd":
            raise Odd
        case _:
            res.json(None)


class Full(CoreError):
    def __init__(self) -> None:
        super().__init__(429, "Full")


@app.get("/full")
async def full(req: Req, res: Response) -> None:
    raise Full


@app.on_error
async def answer(err: Exception, req: Req, res: Response, next: Next) -> None:
    match err:
        case Full(status=status):
            res.status(status).json({"full": True})
        case CoreError() if err.status >= 500:
            res.status(err.status).json({"server": True})
        case CoreError(body=body) as known:
            res.status(known.status).json({**body, "code": known.metadata.get("code", "NONE"), "id": req.id})
        case _:
            await next(err)


# -- authenticators


async def by_key(req: Req) -> User:
    if req.query.get("api_key") != "k":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    return User(1, "a")


@app.authenticated(by_key).get("/mine")
async def mine(req: Request[Env, User], res: Response) -> None:
    res.json(req.user)


# -- streams, untyped functions, and what cannot be followed


async def ticks() -> AsyncIterator[Event]:
    yield Event(data={"tick": 1}, event="tick", id="1")


@app.get("/ticks")
async def stream(req: Req, res: Response) -> None:
    res.sse(ticks())


@app.get("/untyped")
async def untyped(req, res):  # type: ignore[no-untyped-def]
    res.status(203).json({"untyped": True})


@app.get("/unknown/:name")
async def unknown(req: Req, res: Response) -> None:
    make: Callable[[Response], None] = eval("lambda res: res.status(299).json({})")
    make(res)


async def reported(req: Req, res: Response) -> None:
    make: Callable[[Response], None] = eval("lambda res: res.json({'id': 1, 'email': 'e'})")
    make(res)


app.get("/reported", describe(reported, deprecated=True, answers={200: User, 202: None}, tags=["reports"]))


@app.get("/hidden")
@describe(hidden=True)
async def hidden(req: Req, res: Response) -> None:
    res.json({})


@app.post("/upload")
async def upload(req: Req, res: Response) -> None:
    form = await req.form()
    res.json({"title": form["title"] == "x"})


@app.get("/numbers/:n{[0-9]+}")
async def number(req: Req, res: Response) -> None:
    res.json({"n": int(req.params["n"])})


@app.get("/status")
async def status(req: Req, res: Response) -> None:
    code = 200
    if req.query.get("bad"):
        code = 207
    res.status(code).json({"code": code})


@app.get("/same")
async def same(req: Req, res: Response) -> None:
    res.status(304 if req.query.get("seen") else 200).json({"same": True})


@attrs.frozen
class Animal:
    name: str


@attrs.frozen
class Dog(Animal):
    tricks: list[str]


@attrs.frozen
class Cat(Animal):
    lives: int = 9


ANIMALS: dict[str, Animal] = {"rex": Dog("rex", []), "tom": Cat("tom")}


class Shelter:
    def __init__(self) -> None:
        self.oldest: Animal = Cat("tom")

    def found(self, name: str) -> Animal:
        return Dog(name, ["sit"]) if name == "rex" else Cat(name)

    def everyone(self) -> list[Animal]:
        return [Dog("rex", []), Animal("x")]


shelter = Shelter()


@app.get("/animals/:name")
async def animal(req: Req, res: Response) -> None:
    name = req.params["name"]
    match req.query.get("how"):
        case "kept":
            res.json(ANIMALS[name])
        case "perhaps":
            res.json({"perhaps": ANIMALS.get(name)})
        case "oldest":
            oldest = shelter.oldest
            res.json(oldest)
        case "everyone":
            res.json([each for each in shelter.everyone() if each.name])
        case _:
            res.json(shelter.found(name))


@app.post("/animals")
async def new_animal(req: Req, res: Response) -> None:
    res.json(await req.json(Animal))


async def softened(req: Req, res: Response, next: Next) -> None:
    try:
        await next()
    except CoreError as err:
        if err.status != 404:
            raise
        res.status(410).json({"away": True})


@app.get("/asked")
async def asked(req: Req, res: Response) -> None:
    draft = req.query["draft"] if "draft" in req.query else None
    res.json({"draft": draft, "wanted": req.query["wanted"], "dark": "dark" in req.cookies})


SIZES = ["width", "height"]


@app.get("/looped")
async def looped(req: Req, res: Response) -> None:
    found = [req.query.get(name) for name in SIZES]
    for name in ["x-first", "x-second"]:
        found.append(of(req, name))
    res.json({"found": found, "every": [req.query[name] for name in KINDS if name in req.query]})


KINDS = ["grows"]
KINDS.append("later")


def of(req: Req, name: str) -> str | None:
    return req.header(name)


@app.get("/softened/:status", softened)
async def hard(req: Req, res: Response) -> None:
    if req.params["status"] == "404":
        raise CoreError(404, "None")
    raise CoreError(409, "Taken")


# -- what is not what it was at first


def marked(values: dict[str, object], name: str) -> None:
    values[name] = True


def renamed(values: dict[str, object]) -> None:
    marked(values, "renamed")


def refuse(res: Response, how: str, status: int = 400, body: object = None) -> None:
    if how == "late":
        status, body = 409, {"late": True}
    elif how == "later":
        status = 410
        body = {"later": True}
    res.status(status).json(body)


class Board:
    def __init__(self) -> None:
        self.posts: dict[str, object] = {"first": 1}

    def add(self, name: str) -> None:
        self.posts[name] = 2


class Reply:
    level: int = 200

    async def run(self, req: Req, res: Response) -> None:
        res.status(self.level).json({"level": self.level})


class Later(Reply):
    level = 202


app.get("/replies/now", Reply().run)
app.get("/replies/later", Later().run)


@app.get("/handed/:what")
async def handed_on(req: Req, res: Response) -> None:
    respond = functools.partial(res.status, 207)
    respond().json({})


def counted(number: int) -> Event:
    return Event(data={"number": number}, event="counted")


async def others() -> AsyncIterator[Event]:
    yield Event(data={"other": True}, event="other")


async def everything() -> AsyncIterator[Event]:
    yield Event(data={"first": True})
    yield counted(2)
    async for other in others():
        yield other


@app.get("/everything")
async def all_events(req: Req, res: Response) -> None:
    res.sse(everything())


class Move(TypedDict):
    kind: Literal["move"]
    steps: list[int]


class Turn(TypedDict):
    kind: Literal["turn"]
    degrees: float


@app.post("/orders")
async def ordered(req: Req, res: Response) -> None:
    match await req.json(Move | Turn):
        case {"kind": "move", "steps": steps}:
            res.json({"steps": steps})
        case {"degrees": degrees}:
            res.json({"degrees": degrees})
        case _:
            res.json({})


class Shelf:
    async def add(self, name: str) -> int:
        raise NotImplementedError


class FullShelf(Shelf):
    async def add(self, name: str) -> int:
        if name != "short":
            raise CoreError(409, "Full", name=name)
        return 2


class EmptyShelf(Shelf):
    async def add(self, name: str) -> int:
        return 1


@attrs.frozen
class Shelves:
    shelf: Shelf

    async def create(self, req: Req, res: Response) -> None:
        res.json(await self.shelf.add(req.query.get("name") or "book"))


for shelf in (FullShelf(), EmptyShelf()):
    app.post(f"/shelves/{type(shelf).__name__.lower()}", Shelves(shelf).create)


def refused(err: CoreError) -> None:
    raise err


@app.get("/refused/first")
async def refused_first(req: Req, res: Response) -> None:
    refused(CoreError(409, "Refused", first=1))


@app.get("/refused/second")
async def refused_second(req: Req, res: Response) -> None:
    refused(CoreError(409, "Refused", second=2))


class Quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, LookupError)


@contextlib.contextmanager
def calm() -> Iterator[None]:
    try:
        yield
    except LookupError:
        pass


@app.get("/quiet")
async def quiet(req: Req, res: Response) -> None:
    with Quiet():
        res.json({"found": req.query["found"], "access": Access.READ | Access.WRITE})
        return
    res.status(203).json({"found": None})


@app.get("/calm")
async def calmed(req: Req, res: Response) -> None:
    with calm():
        res.json({"found": req.query["found"]})
        return
    res.status(203).json({"found": None})


@app.put("/access")
async def access(req: Req, res: Response) -> None:
    res.json(await req.json(Access))


@app.get("/changed/:how")
async def changed(req: Req, res: Response) -> None:
    values: dict[str, object] = {"a": 1}
    rows: list[dict[str, object]] = [{"a": 1}]
    board = Board()
    match req.params["how"]:
        case "handed":
            renamed(values)
            res.json(values)
        case "aliased":
            other = values
            other["b"] = 2
            res.json(values)
        case "looped":
            for row in rows:
                row["n"] = 1
            res.json(rows)
        case "kept":
            board.add("second")
            res.json(board.posts)
        case how:
            refuse(res, how, body={"how": how})


class Coded(CoreError):
    def __init__(self, message: str, **more: Any) -> None:
        more["coded"] = True
        super().__init__(400, message, **more)


class Defaulted(CoreError):
    def __init__(self, message: str, **more: Any) -> None:
        more.setdefault("defaulted", True)
        super().__init__(400, message, **more)


async def texts() -> dict[str, Any]:
    return {"own": "text"}


@app.get("/told/:how")
async def told(req: Req, res: Response) -> None:
    extra: dict[str, Any] = {"a": 1}
    unused = [CoreError(499, "never raised")]
    match req.params["how"]:
        case "spread":
            extra["b"] = len(unused)
            raise CoreError(409, "Spread", **extra)
        case "texts":
            raise CoreError(409, "Texts", **await texts())
        case "coded":
            raise Coded("Coded", more=1)
        case "defaulted":
            raise Defaulted("Defaulted")
        case _:
            failed = CoreError(409, "Changed")
            failed.status = 423
            failed.metadata["c"] = 1
            raise failed


def loaded() -> Any:
    return json.loads('{"a": 1}')


async def tallies() -> dict[str, int]:
    return {name: count for name, count in loaded().items()}


async def tally(name: str) -> dict[str, list[int]] | dict[str, str] | None:
    return {name: loaded()[name]} if name else None


@app.get("/tallies")
async def show_tallies(req: Req, res: Response) -> None:
    first: dict[str, int | None] = {"a": loaded()["a"]}
    res.json({"all": await tallies(), "first": first})


@app.get("/tally")
async def show_tally(req: Req, res: Response) -> None:
    res.json(await tally(""))


@app.get("/grown")
async def grown(req: Req, res: Response) -> None:
    found: list[object] = [{"first": True}]
    if "more" in req.query:
        found.append({"second": True})
    res.json(found)


@app.not_found
async def missing(req: Req, res: Response) -> None:
    res.json({"missing": req.path})
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ApplicationFacts, Program]]:
    root = with_libraries(tmp_path_factory.mktemp("forms"))
    (root / "mypy.ini").write_text("[mypy]\n")
    (root / "forms.py").write_text(FORMS)
    sys.path.insert(0, str(root))
    module = importlib.import_module("forms")
    facts = application_facts(module.app, title="Forms", module="forms")
    gathered = gather("forms", source=root, root=root, classes=facts.classes)
    assert [error for error in gathered.errors if "core-env" not in error] == []
    yield module, facts, gathered.program
    sys.path.remove(str(root))
    del sys.modules["forms"]


@pytest.fixture(scope="module")
def forms(program: tuple[Any, ApplicationFacts, Program]) -> tuple[Any, Described]:
    module, facts, followed = program
    return module, describe(facts, followed)


@pytest.fixture(scope="module")
def document(forms: tuple[Any, Described]) -> dict[str, Any]:
    return forms[1].document


def answers(document: dict[str, Any], path: str, method: str = "get") -> dict[str, Any]:
    """The bodies of an operation by status, errors that nobody foresaw left out."""
    found: dict[str, Any] = {}
    for status, response in document["paths"][path][method]["responses"].items():
        for media, content in response.get("content", {}).items():
            schema = content.get("schema", content.get("itemSchema"))
            name = schema.get("$ref", "").rpartition("/")[2]
            found[status] = document["components"]["schemas"][name] if name else {**schema, "media": media}
        found.setdefault(status, None)
    del found["default"]
    return found


REQUESTS: list[tuple[str, str, dict[str, str], str | None, int]] = [
    ("POST", "/items", {}, '{"name": "abc", "price": 4}', 201),
    ("POST", "/items", {}, '{"name": "abc", "price": 5}', 422),
    ("POST", "/items", {}, '{"name": "abc", "sku": "ABX9"}', 201),
    ("POST", "/items", {}, "{", 400),
    ("GET", "/gone", {}, None, 410),
    ("GET", "/retried", {}, None, 200),
    ("GET", "/users", {}, None, 200),
    ("GET", "/names", {}, None, 200),
    ("GET", "/taken/1", {}, None, 409),
    ("GET", "/taken/2", {}, None, 423),
    ("GET", "/taken/3", {}, None, 200),
    ("GET", "/taken/%zz", {}, None, 400),
    ("GET", "/logged", {}, None, 202),
    ("DELETE", "/guarded", {}, None, 403),
    ("DELETE", "/guarded", {"X-Role": "admin"}, None, 204),
    ("GET", "/amount", {}, None, 400),
    ("GET", "/amount?amount=1", {}, None, 200),
    ("GET", "/store/none", {}, None, 404),
    ("GET", "/store/some", {}, None, 200),
    ("GET", "/protocol", {}, None, 404),
    ("GET", "/list/items", {}, None, 200),
    ("GET", "/list/users", {}, None, 200),
    ("GET", "/partial", {}, None, 203),
    ("GET", "/health", {}, None, 200),
    ("GET", "/zones/west", {}, None, 200),
    ("GET", "/zones/east", {}, None, 200),
    ("GET", "/zones/north", {}, None, 200),
    ("GET", "/ways/fast", {}, None, 200),
    ("GET", "/ways/slow", {}, None, 202),
    ("GET", "/ways/none", {}, None, 404),
    ("GET", "/staged/fine", {}, None, 200),
    ("GET", "/staged/fine?text=1", {}, None, 200),
    ("GET", "/staged/failing", {}, None, 409),
    ("GET", "/errors/sold", {}, None, 410),
    ("GET", "/errors/late", {}, None, 408),
    ("GET", "/errors/odd", {}, None, 422),
    ("GET", "/errors/odd?pass=1", {}, None, 500),
    ("GET", "/errors/none", {}, None, 200),
    ("GET", "/errors/of-python/x", {}, None, 400),
    ("GET", "/errors/of-python/0", {}, None, 422),
    ("GET", "/errors/of-python/1", {}, None, 404),
    ("GET", "/same", {}, None, 200),
    ("GET", "/same?seen=1", {}, None, 304),
    ("GET", "/full", {}, None, 429),
    ("GET", "/mine", {}, None, 401),
    ("GET", "/mine?api_key=k", {}, None, 200),
    ("GET", "/ticks", {}, None, 200),
    ("GET", "/untyped", {}, None, 203),
    ("GET", "/unknown/x", {}, None, 299),
    ("GET", "/reported", {}, None, 200),
    ("POST", "/upload", {"Content-Type": "application/x-www-form-urlencoded"}, "title=x", 200),
    ("POST", "/upload", {"Content-Type": "text/plain"}, "title=x", 415),
    ("GET", "/numbers/1", {}, None, 200),
    ("GET", "/numbers/x", {}, None, 404),
    ("GET", "/status", {}, None, 200),
    ("GET", "/status?bad=1", {}, None, 207),
    ("GET", "/animals/rex", {}, None, 200),
    ("GET", "/animals/tom", {}, None, 200),
    ("GET", "/animals/rex?how=kept", {}, None, 200),
    ("GET", "/animals/rex?how=perhaps", {}, None, 200),
    ("GET", "/animals/x?how=perhaps", {}, None, 200),
    ("GET", "/animals/rex?how=oldest", {}, None, 200),
    ("GET", "/animals/rex?how=everyone", {}, None, 200),
    ("POST", "/animals", {}, '{"name": "rex"}', 200),
    ("POST", "/animals", {}, "{}", 422),
    ("GET", "/asked?wanted=1", {}, None, 200),
    ("GET", "/looped?width=1", {}, None, 200),
    ("GET", "/softened/404", {}, None, 410),
    ("GET", "/softened/1", {}, None, 409),
    ("POST", "/shelves/fullshelf", {}, None, 409),
    ("POST", "/shelves/fullshelf?name=short", {}, None, 200),
    ("POST", "/shelves/emptyshelf", {}, None, 200),
    ("GET", "/refused/first", {}, None, 409),
    ("GET", "/refused/second", {}, None, 409),
    ("GET", "/quiet?found=x", {}, None, 200),
    ("GET", "/quiet", {}, None, 203),
    ("GET", "/calm?found=x", {}, None, 200),
    ("GET", "/calm", {}, None, 203),
    ("PUT", "/access", {}, "5", 200),
    ("PUT", "/access", {}, "0", 200),
    ("PUT", "/access", {}, "2", 422),
    ("POST", "/orders", {}, '{"kind": "move", "steps": [1]}', 200),
    ("POST", "/orders", {}, '{"kind": "turn", "degrees": 1.5}', 200),
    ("POST", "/orders", {}, "[]", 422),
    ("GET", "/replies/now", {}, None, 200),
    ("GET", "/replies/later", {}, None, 202),
    ("GET", "/handed/on", {}, None, 207),
    ("GET", "/everything", {}, None, 200),
    ("GET", "/changed/handed", {}, None, 200),
    ("GET", "/changed/aliased", {}, None, 200),
    ("GET", "/changed/looped", {}, None, 200),
    ("GET", "/changed/kept", {}, None, 200),
    ("GET", "/changed/now", {}, None, 400),
    ("GET", "/changed/late", {}, None, 409),
    ("GET", "/changed/later", {}, None, 410),
    ("GET", "/counted", {}, None, 200),
    ("GET", "/rooms/1", {}, None, 404),
    ("GET", "/told/spread", {}, None, 409),
    ("GET", "/told/texts", {}, None, 409),
    ("GET", "/told/coded", {}, None, 400),
    ("GET", "/told/defaulted", {}, None, 400),
    ("GET", "/told/changed", {}, None, 423),
    ("GET", "/tallies", {}, None, 200),
    ("GET", "/tally", {}, None, 200),
    ("GET", "/grown", {}, None, 200),
    ("GET", "/grown?more=1", {}, None, 200),
    ("GET", "/nowhere", {}, None, 404),
    ("GET", "/hidden", {}, None, 200),
]


async def test_every_answer_is_in_the_document_or_is_a_finding(forms: tuple[Any, Described]) -> None:
    module, described = forms
    validate(described.document)
    contract = Contract(described.document)
    client = Client(module.app, module.Env(SETTINGS=FakeKVNamespace()), contract=contract)
    asked = [*REQUESTS, *random.Random(1).choices(REQUESTS, k=200 - len(REQUESTS))]
    for method, target, headers, body, status in asked:
        response = await client.request(method, target, headers=headers, body=body)
        assert response.status == status, target
    open_ = {(Path(problem.path).name, FORMS.splitlines()[problem.line - 1]) for problem in described.problems}
    assert open_ == {
        ("forms.py", "    make(res)"),  # in unknown(); reported() says what it answers
        ("forms.py", "@errors.on_error(ConnectionError)"),
        (
            "forms.py",
            '    res.json({"found": found, "every": [req.query[name] for name in KINDS if name in req.query]})',
        ),
        ("forms.py", '    res.status(203).json({"found": None})'),  # mypy does not take calm() for one that goes on
        ("forms.py", "    respond = functools.partial(res.status, 207)"),
        ("forms.py", "            res.json(values)"),
        ("forms.py", "            res.json(rows)"),
        ("forms.py", '    res.json(await tally(""))'),  # of one type of two
        ("forms.py", "            res.json(board.posts)"),
        ("forms.py", '            raise Defaulted("Defaulted")'),
    }
    never = {str(answer) for answer in contract.unreached if answer.status not in ("400", "413")}
    assert never == {
        *(f"{name} {status}" for name in ("unknown", "handed_on") for status in ("3XX", "4XX", "5XX")),
        "handed_on 200",
        "of_python 200",
        "protocol 200",
        "reported 202",
        "retried 418",
        "retried 503",
    }, "code that is never run here"


def test_a_value_is_of_the_classes_that_the_code_puts_there_and_what_is_read_of_its_own(
    document: dict[str, Any],
) -> None:
    sent = answers(document, "/animals/{name}")["200"]["anyOf"]
    assert {"$ref": "#/components/schemas/Dog"} in sent
    assert {"$ref": "#/components/schemas/Cat"} in sent
    assert {"$ref": "#/components/schemas/Animal"} not in sent
    read = document["paths"]["/animals"]["post"]
    for body in (read["requestBody"], read["responses"]["200"]):
        assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Animal"}
    assert list(answers(document, "/softened/{status}")) == ["400", "409", "410"]


def test_a_status_of_its_own_is_as_open_as_the_range_that_it_comes_before(document: dict[str, Any]) -> None:
    responses = document["paths"]["/unknown/{name}"]["get"]["responses"]
    assert responses["400"]["content"] == responses["4XX"]["content"] == {"*/*": {"schema": {}}}


def test_a_parameter_that_is_asked_for_first_may_be_left_out(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/asked"]["get"]["parameters"]
    assert [(each["in"], each["name"], each.get("required", False)) for each in parameters] == [
        ("query", "draft", False),
        ("query", "wanted", True),
        ("cookie", "dark", False),
    ]


def test_what_is_read_in_a_loop_is_each_of_its_names_or_a_finding(forms: tuple[Any, Described]) -> None:
    _, described = forms
    parameters = described.document["paths"]["/looped"]["get"]["parameters"]
    assert [(each["in"], each["name"], each.get("required", False)) for each in parameters] == [
        ("query", "width", False),
        ("query", "height", False),
        ("header", "x-first", False),
        ("header", "x-second", False),
    ]
    assert [each.message for each in described.problems if "every" in FORMS.splitlines()[each.line - 1]] == [
        "the name of what is read of the query is not known. Give a constant, or a Literal type"
    ]


def test_a_helper_answers_as_each_of_its_calls_says(document: dict[str, Any]) -> None:
    assert list(answers(document, "/items", "post")) == ["201", "400", "413", "422"]
    assert answers(document, "/items", "post")["201"]["properties"]["price"]["multipleOf"] == 2
    assert answers(document, "/gone")["410"]["properties"]["error"]["const"] == "GONE"
    assert answers(document, "/users")["200"]["properties"]["items"]["items"] == {"$ref": "#/components/schemas/User"}
    assert answers(document, "/names")["200"]["properties"]["items"]["items"] == {"type": "string"}
    assert [
        each["properties"]["code"]["const"]
        for status, each in answers(document, "/taken/{id}").items()
        if status in ("409", "423")
    ] == ["TAKEN", "LOCKED"]
    assert list(answers(document, "/retried")) == ["200", "418", "503"]
    missing = answers(document, "/rooms/{id}")
    assert list(missing) == ["400", "404"]
    assert missing["404"]["properties"]["code"]["const"] == "ROOM_MISSING"


def test_what_the_code_does_not_say_has_the_type_that_is_declared(document: dict[str, Any]) -> None:
    sent = answers(document, "/tallies")["200"]["properties"]
    assert sent["all"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert sent["first"]["properties"]["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_constraints_are_those_of_the_classes(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["ItemInput"]["properties"] == {
        "name": {"type": "string", "minLength": 3},
        "price": {"type": "integer", "minimum": 0, "multipleOf": 2, "default": 10},
        "sku": {"type": "string", "pattern": "^(?:[a-cA-C]+[xX]?[0-9])$", "default": "ab1"},
    }


def test_headers_belong_to_the_answers_that_have_them(document: dict[str, Any]) -> None:
    responses = document["paths"]["/staged/failing"]["get"]["responses"]
    assert list(responses["409"]["headers"]) == ["X-Before", "X-After"]
    assert "headers" not in document["paths"]["/items"]["post"]["responses"]["400"]
    assert list(document["paths"]["/items"]["post"]["responses"]["201"]["headers"]) == ["Location"]


def test_names_and_security_are_what_the_code_says(document: dict[str, Any]) -> None:
    ids = {path: operation["operationId"] for path, item in document["paths"].items() for operation in item.values()}
    assert ids["/logged"] == "logged_one"
    assert ids["/guarded"] == "guarded_one", "a decorator without functools.wraps"
    assert ids["/counted"] == "counted", "no decorator"
    assert document["paths"]["/counted"]["get"]["summary"] == "Count."
    assert ids["/list/items"] == "get_list_items", "two handlers of one name are called by their paths"
    assert document["paths"]["/guarded"]["delete"]["summary"] == "Guarded."
    assert document["paths"]["/mine"]["get"]["security"] == [{"api_key": []}]
    assert document["components"]["securitySchemes"]["api_key"] == {"type": "apiKey", "in": "query", "name": "api_key"}
    form = document["paths"]["/upload"]["post"]["requestBody"]["content"]
    assert list(form) == ["multipart/form-data", "application/x-www-form-urlencoded"]
    assert list(document["components"]["schemas"]["Row"]["properties"]) == ["zeta", "alpha", "zone"]
    assert not [name for name in document["components"]["schemas"] if name[-1].isdigit()]


def test_names_are_kept_from_the_document_that_is_committed(
    document: dict[str, Any], program: tuple[Any, ApplicationFacts, Program]
) -> None:
    committed = (
        as_json(document)
        .replace('"gone"', '"removed"')
        .replace('y": "Gone"', 'y": "Removed"')
        .replace('"User"', '"Person"')
    )
    committed = committed.replace("schemas/User", "schemas/Person").replace("{id}", "{number}")
    _, facts, followed = program
    again = describe(facts, followed, committed=json.loads(committed))
    assert meaning(json.loads(as_json(again.document).replace("{id}", "{number}"))) == meaning(json.loads(committed))
    assert as_json(describe(facts, followed).document) == as_json(document)


def test_an_alternative_in_front_of_others_leaves_them_their_names(
    document: dict[str, Any], program: tuple[Any, ApplicationFacts, Program]
) -> None:
    committed = json.loads(as_json(document))
    several = [
        each["anyOf"]
        for each in objects_in(committed["paths"])
        if all("$ref" in one for one in each.get("anyOf", [{}]))
    ]
    for each in several:
        del each[0]
    assert len(several) > 2
    _, facts, followed = program
    assert as_json(describe(facts, followed, committed=committed).document) == as_json(document)


def test_an_event_of_a_stream_has_its_name_and_id(document: dict[str, Any]) -> None:
    event = answers(document, "/ticks")["200"]["properties"]
    assert event["event"]["const"] == "tick"
    assert event["id"]["const"] == "1"
    assert event["data"]["contentSchema"]["properties"]["tick"]["const"] == 1


def test_each_event_that_is_yielded_is_one_of_the_stream(document: dict[str, Any]) -> None:
    events = answers(document, "/everything")["200"]["anyOf"]
    assert [event["properties"].get("event", {}).get("const") for event in events] == [None, "counted", "other"]
    assert list(answers(document, "/replies/later")) == ["202"]


def test_what_is_said_of_a_handler_is_in_the_document(document: dict[str, Any]) -> None:
    operation = document["paths"]["/reported"]["get"]
    assert (operation["deprecated"], operation["tags"]) == (True, ["reports"])
    assert list(answers(document, "/reported")) == ["200", "202"]
    assert "/hidden" not in document["paths"]
    assert answers(document, "/access", "put")["200"]["maximum"] == 5
    assert "409" not in answers(document, "/shelves/emptyshelf", "post"), "it holds another shelf"
    assert set(answers(document, "/unknown/{name}")) == {"400", "2XX", "3XX", "4XX", "5XX"}


HELD = """
import attrs
from core import CoreError, Request, Response, create_app

app = create_app(None)

class Filters:
    def __init__(self, *names: str) -> None:
        self.names = names

    async def __call__(self, req: Request, res: Response) -> None:
        res.json({name: req.query.get(name) for name in self.names})

@attrs.frozen
class Refusals:
    codes: list[int]

    async def __call__(self, req: Request, res: Response) -> None:
        for code in self.codes:
            if req.path.endswith(str(code)):
                raise CoreError(code, "Refused")
        res.json({})

def sorted_by(orders: dict[str, str]) -> object:
    async def handler(req: Request, res: Response) -> None:
        res.json([name for name in orders if req.header(name)])
    return handler

class Growing:
    def __init__(self) -> None:
        self.seen = ["a"]

    async def __call__(self, req: Request, res: Response) -> None:
        self.seen.append(req.path)
        res.json({name: req.query.get(name) for name in self.seen})

app.get("/filters", Filters("size", "colour"))
app.get("/refusals", Refusals([404, 410]))
app.get("/sorted", sorted_by({"X-Size": "size", "X-Age": "age"}))
app.get("/growing", Growing())
"""


def test_what_an_object_holds_is_known_where_it_stays_as_it_is(describing: Callable[..., Described]) -> None:
    described = describing("held", HELD)
    paths = {path: item["get"] for path, item in described.document["paths"].items()}
    names = {path: [each["name"] for each in item.get("parameters", ())] for path, item in paths.items()}
    assert names == {"/filters": ["size", "colour"], "/refusals": [], "/sorted": ["X-Size", "X-Age"], "/growing": []}
    assert [status for status in paths["/refusals"]["responses"] if status < "5"] == ["200", "404", "410"]
    growing = "res.json({name: req.query.get(name) for name in self.seen})"
    assert [(HELD.splitlines()[each.line - 1].strip(), each.message) for each in described.problems] == [
        (growing, "the name of what is read of the query is not known. Give a constant, or a Literal type")
    ]


OPERATORS = """
from collections.abc import AsyncIterator, Iterator
from core import CoreError, Request, Response, create_app

app = create_app(None)

class Table:
    def __getitem__(self, key: str) -> str:
        if key == "a":
            return "A"
        raise CoreError(404, "No such row")

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            raise CoreError(409, "Not a key")
        return key == "a"

    def __add__(self, other: int) -> int:
        if other < 0:
            raise CoreError(410, "Gone")
        return other

    def __lt__(self, other: int) -> bool:
        raise CoreError(423, "Locked")

    def __iter__(self) -> Iterator[str]:
        raise CoreError(424, "Failed")

    async def __aiter__(self) -> AsyncIterator[str]:
        yield "a"
        raise CoreError(425, "Early")

TABLE = Table()

@app.get("/item/:key")
async def item(req: Request, res: Response) -> None:
    res.json(TABLE[req.params["key"]])

@app.get("/contains")
async def contains(req: Request, res: Response) -> None:
    res.json("a" in TABLE)

@app.get("/sum")
async def sum_(req: Request, res: Response) -> None:
    res.json(TABLE + len(req.path))

@app.get("/less")
async def less(req: Request, res: Response) -> None:
    res.json(TABLE < 1)

@app.get("/each")
async def each(req: Request, res: Response) -> None:
    for row in TABLE:
        print(row)
    res.json({})

@app.get("/later")
async def later(req: Request, res: Response) -> None:
    async for row in TABLE:
        print(row)
    res.json({})
"""


def test_the_methods_behind_operators_and_loops_are_called(describing: Callable[..., Described]) -> None:
    document = describing("operators", OPERATORS).document
    errors = {
        path: [status for status in item["get"]["responses"] if status.startswith("4")]
        for path, item in document["paths"].items()
    }
    assert errors == {
        "/item/{key}": ["400", "404"],
        "/contains": ["409"],
        "/sum": ["410"],
        "/less": ["423"],
        "/each": ["424"],
        "/later": ["425"],
    }
