"""A library in layers: entities, repositories behind Protocols, use cases, controllers that a factory registers."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar

import attrs
from attrs import validators as v

from core import (
    App,
    Bindings,
    CoreError,
    D1Database,
    D1Error,
    Middleware,
    Next,
    Request,
    Response,
    Router,
    create_app,
    describe,
)

log = logging.getLogger("library")

T = TypeVar("T")
Id = TypeVar("Id")
P = ParamSpec("P")

# -- configuration


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    STAGE: Literal["test", "live"]


Req = Request[Env]

# -- entities


class Level(Enum):
    READER = "reader"
    LIBRARIAN = "librarian"


@attrs.frozen(kw_only=True)
class Entity:
    id: int


@attrs.frozen(kw_only=True)
class Member(Entity):
    name: str
    email: str
    level: Level


@attrs.frozen(kw_only=True)
class Book(Entity):
    title: str
    isbn: str
    borrower: int | None = None

    @property
    def is_lent(self) -> bool:
        return self.borrower is not None


@attrs.frozen
class Page(Generic[T]):
    """A part of a list."""

    items: Sequence[T]
    total: int
    number: int = 1

    def map(self, function: Callable[[T], Any]) -> Page[Any]:
        return Page([function(item) for item in self.items], self.total, self.number)


# -- errors of the domain


class DomainError(Exception, ABC):
    code: ClassVar[str] = "DOMAIN"
    http_status: ClassVar[int] = 400

    def details(self) -> Mapping[str, str | int]:
        return {}


class NotFoundError(DomainError):
    code = "NOT_FOUND"
    http_status = 404

    def __init__(self, kind: str, id: object) -> None:
        super().__init__(f"{kind} {id} does not exist")
        self.kind = kind


class ConflictError(DomainError):
    code = "CONFLICT"
    http_status = 409


class AlreadyLentError(ConflictError):
    code = "ALREADY_LENT"

    def __init__(self, book: Book) -> None:
        super().__init__(f"{book.title} is lent")
        self.book = book

    def details(self) -> Mapping[str, str | int]:
        return {"borrower": self.book.borrower or 0}


class EmailTakenError(ConflictError):
    code = "EMAIL_TAKEN"


class NotAllowedError(DomainError):
    code = "NOT_ALLOWED"
    http_status = 403

    def __init__(self, needed: Level) -> None:
        super().__init__(f"only for a {needed.value}")
        self.needed = needed


# -- repositories


class Repository(Protocol[T]):
    async def get(self, id: int) -> T: ...
    async def page(self, number: int, size: int) -> Page[T]: ...


class Members(Repository[Member], Protocol):
    async def add(self, name: str, email: str, level: Level) -> Member: ...


class Books(Repository[Book], Protocol):
    async def add(self, title: str, isbn: str) -> Book: ...
    async def lend(self, book: Book, member: Member | None) -> Book: ...
    async def remove(self, book: Book) -> None: ...


@attrs.frozen
class D1Members:
    db: D1Database

    async def get(self, id: int) -> Member:
        found = await self.db.prepare("SELECT * FROM members WHERE id = ?").bind(id).first(Member)
        if found is None:
            raise NotFoundError("member", id)
        return found

    async def page(self, number: int, size: int) -> Page[Member]:
        total = await self.db.prepare("SELECT count(*) AS total FROM members").one("total")
        rows = self.db.prepare("SELECT * FROM members ORDER BY id LIMIT ? OFFSET ?").bind(size, (number - 1) * size)
        return Page((await rows.all(Member)).results, total, number)

    async def add(self, name: str, email: str, level: Level) -> Member:
        insert = self.db.prepare("INSERT INTO members (name, email, level) VALUES (?, ?, ?) RETURNING *")
        try:
            return await insert.bind(name, email, level.value).one(Member)
        except D1Error as error:
            if error.constraint == "UNIQUE":
                raise EmailTakenError(email) from error
            raise


@attrs.frozen
class D1Books:
    db: D1Database

    async def get(self, id: int) -> Book:
        found = await self.db.prepare("SELECT * FROM books WHERE id = ?").bind(id).first(Book)
        if found is None:
            raise NotFoundError("book", id)
        return found

    async def page(self, number: int, size: int) -> Page[Book]:
        total = await self.db.prepare("SELECT count(*) AS total FROM books").one("total")
        rows = self.db.prepare("SELECT * FROM books ORDER BY id LIMIT ? OFFSET ?").bind(size, (number - 1) * size)
        return Page((await rows.all(Book)).results, total, number)

    async def add(self, title: str, isbn: str) -> Book:
        insert = self.db.prepare("INSERT INTO books (title, isbn) VALUES (?, ?) RETURNING *")
        try:
            return await insert.bind(title, isbn).one(Book)
        except D1Error as error:
            raise ConflictError(isbn) from error

    async def lend(self, book: Book, member: Member | None) -> Book:
        statement = self.db.prepare("UPDATE books SET borrower = ? WHERE id = ? RETURNING *")
        return await statement.bind(member.id if member else None, book.id).one(Book)

    async def remove(self, book: Book) -> None:
        await self.db.prepare("DELETE FROM books WHERE id = ?").bind(book.id).run()


# -- use cases


@attrs.frozen
class Library:
    members: Members
    books: Books

    async def borrow(self, book_id: int, member_id: int) -> Book:
        book, member = await self.books.get(book_id), await self.members.get(member_id)
        if book.is_lent:
            raise AlreadyLentError(book)
        return await self.books.lend(book, member)

    async def give_back(self, book_id: int) -> Book:
        book = await self.books.get(book_id)
        if not book.is_lent:
            raise ConflictError(f"{book.title} is here")
        return await self.books.lend(book, None)


def library_of(req: Req) -> Library:
    return Library(D1Members(req.env.DB), D1Books(req.env.DB))


# -- the edge: decorators


def logged(name: str) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            log.debug("begin %s", name)
            try:
                return await function(*args, **kwargs)
            finally:
                log.debug("end %s", name)

        return wrapper

    return decorate


def only(level: Level) -> Middleware[Env]:
    async def check(req: Req, res: Response, next: Next) -> None:
        member = await current(req)
        if member.level is not level:
            raise NotAllowedError(level)
        req.state["member"] = member
        await next()

    return check


async def current(req: Req) -> Member:
    given = req.header("X-Member")
    if given is None or not given.isdecimal():
        raise CoreError(401, "Who are you?", code="ANONYMOUS", headers={"WWW-Authenticate": "Member"})
    return await library_of(req).members.get(int(given))


# -- the edge: controllers


@attrs.frozen
class Paging:
    page: int = attrs.field(default=1, validator=v.ge(1))
    size: int = attrs.field(default=10, validator=v.and_(v.ge(1), v.le(50)))


class Controller(ABC, Generic[T]):
    """List and show are the same for all kinds of entities."""

    path: ClassVar[str]

    @abstractmethod
    def repository(self, req: Req) -> Repository[T]: ...

    @abstractmethod
    def view(self, entity: T) -> Any: ...

    async def list(self, req: Req, res: Response) -> None:
        asked = req.query.parse(Paging)
        page = await self.repository(req).page(asked.page, asked.size)
        res.json(page)

    async def show(self, req: Req, res: Response) -> None:
        res.json(await self.repository(req).get(id_of(req)))

    def mount(self, app: App[Env]) -> Router[Env]:
        router: Router[Env] = Router()
        router.get("/", self.list)
        router.get("/:id{[0-9]{1,9}}", self.show)
        app.use(self.path, router)
        return router


def id_of(req: Req) -> int:
    return int(req.params["id"])


@attrs.frozen
class NewMember:
    name: str = attrs.field(validator=v.min_len(1))
    email: str
    level: Level = Level.READER


class MemberController(Controller[Member]):
    path = "/members"

    def repository(self, req: Req) -> Members:
        return D1Members(req.env.DB)

    def view(self, entity: Member) -> dict[str, str]:
        return {"name": entity.name}

    @logged("join")
    async def join(self, req: Req, res: Response) -> None:
        """Become a member."""
        given = await req.json(NewMember)
        member = await self.repository(req).add(given.name, given.email, given.level)
        created(req, res, f"{self.path}/{member.id}", member)

    async def names(self, req: Req, res: Response) -> None:
        page = await self.repository(req).page(1, 50)
        res.json(page.map(self.view))

    def mount(self, app: App[Env]) -> Router[Env]:
        router = super().mount(app)
        router.post("/", self.join)
        router.get("/names", self.names)
        return router


@attrs.frozen
class NewBook:
    title: str = attrs.field(validator=[v.min_len(1), v.max_len(200)])
    isbn: str = attrs.field(validator=v.matches_re(r"97[89]-\d{10}"))


@attrs.frozen
class Lending:
    member: int


class BookController(Controller[Book]):
    path = "/books"

    def repository(self, req: Req) -> Books:
        return D1Books(req.env.DB)

    def view(self, entity: Book) -> dict[str, Any]:
        return attrs.asdict(entity)

    async def add(self, req: Req, res: Response) -> None:
        given = await req.json(NewBook)
        book = await self.repository(req).add(given.title, given.isbn)
        created(req, res, f"/books/{book.id}", book)

    async def lend(self, req: Req, res: Response) -> None:
        lending = await req.json(Lending)
        res.json(await library_of(req).borrow(id_of(req), lending.member))

    async def give_back(self, req: Req, res: Response) -> None:
        res.json(await library_of(req).give_back(id_of(req)))

    async def remove(self, req: Req, res: Response) -> None:
        book = await self.repository(req).get(id_of(req))
        await self.repository(req).remove(book)
        no_content(res)

    def mount(self, app: App[Env]) -> Router[Env]:
        router = super().mount(app)
        staff = only(Level.LIBRARIAN)
        router.post("/", staff, self.add)
        router.post("/:id{[0-9]{1,9}}/loan", self.lend)
        router.delete("/:id{[0-9]{1,9}}/loan", self.give_back)
        router.delete("/:id{[0-9]{1,9}}", staff, self.remove)
        return router


# -- answers


def created(req: Req, res: Response, location: str, entity: T) -> T:
    res.status(201).header("Location", location).json({"data": entity, "links": {"self": location}})
    return entity


def no_content(res: Response) -> None:
    res.status(204).send()


def handler(
    function: Callable[Concatenate[Library, Req, P], Awaitable[T]],
) -> Callable[[Req, Response], Awaitable[None]]:
    """A function of the library as a handler: what it returns is the answer."""

    async def run(req: Req, res: Response) -> None:
        res.json({"data": await function(library_of(req), req)})  # type: ignore[call-arg]

    functools.update_wrapper(run, function, updated=())
    return run


@handler
async def overview(library: Library, req: Req) -> dict[str, int]:
    """Counts of everything."""
    members, books = await library.members.page(1, 1), await library.books.page(1, 1)
    return {"members": members.total, "books": books.total}


@handler
async def me(library: Library, req: Req) -> Member:
    return await current(req)


async def stage(req: Req, res: Response) -> None:
    res.json({"stage": req.env.STAGE, "levels": [level.value for level in Level]})


async def problem(err: DomainError, req: Req, res: Response, next: Next) -> None:
    res.status(err.http_status).json({"code": err.code, "message": str(err), "details": err.details()})


class Loans:
    """Callable objects are handlers too."""

    def __init__(self, only_lent: bool) -> None:
        self.only_lent = only_lent

    async def __call__(self, req: Req, res: Response) -> None:
        books = await library_of(req).books.page(1, 50)
        res.json({"books": [book for book in books.items if book.is_lent is self.only_lent], "lent": self.only_lent})


async def search(matches: Callable[[Book, str], bool], req: Req, res: Response) -> None:
    words = req.query.get("q")
    if not words:
        raise CoreError(400, "What for?", code="NO_WORDS")
    books = await library_of(req).books.page(1, 50)
    res.json([book for book in books.items if matches(book, words)])


def build() -> App[Env]:
    app = create_app(Env)
    app.on_error(DomainError)(problem)
    for controller in (MemberController(), BookController()):
        controller.mount(app)
    app.get("/overview", overview)
    app.get("/loans", Loans(only_lent=True))
    app.get("/shelf", Loans(only_lent=False))
    app.get("/search/title", functools.partial(search, lambda book, words: words in book.title))
    app.get("/search/isbn", functools.partial(search, lambda book, words: words == book.isbn))
    app.get("/me", me)
    app.get("/stage", describe(stage, operation_id="which_stage", tags=["meta"]))
    return app


app = build()
