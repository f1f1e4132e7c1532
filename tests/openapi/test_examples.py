"""Examples in the document: what tests sent and got, kept by pytest and put in by `core openapi --examples`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate
from tests.openapi.test_contract import project
from tests.support.command_line import run
from tests.support.nested import PLAIN

from core.errors import DeveloperError
from core.openapi.examples import Examples, add_examples

__all__ = ["project"]

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
TESTS = """
async def test_the_second(core_client):
    assert (await core_client.get("/records/2")).status == 200

async def test_a_record(core_client):
    assert (await core_client.get("/records/1")).status == 200

async def test_gone(core_client):
    assert (await core_client.delete("/records/1")).status == 204
"""


def described(schema: Any) -> dict[str, Any]:
    sent, answered = ({"content": {"application/json": {"schema": schema}}} for _ in range(2))
    operation = {"operationId": "send", "requestBody": sent, "responses": {"200": {"description": "", **answered}}}
    return {"paths": {"/": {"post": operation}}}


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_the_first_test_by_its_id_is_the_example(project: pytest.Pytester, processes: tuple[str, ...]) -> None:
    project.makepyfile(test_it=TESTS)
    result = project.runpytest_subprocess(*PLAIN, "--core-examples", "examples.json", *processes)
    result.assert_outcomes(passed=3)
    found = json.loads((project.path / "examples.json").read_text("utf-8"))
    assert found == {
        "get_record": {"200": {"application/json": {"test": "test_it.py::test_a_record", "value": {"id": 1}}}}
    }


def test_without_a_document_there_is_nothing_to_give_examples_of(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\n")
    result = project.runpytest_subprocess(*PLAIN, "--core-examples", "examples.json")
    result.stderr.fnmatch_lines(["*--core-examples needs the OpenAPI document: set core_openapi*"])


def test_a_request_is_an_example_too_and_no_secret_is() -> None:
    examples = Examples(test="tests/test_it.py::test_a_user_signs_up[1]")
    examples.note("send", "request", "application/json", b'{"user": {"Password": "p", "accessToken": "t", "n": "Ada"}}')
    examples.note("send", "200", "application/json", b'{"errors": {"token": ["is missing"]}}')
    document = described({})
    add_examples(document, examples)
    operation = document["paths"]["/"]["post"]
    assert operation["responses"]["200"]["content"]["application/json"]["examples"] == {
        "a_user_signs_up": {"summary": "A user signs up", "value": {"errors": {"token": ["is missing"]}}}
    }
    sent = operation["requestBody"]["content"]["application/json"]["examples"]["a_user_signs_up"]["value"]
    assert sent == {"user": {"Password": "…", "accessToken": "…", "n": "Ada"}}


@pytest.mark.parametrize("body", [None, b"", b"{", json.dumps("x" * 5000).encode()])
def test_what_is_no_json_or_too_long_is_none(body: bytes | None) -> None:
    examples = Examples()
    examples.note("send", "200", "application/json", body)
    assert examples.found == {}


def test_what_the_document_does_not_have_any_more_is_left_out() -> None:
    examples = Examples(test="t")
    for operation, status in (("gone", "200"), ("send", "404")):
        examples.note(operation, status, "application/json", b"1")
    examples.note("send", "200", "text/json", b"1")
    document = described({})
    add_examples(document, examples)
    assert document == described({})


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "does not exist"), ("{", "has no examples"), ('{"a": 1}', "has no examples"), ("[]", "has no examples")],
)
def test_a_file_that_is_missing_or_another_is_told(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "examples.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DeveloperError, match=f"{message}.*pytest --core-examples"):
        Examples.read(file)


@pytest.mark.slow
def test_the_document_with_examples_is_valid_and_checked_with_them(tmp_path: Path) -> None:
    examples = Examples(test="tests/test_users.py::test_a_user_is_found")
    examples.note("get_user", "200", "application/json", b'{"id": 1, "name": "Ada", "email": "ada@example.com"}')
    examples.write(tmp_path / "examples.json")
    folder, file = ROOT / "examples" / "users", str(tmp_path / "openapi.json")
    given = ("openapi", "--examples", str(tmp_path / "examples.json"), "-o", file)
    assert run(*given, "--html", str(tmp_path / "api.html"), folder=folder).returncode == 0
    document = json.loads(Path(file).read_text("utf-8"))
    validate(document)
    answer = document["paths"]["/users/{id}"]["get"]["responses"]["200"]["content"]["application/json"]
    assert answer["examples"]["a_user_is_found"]["value"]["name"] == "Ada"
    assert "Example: A user is found" in (tmp_path / "api.html").read_text("utf-8")
    assert run(*given, "--check", folder=folder).returncode == 0
