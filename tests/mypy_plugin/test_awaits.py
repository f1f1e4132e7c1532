"""`core-await` and `core-handler` where mypy itself sees nothing: `next()`, values of a response, shared defaults."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project


def test_next_by_itself_is_told_wherever_it_stands(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        # mypy: disable-error-code="unused-awaitable"
        from core import Next, Request, Response, create_app
        from env import Env

        app = create_app(Env)

        async def timing(req: Request[Env], res: Response, next: Next) -> None:
            next()
            #^ core-await: next() is not awaited, so nothing after this middleware runs. Write `await next()`

        async def some(req: Request[Env], res: Response, go_on: Next) -> None:
            if req.path == "/":
                go_on()
                #^ core-await: go_on() is not awaited, so nothing after this middleware runs. Write `await go_on()`
            else:
                await go_on()

        async def given(req: Request[Env], res: Response, next: Next) -> None:
            waiting = next()
            await waiting

        async def returned(req: Request[Env], res: Response, next: Next) -> None:
            return await next()

        app.use(timing, some, given, returned)
        """,
    )
    project.check()


def test_next_is_left_to_mypy_where_mypy_tells_it(project: Project) -> None:
    project.usual()
    project.write(
        "parts.py",
        """
        from core import Next, Request, Response

        async def timing(req: Request, res: Response, next: Next) -> None:
            next()
        """,
    )
    told = [line.rpartition("  ")[2] for line in project.mypy() if ": error: " in line]
    assert told == ["[unused-awaitable]"]


def test_a_call_in_a_response_that_was_not_awaited_is_told(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        from core import Request, Response, create_app
        from env import Env

        app = create_app(Env)

        async def count() -> int:
            return 1

        @app.get("/")
        async def show(req: Request[Env], res: Response) -> None:
            res.json({"v": req.env.SESSIONS.get("a"), "n": 1})
            #^ core-await: get() in the response is a call that was not awaited. Write `await` before it

        @app.get("/all")
        async def every(req: Request[Env], res: Response) -> None:
            res.json([req.env.SESSIONS.get(name) for name in ("a", "b")])
            #^ core-await: get() in the response is a call that was not awaited. Write `await` before it

        @app.get("/more")
        async def more(req: Request[Env], res: Response) -> None:
            waiting = req.env.SESSIONS.get("a")
            res.status(201).json([await count(), ({"n": count()}, 2), await waiting])
            #^ core-await: count() in the response is a call that was not awaited. Write `await` before it

        @app.get("/first")
        async def first(req: Request[Env], res: Response) -> None:
            row = req.env.DB.prepare("SELECT * FROM users").first()
            res.json({"row": row})
            #^ core-await: row in the response is a call that was not awaited. Write `await` before it

        @app.get("/right")
        async def right(req: Request[Env], res: Response) -> None:
            row = await req.env.DB.prepare("SELECT * FROM users").first()
            res.json({"row": row, "v": await req.env.SESSIONS.get("a"), "n": await count()})
        """,
    )
    project.check()


def test_a_default_that_all_instances_share_is_told(project: Project) -> None:
    project.usual()
    project.write(
        "parts.py",
        """
        from collections.abc import Mapping
        from typing import ClassVar

        import attrs

        Tags = list[str]

        @attrs.define
        class Note:
            text: str
            tags: list[str] = []
            #^ core-handler: Note.tags: all instances share its default, a list. Write tags: list[str] = attrs.field(factory=list)
            seen: set[int] = set()
            #^ core-handler: Note.seen: all instances share its default, a set. Write seen: set[int] = attrs.field(factory=set)

        @attrs.frozen(kw_only=True)
        class Page:
            by_name: dict[str, int] = {}
            #^ core-handler: Page.by_name: all instances share its default, a dict. Write by_name: dict[str, int] = attrs.field(factory=dict)

        @attrs.frozen
        class Right:
            tags: list[str] = attrs.field(factory=list)
            known: Mapping[str, int] = {}
            counts: ClassVar[dict[str, int]] = {}
            place: tuple[int, ...] = ()

        class Plain:
            tags: list[str] = []
        """,
    )
    project.check()
