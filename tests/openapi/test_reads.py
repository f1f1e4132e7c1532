"""What is read of a request and sent, in the document: bodies of one of several classes, files, and times of a day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.openapi.document import Described

PROGRAM = """
import contextlib
import datetime
from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from core import Bindings, CoreError, R2Bucket, Request, Response, create_app
from core.middleware.etag import etag

@attrs.frozen
class Env(Bindings):
    FILES: R2Bucket

app = create_app(Env)

@attrs.frozen
class Cat:
    lives: int

@attrs.frozen
class Dog:
    tricks: list[str]

def kind_of(req: Request) -> type[Cat] | type[Dog]:
    return Cat if req.query.get("kind") == "cat" else Dog

@app.post("/chosen")
async def chosen(req: Request, res: Response) -> None:
    res.json(await req.json(kind_of(req)))

@app.post("/at-once")
async def at_once(req: Request, res: Response) -> None:
    res.json(await req.json(Cat if "cat" in req.query else Dog))

@app.post("/pictures")
async def pictures(req: Request, res: Response) -> None:
    form = await req.form()
    res.json({"title": form.text("title"), "number": len(form.get_all("picture")), "cover": form.file("cover") is None})

@attrs.frozen
class Hours:
    opens: datetime.time

@app.post("/limited")
async def limited(req: Request, res: Response) -> None:
    req.limit_body(100, CoreError(413, "Too long for a change of hours"))
    res.json(await req.json(Hours))

@app.put("/hours")
async def hours(req: Request, res: Response) -> None:
    res.json(await req.json(Hours))

@attrs.frozen
class Search:
    words: str | None = None
    page: int | None = 1
    tags: list[str] | None = None

@app.get("/found")
async def found(req: Request, res: Response) -> None:
    search = req.query.parse(Search)
    res.json({"words": search.words, "page": search.page, "tags": search.tags})

@contextlib.contextmanager
def told() -> Iterator[dict[str, object]]:
    yield {"title": "x", "number": 1}

@contextlib.asynccontextmanager
async def later(number: int) -> AsyncIterator[dict[str, Any]]:
    try:
        yield {"number": number}
    finally:
        pass

class Opened:
    def __enter__(self) -> dict[str, Any]:
        return {"open": True}

    def __exit__(self, *error: object) -> None: ...

@app.get("/told")
async def get_told(req: Request, res: Response) -> None:
    with told() as body:
        res.json(body)

@app.get("/later")
async def get_later(req: Request, res: Response) -> None:
    async with later(1) as body:
        res.json(body)

@app.get("/object")
async def get_object(req: Request[Env], res: Response) -> None:
    conditions = req.headers
    found = await req.env.FILES.get("a", only_if=conditions)
    res.json({"found": found is not None})

@app.get("/part")
async def get_part(req: Request[Env], res: Response) -> None:
    found = await req.env.FILES.get("a", only_if={"etag_matches": "x"}, range=req.headers)
    res.json({"found": found is not None})

@app.get("/file")
async def get_file(req: Request, res: Response) -> None:
    res.file("a.txt")

@app.get("/tagged", etag())
async def get_tagged(req: Request, res: Response) -> None:
    res.text("a")

@app.get("/sized")
async def get_sized(req: Request, res: Response) -> None:
    res.json({"length": req.header("Content-Length"), "host": req.headers.get("host"), "key": req.header("X-Key")})

@app.get("/opened")
async def get_opened(req: Request, res: Response) -> None:
    with Opened() as body:
        res.json(body)
"""


@pytest.fixture(scope="module")
def described(describing: Callable[..., Described]) -> Described:
    return describing("reads", PROGRAM)


def sent(described: Described, path: str) -> Any:
    return described.document["paths"][path]["post"]["requestBody"]["content"]


def answered(described: Described, path: str) -> Any:
    return described.document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize("path", ["/chosen", "/at-once"])
def test_a_body_of_one_of_several_classes_is_any_of_them(described: Described, path: str) -> None:
    links = [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog")]
    assert sent(described, path) == {"application/json": {"schema": {"anyOf": links}}}


def test_a_bound_of_the_body_has_the_error_that_it_is_set_with(described: Described) -> None:
    refusal = described.document["paths"]["/limited"]["post"]["responses"]["413"]["content"]["application/json"]
    name = refusal["schema"]["$ref"].rpartition("/")[2]
    error = described.document["components"]["schemas"][name]["properties"]["error"]
    assert error == {"type": "string", "const": "Too long for a change of hours"}


def test_what_has_several_values_may_have_files_among_them_where_a_form_has_parts(described: Described) -> None:
    text = {"type": "string"}
    file = {"type": "string", "contentMediaType": "application/octet-stream"}
    forms = {media: each["schema"]["properties"] for media, each in sent(described, "/pictures").items()}
    assert forms == {
        "multipart/form-data": {
            "title": text,
            "picture": {"type": "array", "items": {"anyOf": [text, file]}},
            "cover": file,
        },
        "application/x-www-form-urlencoded": {"title": text, "picture": {"type": "array", "items": text}},
    }


def test_a_parameter_is_never_null_since_none_can_send_it(described: Described) -> None:
    parameters = described.document["paths"]["/found"]["get"]["parameters"]
    assert {each["name"]: each["schema"] for each in parameters} == {
        "words": {"type": "string"},
        "page": {"type": "integer", "default": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    }


def test_the_conditions_of_a_request_are_parameters_where_something_heeds_them(described: Described) -> None:
    found = {
        path: [
            each["name"]
            for each in described.document["paths"][path]["get"].get("parameters", ())
            if each["in"] == "header"
        ]
        for path in ("/object", "/part", "/file", "/tagged", "/sized")
    }
    assert found == {
        "/object": ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"],
        "/part": ["Range"],
        "/file": ["If-None-Match", "If-Modified-Since", "Range", "If-Range"],
        "/tagged": ["If-None-Match"],
        "/sized": ["Content-Length", "X-Key"],  # whoever uploads a stream knows its length, and every client its host
    }
    assert "400" in described.document["paths"]["/object"]["get"]["responses"], "which may be malformed"
    assert "400" not in described.document["paths"]["/part"]["get"]["responses"]


def test_a_time_of_a_day_has_no_offset(described: Described) -> None:
    schema = described.document["components"]["schemas"]["Hours"]
    assert schema["properties"] == {"opens": {"type": "string", "format": "time-local"}}


def test_the_name_of_a_with_statement_is_what_its_manager_gives_it(described: Described) -> None:
    fields = {path: answered(described, path)["properties"] for path in ("/told", "/later", "/opened")}
    assert {path: list(each) for path, each in fields.items()} == {
        "/told": ["title", "number"],
        "/later": ["number"],
        "/opened": ["open"],
    }


def test_long_chains_of_conditions_are_read_to_their_end(describing: Callable[..., Described]) -> None:
    """A case is beside the one before it, an elif inside of it."""
    cases = "".join(
        f'        case "{number}":\n            res.status({number}).text("x")\n' for number in range(201, 599)
    )
    branches = "".join(
        f'    {"if" if number == 201 else "elif"} asked == "{number}":\n        res.status({number}).text("x")\n'
        for number in range(201, 399)
    )
    head = "async def {}(req: Request, res: Response) -> None:\n    asked = req.query.get('a')\n"
    program = f"""
from core import Request, Response, create_app

app = create_app()

@app.get("/match")
{head.format("matched")}    match asked:
{cases}        case _:
            res.status(599).text("x")

@app.get("/elif")
{head.format("chained")}{branches}    else:
        res.status(399).text("x")
"""
    described = describing("long", program)
    for path, most in (("/match", 599), ("/elif", 399)):
        responses = described.document["paths"][path]["get"]["responses"]
        assert {*map(str, range(201, most + 1))} <= responses.keys()


def test_all_of_it_is_known(described: Described) -> None:
    assert described.problems == []
