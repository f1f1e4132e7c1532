"""Applications written from the documentation alone, in five styles: everything they answer is in their documents.

Each folder of `strangers` has an application and `requests.txt`, the story of its use: each line a request with the
status that it is answered with. Between the lines come requests made of the line before: without credentials, with
wrong ones, with bodies, queries, parameters, methods and paths that are wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from openapi_spec_validator import validate
from tests.support.command_line import run
from tests.support.libraries import with_libraries

from core.openapi.contract import Contract
from core.testing import Client, env
from core.values import is_array, is_object

STRANGERS = Path(__file__).with_name("strangers")
SECRETS: dict[str, dict[str, Any]] = {
    "tracker": {"JWT_SECRET": "a-secret-for-tests-that-is-long-enough"},
    "shop": {"WEBHOOK_SECRET": "webhook", "ADMIN_KEY": "admin-key"},
    "store": {"LINK_SECRET": "a-secret-for-tests-that-is-long-enough", "TOKEN": "token"},
    "board": {"SESSION_SECRET": "a-secret-for-tests-that-is-long-enough"},
    "clean": {},
}
UNKNOWN = "the type of a value is not known"
FOUND = {
    "tracker": [],
    "shop": [f"{UNKNOWN} (Any)"],  # json.loads of what a webhook has sent
    "store": [],
    "board": [f"{UNKNOWN} (Any)", f"{UNKNOWN} (JSON that is written as text"],  # a session's value, text out of KV
    "clean": [f"{UNKNOWN} (Any, in the class Page_Any)"],
}
"""What the command says of each that it cannot read."""

LINE = re.compile(
    r"(?P<status>\d+) (?P<method>[A-Z]+) (?P<path>\S+)(?P<headers>(?: \[[\w-]+: [^]]+\])*)(?: (?P<body>(?!> ).*?))?"
    r"(?: > (?P<field>\S+) as (?P<name>\w+))?",
    re.DOTALL,
)


class Asked(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: str | None


class Stranger(NamedTuple):
    name: str
    module: ModuleType
    document: Mapping[str, Any]
    findings: list[str]


@pytest.fixture(scope="module", params=sorted(SECRETS))
def stranger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    name: str = request.param
    folder = with_libraries(tmp_path_factory.mktemp(name))
    shutil.copytree(STRANGERS / name, folder, dirs_exist_ok=True)
    done = run("openapi", "-o", "openapi.json", folder=folder)
    assert done.returncode == 0, done.stderr
    specification = importlib.util.spec_from_file_location(f"stranger_{name}", STRANGERS / name / "main.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    specification.loader.exec_module(module)
    return Stranger(name, module, json.loads((folder / "openapi.json").read_text("utf-8")), done.stderr.splitlines())


def variants(asked: Asked, document: Mapping[str, Any]) -> Iterator[Asked]:
    """Requests that are wrong, made of one that may be right."""
    method, path, headers, body = asked
    bare, _, query = path.partition("?")
    if headers:
        yield asked._replace(headers={})
        yield asked._replace(headers={**headers, **{name: "wrong" for name in headers if name != "Content-Type"}})
    if "authorization" in map(str.lower, headers):
        yield asked._replace(headers={**headers, "Authorization": "Bearer a.b.c"})
    yield asked._replace(method="HEAD" if method == "GET" else "GET", body=None)
    yield asked._replace(method="OPTIONS", body=None)
    yield asked._replace(method="PATCH" if method != "PATCH" else "POST")
    yield asked._replace(path=f"{bare}/none")
    yield asked._replace(path=f"{bare}%zz")
    if method == "GET":
        yield asked._replace(path=f"{bare}?{query}&limit=x&page=0&size=-1&cursor=!&state=none&turns=x")
    if body is not None:
        for other in ("", "{", "[]", "{}", "null", '{"a": {"b": [1, 2]}}', "[" * 300, "\x00"):
            yield asked._replace(body=other)
        given: dict[str, Any] = json.loads(body) if body.startswith("{") and body.endswith("}") else {}
        for name in given:
            yield asked._replace(body=json.dumps({**given, name: None}))
            yield asked._replace(body=json.dumps({**given, name: [{}]}))
    parts = bare.split("/")
    for template in document["paths"]:
        names = template.split("/")
        if len(parts) == len(names) and all(map(alike, parts, names)):
            for number in (at for at, name in enumerate(names) if name.startswith("{")):
                for word in ("999", "none", "%20", "a%2Fb", ""):
                    yield asked._replace(path="/".join([*parts[:number], word, *parts[number + 1 :]]))


def alike(part: str, name: str) -> bool:
    return part == name or name.startswith("{")


def headers_of(text: str, body: str | None) -> dict[str, str]:
    found = dict(re.findall(r"\[([\w-]+): ([^]]+)\]", text))
    if found.get("X-Signature") == "~":
        found["X-Signature"] = hmac.new(b"webhook", (body or "").encode(), hashlib.sha256).hexdigest()
    return found


class Story:
    """The lines of an application's `requests.txt`, asked of one that has just begun."""

    def __init__(self, stranger: Stranger) -> None:
        folder = STRANGERS / stranger.name
        self.stranger = stranger
        self.lines = [line for line in (folder / "requests.txt").read_text("utf-8").splitlines() if line[0] != "#"]
        fakes = env(stranger.module.Env, config=folder / "wrangler.toml", **SECRETS[stranger.name])
        self.contract = Contract(stranger.document)
        self.client = Client(stranger.module.app, fakes, contract=False)
        self.known: dict[str, str] = {}
        self.problems: set[str] = set()
        self.count = 0

    def read(self, line: str) -> tuple[Asked, re.Match[str]]:
        text = re.sub(r"\$(\w+)", lambda name: self.known[name[1]], line)
        text = re.sub(r"!(\d+)", lambda number: "x" * int(number[1]), text).replace("\\r\\n", "\r\n")
        matched = LINE.fullmatch(text)
        assert matched is not None, line
        body = matched["body"]
        return Asked(matched["method"], matched["path"], headers_of(matched["headers"], body), body), matched

    async def ask(self, asked: Asked, matched: re.Match[str]) -> tuple[int, bytes]:
        self.count += 1
        response = await self.client.request(asked.method, asked.path, body=asked.body, headers=asked.headers)
        content = await response.bytes()
        path = asked.path.partition("?")[0]
        found = self.contract.problems(asked.method, path, response.status, dict(response.headers), content)
        self.problems.update(f"{problem}: {content[:200]!r}" for problem in found)
        field = matched["field"]
        if field and response.status == int(matched["status"]):
            self.known[matched["name"]] = (
                response.headers[field[:-1]] if field.endswith(":") else json.loads(content)[field]
            )
        return response.status, content


async def test_everything_that_is_answered_is_in_the_document(
    stranger: Stranger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "core")
    right, wrong = Story(stranger), Story(stranger)
    for line in right.lines:
        asked, matched = right.read(line)
        status, content = await right.ask(asked, matched)
        assert status == int(matched["status"]), (line, content)
    for line in wrong.lines:
        asked, matched = wrong.read(line)
        cookies = dict(wrong.client.cookies)
        for variant in variants(asked, stranger.document):
            await wrong.ask(variant, matched)
            wrong.client.cookies.clear()
            wrong.client.cookies.update(cookies)
        await wrong.ask(asked, matched)
    assert right.count + wrong.count > 200
    problems = right.problems | wrong.problems
    assert not problems, "\n".join(sorted(problems))


def test_the_document_is_valid_and_its_open_places_are_findings(stranger: Stranger) -> None:
    validate(stranger.document)
    operations = [operation for item in stranger.document["paths"].values() for operation in item.values()]
    assert 15 <= len(operations) <= 40
    said = [line.partition(" warning: ")[2] for line in stranger.findings]
    assert len(said) == len(FOUND[stranger.name])
    assert all(map(str.startswith, said, FOUND[stranger.name])), said
    assert bool(list(open_places(stranger.document))) == bool(said)
    numbered = [name for name in stranger.document["components"]["schemas"] if name[-1].isdigit()]
    assert not numbered


_SCHEMAS = ("schema", "items", "additionalProperties", "contentSchema")


def open_places(value: Any, place: str = "") -> Iterator[str]:
    """Where a document says that a value may be anything."""
    if is_object(value):
        for name, inner in value.items():
            is_schema = place.endswith("properties") or name in _SCHEMAS
            if (is_schema and inner == {} and name != "properties") or (name == "anyOf" and {} in inner):
                yield f"{place}/{name}"
            yield from open_places(inner, f"{place}/{name}")
    elif is_array(value):
        for number, inner in enumerate(value):
            yield from open_places(inner, f"{place}/{number}")
