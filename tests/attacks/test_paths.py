"""Path confusion: no spelling of a path steps around scoped middleware, mounts or authentication."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.errors import CoreError
from core.hosts.asgi import asgi
from core.http.paths import canonical_path
from core.request import Request
from core.response import Response
from core.testing import FakeExecutionContext

SPELLINGS = [
    "/admin/users",
    "/admin//users",
    "//admin/users",
    "/admin/./users",
    "/./admin/users",
    "/x/../admin/users",
    "/admin/x/../users",
    "/%61dmin/users",
    "/%61%64%6d%69%6e/users",
    "/admin%2fusers",
    "/admin%2Fusers",
    "/admin/%75sers",
    "/admin%5cusers",
    "\\admin\\users",
    "/admin\\users",
    "/x/%2e%2e/admin/users",
    "/x/%2E./admin/users",
    "/x/.%2e/admin/users",
    "/x%2f..%2fadmin/users",
    "/%2561dmin/users",
    "/%252e%252e/admin/users",
    "/admin/users/",
    "/admin/users//",
    "/admin/users/.",
    "/admin/users/..",
    "/admin/users%00",
    "/admin%00/users",
    "/admin;x/users",
    "/admin/users;x",
    "/admin%20/users",
    "/ADMIN/users",
    "/Admin/Users",
    "/adm\u0131n/users",
    "/admin%E2%80%8B/users",
    "/%C0%AFadmin/users",
    "/admin%c0%afusers",
    "/admin/users?x=/../../",
    "/admin/users#/../..",
    "/public/..%2fadmin/users",
    "/public/../admin/users",
    "/public/%2e%2e/admin/users",
    "/public/..\\admin\\users",
    "http://evil.test/admin/users",
    "/admin/%zz",
    "/admin/%",
    "/admin/%ff",
]


def guarded() -> tuple[App[Any], list[str]]:
    """An application whose /admin stands behind a guard in three ways; everything else is public."""
    reached: list[str] = []
    app: App[Any] = App()

    async def refuse(req: Request[Any], res: Response, next: Any) -> None:
        raise CoreError(401, "Unauthorized")

    async def secret(req: Request[Any], res: Response) -> None:
        reached.append(req.path)
        res.text("secret")

    app.use("/admin", refuse)
    admin = app.Router()
    admin.get("/users", secret)
    admin.get("/:page", secret)
    admin.all("/*", secret)
    app.use("/admin", admin)
    app.get("/admin/users", secret)
    app.get("/admin/deep/:a/:b", secret)

    async def shown(req: Request[Any], res: Response) -> None:
        res.text("public")

    app.get("/public/*", shown)
    return app, reached


async def through_fetch(app: App[Any], spelling: str) -> http.Response | None:
    try:
        url = spelling if "://" in spelling else f"https://a.test{spelling if spelling[0] == '/' else '/' + spelling}"
        request = http.Request(url)
    except TypeError:
        return None
    return await app.fetch(request, None, FakeExecutionContext())


async def through_an_unparsed_path(app: App[Any], spelling: str) -> http.Response:
    request = http.Request("https://a.test/")
    request.path = canonical_path(spelling.partition("?")[0])  # as hosts write it, who parse no URL
    return await app.fetch(request, None, FakeExecutionContext())


async def through_asgi(app: App[Any], spelling: str) -> tuple[int, bytes]:
    from urllib.parse import unquote

    raw = spelling.partition("?")[0].encode("utf-8")
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": unquote(raw.decode("latin-1"), "latin-1"), "raw_path": raw, "query_string": b"", "headers": [(b"host", b"a.test")], "client": ("192.0.2.1", 1), "scheme": "http"}  # fmt: skip
    await asgi(app)(scope, receive, send)
    return messages[0]["status"], messages[1]["body"]


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_spelling_reaches_what_stands_behind_a_guard(spelling: str) -> None:
    app, reached = guarded()
    for response in (await through_fetch(app, spelling), await through_an_unparsed_path(app, spelling)):
        if response is not None:
            assert response.status in (200, 400, 401, 404), response.status
            assert b"secret" not in await response.bytes()
    status, body = await through_asgi(app, spelling)
    assert status in (200, 400, 401, 404)
    assert b"secret" not in body
    assert reached == []


PIECES = [
    "admin",
    "ADMIN",
    "%61dmin",
    "users",
    "..",
    ".",
    "%2e%2e",
    "%2e.",
    "",
    "x",
    "public",
    "%2f",
    "..%2f",
    "%5c",
    "\\",
    "%00",
    "%252e%252e",
    "deep",
    "%",
    "%zz",
    ";a=b",
]


@given(st.lists(st.sampled_from(PIECES), max_size=7), st.sampled_from(["/", "//", "\\", "/./"]))
async def test_no_mixture_of_spellings_does_either(pieces: list[str], separator: str) -> None:
    app, reached = guarded()
    spelling = "/" + separator.join(pieces)
    for response in (await through_fetch(app, spelling), await through_an_unparsed_path(app, spelling)):
        assert response is None or b"secret" not in await response.bytes()
    assert b"secret" not in (await through_asgi(app, spelling))[1]
    assert reached == []


@given(st.lists(st.sampled_from(PIECES), max_size=6))
async def test_scope_and_route_read_one_path(pieces: list[str]) -> None:
    """Whatever reaches a handler below a prefix has passed the middleware of that prefix."""
    passed: list[bool] = []
    app: App[Any] = App()

    async def scope(req: Request[Any], res: Response, next: Any) -> None:
        passed.append(True)
        await next()

    async def handler(req: Request[Any], res: Response) -> None:
        assert passed
        res.text("below")

    app.use("/admin", scope)
    for path in ("/admin", "/admin/:a", "/admin/:a/:b", "/admin/users/*"):
        app.get(path, handler)
    for first, rest in itertools.product(("admin", "%61dmin", "x/../admin"), ("/".join(pieces),)):
        passed.clear()
        response = await through_fetch(app, f"/{first}/{rest}")
        assert response is None or response.status in (200, 400, 404)


@pytest.mark.parametrize("path", ["/admin/%zz", "/admin/%", "/admin/%ff", "/%c3%28/x", "/admin/%C0%AE%C0%AE"])
async def test_malformed_escapes_are_400_and_meet_global_middleware_all_the_same(path: str) -> None:
    seen: list[str] = []
    outer: App[Any] = App()

    async def note(req: Request[Any], res: Response, next: Any) -> None:
        seen.append(req.path)
        await next()

    outer.use(note)
    outer.get("/admin/:x", _shown)
    response = await through_an_unparsed_path(outer, path)
    assert (response.status, len(seen)) == (400, 1)


async def _shown(req: Request[Any], res: Response) -> None:
    res.text("shown")


async def test_an_encoded_slash_stays_inside_its_segment() -> None:
    app: App[Any] = App()

    @app.get("/files/:name")
    async def one(req: Request[Any], res: Response) -> None:
        res.json(dict(req.params))

    response = await through_fetch(app, "/files/a%2Fb")
    assert response is not None
    assert await response.json() == {"name": "a/b"}
    response = await through_fetch(app, "/files/a%252Fb")
    assert response is not None
    assert await response.json() == {"name": "a%2Fb"}


async def test_nothing_is_decoded_twice() -> None:
    app: App[Any] = App()

    @app.get("/files/*")
    async def rest(req: Request[Any], res: Response) -> None:
        res.json(dict(req.params))

    response = await through_fetch(app, "/files/%252e%252e/%2561")
    assert response is not None
    assert await response.json() == {"*": "%2e%2e/%61"}
