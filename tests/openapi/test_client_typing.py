"""A generated client in five type checkers: each knows what a method returns and raises, and finds each wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkers import CHECKERS, marked

from core.openapi.client import write_client

ROOT = Path(__file__).parents[2]
IMPORTS = """
import httpx
from typing_extensions import assert_type

from core import http
from core.bindings.fetcher import Fetcher
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "at": {"type": "string", "format": "date-time"},
        "field": {"type": "array", "items": {"$ref": "#/components/schemas/Everything"}},
        "date": {"type": ["string", "null"], "format": "date"},
        "list": {"oneOf": [{"type": "string"}, {"enum": ["a | b", 1, None]}]},
    },
    "required": ["date", "list"],
    "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
}
EVERYTHING: dict[str, Any] = {
    "openapi": "3.2.0",
    "info": {"title": 'Everything """ \\', "version": "1"},
    "paths": {
        "/{id}": {
            "post": {
                "operationId": "list",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {"name": "dt", "in": "query", "schema": {"type": "string", "format": "date"}},
                    {"name": "list", "in": "header", "required": True, "schema": {"type": "array", "items": {}}},
                ],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
                        }
                    }
                },
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Everything"}}}},
                    "201": {"content": {"application/jsonl": {"itemSchema": {"type": "integer"}}}},
                    "202": {"content": {"image/png": {}}},
                    "203": {"content": {"text/event-stream": {}, "text/csv": {}, "application/zip": {}}},
                    "4XX": {"content": {"text/plain": {}}},
                },
            },
            "delete": {"operationId": "refuse", "responses": {"403": {}, "default": {"content": {"text/plain": {}}}}},
        }
    },
    "components": {
        "schemas": {"Everything": SCHEMA, "Any": {"type": "array", "items": {"type": "string"}}},
        "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
    },
}
NOTHING: dict[str, Any] = {"openapi": "3.0.0", "info": {}, "paths": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Always of the same name: mypy keeps what it found beside the path of the run before.
    folder = tmp_path_factory.mktemp("typed-clients")
    uses = (Path(__file__).parent / "client_uses.py.in").read_text("utf-8")
    for number, file in enumerate(sorted(ROOT.glob("examples/*/openapi.json"))):
        written = write_client(json.loads(file.read_text("utf-8")))
        if file.parent.name == "users":
            written = written.replace("from uuid import UUID\n", f"from uuid import UUID\n{IMPORTS}") + uses
        (folder / f"client_{number}.py").write_text(written, "utf-8")
    # Outside of a project pyrefly tells the gravest errors only.
    (folder / "pyrefly.toml").write_text("")
    (folder / "everything.py").write_text(write_client(EVERYTHING), "utf-8")
    (folder / "nothing.py").write_text(write_client(NOTHING), "utf-8")
    return folder


@pytest.mark.parametrize("checker", CHECKERS)
def test_uses_are_clean_and_wrong_ones_are_errors_on_their_lines(checker: str, folder: Path) -> None:
    wanted = marked(folder)
    assert len(wanted) == 10
    found = CHECKERS[checker](folder)
    assert found == wanted, f"missed {sorted(wanted - found)}, alarmed {sorted(found - wanted)}"
