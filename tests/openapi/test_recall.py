"""The examples' documents and their real answers: each answer is in the document, and each documented answer is given.

Each example's own tests run with everything recorded, then a bounded fuzz goes over every operation.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]  # has none of its own
import pytest
from openapi_spec_validator import validate
from tests.support.command_line import run
from tests.support.copies import copy_project
from tests.support.libraries import with_libraries
from tests.support.nested import PLAIN

ROOT = Path(__file__).parents[2]
EXAMPLES = ("users", "conduit")


class Seen(NamedTuple):
    method: str
    path: str
    status: int
    media: str | None
    body: str


class Example:
    """A document, and what was seen of its application."""

    def __init__(self, name: str, document: Mapping[str, Any], findings: str, seen: list[Seen]) -> None:
        self.name = name
        self.findings = findings
        self.document = document
        self.seen = seen
        self.patterns = sorted(
            ((path, re.compile(re.sub(r"\\\{\w+\\\}", "[^/]*", re.escape(path)) + "/?")) for path in document["paths"]),
            key=lambda each: each[0].count("{"),  # of two that match, the one that names more is meant
        )

    def operation(self, method: str, path: str) -> Mapping[str, Any] | None:
        method = "get" if method == "HEAD" else method.lower()
        for template, pattern in self.patterns:
            if pattern.fullmatch(path) and method in self.document["paths"][template]:
                found: Mapping[str, Any] = self.document["paths"][template][method]
                return found
        return None

    def declared(self) -> Iterator[tuple[str, str]]:
        for item in self.document["paths"].values():
            for operation in item.values():
                for status in operation["responses"]:
                    if status != "default":
                        yield operation["operationId"], status

    def problems(self, each: Seen) -> Iterator[str]:
        """The document's mistakes, by something that was answered."""
        operation = self.operation(each.method, each.path)
        if operation is None:
            response = self.document["components"]["responses"]["NotFound"]
        else:
            answers = operation["responses"]
            if str(each.status) not in answers and each.status < 500:
                yield f"{each.method} {each.path} {each.status}: the status is not declared"
                return
            response = answers.get(str(each.status), answers["default"])
        media = (each.media or "").partition(";")[0]
        if not each.body:
            return
        if media not in response.get("content", {}):
            yield f"{each.method} {each.path} {each.status}: {media} is not declared"
            return
        schema = {**response["content"][media]["schema"], "components": self.document["components"]}
        validator: Any = jsonschema.Draft202012Validator(schema)  # its signatures are partly unknown to pyright
        for error in validator.iter_errors(json.loads(each.body)):
            yield f"{each.method} {each.path} {each.status}: {error.message} at {error.json_path}"


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    name: str = request.param
    folder = ROOT / "examples" / name
    recorded = tmp_path_factory.mktemp(name) / "recorded"
    environment = {**os.environ, "RECORDED": str(recorded), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.openapi.recording", *PLAIN, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    file = recorded.with_name("openapi.json")
    copy = with_libraries(copy_project(folder, recorded.with_name(name)))
    described = run("openapi", "-o", str(file), folder=copy)
    assert described.returncode == 0, described.stderr
    fuzz = subprocess.run(
        [sys.executable, "-c", FUZZ, str(folder), str(file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert fuzz.returncode == 0, fuzz.stderr
    seen = [Seen(*json.loads(line)) for line in recorded.read_text("utf-8").splitlines()]
    return Example(name, json.loads(file.read_text("utf-8")), described.stderr, seen)


FUZZ = """
import asyncio, json, logging, random, re, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
import tests.openapi.recording
import conftest
from core.testing import Client, FakeClock, FakeExecutionContext

logging.disable(logging.CRITICAL)
document = json.loads(Path(sys.argv[2]).read_text())
chance = random.Random(7)
clock = FakeClock(time.time())  # that of the tokens which the example's fixtures make


def fixture(name, *arguments):
    given = getattr(conftest, name)
    function = getattr(given, "__wrapped__", None) or given._get_wrapped_function()
    return function(*arguments[: function.__code__.co_argcount])


env = fixture("env", clock)


async def people():
    if folder.name == "users":
        headers = fixture("token")
        return [headers(), headers(is_admin=True)]
    join = fixture("join", env)
    return [await join("ada"), await join("grace")]


VALUES = [None, True, 0, -1, 1.5, 2**70, "", "x", "\\u0000", "a" * 300, [], [1], {}, {"a": 1}]


def value(schema, depth=0):
    if "$ref" in schema:
        return value(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth + 1)
    if chance.random() < 0.08:
        return chance.choice(VALUES)
    if "anyOf" in schema:
        return value(chance.choice(schema["anyOf"]), depth)
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        return {
            name: value(part, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if name in schema.get("required", ()) or chance.random() < 0.5
        }
    if kind == "array":
        return [value(schema["items"], depth + 1) for _ in range(chance.randrange(3))]
    return {"string": lambda: f"user{chance.randrange(6)}@example.com", "integer": lambda: chance.randrange(5)}.get(
        kind, lambda: chance.choice(VALUES)
    )()


async def too_slow(client, method, target, headers):
    # A request that waits for its bindings until its time is up.
    fakes = [getattr(env, name) for name in ("DB", "COUNTERS") if hasattr(env, name)]
    for fake in fakes:
        fake.latency = 3600
    waiting = asyncio.ensure_future(client.request(method, target, body=None if method == "GET" else "{}", headers=headers))
    for _ in range(100):
        await asyncio.sleep(0)
    clock.advance(60)
    await waiting
    for fake in fakes:
        fake.latency = 0


async def main():
    client = Client(conftest.app, env, FakeExecutionContext(clock=clock))
    known = await people()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            target = re.sub(r"\\{\\w+\\}", "1", path)
            if "408" in operation["responses"]:
                await too_slow(client, method.upper(), target, known[-1])
            for _ in range(100 if "429" in operation["responses"] else 0):
                await client.request(method.upper(), target, body=None if method == "get" else "{}", headers=known[-1])
    for turn in range(40):
        clock.advance(61)
        for path, item in document["paths"].items():
            for method, operation in item.items():
                target = path
                queries = []
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] == "path":
                        word = "1" if turn % 4 == 0 else chance.choice(["1", "2", "nobody", "%20", "%zz", "a%2Fb", "\\u00fc"])
                        target = target.replace("{" + parameter["name"] + "}", word)
                    elif parameter["in"] == "query" and chance.random() < 0.5:
                        queries.append(f"{parameter['name']}={chance.choice(['1', '-1', 'x', '', '99999999999999999999'])}")
                content = next(iter(operation.get("requestBody", {}).get("content", {}).values()), None)
                body = None
                if turn == 0:
                    body = '"' + "x" * 1_100_000 + '"' if method != "get" else None
                elif content is not None:
                    body = json.dumps(value(content["schema"]))
                    if chance.random() < 0.1:
                        body = chance.choice(["{", "", "\\ud83d", "[" * 300])
                headers = {"authorization": chance.choice(["", "Bearer x", "Token x", "Basic eDp5"])}
                headers = chance.choice(known) if turn == 0 or chance.random() < 0.8 else headers
                url = target + ("?" + "&".join(queries) if queries else "")
                if turn == 0:
                    headers = {**headers, "content-length": "1100002"}
                await client.request(method.upper(), url, body=body, headers=headers)
        await client.get("/no/such/path")


asyncio.run(main())
"""


def test_the_document_is_valid(example: Example) -> None:
    validate(example.document)


def test_the_document_is_the_committed_one_and_knows_every_type(example: Example) -> None:
    committed = (ROOT / "examples" / example.name / "openapi.json").read_text("utf-8")
    assert example.document == json.loads(committed), "write it anew: core openapi -o openapi.json"
    assert not example.findings


def test_everything_that_is_answered_is_in_the_document(example: Example) -> None:
    problems = sorted({problem for each in example.seen for problem in example.problems(each)})
    assert len(example.seen) > 100
    assert sum(each.status == 401 for each in example.seen) < len(example.seen) / 2, "nobody was let in"
    assert not problems, "\n".join(problems)


def test_what_is_in_the_document_is_answered(example: Example) -> None:
    reached = {
        (operation["operationId"], str(each.status))
        for each in example.seen
        if (operation := example.operation(each.method, each.path)) is not None
    }
    declared = set(example.declared())
    never = sorted(declared - reached)
    assert len(never) <= 0.05 * len(declared), never
