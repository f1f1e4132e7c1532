"""Applications in other forms, described and asked: decorators, registries, templates, results, dispatch, builders.

Every answer is in the document, with the headers of the program's own, or a finding is at the line that it comes from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from openapi_spec_validator import validate

from core.openapi.contract import Contract
from core.openapi.document import Described
from core.testing import Client

DECORATED = r'''"""Handlers made of decorators with arguments, of a base class with template methods, and of a registry."""
from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Concatenate, Generic, Literal, NewType, NotRequired, ParamSpec, TypedDict, TypeVar

import attrs

from core import App, CoreError, Request, Response, Router, create_app

app: App[None] = App()
Req = Request[None, Any]
Handler = Callable[[Req, Response], Awaitable[None]]
UserId = NewType("UserId", int)
T = TypeVar("T")
P = ParamSpec("P")
State = Literal["open", "closed"] | Literal["draft"]


class Row(TypedDict):
    id: UserId
    state: State
    note: NotRequired[str]


# -- decorators with arguments

def answers(status: int = 200, *, cache: str | None = None) -> Callable[[Callable[[Req], Awaitable[T]]], Handler]:
    def decorate(make: Callable[[Req], Awaitable[T]]) -> Handler:
        @functools.wraps(make)
        async def handler(req: Req, res: Response) -> None:
            value = await make(req)
            if cache is not None:
                res.header("Cache-Control", cache)
            res.status(status).json(value)

        return handler

    return decorate


def requires(*roles: str) -> Callable[[Handler], Handler]:
    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def checked(req: Req, res: Response) -> None:
            role = req.header("X-Role")
            if role is None:
                raise CoreError(401, "Log in", headers={"WWW-Authenticate": "Bearer"})
            if role not in roles:
                raise CoreError(403, "Not you", role=role)
            await handler(req, res)

        return checked

    return decorate


@app.post("/rows")
@answers(201)
async def add_row(req: Req) -> Row:
    given = await req.json(Row)
    return {"id": UserId(7), "state": given["state"]}


@app.get("/rows", )
@answers(cache="max-age=60")
async def rows(req: Req) -> list[Row]:
    return [{"id": UserId(1), "state": "open", "note": "x"}, {"id": UserId(2), "state": "draft"}]


@app.delete("/rows/:id")
@requires("admin", "owner")
@answers(202)
async def drop_row(req: Req) -> dict[str, int]:
    return {"dropped": int(req.params["id"])}


@app.get("/rows/:id")
@requires("reader")
async def row(req: Req, res: Response) -> None:
    found: Row = {"id": UserId(3), "state": "closed"}
    if "note" in req.query:
        found["note"] = req.query["note"]
    res.json(found)


# -- a base class with template methods

class View(Generic[T]):
    status: ClassVar[int] = 200

    async def __call__(self, req: Req, res: Response) -> None:
        self.check(req)
        value = await self.load(req)
        if value is None:
            raise self.missing()
        res.status(self.status).json(self.shown(value))

    def check(self, req: Req) -> None:
        pass

    async def load(self, req: Req) -> T | None:
        raise NotImplementedError

    def missing(self) -> CoreError:
        return CoreError(404, "Nothing here")

    def shown(self, value: T) -> object:
        return value


@attrs.frozen
class Box:
    size: int
    label: str = "plain"


class BoxView(View[Box]):
    async def load(self, req: Req) -> Box | None:
        return Box(1) if req.params["id"] != "0" else None


class LabelView(BoxView):
    status = 203

    def check(self, req: Req) -> None:
        if "strict" in req.query:
            raise CoreError(412, "Too strict")

    def shown(self, value: Box) -> object:
        return {"label": value.label}

    def missing(self) -> CoreError:
        return CoreError(410, "Gone", code="GONE")


app.get("/boxes/:id", BoxView())
app.get("/labels/:id", LabelView())

# -- a registry of handlers in a dict

Command = Callable[[Req], Awaitable[dict[str, object]]]
COMMANDS: dict[str, Command] = {}


def command(name: str) -> Callable[[Command], Command]:
    def register(run: Command) -> Command:
        COMMANDS[name] = run
        return run

    return register


@command("ping")
async def ping(req: Req) -> dict[str, object]:
    return {"pong": True}


@command("fail")
async def fail(req: Req) -> dict[str, object]:
    raise CoreError(409, "It failed")


@app.post("/commands/:name")
async def run_command(req: Req, res: Response) -> None:
    run = COMMANDS.get(req.params["name"])
    if run is None:
        raise CoreError(404, "No such command")
    res.json(await run(req))


async def on(req: Req, res: Response) -> None:
    res.json({"on": True})


async def off(req: Req, res: Response) -> None:
    res.status(205).send()


SWITCH: dict[str, Handler] = {"on": on, "off": off}


@app.put("/switch/:to")
async def switch(req: Req, res: Response) -> None:
    handler = SWITCH.get(req.params["to"])
    if handler is None:
        res.status(400).json({"error": "on or off"})
        return
    await handler(req, res)


for name, each in SWITCH.items():
    app.get(f"/states/{name}", each)
'''

MATCHED = r'''"""Results as values, matched; results as exceptions; singledispatch."""
from __future__ import annotations

import enum
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, Literal, NotRequired, TypedDict, assert_never

import attrs
from typing_extensions import TypeVar

from core import App, CoreError, Next, Request, Response
from core.http.sse import Event

app: App[None] = App()
Req = Request[None, Any]
T = TypeVar("T")
E = TypeVar("E", default=str)


@attrs.frozen
class Ok(Generic[T]):
    value: T


@attrs.frozen
class Err(Generic[E]):
    error: E
    status: int = 400


Result = Ok[T] | Err[E]


@attrs.frozen
class User:
    id: int
    name: str


@attrs.frozen
class NotThere:
    id: int


@attrs.frozen
class Locked:
    until: str


Found = User | NotThere | Locked


def find(id: str) -> Found:
    if id == "0":
        return NotThere(0)
    if id == "1":
        return Locked("noon")
    return User(int(id), "Ada")


@app.get("/users/:id")
async def user(req: Req, res: Response) -> None:
    match find(req.params["id"]):
        case User() as found:
            res.json(found)
        case NotThere(id=id):
            res.status(404).json({"missing": id})
        case Locked(until=until):
            res.status(423).header("Retry-After", until).json({"until": until})
        case other:
            assert_never(other)


def parse(text: str) -> Result[int]:
    return Ok(len(text)) if text else Err("empty")


@app.get("/parsed/:text?")
async def parsed(req: Req, res: Response) -> None:
    match parse(req.params.get("text") or ""):
        case Ok(value):
            res.json({"value": value})
        case Err(error=error, status=status):
            res.status(status).json({"error": error})


def send(res: Response, result: Result[T, E]) -> None:
    if isinstance(result, Ok):
        res.json({"data": result.value})
    else:
        res.status(422).json({"failed": result.error})


def created(name: str) -> Result[User, list[str]]:
    return Ok(User(1, name)) if name else Err(["name is empty"])


@app.post("/users")
async def create(req: Req, res: Response) -> None:
    send(res, created((await req.text()).strip()))


# -- exceptions as results

class Outcome(Exception):
    status = 200

    def body(self) -> dict[str, object]:
        return {"outcome": type(self).__name__}


class Accepted(Outcome):
    status = 202

    def __init__(self, job: int) -> None:
        super().__init__(job)
        self.job = job

    def body(self) -> dict[str, object]:
        return {"job": self.job}


class Refused(Outcome):
    status = 409


@app.on_error(Outcome)
async def outcome(err: Outcome, req: Req, res: Response, next: Next) -> None:
    res.status(err.status).json(err.body())


@app.post("/jobs")
async def job(req: Req, res: Response) -> None:
    if "no" in req.query:
        raise Refused
    raise Accepted(7)


# -- singledispatch

@functools.singledispatch
def shown(value: object) -> dict[str, object]:
    raise CoreError(501, "No way to show it")


@shown.register
def _(value: User) -> dict[str, object]:
    return {"user": value.name}


@shown.register(int)
def _shown_int(value: int) -> dict[str, object]:
    if value < 0:
        raise CoreError(416, "Negative")
    return {"number": value}


@app.get("/shown/:what")
async def show(req: Req, res: Response) -> None:
    what = req.params["what"]
    value: object = User(1, "Ada") if what == "user" else int(what) if what.lstrip("-").isdigit() else what
    res.json(shown(value))


# -- streams of generators

async def numbers(until: int) -> AsyncIterator[bytes]:
    for number in range(until):
        yield str(number).encode()


class Tick(TypedDict):
    at: int
    note: NotRequired[str]


async def ticks() -> AsyncIterator[Event]:
    tick: Tick = {"at": 1}
    yield Event(data=tick, event="tick")
    yield Event(data={"at": 2, "note": "x"}, event="tock", id="2")


@app.get("/numbers")
async def stream(req: Req, res: Response) -> None:
    res.stream(numbers(3), content_type="text/csv")


@app.get("/ticks")
async def events(req: Req, res: Response) -> None:
    res.sse(ticks())


def chunks() -> Iterator[int]:
    yield from (1, 2, 3)


@app.get("/chunks")
async def listed(req: Req, res: Response) -> None:
    res.json([*chunks()])


# -- enums and defaults

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

    @property
    def words(self) -> Literal["low", "high"]:
        return "low" if self is Level.LOW else "high"


@attrs.frozen
class Paged(Generic[T, E]):
    items: list[T]
    error: E | None = None


@attrs.frozen
class Nested(Generic[T]):
    page: Paged[T]
    by_level: dict[Level, list[T]] = attrs.field(factory=dict)


@app.get("/nested")
async def nested(req: Req, res: Response) -> None:
    res.json(Nested(Paged([User(1, "Ada")]), {Level.LOW: [User(2, "Bob")]}))


@app.get("/levels")
async def levels(req: Req, res: Response) -> None:
    res.json({"all": [{"level": level, "words": level.words} for level in Level]})


@app.get("/maybe")
async def maybe(req: Req, res: Response) -> None:
    page: Paged[int, Literal["late", "lost"]] = Paged([1], "late" if "late" in req.query else None)
    res.json(page)


@app.put("/maybe")
async def put_maybe(req: Req, res: Response) -> None:
    res.json(await req.json(Paged[User, Literal["late", "lost"]]))
'''

BUILT = r'''"""A small job board: a service layer, dependency objects, a builder of handlers, sub-applications of routers."""
from __future__ import annotations

import contextlib
import dataclasses
import datetime
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partialmethod
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, Self

import attrs

from core import App, CoreError, Next, Request, Response, Router
from core.middleware.request_id import request_id

app: App[None] = App()
app.use(request_id())
Req = Request[None, Any]


class Kind(StrEnum):
    FULL = "full"
    PART = "part"


class Money(NamedTuple):
    amount: int
    currency: Literal["EUR", "USD"] = "EUR"


@dataclass(frozen=True)
class Job:
    id: uuid.UUID
    title: str
    kind: Kind = Kind.FULL
    pay: Money | None = None
    starts: datetime.time | None = None
    tags: frozenset[str] = frozenset()
    extra: Mapping[str, int | str] = field(default_factory=dict)


@attrs.define
class Change:
    title: str | None = None
    kind: Kind | None = None


class Problem(Exception):
    def __init__(self, status: int, code: str, **details: object) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.details = details

    @classmethod
    def missing(cls, what: str) -> Self:
        return cls(404, "missing", what=what)


@app.on_error(Problem)
async def told(err: Problem, req: Req, res: Response, next: Next) -> None:
    res.status(err.status).json({"code": err.code, "details": err.details, "request": req.id})


class Repository(Protocol):
    def get(self, id: uuid.UUID) -> Job | None: ...
    def all(self) -> Iterable[Job]: ...


class Memory:
    def __init__(self) -> None:
        self.jobs: dict[uuid.UUID, Job] = {}

    def get(self, id: uuid.UUID) -> Job | None:
        return self.jobs.get(id)

    def all(self) -> Iterable[Job]:
        return self.jobs.values()

    def put(self, job: Job) -> Job:
        self.jobs[job.id] = job
        return job


ONE: Final = uuid.UUID(int=1)
MEMORY = Memory()
MEMORY.put(Job(ONE, "Cook", pay=Money(5), starts=datetime.time(8), tags=frozenset({"a"})))


class Service:
    def __init__(self, jobs: Memory) -> None:
        self.jobs = jobs

    def require(self, text: str) -> Job:
        try:
            id = uuid.UUID(text)
        except ValueError as error:
            raise Problem(400, "malformed") from error
        found = self.jobs.get(id)
        if found is None:
            raise Problem.missing("job")
        return found

    @contextlib.contextmanager
    def locked(self, job: Job) -> Any:
        if "locked" in job.tags:
            raise Problem(423, "locked")
        yield job


class Jobs:
    def __init__(self, service: Service) -> None:
        self._service = service

    @cached_property
    def router(self) -> Router[None]:
        router: Router[None] = Router()
        router.get("/", self.index)
        router.get("/:id", self.show)
        router.patch("/:id", self.change)
        router.post("/:id/close", self.close)
        router.post("/:id/open", self.open)
        return router

    async def index(self, req: Req, res: Response) -> None:
        groups: defaultdict[str, list[Job]] = defaultdict(list)
        for job in self._service.jobs.all():
            groups[job.kind].append(job)
        res.json({"groups": groups, "total": sum(map(len, groups.values()))})

    async def show(self, req: Req, res: Response) -> None:
        job = self._service.require(req.params["id"])
        res.header("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
        res.json({**dataclasses.asdict(job), "links": {"self": req.path}})

    async def change(self, req: Req, res: Response) -> None:
        job = self._service.require(req.params["id"])
        change = await req.json(Change)
        with self._service.locked(job):
            given = {name: value for name, value in attrs.asdict(change).items() if value is not None}
            res.json(dataclasses.replace(job, **given))

    async def _set(self, req: Req, res: Response, *, to: Literal["open", "closed"]) -> None:
        job = self._service.require(req.params["id"])
        res.status(202).json({"id": job.id, "state": to})

    close = partialmethod(_set, to="closed")
    open = partialmethod(_set, to="open")


app.use("/jobs", Jobs(Service(MEMORY)).router)


# -- handlers that are built

@dataclass
class Endpoint:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Callable[[Req], object] | None = None

    def with_header(self, name: str, value: str) -> Endpoint:
        return dataclasses.replace(self, headers={**self.headers, name: value})

    async def __call__(self, req: Req, res: Response) -> None:
        for name, value in self.headers.items():
            res.header(name, value)
        res.status(self.status)
        if self.body is None:
            res.send()
        else:
            res.json(self.body(req))


def version(req: Req) -> dict[str, object]:
    return {"version": 1, "path": req.path}


app.get("/version", Endpoint(body=version).with_header("X-Version", "1"))
app.get("/nothing", Endpoint(204))


# -- walrus, comprehension, chained conditions

@app.get("/search")
async def search(req: Req, res: Response) -> None:
    if (text := req.query.get("q")) is None or len(text) < 2:
        raise CoreError(422, "Too short", least=2)
    hits = [{"id": job.id, "title": job.title, "score": round(1 / (n + 1), 2)} for n, job in enumerate(MEMORY.all())]
    best, *rest = hits
    res.json({"best": best, "rest": rest, "page": {k: v for k, v in (("size", 10), ("from", 0))}})


@app.get("/negotiated")
async def negotiated(req: Req, res: Response) -> None:
    accept = req.header("Accept") or ""
    if "text/csv" in accept:
        res.header("Content-Type", "text/csv").send("id,title")
    elif "html" in accept:
        res.html("<p>jobs</p>")
    elif accept and "json" not in accept and "*" not in accept:
        raise CoreError(406)
    else:
        res.json([*map(lambda job: job.title, MEMORY.all())])


@app.get("/redirects/:to")
async def redirects(req: Req, res: Response) -> None:
    to = {"a": "/jobs", "b": "/version"}.get(req.params["to"])
    if not to:
        res.status(404).text("no")
        return
    res.redirect(to, 307 if "keep" in req.query else 303)


@app.all("/any")
async def any_method(req: Req, res: Response) -> None:
    match req.method:
        case "GET":
            res.json({"read": True})
        case "POST" | "PUT":
            res.status(201).json({"written": len(await req.bytes())})
        case _:
            raise CoreError(405, headers={"Allow": "GET, POST, PUT"})
'''

Asked = tuple[str, str, Any, dict[str, str]]
JOB = "/jobs/00000000-0000-0000-0000-000000000001"
ASKED_DECORATED: list[Asked] = [
    ("POST", "/rows", {"id": 1, "state": "open"}, {}),
    ("POST", "/rows", {"id": 1, "state": "x"}, {}),
    ("GET", "/rows", None, {}),
    ("DELETE", "/rows/1", None, {"X-Role": "admin"}),
    ("DELETE", "/rows/1", None, {"X-Role": "b"}),
    ("DELETE", "/rows/x", None, {"X-Role": "admin"}),
    ("DELETE", "/rows/1", None, {}),
    ("GET", "/rows/1?note=x", None, {"X-Role": "reader"}),
    ("GET", "/rows/1", None, {"X-Role": "reader"}),
    ("GET", "/rows/1", None, {}),
    ("GET", "/boxes/1", None, {}),
    ("GET", "/boxes/0", None, {}),
    ("GET", "/labels/1", None, {}),
    ("GET", "/labels/0", None, {}),
    ("GET", "/labels/1?strict", None, {}),
    ("POST", "/commands/ping", None, {}),
    ("POST", "/commands/fail", None, {}),
    ("POST", "/commands/no", None, {}),
    ("PUT", "/switch/on", None, {}),
    ("PUT", "/switch/off", None, {}),
    ("PUT", "/switch/x", None, {}),
    ("GET", "/states/on", None, {}),
    ("GET", "/states/off", None, {}),
]
ASKED_MATCHED: list[Asked] = [
    ("GET", "/users/0", None, {}),
    ("GET", "/users/1", None, {}),
    ("GET", "/users/2", None, {}),
    ("GET", "/parsed/abc", None, {}),
    ("GET", "/parsed", None, {}),
    ("GET", "/shown/user", None, {}),
    ("GET", "/shown/5", None, {}),
    ("GET", "/shown/-5", None, {}),
    ("GET", "/shown/x", None, {}),
    ("GET", "/numbers", None, {}),
    ("GET", "/ticks", None, {}),
    ("GET", "/chunks", None, {}),
    ("GET", "/nested", None, {}),
    ("GET", "/levels", None, {}),
    ("GET", "/maybe", None, {}),
    ("GET", "/maybe?late", None, {}),
    ("POST", "/users", "Ada", {}),
    ("POST", "/users", " ", {}),
    ("POST", "/jobs", None, {}),
    ("POST", "/jobs?no", None, {}),
    ("PUT", "/maybe", {"items": [{"id": 1, "name": "x"}], "error": "late"}, {}),
    ("PUT", "/maybe", {"items": [1]}, {}),
]
ASKED_BUILT: list[Asked] = [
    ("GET", "/jobs", None, {}),
    ("GET", "/jobs/00000000-0000-0000-0000-000000000001", None, {}),
    ("GET", "/jobs/x", None, {}),
    ("GET", "/jobs/00000000-0000-0000-0000-000000000002", None, {}),
    ("GET", "/version", None, {}),
    ("GET", "/nothing", None, {}),
    ("GET", "/search", None, {}),
    ("GET", "/search?q=abc", None, {}),
    ("GET", "/redirects/a", None, {}),
    ("GET", "/redirects/a?keep", None, {}),
    ("GET", "/redirects/z", None, {}),
    ("GET", "/any", None, {}),
    ("GET", "/negotiated", None, {"Accept": "text/csv"}),
    ("GET", "/negotiated", None, {"Accept": "text/html"}),
    ("GET", "/negotiated", None, {"Accept": "application/json"}),
    ("GET", "/negotiated", None, {"Accept": "image/png"}),
    ("GET", "/negotiated", None, {"Accept": ""}),
    ("PATCH", "/jobs/00000000-0000-0000-0000-000000000001", {"title": "x"}, {}),
    ("PATCH", "/jobs/00000000-0000-0000-0000-000000000001", {"title": 1}, {}),
    ("PATCH", "/jobs/00000000-0000-0000-0000-000000000001", "{", {}),
    ("POST", "/jobs/00000000-0000-0000-0000-000000000001/close", None, {}),
    ("POST", "/jobs/00000000-0000-0000-0000-000000000001/open", None, {}),
    ("POST", "/any", "x", {}),
    ("PUT", "/any", "x", {}),
    ("PATCH", "/any", "x", {}),
    ("DELETE", "/any", None, {}),
]
UNKNOWN_CALL = "Call a function of the program, or say what is answered: describe(handler, answers={…})"
PROGRAMS: list[tuple[str, str, list[Asked], list[str]]] = [
    (
        "decorated",
        DECORATED,
        ASKED_DECORATED,
        [
            "the type of a value is not known (object). Give it a type",
            f"what run(…) does here is not known. {UNKNOWN_CALL}",
        ],
    ),
    (
        "matched",
        MATCHED,
        ASKED_MATCHED,
        [
            "the status of this answer is not known. Give a number, or a Literal type",
        ],
    ),
    (
        "built",
        BUILT,
        ASKED_BUILT,
        [
            "the status of this answer is not known. Give a number, or a Literal type",
            "the name of a header that is put on the response is not known. Give a constant, or a Literal type",
            "the type of a value is not known (object). Give it a type",
        ],
    ),
]


@pytest.mark.parametrize(("name", "source", "asked", "told"), PROGRAMS)
async def test_every_answer_is_in_the_document(
    describing: Callable[..., Described], name: str, source: str, asked: list[Asked], told: list[str]
) -> None:
    described = describing(name, source)
    validate(described.document)
    assert [each.message for each in described.problems] == told
    contract = Contract(described.document)
    client: Client[Any] = Client(sys.modules[name].app, None, contract=contract)
    for method, target, given, headers in asked:
        body = json.dumps(given) if isinstance(given, dict) else given
        response = await client.request(method, target, body=body, headers=headers)
        path = target.partition("?")[0]
        assert contract.problems(method, path, response.status, response.headers, await response.bytes()) == []
    assert {each.operation for each in contract.declared} - {"parsed_without"} <= {
        each.operation for each in contract.reached
    }


def test_a_dispatcher_answers_as_each_function_that_is_registered_with_it(describing: Callable[..., Described]) -> None:
    document = describing("matched", MATCHED).document
    responses = document["paths"]["/shown/{what}"]["get"]["responses"]
    assert list(responses) == ["200", "400", "416", "501", "default"]
    shown = responses["200"]["content"]["application/json"]["schema"]["anyOf"]
    assert [list(each["properties"]) for each in shown] == [["user"], ["number"]]


def test_an_object_of_a_class_has_the_methods_of_its_class_alone(describing: Callable[..., Described]) -> None:
    paths = describing("decorated", DECORATED).document["paths"]
    assert list(paths["/boxes/{id}"]["get"]["responses"]) == ["200", "400", "404", "default"]
    assert list(paths["/labels/{id}"]["get"]["responses"]) == ["203", "400", "410", "412", "default"]
    assert list(paths["/switch/{to}"]["put"]["responses"]) == ["200", "205", "400", "default"]


def test_the_methods_of_all_subclasses_are_read_behind_one_decorator(describing: Callable[..., Described]) -> None:
    described = describing(
        "subclasses",
        """
        from collections.abc import Callable
        from typing import Any

        from core import App, CoreError, Request, Response

        app: App[None] = App()


        def checked(method: Callable[[Any], str]) -> Callable[[Any], str]:
            def inner(self: Any) -> str:
                return method(self)
            return inner


        class Base:
            def name(self) -> str:
                raise NotImplementedError


        class One(Base):
            @checked
            def name(self) -> str:
                raise CoreError(409)


        class Two(Base):
            @checked
            def name(self) -> str:
                raise CoreError(410)


        KNOWN: dict[str, Base] = {}


        @app.get("/names/:id")
        async def name(req: Request[None, Any], res: Response) -> None:
            res.text(KNOWN[req.params["id"]].name())
        """,
    )
    responses = described.document["paths"]["/names/{id}"]["get"]["responses"]
    assert list(responses) == ["200", "400", "409", "410", "default"]


def test_one_key_of_a_dict_a_case_for_a_status_and_headers_in_a_variable_are_read(
    describing: Callable[..., Described],
) -> None:
    described = describing(
        "ways",
        """
        from typing import Any

        from core import App, CoreError, Next, Request, Response

        app: App[None] = App()
        HINTS = {"X-Hint": "look elsewhere"}


        @app.get("/error")
        async def error(req: Request[None, Any], res: Response) -> None:
            raise CoreError(418, headers=HINTS)


        @app.get("/key")
        async def key(req: Request[None, Any], res: Response) -> None:
            known: dict[str, object] = {"a": 1, "b": "two"}
            res.json({"a": known.get("a"), "c": known.get("c", False)})


        @app.on_error(CoreError)
        async def answer(err: CoreError, req: Request[None, Any], res: Response, next: Next) -> None:
            match err.status:
                case 418:
                    res.status(418).json({"pot": "tea"})
                case _:
                    await next(err)
        """,
    )
    assert described.problems == []
    paths = described.document["paths"]
    assert [status for status in paths["/key"]["get"]["responses"] if status != "default"] == ["200"]
    assert paths["/error"]["get"]["responses"]["418"]["headers"].keys() == {"X-Hint"}
    schema = paths["/key"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["properties"]["a"] == {"type": "integer", "const": 1}
    assert schema["properties"]["c"] == {"type": "boolean", "const": False}


def test_a_name_that_is_given_what_is_made_of_itself_is_read_to_an_end(describing: Callable[..., Described]) -> None:
    described = describing(
        "itself",
        """
        from typing import Any

        from core import App, Request, Response

        app: App[None] = App()


        def one(value: Any, other: Any) -> Any:
            return value or other


        def wrap(handler: Any) -> Any:
            async def inner(*given: Any) -> Any:
                return await handler(*given)
            return inner


        @app.get("/values")
        async def values(req: Request[None, Any], res: Response) -> None:
            status = 200
            status = one(status, 201)
            status = one(202, status)
            status = one(one(status, 203), one(status, status))
            body: Any = {"a": 1}
            body = one(body, {"b": body})
            body = {**body, "c": one(body, body)}
            body = {"d": body, "e": [body, body]}
            res.status(status).json(body)


        @app.get("/functions")
        async def functions(req: Request[None, Any], res: Response) -> None:
            async def send(res: Response) -> None:
                res.json({"a": 1})
            last: Any = send
            last = wrap(last)
            last = wrap(one(last, send))
            for _ in range(3):
                outer = wrap(last)
                last = outer
            await last(res)


        @app.get("/keys")
        async def keys(req: Request[None, Any], res: Response) -> None:
            key = req.headers.get("X-Key")
            key = key.strip() if key else key
            if key:
                res.json(key)
        """,
    )
    assert [problem.line for problem in described.problems] == [29, 42]
    (key,) = described.document["paths"]["/keys"]["get"]["parameters"]
    assert (key["in"], key["name"]) == ("header", "X-Key")


HELD = """
from collections.abc import Callable
from typing import Any, Generic, Literal, NoReturn, TypeVar

import attrs

from core import App, CoreError, Request, Response

app: App[None] = App(problem_details=True)
T = TypeVar("T")
Reason = Literal["missing", "refused", "gone"]
STATUS: dict[Reason, int] = {"missing": 404, "refused": 403, "gone": 410}


def fail(reason: Reason, detail: str = "") -> NoReturn:
    raise CoreError(STATUS[reason], detail or None, reason=reason)


def also(reason: Reason) -> NoReturn:
    fail(reason)


class Shelf:
    def find(self, id: str) -> str:
        if id == "0":
            raise CoreError(410, "Sold")
        return id


@attrs.frozen
class Page(Generic[T]):
    items: list[T]
    more: bool = False

    @classmethod
    def of(cls, items: list[T]) -> "Page[T]":
        if not items:
            raise CoreError(416, "Nothing")
        return cls(items)


class Cellar:
    def find(self, id: str) -> str:
        raise CoreError(423, "Locked")


@app.get("/either/:id")
async def either(req: Request[None, Any], res: Response) -> None:
    place: Shelf | Cellar | None = {"a": Shelf(), "b": Cellar()}.get(req.params["id"])
    res.json({"found": place.find(req.params["id"]) if place is not None else None})


class Controller:
    def __init__(self, made: Callable[[str], Shelf] = lambda name: Shelf()) -> None:
        self.made = made

    async def show(self, req: Request[None, Any], res: Response) -> None:
        res.json({"found": self.made("a").find(req.params["id"])})


for name, controller in {"default": Controller(), "given": Controller(lambda name: Shelf())}.items():
    app.get(f"/{name}/:id", controller.show)


@app.get("/page")
async def page(req: Request[None, Any], res: Response) -> None:
    res.json(Page[str].of([*req.query]))


@app.get("/missing")
async def missing(req: Request[None, Any], res: Response) -> None:
    fail("missing", "No such thing")


@app.get("/refused")
async def refused(req: Request[None, Any], res: Response) -> None:
    also("refused")


@app.get("/gone")
async def gone(req: Request[None, Any], res: Response) -> None:
    reason: Reason = "gone"
    also(reason)


@app.get("/any/:reason")
async def any_of(req: Request[None, Any], res: Response) -> None:
    fail("refused" if req.params["reason"] == "a" else "gone")
"""


async def test_what_is_made_by_a_lambda_and_chosen_by_a_constant_is_read(describing: Callable[..., Described]) -> None:
    described = describing("held", HELD)
    assert described.problems == []
    validate(described.document)
    paths = described.document["paths"]
    answers = {path: [*operation["get"]["responses"]] for path, operation in paths.items()}
    assert answers == {
        "/either/{id}": ["200", "400", "410", "423", "default"],
        "/default/{id}": ["200", "400", "410", "default"],
        "/given/{id}": ["200", "400", "410", "default"],
        "/page": ["200", "416", "default"],
        "/missing": ["404", "default"],
        "/refused": ["403", "default"],
        "/gone": ["410", "default"],
        "/any/{reason}": ["400", "403", "410", "default"],
    }
    contract = Contract(described.document)
    client: Client[Any] = Client(sys.modules["held"].app, None, contract=contract)
    asked = [
        "/default/1",
        "/given/0",
        "/page",
        "/page?a=b",
        "/missing",
        "/refused",
        "/gone",
        "/any/a",
        "/any/b",
        "/any/%",
    ]
    for path in asked:
        await client.get(path)
        assert contract.reached  # a client with a contract raises for what the document does not have
    schemas = described.document["components"]["schemas"]
    reference = paths["/refused"]["get"]["responses"]["403"]["content"]["application/problem+json"]["schema"]["$ref"]
    refused = schemas[reference.rpartition("/")[2]]
    assert [*refused["properties"]] == ["type", "title", "status", "reason"]
    assert refused["properties"]["reason"] == {"type": "string", "const": "refused"}


EVERYDAY = """
import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from core import CoreError, Next, Request, Response, create_app

app = create_app()
P = ParamSpec("P")
R = TypeVar("R")
SIZES = {"small": 10, "large": 100}


@app.on_error(CoreError)
async def told(err: CoreError, req: Request, res: Response, next: Next) -> None:
    res.status(err.status).json(dict(error=str(err)) | {"more": err.metadata})


def entry(name: str) -> dict[str, Any]:
    return {"name": name, "length": len(name)}


@app.get("/made")
async def made(req: Request, res: Response) -> None:
    rows = [entry(name) for name in req.query.get_all("name")]
    base: dict[str, Any] = dict(count=len(rows))
    res.json(base | {"rows": sorted(rows, key=lambda row: row["length"]), "pair": ({"a": 1}, 2), "sizes": [*SIZES]})


def limited(most: int) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    def around(load: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(load)
        async def run(*args: P.args, **kwargs: P.kwargs) -> R:
            if most < 1:
                raise CoreError(503, "Too many", most=most)
            return await load(*args, **kwargs)

        return run

    return around


@limited(3)
async def load(id: str) -> dict[str, Any]:
    if id == "0":
        raise CoreError(404, "Not there")
    return {"id": id}


async def save(req: Request, res: Response, status: int) -> None:
    res.status(status).json(await load(req.params["id"]))


@app.put("/things/:id")
async def put(req: Request, res: Response) -> None:
    run = functools.partial(save, req, status=202)
    await run(res)
"""


def test_values_and_calls_of_everyday_code_are_known(describing: Callable[..., Described]) -> None:
    described = describing("everyday", EVERYDAY)
    assert not described.problems
    paths, schemas = described.document["paths"], described.document["components"]["schemas"]
    content = paths["/made"]["get"]["responses"]["200"]["content"]["application/json"]
    made = content["schema"]["properties"]
    row = {"type": "object", "properties": {"name": {"type": "string"}, "length": {"type": "integer"}}}
    assert made["count"] == {"type": "integer"}
    assert made["rows"] == {"type": "array", "items": {**row, "required": ["name", "length"]}}
    assert [part["type"] for part in made["pair"]["prefixItems"]] == ["object", "integer"]
    assert made["sizes"] == {"type": "array", "items": {"type": "string"}}, "the keys"
    responses = paths["/things/{id}"]["put"]["responses"]
    assert list(responses) == ["202", "400", "404", "503", "default"]
    assert responses["202"]["content"]["application/json"]["schema"]["properties"] == {"id": {"type": "string"}}
    assert schemas["TooManyError"]["properties"]["error"]["const"] == "Too many"
    assert schemas["TooManyError"]["properties"]["more"]["properties"] == {"most": {"type": "integer", "const": 3}}
