"""Responses held against a document: in `Client(…, contract=…)`, and in every test with pytest's `core_openapi`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.nested import PLAIN

from core import CoreError, Next, Request, Response, create_app, http
from core.errors import DeveloperError
from core.openapi.contract import Contract, ContractError, Declared
from core.openapi.examples import Examples, add_examples
from core.openapi.written import as_yaml
from core.testing import Client

pytest_plugins = ["pytester"]

RECORD = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
}
ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def json_of(schema: Any) -> dict[str, Any]:
    return {"description": "", "content": {"application/json": {"schema": schema}}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "T", "version": "1"},
    "paths": {
        "/records/{id}": {
            "get": {
                "operationId": "get_record",
                "responses": {"200": json_of({"$ref": "#/components/schemas/Record"}), "404": json_of(ERROR)},
            },
            "delete": {
                "operationId": "delete_record",
                "responses": {"204": {"description": ""}, "4XX": json_of(ERROR), "default": json_of(ERROR)},
            },
        },
        "/records/all": {
            "get": {"operationId": "all_records", "responses": {"200": {"content": {"text/event-stream": {}}}}}
        },
    },
    "components": {"schemas": {"Record": RECORD}},
}


def client(answer: Any, status: int = 200, contract: Any = None) -> Client[Any]:
    app = create_app()

    @app.all("/records/:id")
    async def get_record(req: Request, res: Response) -> None:
        if isinstance(answer, Exception):
            raise answer
        res.status(status)
        if answer is None:
            res.send()
        elif isinstance(answer, str):
            res.text(answer)
        else:
            res.json(answer)

    return Client(app, None, contract=contract or Contract(DOCUMENT))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_response_that_fits_is_given_and_can_be_read(method: str) -> None:
    response = await client({"id": 1}).request(method, "/records/1?x=y")
    assert await response.text() == ("" if method == "HEAD" else '{"id":1}')


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ({"id": "1"}, 200, r"get_record \(GET /records/1\) 200: id: '1' is not of type 'integer'"),
        ({}, 200, "'id' is a required property"),
        ({"id": 1, "name": "Ada"}, 200, "name is not declared"),
        ({"id": 1, "tags": ["a", 1]}, 200, r"tags\[1\]: 1 is not of type 'string'"),
        ({"id": 1}, 201, "answers 201, which is not declared"),
        ("text", 200, "is text/plain, but application/json is declared"),
        (CoreError(409, "Conflict"), 0, "answers 409, which is not declared"),
    ],
)
async def test_a_response_that_the_document_does_not_allow_fails_the_test(
    answer: Any, status: int, message: str
) -> None:
    with pytest.raises(ContractError, match=message) as raised:
        await client(answer, status).get("/records/1")
    assert str(raised.value).endswith("if the response is meant: core openapi -o openapi.json")


async def test_a_field_is_declared_by_an_alternative_that_the_value_fits() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    schema = {"anyOf": [{"$ref": "#/components/schemas/Record"}, {"type": "null"}]}
    document["paths"]["/records/{id}"]["get"]["responses"]["200"] = json_of(schema)
    assert await (await client({"id": 1}, contract=Contract(document)).get("/records/1")).json() == {"id": 1}
    with pytest.raises(ContractError, match="name is not declared"):
        await client({"id": 1, "name": "Ada"}, contract=Contract(document)).get("/records/1")


async def test_ranges_and_defaults_have_their_say_and_a_body_that_is_not_declared_does_not_pass() -> None:
    assert (await client(None, 204).delete("/records/1")).status == 204
    assert (await client(CoreError(418, "Tea")).delete("/records/1")).status == 418
    assert (await client(ValueError("x")).delete("/records/1")).status == 500
    document = json.loads(json.dumps(DOCUMENT))
    document["paths"]["/records/{id}"]["get"]["responses"]["200"] = {"description": ""}
    with pytest.raises(ContractError, match="has a body"):
        await client({"id": 1}, contract=Contract(document)).get("/records/1")


async def test_bytes_without_a_content_type_are_an_octet_stream() -> None:
    app = create_app()

    @app.get("/file")
    async def file(req: Request, res: Response) -> None:
        res.send(http.Response(b"\x00\x01"))

    responses: dict[str, Any] = {"200": {"description": "", "content": {"application/octet-stream": {}}}}
    document: dict[str, Any] = {
        **DOCUMENT,
        "paths": {"/file": {"get": {"operationId": "file", "responses": responses}}},
    }
    assert (await Client(app, None, contract=Contract(document)).get("/file")).headers.get("content-type") is None
    responses["200"] = json_of({})
    with pytest.raises(ContractError, match="is without a content type, but application/json is declared"):
        await Client(app, None, contract=Contract(document)).get("/file")


async def test_a_content_type_is_the_same_however_it_is_spelt() -> None:
    app = create_app()

    @app.get("/records/:id")
    async def record(req: Request, res: Response) -> None:
        res.header("Content-Type", "Application/JSON; charset=utf-8").text('{"id": 1}')

    document = json.loads(json.dumps(DOCUMENT))
    answer = document["paths"]["/records/{id}"]["get"]["responses"]["200"]
    answer["content"] = {"application/JSON": answer["content"]["application/json"]}
    contract = Contract(document)
    contract.examples = Examples(test="test_it")
    await Client(app, None, contract=contract).get("/records/1")
    assert list(contract.examples.found["get_record"]["200"]) == ["application/json"]
    add_examples(document, contract.examples)
    assert answer["content"]["application/JSON"]["examples"]["it"]["value"] == {"id": 1}


async def test_a_stream_is_not_read_and_the_path_without_parameters_is_meant_first() -> None:
    app = create_app()

    async def forever() -> AsyncIterator[str]:
        while True:
            yield "tick"

    @app.get("/records/all")
    async def all_records(req: Request, res: Response) -> None:
        res.sse(forever())

    contract = Contract(DOCUMENT)
    stream = (await Client(app, None, contract=contract).get("/records/all")).stream()
    assert await anext(stream)
    await stream.aclose()
    assert contract.reached == {Declared("all_records", "200")}


async def test_a_failure_is_told_on_a_path_that_is_not_described() -> None:
    app = create_app()

    @app.use
    async def full(req: Request, res: Response, next: Next) -> None:
        raise CoreError(503, "The disk is full")

    with pytest.raises(ContractError, match="GET /nowhere answers 503, but the document has no such path"):
        await Client(app, None, contract=Contract(DOCUMENT)).get("/nowhere")


async def test_a_path_that_is_not_described_may_be_nothing_but_refused() -> None:
    assert (await client({"id": 1}).get("/nowhere")).status == 404
    app = create_app()

    @app.get("/hidden")
    async def hidden(req: Request, res: Response) -> None:
        res.json({})

    with pytest.raises(ContractError, match="GET /hidden answers 200, but the document has no such path"):
        await Client(app, None, contract=Contract(DOCUMENT)).get("/hidden")


def test_a_document_in_yaml_is_a_contract_too(tmp_path: Path) -> None:
    file = tmp_path / "openapi.yaml"
    file.write_text(as_yaml(DOCUMENT))
    assert Contract.read(file).document == DOCUMENT


def test_a_file_that_is_no_document_is_told_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    for text, message in ((None, "does not exist"), ("{", "is not JSON"), ("[]", "not an OpenAPI"), ("{}", "not an")):
        if text is not None:
            file.write_text(text)
        with pytest.raises(DeveloperError, match=message) as raised:
            Contract.read(file)
        assert "core openapi -o" in str(raised.value)


# The setting


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".json", openapi=json.dumps(DOCUMENT))
    pytester.makepyfile(
        application="""
import attrs
from core import Bindings, create_app

@attrs.frozen
class Env(Bindings):
    pass

app = create_app(Env)

@app.get("/records/:id")
async def get_record(req, res):
    res.json({"id": "one" if req.params["id"] == "lie" else 1})

@app.delete("/records/:id")
async def delete_record(req, res):
    res.status(204).send()
"""
    )
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "core_app = application:app\ncore_openapi = openapi.json\npythonpath = .\n"
    )
    return pytester


TESTS = """
from core import create_app
from core.testing import Client

async def test_get(core_client):
    assert (await core_client.get("/records/1")).status == 200

async def test_delete(core_client):
    assert (await core_client.delete("/records/1")).status == 204

async def test_an_application_of_its_own():
    app = create_app()

    @app.get("/other")
    async def other(req, res):
        res.text("x")

    assert (await Client(app, None).get("/other")).status == 200
"""


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_what_no_test_reached_is_listed_also_of_several_processes(
    project: pytest.Pytester, processes: tuple[str, ...]
) -> None:
    project.makepyfile(test_it=TESTS)
    result = project.runpytest_subprocess(*PLAIN, *processes)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "3 of 5 answers of openapi.json were not tested:",
            "  get_record: 404",
            "  delete_record: 4XX",
            "  all_records: 200",
        ]
    )


def test_a_document_that_lies_fails_the_test_with_the_place(project: pytest.Pytester) -> None:
    project.makepyfile(test_it='async def test_lie(core_client):\n    await core_client.get("/records/lie")\n')
    result = project.runpytest_subprocess(*PLAIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*ContractError: get_record (GET /records/lie) 200: id: 'one' is not of type 'integer'*"]
    )


def test_a_setting_without_its_file_is_told(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess(*PLAIN, "--core-openapi", "none.json")
    result.stderr.fnmatch_lines(["*core_openapi: *none.json does not exist. Write it: core openapi -o *"])
