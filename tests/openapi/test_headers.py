"""Headers of answers: of the framework's middleware, of error handlers, and those with a name that is not known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from core.openapi.document import Described
from core.testing import Client, FakeKVNamespace

_OF_BROWSERS = {
    "x-content-type-options", "x-dns-prefetch-control", "x-download-options", "x-frame-options",
    "x-permitted-cross-domain-policies", "x-xss-protection",
}  # fmt: skip

PROGRAM = """
from typing import Literal

import attrs

from core import Bindings, CoreError, KVNamespace, Next, Request, Response, Router, create_app
from core.middleware.compress import compress
from core.middleware.cors import cors
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.sessions import session_of, sessions

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace

SHARED = {"X-I": "1"}
app = create_app(Env)
app.use(request_id(header_name="X-Trace"), cors(origins=["https://a.test"]), secure_hdrs(), compress())
shop: Router[Env] = Router()
app.use("/shop", sessions(kv_binding="SESSIONS", secret=lambda req: "x" * 40), shop)

@app.on_error(ValueError)
async def told(err: ValueError, req: Request, res: Response, next: Next) -> None:
    res.header("X-Before", "1")
    await next(CoreError(418, "Tea"))
    res.header("X-After", "1")

@app.on_error(KeyError)
async def handed_on(err: KeyError, req: Request, res: Response, next: Next) -> None:
    res.header("X-Early", "1")
    await next()
    res.header("X-Late", "1")

@app.on_error(CoreError)
async def default(err: CoreError, req: Request, res: Response, next: Next) -> None:
    for name, value in err.headers.items():
        res.headers[name] = value
    await next()

@app.on_error(Exception)
async def sorry(err: Exception, req: Request, res: Response, next: Next) -> None:
    if isinstance(err, CoreError):
        return await next()
    res.status(500).header("X-Sorry", "1").json({"error": "Sorry"})

@app.get("/")
async def home(req: Request, res: Response) -> None:
    if "x" in req.query:
        raise ValueError("x")
    if "y" in req.query:
        raise KeyError("y")
    res.json({})

@shop.get("/")
async def cart(req: Request, res: Response) -> None:
    session = await session_of(req)
    session["seen"] = 1
    res.json({})

Name = Literal["X-One", "X-Two"]

def which(req: Request) -> Name:
    return "X-One" if "one" in req.query else "X-Two"

@app.get("/one-of-two")
async def one_of_two(req: Request, res: Response) -> None:
    res.header(which(req), "1").json({})

@app.get("/chosen")
async def chosen(req: Request, res: Response) -> None:
    name = "X-L"
    if "other" in req.query:
        name = "X-M"
    res.header(name, "1").json({})

@app.get("/listed")
async def listed(req: Request, res: Response) -> None:
    for name in ("X-A", "X-B"):
        res.header(name, "1")
    res.json({})

@app.get("/table")
async def table(req: Request, res: Response) -> None:
    for name, value in {"X-C": "1", "X-D": "2"}.items():
        res.header(name, value)
    res.json({})

@app.get("/written")
async def written(req: Request, res: Response) -> None:
    staged = res.headers
    staged["X-E"] = "1"
    staged.append("X-F", "1")
    staged.setdefault("X-G", "1")
    res.headers.update({"X-H": "1", **SHARED})
    for name in SHARED:
        res.header(name, SHARED[name])
    res.json({})

@app.get("/refused")
async def refused(req: Request, res: Response) -> None:
    try:
        refuse(req, {"X-J": "1"})
    except CoreError as err:
        raise CoreError(418, headers=err.headers)

def refuse(req: Request, headers: dict[str, str] | None = None) -> None:
    if "free" in req.query:
        raise CoreError(410, headers=None)
    raise CoreError(409, headers=headers)

class Late(Exception):
    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers

@app.on_error(Late)
async def late(err: Late, req: Request, res: Response, next: Next) -> None:
    for name, value in err.headers.items():
        res.header(name, value)
    res.status(425).json({})

@app.get("/late")
async def is_late(req: Request, res: Response) -> None:
    raise Late({"X-K": "1"})

@app.get("/repeated")
async def repeated(req: Request, res: Response) -> None:
    raise CoreError(400, headers={name: "1" for name in req.query})

@app.get("/open")
async def open_name(req: Request, res: Response) -> None:
    res.header("X-" + req.id, "1").json({})

@app.get("/report")
async def report(req: Request, res: Response) -> None:
    res.header("X-One", "1").file("report.pdf", filename="Report.pdf")

@app.get("/picture")
async def picture(req: Request, res: Response) -> None:
    res.file("picture.png")

@app.get("/copied")
async def copied(req: Request, res: Response) -> None:
    for name, value in req.query.items():
        res.headers[name] = value
    res.json({})
"""

EVERYWHERE = """
from core import CoreError, Next, Request, Response, Router, create_app
from core.middleware.request_id import request_id
from core.middleware.timeout import timeout

app = create_app(method_not_allowed=True)
app.use(request_id(header_name="X-Trace"), timeout(duration=1000))

@app.use
async def after(req: Request, res: Response, next: Next) -> None:
    await next()
    res.header("X-After", "1")

shop: Router[object] = Router()

@shop.use
async def below(req: Request, res: Response, next: Next) -> None:
    res.header("X-Shop", "1")
    await next()

app.use("/shop", shop)

@app.get("/")
async def home(req: Request, res: Response) -> None:
    res.json({})
"""


@pytest.fixture(scope="module")
def described(describing: Callable[..., Described]) -> Described:
    return describing("headers", PROGRAM)


def headers(described: Described, path: str) -> dict[str, list[str]]:
    responses: dict[str, Any] = described.document["paths"][path]["get"]["responses"]
    return {status: sorted(each.get("headers", ())) for status, each in responses.items()}


def test_a_header_that_clients_read_is_there_and_those_for_browsers_and_proxies_are_not(described: Described) -> None:
    assert headers(described, "/listed") == {
        "200": ["X-A", "X-B", "X-Trace"],
        "default": ["X-Sorry", "X-Trace"],
    }
    assert headers(described, "/shop") == {
        "200": ["Set-Cookie", "X-Trace"],
        "default": ["X-Sorry", "X-Trace"],
    }


def test_an_error_has_the_headers_that_a_handler_sets_around_the_following_one(described: Described) -> None:
    assert headers(described, "/") == {
        "200": ["X-Trace"],
        "418": ["X-After", "X-Before", "X-Trace"],
        "default": ["X-Early", "X-Late", "X-Sorry", "X-Trace"],
    }


def test_a_header_may_have_each_of_the_names_of_a_literal_type_or_of_branches(described: Described) -> None:
    assert headers(described, "/one-of-two")["200"] == ["X-One", "X-Trace", "X-Two"]
    assert headers(described, "/table")["200"] == ["X-C", "X-D", "X-Trace"]
    assert headers(described, "/chosen")["200"] == ["X-L", "X-M", "X-Trace"]


async def test_a_path_without_a_route_has_the_headers_of_the_middleware_of_every_path(
    describing: Callable[..., Described],
) -> None:
    components = describing("everywhere", EVERYWHERE).document["components"]["responses"]
    found = {name: sorted(each["headers"]) for name, each in components.items()}
    assert found == {"NotFound": ["X-After", "X-Trace"], "MethodNotAllowed": ["Allow", "X-Trace"]}
    client: Client[Any] = Client(sys.modules["everywhere"].app, None)
    for response, name in ((await client.get("/none"), "NotFound"), (await client.post("/"), "MethodNotAllowed")):
        sent = {each for each in response.headers if each.startswith("x-") or each == "allow"}
        assert sent == {each.lower() for each in found[name]}


def test_headers_are_those_that_are_put_into_the_mapping_of_them(described: Described) -> None:
    assert headers(described, "/written")["200"] == ["X-E", "X-F", "X-G", "X-H", "X-I", "X-Trace"]


def test_an_error_has_the_headers_of_the_one_that_it_is_made_of(described: Described) -> None:
    assert headers(described, "/refused")["418"] == ["X-J", "X-Trace"]


def test_a_file_has_the_headers_of_its_version_and_of_its_part(described: Described) -> None:
    whole = ["Accept-Ranges", "ETag", "Last-Modified", "X-Trace"]
    assert headers(described, "/picture") == {
        "200": whole,
        "206": sorted([*whole, "Content-Range"]),
        "304": whole,
        "416": sorted([*whole, "Content-Range"]),
        "default": ["X-Sorry", "X-Trace"],
    }
    named = sorted([*whole, "Content-Disposition", "X-One"])
    assert [headers(described, "/report")[status] for status in ("200", "304")] == [named, named]


def test_a_header_without_a_known_name_is_told_at_its_line(described: Described) -> None:
    message = "the name of a header that is put on the response is not known. Give a constant, or a Literal type"
    lines = PROGRAM.splitlines()
    assert [(lines[each.line - 1].strip(), each.message) for each in described.problems] == [
        ("res.header(name, value)", message),
        ('raise CoreError(400, headers={name: "1" for name in req.query})', message),
        ('res.header("X-" + req.id, "1").json({})', message),
        ("res.headers[name] = value", message),
    ]
    assert headers(described, "/open")["200"] == ["X-Trace"], "what is answered is known"


async def test_what_is_sent_is_described(described: Described) -> None:
    app = sys.modules["headers"]
    client: Client[Any] = Client(app.app, app.Env(SESSIONS=FakeKVNamespace()))
    targets = [
        "/",
        "/?x",
        "/?y",
        "/shop",
        "/one-of-two?one",
        "/one-of-two",
        "/chosen",
        "/chosen?other",
        "/listed",
        "/table",
        "/written",
        "/refused",
    ]
    for target in targets:
        response = await client.get(target)
        known = headers(described, target.partition("?")[0])
        named = known.get(str(response.status), known["default"])
        own = [name for name in response.headers if name.startswith("x-")]
        assert {*own} - _OF_BROWSERS <= {name.lower() for name in named}, target
