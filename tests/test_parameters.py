"""Parameters and headers as types, routes with expressions and optional segments, and the way back: `url_for`."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal
from urllib.parse import unquote
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fetch import answer, ask

from core import App, DeveloperError, Request, Response, create_app, http
from core.errors import PathError, RegistrationError
from core.http.websocket import WebSocket


@attrs.frozen
class Order:
    id: UUID
    day: date
    kind: Literal["new", "old"]
    year: int = attrs.field(validator=[attrs.validators.ge(2000), attrs.validators.le(2100)])


async def test_parameters_are_read_as_a_type_and_what_does_not_fit_is_a_404() -> None:
    app = create_app()

    @app.get("/:kind/:year/:day/:id")
    async def show(req: Request, res: Response) -> None:
        order = req.params.parse(Order)
        res.json([order.kind, order.year, str(order.day), order.id.version])

    uuid = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    assert await answer(app, f"/new/2027/2027-01-02/{uuid}") == (200, ["new", 2027, "2027-01-02", 4])
    for path in (
        f"/other/2027/2027-01-02/{uuid}",
        f"/new/1999/2027-01-02/{uuid}",
        f"/new/x/2027-01-02/{uuid}",
        f"/new/2027/2027-13-02/{uuid}",
        "/new/2027/2027-01-02/7",
    ):
        assert await answer(app, path) == (404, {"error": "Not Found"}), path


async def test_an_optional_segment_is_missing_or_parsed() -> None:
    app = create_app()

    @attrs.frozen
    class Page:
        number: int = 1

    @app.get("/pages/:number?")
    async def show(req: Request, res: Response) -> None:
        res.json([req.params.get("number"), req.params.parse(Page).number])

    assert await answer(app, "/pages") == (200, [None, 1])
    assert await answer(app, "/pages/") == (200, [None, 1])
    assert await answer(app, "/pages/7") == (200, ["7", 7])
    assert (await answer(app, "/pages/7/8"))[0] == 404


async def test_the_first_route_whose_expression_fits_answers() -> None:
    app = create_app()

    def saying(word: str) -> Any:
        async def handler(req: Request, res: Response) -> None:
            res.json([word, dict(req.params)])

        return handler

    app.get("/x/:id{[0-9]+}", saying("number"))
    app.get("/x/:name{[a-z]{2,3}}", saying("short"))
    app.get("/x/*/raw", saying("raw"))
    app.get("/x/:rest", saying("rest"))
    assert (await answer(app, "/x/7"))[1] == ["number", {"id": "7"}]
    assert (await answer(app, "/x/ab"))[1] == ["short", {"name": "ab"}]
    assert (await answer(app, "/x/abcd"))[1] == ["rest", {"rest": "abcd"}]
    assert (await answer(app, "/x/8"))[1] == ["number", {"id": "8"}]
    assert (await answer(app, "/x/%37"))[1] == ["number", {"id": "7"}]
    assert (await answer(app, "/x/7%0A"))[1] == ["rest", {"rest": "7\n"}]
    assert (await answer(app, "/x/a%2Fb/raw"))[1] == ["raw", {}]


async def test_a_guard_on_a_prefix_with_an_expression_stands_before_what_it_fits() -> None:
    app = create_app()
    seen: list[str] = []

    async def guard(req: Request, res: Response, next: Any) -> None:
        seen.append(req.params.get("id") or "")
        await next()

    async def show(req: Request, res: Response) -> None:
        res.json(dict(req.params))

    app.use("/users/:id{[0-9]+}", guard)
    app.get("/users/:name", show)
    assert (await answer(app, "/users/7"))[1] == {"name": "7"}
    assert seen == ["7"]
    assert (await answer(app, "/users/me"))[1] == {"name": "me"}
    assert seen == ["7"]


def test_a_guard_of_the_parameter_does_not_close_the_path_without_it() -> None:
    app = App(default_deny=True)

    async def show(req: Request, res: Response) -> None:
        res.json({})

    async def who(req: Request) -> str:
        return "ada"

    inner = app.Router().authenticated(who)
    inner.use(async_nothing)
    app.get("/users/:id?", show)
    with pytest.raises(RegistrationError, match=r"GET /users/:id\?"):
        app.check()


async def async_nothing(req: Request[Any, Any], res: Response, next: Any) -> None:
    await next()


async def test_headers_are_read_as_a_type() -> None:
    @attrs.frozen
    class Conditions:
        if_match: str | None = None
        retries: int = attrs.field(default=0, alias="x_retry_count")
        accept: list[str] = attrs.Factory(list[str])

    app = create_app()

    @app.get("/")
    async def show(req: Request, res: Response) -> None:
        res.json(req.headers.parse(Conditions))

    sent = {"If-Match": '"a"', "X-Retry-Count": "3", "Accept": "a/b, c/d;q=1", "X-Other": "1"}
    found = {"if_match": '"a"', "x_retry_count": 3, "accept": ["a/b", "c/d;q=1"]}
    assert (await answer(app, headers=sent))[1] == found
    assert (await answer(app))[1] == {"if_match": None, "x_retry_count": 0, "accept": []}
    status, body = await answer(app, headers={"X-Retry-Count": "many"})
    assert (status, body["issues"]) == (422, [{"path": "x-retry-count", "message": "must be an integer"}])


async def test_the_path_of_a_handler() -> None:
    app = create_app()
    users, files = app.Router(), app.Router()

    @users.get("/:id{[0-9]+}")
    async def show(req: Request, res: Response) -> None:
        res.text(req.url_for(show, id=7))

    @users.get("/archive/:year?")
    async def archive(req: Request, res: Response) -> None: ...

    @files.get("/*")
    async def download(req: Request, res: Response) -> None: ...

    @app.websocket("/rooms/:name")
    async def room(req: Request, socket: WebSocket) -> None: ...

    app.use("/users", users)
    app.use("/files", files)
    assert app.url_for(show, id=7) == "/users/7"
    assert app.url_for(archive) == "/users/archive"
    assert app.url_for(archive, year=2027) == "/users/archive/2027"
    assert app.url_for(archive, year=None) == "/users/archive"
    assert app.url_for(download, **{"*": "a b/ü?.pdf"}) == "/files/a%20b/%C3%BC%3F.pdf"
    assert app.url_for(room, name="a/b") == "/rooms/a%2Fb"
    assert await (await ask(app, "/users/3")).text() == "/users/7"

    app.get("/later", archive)
    assert app.url_for(archive) == "/users/archive"
    for handler, params, message in (
        (show, {"id": "x"}, "does not match this value"),
        (show, {}, r"Give those of /users/:id\{"),
        (room, {"name": None}, "no route of it has the parameters .none."),
        (show, {"id": 1, "other": 2}, "no route of it has the parameters id, other"),
        (room, {"name": ".."}, "does not match this value"),
        (room, {"name": ""}, "does not match this value"),
        (download, {"*": "../secret"}, "resolved before routing"),
        (test_the_path_of_a_handler, {}, "not the handler of a route"),
    ):
        with pytest.raises(PathError, match=message):
            app.url_for(handler, **params)
    with pytest.raises(DeveloperError, match="did not come through an application"):
        Request(http.Request("https://example.test/"), None, None).url_for(show)  # type: ignore[arg-type]  # as said


@given(st.text(max_size=12) | st.sampled_from(["/evil.test", "//evil.test", "\\evil.test", "/\\evil.test", "", "/"]))
def test_what_url_for_returns_stays_on_its_own_host(rest: str) -> None:
    app = create_app()

    @app.get("/*")
    async def page(req: Request, res: Response) -> None: ...

    if {".", ".."} & set(rest.split("/")):
        with pytest.raises(PathError):
            app.url_for(page, **{"*": rest})
        return
    found = http.URL(app.url_for(page, **{"*": rest}), "https://own.test/a/b")
    assert found.host == "own.test"
    assert unquote(found.pathname) == f"/{rest}"


async def test_an_object_is_a_handler_whatever_its_attributes_are_called() -> None:
    app = create_app()

    class Shop:
        opens = "09:00"

        async def __call__(self, req: Request, res: Response) -> None:
            res.json({"opens": self.opens, "path": req.url_for(shop)})

    shop = Shop()
    app.get("/shop", shop)
    assert await (await ask(app, "/shop")).json() == {"opens": "09:00", "path": "/shop"}
