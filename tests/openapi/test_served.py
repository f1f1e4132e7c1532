"""Each answer of a program with rows, parsed parameters, passed-on responses, mounts and authenticators that are
called, held against its own document: what is served is declared, and declared as it is served.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401
import pytest
from openapi_spec_validator import validate
from tests.support.libraries import with_libraries
from tests.support.tokens import raw

import core
from core.openapi.changes import compare
from core.openapi.client import write_client
from core.openapi.contract import Contract
from core.openapi.document import Described, describe
from core.openapi.gather import gather
from core.openapi.routes import application_facts
from core.openapi.written import page
from core.testing import Client, FakeD1Database

SERVED = '''
import attrs

from core import Bindings, CoreError, D1Database, Request, Response, create_app, http
from core.middleware.authentication import Authentication
from core.middleware.static import static
from core.middleware.bearer_auth import bearer_auth
from core.middleware.jwt import jwt_auth
from core.middleware.optional import optional
from core.pagination import page_of


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    TOKEN: str


class NoTitle(Exception):
    """No row, and no error of the framework."""


@attrs.frozen
class Row:
    id: int
    title: str


@attrs.frozen
class Key:
    id: int = attrs.field(validator=attrs.validators.le(9))


@attrs.frozen
class Word:
    word: str = attrs.field(validator=attrs.validators.max_len(3))


@attrs.frozen
class Sender:
    x_tenant: int


Req = Request[Env]
app = create_app(Env)
token: Authentication[Env, None] = bearer_auth(token=lambda req: req.env.TOKEN)
perhaps: Authentication[Env, None] = optional(token)
claims = jwt_auth(Env, secret=lambda req: req.env.TOKEN)


@app.on_error(NoTitle)
async def no_title(err: NoTitle, req: Req, res: Response, next: object) -> None:
    res.status(409).json({"title": None})


@app.get("/rows/:id{[0-9]+}")
async def row(req: Req, res: Response) -> None:
    res.json(await req.env.DB.prepare("SELECT id, title FROM rows WHERE id = ?").bind(req.params["id"]).one(Row))


@app.get("/gone/:id")
async def gone(req: Req, res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, title FROM rows WHERE id = ?").as_(Row).bind(req.params["id"])
    res.json(await statement.one(error=CoreError(410, "Gone", code="GONE")))


@app.get("/titles/:id")
async def title(req: Req, res: Response) -> None:
    found = req.env.DB.prepare("SELECT title FROM rows WHERE id = ?").bind(req.params["id"])
    res.text(await found.one("title", error=NoTitle()))


@app.get("/kept/:id")
async def kept(req: Req, res: Response) -> None:
    try:
        res.json(await req.env.DB.prepare("SELECT id, title FROM rows WHERE id = ?").bind(req.params["id"]).one(Row))
    except CoreError:
        res.status(203).json(None)


@app.get("/claimed")
async def claimed(req: Req, res: Response) -> None:
    res.json({"sub": (await claims(req)).sub})


@app.get("/keys/:id")
async def key(req: Req, res: Response) -> None:
    res.json(req.params.parse(Key))


@app.get("/words/:word{[a-z]+}")
async def word(req: Req, res: Response) -> None:
    res.json({"word": req.params.parse(Word).word})


@app.get("/archive/:year{[0-9]+}?")
async def archive(req: Req, res: Response) -> None:
    res.json("year" in req.params)


@app.get("/tenant")
async def tenant(req: Req, res: Response) -> None:
    res.json(req.headers.parse(Sender))


@app.get("/made")
async def made(req: Req, res: Response) -> None:
    if "text" in req.query:
        res.send(http.Response("x", status=201, headers={"X-Made": "yes"}))
    elif "none" in req.query:
        res.send(http.Response(None, status=204))
    elif "away" in req.query:
        res.send(http.Response.redirect("https://example.test/", 307))
    elif "xml" in req.query:
        res.send(http.Response("<a/>", headers={"Content-Type": "application/xml"}))
    else:
        answer = http.Response.from_json({"made": True}, status=202)
        res.send(answer)


async def elsewhere(path: str) -> http.Response:
    return http.Response(path, status=218)


@app.get("/passed")
async def passed(req: Req, res: Response) -> None:
    res.send(await elsewhere(req.path))


@app.get("/paged")
async def paged(req: Req, res: Response) -> None:
    res.header("Link", page_of(req).link(req, more=True)).json([1])


async def signed_in(req: Req) -> str:
    await token(req)
    if req.header("X-Banned") is not None:
        raise CoreError(403, "Banned")
    return "somebody"


@app.authenticated(signed_in).get("/mine")
async def mine(req: Request[Env, str], res: Response) -> None:
    res.json({"url": app.url_for(mine), "user": req.user})


@app.get("/ours")
async def ours(req: Req, res: Response) -> None:
    await perhaps(req)
    res.json({})


async def old(request: http.Request) -> http.Response:
    return http.Response("old", status=299)


app.mount("/old", old)
app.use("/files", static(directory="."))
'''


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Described]]:
    root = with_libraries(tmp_path_factory.mktemp("served"))
    (root / "mypy.ini").write_text("[mypy]\n")
    (root / "served.py").write_text(SERVED)
    sys.path.insert(0, str(root))
    module = importlib.import_module("served")
    facts = application_facts(module.app, title="Served", module="served")
    gathered = gather("served", source=root, root=root, classes=facts.classes)
    assert [error for error in gathered.errors if "core-env" not in error] == []
    yield module, describe(facts, gathered.program)
    sys.path.remove(str(root))
    del sys.modules["served"]


KEY = "secret" * 6
BEARER = {"Authorization": f"Bearer {KEY}"}
CLAIMED = {"Authorization": "Bearer " + raw('{"alg": "HS256"}', '{"sub": "ada", "exp": 9999999999}', KEY.encode())}
REQUESTS: list[tuple[str, dict[str, str], int]] = [
    ("/rows/1", {}, 200),
    ("/rows/2", {}, 404),
    ("/rows/x", {}, 404),
    ("/gone/1", {}, 200),
    ("/gone/2", {}, 410),
    ("/titles/1", {}, 200),
    ("/titles/2", {}, 409),
    ("/kept/1", {}, 200),
    ("/kept/2", {}, 203),
    ("/keys/1", {}, 200),
    ("/keys/10", {}, 404),
    ("/words/a", {}, 200),
    ("/archive/2026", {}, 200),
    ("/archive", {}, 200),
    ("/archive/soon", {}, 404),
    ("/words/1", {}, 404),
    ("/words/long", {}, 404),
    ("/tenant", {"X-Tenant": "1"}, 200),
    ("/tenant", {}, 422),
    ("/made", {}, 202),
    ("/made?text", {}, 201),
    ("/made?none", {}, 204),
    ("/made?away", {}, 307),
    ("/made?xml", {}, 200),
    ("/passed", {}, 218),
    ("/paged", {}, 200),
    ("/paged?page=x", {}, 422),
    ("/mine", {}, 401),
    ("/mine", BEARER, 200),
    ("/mine", {**BEARER, "X-Banned": "yes"}, 403),
    ("/claimed", {}, 401),
    ("/claimed", CLAIMED, 200),
    ("/ours", {}, 200),
    ("/ours", {"Authorization": "Bearer wrong"}, 401),
    ("/old", {}, 299),
    ("/old/and/below", {}, 299),
]


async def test_what_is_served_is_declared_and_the_other_way_round(served: tuple[Any, Described]) -> None:
    module, described = served
    contract = Contract(described.document)
    database = FakeD1Database()
    await database.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
    await database.exec("INSERT INTO rows VALUES (1, 'one')")
    client = Client(module.app, module.Env(DB=database, TOKEN=KEY), contract=contract)
    for target, headers, status in REQUESTS:
        assert (await client.get(target, headers=headers)).status == status, target
    malformed = {answer for answer in contract.declared if answer.status == "400"}
    ranges = {answer for answer in contract.declared if answer.status in ("3XX", "4XX", "5XX")}
    assert set(contract.unreached) == malformed | ranges


def test_parameters_have_the_constraints_of_the_path(served: tuple[Any, Described]) -> None:
    paths = served[1].document["paths"]
    (id_,) = paths["/rows/{id}"]["get"]["parameters"]
    assert id_["schema"] == {"type": "string", "pattern": "^(?:[0-9]+)$"}
    (word,) = paths["/words/{word}"]["get"]["parameters"]
    assert word["schema"] == {"type": "string", "pattern": "^(?:[a-z]+)$", "maxLength": 3}
    (year,) = paths["/archive/{year}"]["get"]["parameters"]
    assert year["schema"] == {"type": "string", "pattern": "^(?:[0-9]+)$"}
    assert "parameters" not in paths["/archive"]["get"]
    (key,) = paths["/keys/{id}"]["get"]["parameters"]
    assert key["schema"] == {"type": "integer", "maximum": 9}


def test_an_authenticator_that_a_function_calls_is_the_security_of_its_routes(served: tuple[Any, Described]) -> None:
    document = served[1].document
    assert document["paths"]["/mine"]["get"]["security"] == [{"bearer": []}]
    assert document["paths"]["/ours"]["get"]["security"] == [{}, {"bearer": []}]
    assert document["paths"]["/claimed"]["get"]["security"] == [{"jwt": []}]
    assert "401" in document["paths"]["/claimed"]["get"]["responses"]
    assert document["components"]["securitySchemes"]["bearer"] == {"type": "http", "scheme": "bearer"}


def test_a_mount_is_named_and_a_response_that_is_passed_on_is_a_problem(served: tuple[Any, Described]) -> None:
    document = served[1].document
    validate(document)
    assert document["x-mounted"] == ["/old", "/files"]
    assert not any(path.startswith("/old") for path in document["paths"])
    (problem,) = served[1].problems
    assert "passed on" in problem.message
    assert "elsewhere" in SERVED.splitlines()[problem.line - 1]
    assert "Link" in document["paths"]["/paged"]["get"]["responses"]["200"]["headers"]
    assert list(document["paths"]["/made"]["get"]["responses"]["201"]["headers"]) == ["X-Made"]
    # Ranges of statuses are read by everything that reads documents.
    assert "2XX" in page(document)
    assert "passed_2XX_0: " in write_client(document)
    assert compare(document, document) == []


def test_tags_that_are_a_string_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes a list. Write tags=\['notes'\]"):
        core.describe(tags="notes")
