"""Documents that somebody else wrote: a client has the nodes of a client alone, and importing it does nothing else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.openapi.client import write_client

# What closes a Literal, a docstring, a string or a line, and what Python takes for another name than it looks like.
PIECES = [
    "a", "Z", "self", "class", "None", "__init__", "__class__", "ﬁ", "fi", "𝒙", "x", "ª", "用户", "😀", "\ud800", "\udfff",
    "'", '"', "'''", '"""', "\\", "\\'", "\n", "\r", "\0", "\u2028", "#", "|", " | ", "[", "]", "[[[", "]]]", "(", ")", "{", "}",
    "{x}", ",", ";", ":", "=", "@@CLASSES@@", "__import__('os').system('x')", "|print(1)|", "']|print(1)|['", " ", ".",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"enum": st.lists(st.one_of(TEXTS, st.none(), st.integers(), st.booleans()), max_size=3)}),
        st.fixed_dictionaries({"const": TEXTS}),
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "null"]), "description": TEXTS}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries({
            "type": st.just("object"), "description": TEXTS,
            "properties": st.dictionaries(TEXTS, inner, max_size=3), "required": st.lists(TEXTS, max_size=2),
        }),
    ),
    max_leaves=6,
)  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    def operation(path: str) -> dict[str, Any]:
        return {
            "operationId": draw(TEXTS),
            "summary": draw(TEXTS),
            "parameters": [
                {"name": name, "in": draw(st.sampled_from(["query", "header", "cookie"])), "schema": draw(SCHEMAS)}
                for name in draw(st.lists(TEXTS, max_size=3))
            ],
            "requestBody": {"content": {"application/json": {"schema": draw(SCHEMAS)}}},
            "responses": {
                draw(st.sampled_from(["200", "4XX", "default", "2٠٠", "200\n"])): {
                    "description": draw(TEXTS),
                    "content": {draw(st.sampled_from(["application/json", "text/event-stream", "text/'\"\\"])): {}},
                }
            },
        }

    return {
        "openapi": "3.1.0",
        "info": {"title": draw(TEXTS), "version": draw(TEXTS)},
        "paths": {f"/{path}": {"get": operation(path)} for path in draw(st.lists(TEXTS, max_size=2))},
        "components": {
            "schemas": draw(st.dictionaries(TEXTS, SCHEMAS, max_size=3)),
            "securitySchemes": {
                draw(TEXTS): {"type": "apiKey", "in": draw(st.sampled_from(["cookie", "query"])), "name": draw(TEXTS)}
            },
        },
    }


TEMPLATE = ast.parse(write_client({"openapi": "3.1.0", "paths": {}, "info": {}}))


def annotation(node: ast.expr) -> bool:
    match node:
        case ast.Name() | ast.Constant(value=None):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return annotation(left) and annotation(right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inside):
            values = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return all(isinstance(ast.literal_eval(value), str | int) for value in values)
        case ast.Subscript(value=ast.Name(id="list" | "dict" | "AsyncGenerator" | "Mapping"), slice=inside):
            return all(map(annotation, inside.elts if isinstance(inside, ast.Tuple) else [inside]))
        case _:
            return False


def value(node: ast.expr | None) -> bool:
    """Return True for a default of a field: nothing, a constant, or `field(…)` of those."""
    match node:
        case None | ast.Constant() | ast.Name(id="UNSET"):
            return True
        case ast.Call(func=ast.Name(id="field"), args=[], keywords=keywords):
            return all(
                keyword.arg in ("default", "default_factory", "metadata", "compare")
                and (annotation(keyword.value) or isinstance(ast.literal_eval(keyword.value), dict | bool))
                for keyword in keywords
            )
        case _:
            return False


def check(source: str) -> None:
    source.encode()
    tree = ast.parse(source)
    compile(source, "client", "exec")
    bound: list[str] = []
    seen = {ast.dump(node) for node in TEMPLATE.body}
    for node in tree.body:
        match node:
            case ast.ClassDef(name="Client"):
                names = [each.name for each in node.body if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)]
                assert len(names) == len(set(names))
                bound.append(node.name)
            case _ if ast.dump(node) in seen:
                bound += [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.ClassDef(name=name, bases=[], keywords=[], body=body):
                bound.append(name)
                assert [ast.unparse(each) for each in node.decorator_list] == ["dataclass(frozen=True)"]
                fields: list[str] = []
                for each in body:
                    match each:
                        case ast.AnnAssign(target=ast.Name(id=field)):
                            assert annotation(each.annotation)
                            assert value(each.value)
                            fields.append(field)
                        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                            pass
                        case _:
                            pytest.fail(ast.unparse(each))
                assert len(fields) == len(set(fields))
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as given
            ):
                bound.append(name)
                assert annotation(given)
            case ast.FunctionDef(name=name, body=[ast.Expr(value=ast.Constant()), ast.Return(value=ast.Dict())]):
                bound.append(name)
            case _:
                pytest.fail(ast.unparse(node))
    assert len(bound) == len(set(bound))


def of_schema(schema: object) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {}, "paths": {}, "components": {"schemas": {"Hostile": schema}}}


BREAKING = "\\'\"]|print(1)|[[[["


@given(documents())
@example(of_schema({"type": "array", "items": {"enum": ["a", '"]|__import__("os")|["', "x"]}}))
@example(of_schema({"anyOf": [{"enum": [BREAKING]}, {"type": "null"}]}))
@example(of_schema({"anyOf": [{"enum": ["[[[|print(1)|]]]"]}, {"type": "integer"}]}))
@example(of_schema({"properties": {"self": {}, "ﬁ": {}, "fi": {}, "class": {}, "__init__": {}, "ª": {}, "a": {}}}))
def test_a_client_has_the_nodes_of_a_client_alone(document: dict[str, Any]) -> None:
    check(write_client(document))


def test_texts_of_any_characters_are_the_same_in_the_client() -> None:
    texts = ["😀", "\ud800", "'\"\\", "[|]", "\0\n\u2028"]
    source = write_client(of_schema({"anyOf": [{"enum": texts}, {"type": "null"}]}))
    alias = next(
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "Hostile"
    )
    assert [node.value for node in ast.walk(alias) if isinstance(node, ast.Constant) and node.value] == texts


def test_importing_a_client_of_a_hostile_document_does_nothing_else(tmp_path: Path) -> None:
    hostile = "']|__import__('os').system('touch owned')|['"
    schema = {"anyOf": [{"enum": [hostile, BREAKING, f'"{hostile}']}, {"type": "null"}]}
    document = of_schema({"properties": {hostile: schema, "self": schema}, "description": f'"""{hostile}\\'})
    document["paths"] = {f"/{hostile}": {"get": {"summary": hostile, "responses": {"200": {"description": hostile}}}}}
    (tmp_path / "client.py").write_text(write_client(json.loads(json.dumps(document))), encoding="utf-8")
    program = (
        "import sys\nsys.addaudithook(lambda event, given: event.split('.')[0] in ('os', 'subprocess', 'socket') and "
        "event not in ('os.listdir', 'os.putenv') and sys.exit(event))\nimport client\nprint(client.Hostile)"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, [path.name for path in tmp_path.iterdir()]) == (0, "", ["client.py"])
