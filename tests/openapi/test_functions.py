"""Facts read from small programs: answers with their statuses, errors, what is read of requests, and types as JSON."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import mypy.build  # first, or mypy's modules import each other in a circle
import mypy.version
import pytest
from tests.mypy_plugin.conftest import MIGRATION, WRANGLER
from tests.support.libraries import with_libraries

from core.openapi.facts import Answer, ApplicationFacts, Effect, Held, Open, Raise, Read, RouteFacts
from core.openapi.functions import Reader
from core.openapi.gather import gather
from core.openapi.here import State
from core.openapi.routes import class_details
from core.openapi.values import Target
from core.validation.schema import Schema

knows_type_form = pytest.mark.skipif(
    mypy.version.__version__ < "2", reason="mypy 1 has not understood TypeForm: req.json(T) is not known to it"
)

PROGRAM = '''
import asyncio
import contextlib
import datetime
import decimal
import enum
import functools
import http
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import attrs

from core import Bindings, CoreError, D1Database, D1Error, KVNamespace, Next, Request, Response, conflict
from core.pagination import read_page

T = TypeVar("T")


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    ORIGIN: str


Req = Request[Env]

# -- types

Id = NewType("Id", int)


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Kind(enum.StrEnum):
    CAT = enum.auto()
    DOG = enum.auto()


class Counted(enum.Enum):
    ONE = enum.auto()


class Point(NamedTuple):
    x: int
    y: float


@attrs.frozen
class Tree:
    """A tree of notes."""

    name: str
    """What it is called."""
    children: "list[Tree]" = attrs.field(factory=list)
    parent: "Tree | None" = None
    _hidden: int = 0
    kind_: str = attrs.field(default="oak", alias="kind")
    size: int = attrs.field(init=False, default=0)


@attrs.frozen
class Page(Generic[T]):
    items: list[T]
    total: int


def lowered(text: str) -> str:
    return text.lower()


@attrs.frozen
class Checked:
    name: str = attrs.field(validator=[attrs.validators.min_len(1), attrs.validators.max_len(9)])
    age: int = attrs.field(validator=attrs.validators.and_(attrs.validators.ge(0), attrs.validators.lt(150)))
    tags: list[str] = attrs.field(
        validator=attrs.validators.deep_iterable(attrs.validators.max_len(5), attrs.validators.min_len(2)),
        factory=list,
    )
    code: str = attrs.field(default="A1", validator=attrs.validators.matches_re("[A-Z][0-9]"))
    level: str = attrs.field(default="low", validator=attrs.validators.in_(["low", "high"]))
    ratio: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.le(1.5)))
    mail: str = attrs.field(default="", converter=lowered, validator=attrs.validators.matches_re("[a-z@]*"))


@dataclass
class Box:
    width: int
    _: KW_ONLY
    label: str = "box"
    area: int = field(init=False, default=0)


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Wrapped(TypedDict, Generic[T]):
    value: T


def local_time() -> datetime.datetime:
    return datetime.datetime.now()


async def moments(req: Req, res: Response, given: datetime.datetime) -> None:
    now = datetime.datetime.now()
    res.json(
        {
            "now": now,
            "local": local_time(),
            "midnight": datetime.datetime(2026, 1, 2),
            "old": datetime.datetime.utcfromtimestamp(0),
            "zoned": datetime.datetime.now(datetime.UTC),
            "made": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            "stamp": datetime.datetime.fromtimestamp(0, datetime.UTC),
            "read": datetime.datetime.strptime("2026", "%Y"),
            "joined": datetime.datetime.combine(given.date(), given.time()),
            "given": given,
        }
    )


async def types_of_values(
    req: Req,
    res: Response,
    a: datetime.datetime,
    b: datetime.date,
    c: uuid.UUID,
    d: decimal.Decimal,
    e: Colour,
    f: Size,
    g: Kind,
    h: Counted,
    i: Point,
    j: Id,
    k: Literal["x", "y", 3],
    l: set[int],
    m: Mapping[str, float],
    n: tuple[int, ...],
    o: Sequence[bool | None],
    p: bytes,
    q: object,
    r: Any,
    s: Tree,
    t: Page[Row],
    u: Box,
    v: Row,
    w: Wrapped[int],
    x: Wrapped[str],
    y: http.HTTPStatus,
    z: datetime.time,
) -> None:
    res.json(
        {
            "a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g, "h": h, "i": i, "j": j, "k": k, "l": l, "m": m,
            "n": n, "o": o, "p": p, "q": q, "r": r, "s": s, "t": t, "u": u, "v": v, "w": w, "x": x, "z": z,
        }
    )


# -- senders and statuses


async def senders(req: Req, res: Response) -> None:
    if req.path == "/text":
        res.text("hello")
    elif req.path == "/html":
        res.html("<p>hello</p>")
    elif req.path == "/send":
        res.send("hello")
    elif req.path == "/bytes":
        res.send(b"hello")
    elif req.path == "/nothing":
        res.send()
    elif req.path == "/redirect":
        res.redirect("/elsewhere")
    elif req.path == "/see":
        res.redirect("/elsewhere", status=303)
    elif req.path == "/stream":
        res.stream(pieces(), content_type="text/csv; charset=utf-8")
    elif req.path == "/events":
        res.sse(rows())
    elif req.path == "/csv":
        res.header("Content-Type", "text/csv").send("a,b")


async def pieces() -> AsyncIterator[bytes]:
    yield b""


async def rows() -> AsyncIterator[Row]:
    yield {"id": 1}


async def chained_status(req: Req, res: Response) -> Response:
    return res.status(201).header("Location", "/users/7").json({"id": 7})


async def status_before(req: Req, res: Response) -> None:
    res.status(202)
    res.json(None)


async def status_of_a_branch(req: Req, res: Response, known: bool) -> None:
    if known:
        res.status(200)
    else:
        res.status(201)
    res.json({"known": known})


async def status_of_an_expression(req: Req, res: Response, known: bool) -> None:
    res.status(http.HTTPStatus.ACCEPTED if known else 201).json([])


async def status_of_a_literal(req: Req, res: Response, status: Literal[200, 206]) -> None:
    res.status(status).text("")


async def status_nobody_knows(req: Req, res: Response, status: int) -> None:
    res.status(status).text("")


async def status_after_a_branch_that_leaves(req: Req, res: Response, known: bool) -> None:
    if not known:
        res.status(202).json({})
        return
    res.json({"known": True})


async def status_of_one_of_two(req: Req, res: Response, known: bool) -> None:
    res.status(404).json(1) if known else res.json(2)


async def status_where_it_is_known(req: Req, res: Response, known: bool) -> None:
    known and res.status(202)
    res.json(1)


@attrs.frozen
class Policy:
    kind: str
    status: int = 403

    def check(self) -> None:
        raise CoreError(self.status, self.kind)


POLICIES = [Policy("one"), Policy("other", 404)]


async def checked_by_each(req: Req, res: Response) -> None:
    for policy in reversed(POLICIES):
        policy.check()


async def checked_in_turn(req: Req, res: Response) -> None:
    for policy in POLICIES:
        policy.check()


async def checked_by_one(req: Req, res: Response) -> None:
    Policy("one").check()
    Policy("other", 404).check()


async def status_behind_what_was_found(req: Req, res: Response) -> None:
    for number in range(3):
        if number in req.query:
            res.status(202)
            break
        if number == 2:
            continue
    else:
        res.status(404).text("none")
        return
    res.json(1)


async def nothing_at_all(req: Req, res: Response) -> None:
    res.status(204).send()


async def status_set_by_another(req: Req, res: Response) -> None:
    status = 200

    def worse() -> None:
        nonlocal status
        status = 207

    worse()
    res.status(status).json(1)


async def status_behind_a_loop(req: Req, res: Response) -> None:
    while True:
        if "a" in req.query:
            res.json({"a": 1})
            break
        return
    res.status(201)


async def sent_again(req: Req, res: Response) -> None:
    res.json({"a": 1})
    if "b" in req.query:
        res.status(202)
        res.json({"b": 1})


async def matched(req: Req, res: Response) -> None:
    match req.method:
        case "GET":
            res.json(1)
        case _:
            res.status(202).json("x")


# -- values


async def written_out(req: Req, res: Response, name: str) -> None:
    whole: dict[str, object] = {"name": name, "ok": True}
    whole["extra"] = len(name)
    if name:
        whole["maybe"] = 1.5
    res.json(whole)


async def changed_elsewhere(req: Req, res: Response, tree: Tree) -> None:
    errors: dict[str, list[str]] = {}
    errors.setdefault("name", []).append("is missing")
    fields = attrs.asdict(tree)
    author = {name: fields.pop(name) for name in ("name", "size")}
    res.json({"errors": errors, "fields": fields, "author": author})


async def spread(req: Req, res: Response, checked: Checked) -> None:
    base = {"id": 1, "name": "x"}
    res.json({**base, "name": None, **attrs.asdict(checked)})


async def as_dicts(req: Req, res: Response, checked: Checked, tree: Tree, page: Page[Tree]) -> None:
    res.json(attrs.asdict(checked, recurse=False))
    res.json(attrs.asdict(checked, value_serializer=lambda _, __, value: str(value)))
    res.json(attrs.asdict(checked, filter=lambda attribute, _: attribute.name == "age"))
    res.json(attrs.asdict(tree))
    res.json(attrs.asdict(page))


async def comprehended(req: Req, res: Response, trees: list[Tree]) -> None:
    res.json({"names": [tree.name for tree in trees], "by": {tree.name: {"size": tree.size} for tree in trees}})


async def returned(req: Req, res: Response) -> None:
    res.json({"user": described("Ada")})


def described(name: str) -> dict[str, Any]:
    return {"name": name, "length": len(name)}


def either(name: str) -> dict[str, Any]:
    if name == "number":
        return {"value": 1, "name": name}
    return {"value": "text", "name": name}


async def one_of_two(req: Req, res: Response) -> None:
    data = either(req.params["name"])
    res.json({"value": data["value"]})


async def columns(req: Req, res: Response) -> None:
    one = await req.env.DB.prepare("SELECT id, name, email FROM users WHERE id = ?").bind(1).first()
    count = await req.env.DB.prepare("SELECT count(*) AS n FROM users").first("n")
    made = await req.env.DB.prepare("INSERT INTO users (name) VALUES (?) RETURNING id").bind("x").first("id")
    found = await req.env.DB.prepare("SELECT id, score FROM users").all()
    mail = await req.env.DB.prepare("SELECT email FROM users").first("email")
    res.json(
        {
            "one": one,
            "count": count,
            "made": made,
            "rows": found.results,
            "ids": [row["id"] for row in found.results],
            "mail": mail,
        }
    )


TAKEN = conflict("email", "name")


async def signed_up(req: Req, res: Response) -> None:
    statement = req.env.DB.prepare("INSERT INTO users (name) VALUES (?) RETURNING id")
    with TAKEN:
        id = await statement.bind("x").one("id")
    count = await req.env.DB.prepare("SELECT count(*) AS total FROM users").one("total", error=CoreError(410))
    with conflict("email"):
        res.status(201).json({"id": id, "count": count})


async def put(req: Req, res: Response) -> None:
    put = "INSERT INTO users (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = 'x' RETURNING id"
    id = await req.env.DB.prepare(put).bind(1, "x").one("id")
    known = await req.env.DB.prepare("SELECT EXISTS (SELECT 1 FROM users) AS known").first("known")
    res.json({"id": id, "known": known})


async def renamed(req: Req, res: Response) -> None:
    with conflict("name"):
        await req.env.DB.prepare("UPDATE users SET name = ? WHERE id = 1 RETURNING id").bind("x").one("id")
    res.send()


async def paged(req: Req, res: Response) -> None:
    rows = req.env.DB.prepare("SELECT id FROM users LIMIT 1").as_(Numbered)
    found, total = await read_page(req.env.DB, rows, req.env.DB.prepare("SELECT count(*) FROM users"))
    res.json({"found": found, "total": total})


ENVELOPE: Final = "item"


async def enveloped(req: Req, res: Response) -> None:
    await req.json(Checked, key=ENVELOPE)
    await req.json(Checked, key=None)
    await req.json(Checked, key=req.path)


async def tested_for_none(req: Req, res: Response) -> None:
    id = await req.env.DB.prepare("SELECT id FROM users").first("id")
    if id is None:
        raise CoreError(404, "No user")
    res.json({"id": id})


async def sent_at_once(req: Req, res: Response) -> None:
    res.json(
        {
            "tree": await req.json(Tree),
            "numbers": sorted([3, 1]),
            "users": (await req.env.DB.prepare("SELECT id FROM users").all(Numbered)).results,
            "kept": await req.env.SESSIONS.get_json("x", dict[str, int]),
        }
    )
    res.json(await req.env.DB.prepare("SELECT id FROM users").first(Numbered))
    res.json(sorted([3, 1]))


@attrs.frozen
class Numbered:
    id: int


# -- errors


class NotFound(CoreError):
    """Something is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(404, f"{what} not found", code="NOT_FOUND", headers={"X-What": "nothing"})


class Gone(NotFound):
    """It was there."""


class Teapot(CoreError):
    """No method of its own."""


class OutOfStock(Exception):
    """For the error handler."""


class Throttled(Exception):
    """A foreign error with a status."""

    status = 429
    message = "Slow down"


async def plain_error(req: Req, res: Response) -> None:
    raise CoreError(409, "Taken", headers={"Retry-After": "1"}, code="TAKEN", field=req.path)


async def named_error(req: Req, res: Response) -> None:
    raise CoreError(410, "Gone", status="over")


async def subclasses(req: Req, res: Response) -> None:
    if req.path:
        raise NotFound("user")
    if req.method:
        raise Gone("user")
    raise Teapot(418, "Short and stout")


async def made_by_a_helper(req: Req, res: Response) -> None:
    raise refusal(ValueError())


def refusal(error: Exception) -> Exception:
    if str(error):
        return CoreError(400, "Bad")
    return error


async def not_for_clients(req: Req, res: Response) -> None:
    if req.path:
        raise OutOfStock
    raise Throttled()


async def caught(req: Req, res: Response) -> None:
    try:
        refuse()
        await req.json(Tree)
    except CoreError:
        res.json(None)


async def caught_and_raised(req: Req, res: Response) -> None:
    try:
        refuse()
    except CoreError as error:
        raise error
    with contextlib.suppress(NotFound):
        refuse()


def refuse() -> None:
    raise NotFound("it")


async def nested(req: Req, res: Response) -> None:
    def inner() -> None:
        other()

    def other() -> None:
        raise CoreError(403, "No")

    inner()


async def later(req: Req, res: Response) -> None:
    req.ctx.wait_until(record())
    asyncio.create_task(record())


async def waited_for(req: Req, res: Response) -> None:
    task = asyncio.create_task(record())
    await task


async def grouped(req: Req, res: Response) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(record())
            group.create_task(sorry(res))
    except* CoreError:
        res.status(404).json({})


async def record() -> None:
    raise CoreError(500, "Never seen")


class Base:
    async def run(self) -> None: ...

    @property
    def checked(self) -> int:
        raise CoreError(412, "Not checked")


class Derived(Base):
    def __init__(self) -> None:
        if not self.ready():
            raise CoreError(503, "Not ready")

    def ready(self) -> bool:
        return True

    async def run(self) -> None:
        raise CoreError(402, "Pay")

    async def __aenter__(self) -> int:
        raise CoreError(423, "Locked")

    async def __aexit__(self, *_: object) -> None: ...


async def methods(req: Req, res: Response, base: Base) -> None:
    await base.run()
    base.checked
    async with Derived():
        pass


async def handed_on(req: Req, res: Response) -> None:
    await asyncio.gather(*map(functools.partial(run_one), [refuse]))


async def failed() -> int:
    raise CoreError(410, "Gone")


async def gathered(req: Req, res: Response) -> None:
    found = await asyncio.gather(failed(), failed(), return_exceptions=True)
    res.json({"right": sum(isinstance(each, int) for each in found)})


async def run_one(what: Any) -> None:
    what()


# -- requests


async def bodies(req: Req, res: Response) -> None:
    await req.json(Checked)
    await req.json()
    await req.text()
    form = await req.form()
    form.parse(Box)
    form["title"]
    form.file("picture")
    form.files("pages")
    await req.bytes()


@attrs.frozen
class Search:
    words: str
    page: int = 1
    sort: Literal["new", "old"] = "new"
    tag: list[str] = attrs.field(factory=list)


async def parts(req: Req, res: Response) -> None:
    req.query.parse(Search)
    req.query["order"]
    req.query.get("page")
    req.query.get_all("tag")
    query = req.query
    query.get("kept")
    req.header("X-Wish")
    req.headers.get("X-Other")
    req.headers["X-Must"]
    req.cookies.get("theme")
    req.cookies["session"]
    req.params["id"]
    "draft" in req.query and "X-Odd" not in req.headers


async def handed(req: Req, res: Response) -> None:
    theme_of(req.cookies)


def theme_of(kept: Mapping[str, str]) -> str | None:
    return kept.get("theme")


async def staged(req: Req, res: Response) -> None:
    res.header("X-Total", "3").append("Vary", "Origin").cookie("a", "b")
    res.headers["X-Later"] = "4"
    res.header("X-Gone", None)
    res.json(1)


async def named_before(req: Req, res: Response) -> None:
    code, tried = "GONE", 0
    message = "Not here"
    tried += 1
    if "x" in req.query:
        raise CoreError(410, message, code=code)
    res.json({"code": code, "tried": tried})


async def staged_at_the_end(req: Req, res: Response) -> None:
    try:
        if "x" in req.query:
            raise CoreError(409, "No")
        if "y" in req.query:
            raise CoreError(410, "No")
        res.text("yes")
    except CoreError as error:
        if error.status == 409:
            res.header("X-Why", "x")
        raise
    finally:
        res.header("X-Time", "1")


# -- an error handler


async def answer_error(err: Exception, req: Req, res: Response, next: Next) -> None:
    if isinstance(err, OutOfStock):
        res.status(409).json({"error": "Out of stock"})
        return
    if isinstance(err, (D1Error, KeyError)):
        return await sorry(res)
    if not isinstance(err, CoreError):
        err = CoreError(500, "Sorry")
    res.status(err.status).json({**err.body, "id": req.id, "text": err.message})


async def sorry(res: Response) -> None:
    res.status(503).json({"error": "Later"})


class Views:
    async def show(self, req: Req, res: Response) -> None:
        """Show it.

        At length.
        """
        res.json(self.view())

    def view(self) -> dict[str, Any]:
        return {"shown": True, **self.more}

    @property
    def more(self) -> dict[str, Any]:
        return {"by": "us"}
'''


class Functions:
    """Everything that a call of a function does, by its name."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.classes = reader.program.schemas.classes

    def __getitem__(self, name: str) -> list[Effect]:
        (node,) = self.reader.program.named[f"app.{name}"]
        return self.reader.call(Target(node), State(), ()).effects


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    root = with_libraries(tmp_path_factory.mktemp("program"))
    (root / "wrangler.toml").write_text(WRANGLER)
    (root / "migrations").mkdir()
    (root / "migrations" / "0001_init.sql").write_text(MIGRATION)
    (root / "app.py").write_text(textwrap.dedent(PROGRAM))
    sys.path.insert(0, str(root))
    importlib.import_module("app")
    gathered = gather("app", source=root, root=root, classes=class_details())
    assert gathered.errors == [], "the program itself is right"
    yield Functions(Reader(gathered.program, ApplicationFacts([], "Program")))
    sys.path.remove(str(root))
    del sys.modules["app"]


def answers(effects: list[Effect]) -> list[tuple[Any, ...]]:
    return [(each.status, each.media_type, each.body) for each in effects if isinstance(each, Answer)]


def raises(effects: list[Effect]) -> list[tuple[tuple[int, ...], Schema]]:
    found = [each for each in effects if isinstance(each, Raise)]
    return [(each.status, each.message) for each in found if "core.errors.bindings.BindingError" not in each.classes]


def test_types_are_what_json_writes(functions: Functions) -> None:
    ((_, _, body),) = answers(functions["types_of_values"])
    properties = body["properties"]
    assert properties["a"] == {"type": "string", "format": "date-time"}
    assert properties["b"] == {"type": "string", "format": "date"}
    assert properties["c"] == {"type": "string", "format": "uuid"}
    assert properties["d"] == {"type": "string", "format": "decimal"}
    assert properties["e"] == {"enum": ["red", "green"]}
    assert properties["f"] == {"enum": [1, 2]}
    assert properties["g"] == {"enum": ["cat", "dog"]}
    assert properties["h"] == {"const": 1}
    assert properties["i"] == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "number"}],
        "minItems": 2,
        "maxItems": 2,
    }
    assert properties["j"] == {"type": "integer"}
    assert properties["k"] == {"enum": ["x", "y", 3]}
    assert properties["l"] == {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert properties["m"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert properties["n"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["o"] == {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
    assert properties["z"] == {"type": "string", "format": "time-local"}
    assert [name for name, schema in properties.items() if "$unknown" in schema] == ["p", "q", "r"]
    assert properties["s"] == {"$class": "app.Tree"}
    assert properties["w"] != properties["x"]
    tree = {field.name: field for field in functions.classes["app.Tree"].fields}
    assert list(tree) == ["name", "children", "parent", "hidden", "kind", "size"]
    assert tree["children"].schema == {"type": "array", "items": {"$class": "app.Tree"}}
    assert [name for name, field in tree.items() if field.default is not None] == [
        "children",
        "parent",
        "hidden",
        "kind",
        "size",
    ]
    assert not tree["size"].is_read
    (page,) = [each for each in functions.classes.values() if each.name == "Page_Row"]
    assert page.fields[0].schema == {"type": "array", "items": {"$class": "app.Row"}}
    box = {field.name: field for field in functions.classes["app.Box"].fields}
    assert list(box) == ["width", "label", "area"]
    assert (box["label"].default, box["area"].is_read) == (("box",), False)
    row = functions.classes["app.Row"]
    assert not row.total
    assert [(field.name, field.default) for field in row.fields] == [("id", None), ("note", ())]


def test_a_moment_that_is_made_without_a_zone_has_no_format_since_no_offset_is_written(functions: Functions) -> None:
    ((_, _, body),) = answers(functions["moments"])
    formats = {name: schema.get("format") for name, schema in body["properties"].items()}
    assert formats == {
        **dict.fromkeys(("now", "local", "midnight", "old", "read", "joined")),
        **dict.fromkeys(("zoned", "made", "stamp", "given"), "date-time"),
    }


def test_validators_defaults_and_docstrings_are_those_of_the_class(functions: Functions) -> None:
    functions["types_of_values"]
    functions["bodies"]
    text = {"type": "string"}
    assert {field.name: (field.schema, field.default) for field in functions.classes["app.Checked"].fields} == {
        "name": ({**text, "minLength": 1, "maxLength": 9}, None),
        "age": ({"type": "integer", "minimum": 0, "exclusiveMaximum": 150}, None),
        "tags": ({"type": "array", "minItems": 2, "items": {**text, "maxLength": 5}}, ([],)),
        "code": ({**text, "pattern": "^(?:[A-Z][0-9])$"}, ("A1",)),
        "level": ({"enum": ["low", "high"]}, ("low",)),
        "ratio": ({"anyOf": [{"type": "number", "maximum": 1.5}, {"type": "null"}]}, (None,)),
        "mail": (text, ("",)),  # of which its converter makes what the validator demands
    }
    tree = functions.classes["app.Tree"]
    assert tree.description == "A tree of notes."
    assert tree.fields[0].schema["description"] == "What it is called."


def test_every_sender_has_its_media_type(functions: Functions) -> None:
    text, bytes_ = {"type": "string"}, {"type": "string", "contentMediaType": "application/octet-stream"}
    assert answers(functions["senders"]) == [
        ((200,), "text/plain", text),
        ((200,), "text/html", text),
        ((200,), "text/plain", text),
        ((200,), "application/octet-stream", bytes_),
        ((200,), None, None),
        ((302,), None, None),
        ((303,), None, None),
        ((200,), "text/csv", {"type": "string", "contentMediaType": "text/csv"}),
        ((200,), "text/event-stream", None),
        ((200,), "text/csv", {"type": "string", "contentMediaType": "text/csv"}),
    ]
    every = [each for each in functions["senders"] if isinstance(each, Answer)]
    assert every[5].headers == {"Location": {"type": "string", "format": "uri-reference"}}
    assert list(every[8].headers) == ["Cache-Control"]
    assert every[8].item is not None
    assert every[8].item["properties"]["data"]["contentSchema"] == {"$class": "app.Row"}


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("chained_status", [(201,)]),
        ("status_before", [(202,)]),
        ("status_of_a_branch", [(200, 201)]),
        ("status_of_an_expression", [(202, 201)]),
        ("status_of_a_literal", [(200, 206)]),
        ("status_after_a_branch_that_leaves", [(202,), (200,)]),
        ("status_of_one_of_two", [(404,), (200,)]),
        ("status_where_it_is_known", [(202, 200)]),
        ("status_behind_what_was_found", [(404,), (202,)]),
        ("nothing_at_all", [(204,)]),
        ("matched", [(200,), (202,)]),
    ],
)
def test_the_status_is_the_one_that_was_set_on_the_way(
    name: str, statuses: list[tuple[int, ...]], functions: Functions
) -> None:
    assert [status for status, _, _ in answers(functions[name])] == statuses


def test_a_status_behind_what_is_sent_is_an_open_place(functions: Functions) -> None:
    def route(name: str) -> list[Effect]:
        held = Held("function", f"app.{name}", ("", 0))
        return functions.reader.route(RouteFacts("GET", "/", held, held.name))

    assert [each.reason for each in route("status_behind_a_loop") if isinstance(each, Open)] == [
        "the status is set behind what is sent, so which answer has it is not known. Set it before"
    ]
    assert [status for status, _, _ in answers(route("sent_again"))] == [(200,), (202,)]
    assert not any(isinstance(each, Open) for each in route("sent_again"))


@pytest.mark.parametrize("name", ["status_nobody_knows", "status_set_by_another"])
def test_a_status_that_is_not_known_is_an_open_place(name: str, functions: Functions) -> None:
    assert [each.reason for each in functions[name] if isinstance(each, Open)] == [
        "the status of this answer is not known. Give a number, or a Literal type"
    ]


def test_a_dict_keeps_the_fields_that_the_code_gives_it(functions: Functions) -> None:
    ((_, _, written),) = answers(functions["written_out"])
    assert written["properties"] == {
        "name": {"type": "string"},
        "ok": {"const": True},
        "extra": {"type": "integer"},
        "maybe": {"type": "number"},
    }
    assert written["required"] == ["name", "ok", "extra"]
    ((_, _, changed),) = answers(functions["changed_elsewhere"])
    assert changed["properties"]["errors"] == {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
    }
    assert changed["properties"]["fields"] == {"type": "object", "additionalProperties": {"$unknown": "Any"}}
    assert "properties" not in changed["properties"]["author"]
    ((_, _, spread),) = answers(functions["spread"])
    assert spread["properties"]["id"] == {"const": 1}
    assert spread["properties"]["name"] == {"type": "string", "minLength": 1, "maxLength": 9}
    assert set(spread["required"]) > {"id", "name", "age", "tags"}
    # A serializer, a filter, and a field that JSON has under another name: `asdict` makes something else of these.
    plain, *others = [body for _, _, body in answers(functions["as_dicts"])]
    assert plain == {"$class": "app.Checked"}
    assert others == [{"type": "object", "additionalProperties": {"$unknown": "Any"}}] * 4
    ((_, _, made),) = answers(functions["comprehended"])
    assert made["properties"]["names"] == {"type": "array", "items": {"type": "string"}}
    assert made["properties"]["by"]["additionalProperties"]["properties"] == {"size": {"type": "integer"}}
    ((_, _, returned),) = answers(functions["returned"])
    assert returned["properties"]["user"] == {
        "type": "object",
        "properties": {"name": {"const": "Ada"}, "length": {"type": "integer"}},
        "required": ["name", "length"],
    }


@knows_type_form
def test_what_is_sent_at_once_has_the_type_that_was_asked_for(functions: Functions) -> None:
    (_, _, whole), (_, _, first), (_, _, numbers) = answers(functions["sent_at_once"])
    null, several = {"type": "null"}, {"type": "array", "items": {"type": "integer"}}
    assert whole["properties"] == {
        "tree": {"$class": "app.Tree"},
        "numbers": several,
        "users": {"type": "array", "items": {"$class": "app.Numbered"}},
        "kept": {"anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, null]},
    }
    assert first == {"anyOf": [{"$class": "app.Numbered"}, null]}
    assert numbers == several


def test_errors_that_are_returned_answer_nobody(functions: Functions) -> None:
    assert not any(isinstance(each, Raise) for each in functions["gathered"])


def test_an_item_of_one_of_two_dicts_may_be_that_of_either(functions: Functions) -> None:
    ((_, _, body),) = answers(functions["one_of_two"])
    assert body["properties"]["value"] == {"enum": [1, "text"]}


def test_what_comes_from_sql_has_the_types_of_its_columns(functions: Functions) -> None:
    ((_, _, body),) = answers(functions["columns"])
    found = body["properties"]
    null, integer = {"type": "null"}, {"type": "integer"}
    row, none = found["one"]["anyOf"]
    assert none == null
    assert row["properties"] == {
        "id": integer,
        "name": {"type": "string"},
        "email": {"anyOf": [{"type": "string"}, null]},
    }
    assert found["count"] == integer
    assert found["made"] == integer
    assert found["rows"]["items"]["properties"] == {"id": integer, "score": {"type": "number"}}
    assert found["ids"] == {"type": "array", "items": integer}
    assert found["mail"] == {"anyOf": [{"type": "string"}, null]}
    ((_, _, tested),) = answers(functions["tested_for_none"])
    assert tested["properties"] == {"id": integer}


def test_errors_have_status_message_and_metadata(functions: Functions) -> None:
    (plain,) = [each for each in functions["plain_error"] if isinstance(each, Raise)]
    assert (plain.status, plain.message) == ((409,), {"const": "Taken"})
    assert plain.metadata["properties"] == {"code": {"const": "TAKEN"}, "field": {"type": "string"}}
    assert plain.headers == {"Retry-After": {"const": "1"}}
    (named,) = [each for each in functions["named_error"] if isinstance(each, Raise)]
    assert (named.status, named.metadata["properties"]) == ((410,), {"status": {"const": "over"}})


def test_a_subclass_with_an_init_of_its_own_is_made_by_its_arguments(functions: Functions) -> None:
    first, second, third = [each for each in functions["subclasses"] if isinstance(each, Raise)]
    assert (first.status, first.classes[0], first.metadata["properties"]) == (
        (404,),
        "app.NotFound",
        {"code": {"const": "NOT_FOUND"}},
    )
    assert (second.status, second.classes[:2]) == ((404,), ("app.Gone", "app.NotFound"))
    assert (third.status, third.message) == ((418,), {"const": "Short and stout"})


def test_errors_made_elsewhere_are_found_by_the_calls(functions: Functions) -> None:
    assert ((400,), {"const": "Bad"}) in raises(functions["made_by_a_helper"])
    assert raises(functions["nested"]) == [((403,), {"const": "No"})]
    assert functions["later"] == []
    assert raises(functions["waited_for"]) == [((500,), {"const": "Never seen"})]
    assert raises(functions["grouped"]) == []  # what is raised is a group
    assert [status for status, _, _ in answers(functions["grouped"])] == [(503,), (404,)]
    assert {status for (status,), _ in raises(functions["methods"])} == {402, 412, 423, 503}
    (unknown,) = {each.reason for each in functions["handed_on"] if isinstance(each, Open)}
    assert unknown.startswith("what what(…) does here is not known")
    assert answers(functions["Views.show"])[0][2]["properties"] == {"shown": {"const": True}, "by": {"const": "us"}}


def test_exceptions_that_are_no_core_errors_are_kept_for_the_error_handler(
    functions: Functions,
) -> None:
    first, second = [each for each in functions["not_for_clients"] if isinstance(each, Raise)]
    assert (first.status, first.classes[0]) == ((), "app.OutOfStock")
    assert (second.status, second.message, second.classes[0]) == ((429,), {"const": "Slow down"}, "app.Throttled")
    failing, *_ = [each for each in functions["tested_for_none"] if isinstance(each, Raise) and not each.status]
    assert failing.classes[:2] == ("core.errors.bindings.D1Error", "core.errors.bindings.BindingError")


def test_what_is_caught_is_no_answer(functions: Functions) -> None:
    assert raises(functions["caught"]) == []
    assert answers(functions["caught"]) == [((200,), "application/json", {"type": "null"})]
    assert [status for status, _ in raises(functions["caught_and_raised"])] == [(404,)]


@knows_type_form
def test_bodies_are_read_into_types(functions: Functions) -> None:
    reads = [(each.part, each.name, each.schema) for each in functions["bodies"] if isinstance(each, Read)]
    assert reads == [
        ("json", None, {"$class": "app.Checked"}),
        ("json", None, None),
        ("text", None, None),
        ("form", None, None),
        ("form", None, {"$class": "app.Box"}),
        ("form", "title", {"type": "string"}),
        ("form", "picture", {"type": "string", "contentMediaType": "application/octet-stream"}),
        (
            "form",
            "pages",
            {"type": "array", "items": {"type": "string", "contentMediaType": "application/octet-stream"}},
        ),
        ("bytes", None, None),
    ]


@knows_type_form
def test_a_body_in_an_envelope_is_described_with_it(functions: Functions) -> None:
    schemas = [each.schema for each in functions["enveloped"] if isinstance(each, Read)]
    checked = {"$class": "app.Checked"}
    assert schemas[:2] == [{"type": "object", "properties": {"item": checked}, "required": ["item"]}, checked]
    assert schemas[2] == {"$unknown": "the key of req.json(…). Give a constant"}


def test_a_value_that_may_be_taken_is_a_409_and_an_insert_has_its_row(functions: Functions) -> None:
    conflict = ((409,), {"const": "Conflict"})
    assert raises(functions["signed_up"]) == [conflict]
    assert raises(functions["renamed"]) == [((404,), {"const": "Not Found"}), conflict]


def test_what_gives_a_row_for_certain_is_what_the_checks_of_sql_say(functions: Functions) -> None:
    assert raises(functions["put"]) == []
    ((_, _, body),) = answers(functions["put"])
    assert body["properties"]["known"] == {"type": "integer"}


def test_a_page_with_its_count_has_the_types_of_its_statements(functions: Functions) -> None:
    ((_, _, body),) = answers(functions["paged"])
    assert body["properties"] == {
        "found": {"type": "array", "items": {"$class": "app.Numbered"}},
        "total": {"type": "integer"},
    }
    assert "core.errors.bindings.D1Error" in [each.classes[0] for each in functions["paged"] if isinstance(each, Raise)]


def test_names_of_queries_headers_and_cookies_are_found(functions: Functions) -> None:
    reads = [(each.part, each.name, each.required) for each in functions["parts"] if isinstance(each, Read)]
    assert reads == [
        ("query", None, False),
        ("query", "order", True),
        ("query", "page", False),
        ("query", "tag", False),
        ("query", "kept", False),
        ("header", "X-Wish", False),
        ("header", "X-Other", False),
        ("header", "X-Must", True),
        ("cookie", "theme", False),
        ("cookie", "session", True),
        ("query", "draft", False),
        ("header", "X-Odd", False),
    ]
    handed = [(each.part, each.name) for each in functions["handed"] if isinstance(each, Read)]
    assert handed == [("cookie", "theme")], "by a function that is handed them"


def test_staged_headers_are_found(functions: Functions) -> None:
    (sent,) = [each for each in functions["staged"] if isinstance(each, Answer)]
    assert list(sent.headers) == ["X-Total", "Vary", "Set-Cookie", "X-Later"]


def test_a_default_of_a_field_is_no_constant_of_its_class(functions: Functions) -> None:
    assert [status for status, _ in raises(functions["checked_by_each"])] == [()]
    assert [status for status, _ in raises(functions["checked_in_turn"])] == [(403,), (404,)]
    assert [status for status, _ in raises(functions["checked_by_one"])] == [(403,), (404,)]


def test_a_name_is_the_constant_that_it_was_given_once(functions: Functions) -> None:
    found = functions["named_before"]
    assert raises(found) == [((410,), {"const": "Not here"})]
    ((_, _, body),) = answers(found)
    assert body["properties"]["code"]["const"] == "GONE"
    assert body["properties"]["tried"] == {"type": "integer"}


def test_an_error_has_the_headers_that_are_staged_while_it_passes(functions: Functions) -> None:
    found = functions["staged_at_the_end"]
    (sent,) = [each for each in found if isinstance(each, Answer)]
    assert "X-Time" in sent.headers
    assert {each.status: sorted(each.headers) for each in found if isinstance(each, Raise)} == {
        (409,): ["X-Time", "X-Why"],
        (410,): ["X-Time", "X-Why"],
    }
