"""Documents that somebody else wrote: a client has the nodes of a client alone, and importing it does nothing else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import DeveloperError
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
            "tags": draw(st.lists(TEXTS, max_size=1)),
            "summary": draw(TEXTS),
            "parameters": [
                {"name": name, "in": draw(st.sampled_from(["query", "header", "cookie"])), "schema": draw(SCHEMAS)}
                for name in draw(st.lists(TEXTS, max_size=3))
            ],
            "requestBody": {"content": {"application/json": {"schema": draw(SCHEMAS)}}},
            "responses": {
                draw(st.sampled_from(["200", "404", "4XX", "default", "2٠٠", "200\n"])): {
                    "description": draw(TEXTS),
                    "content": {
                        draw(st.sampled_from(["application/json", "text/event-stream", "image/png", "text/'\"\\"])): {
                            "schema": draw(SCHEMAS)
                        }
                    },
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
                draw(TEXTS): {
                    "type": draw(st.sampled_from(["apiKey", "http"])),
                    "in": draw(st.sampled_from(["cookie", "query"])),
                    "name": draw(TEXTS),
                    "scheme": draw(st.one_of(TEXTS, st.sampled_from(["basic", "bearer", "{a}'#%s"]))),
                }
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
        case ast.Subscript(value=ast.Name(id="list" | "dict" | "Event" | "Stream" | "AsyncStream"), slice=inside):
            return all(map(annotation, inside.elts if isinstance(inside, ast.Tuple) else [inside]))
        case _:
            return False


def value(node: ast.expr | None) -> bool:
    """Return True for a default of a field: nothing, a constant, or `field(…)` of those."""
    match node:
        case None | ast.Constant() | ast.UnaryOp(operand=ast.Constant()) | ast.Name(id="UNSET"):
            return True
        case ast.Call(func=ast.Name(id="field"), args=[], keywords=keywords):
            return all(
                keyword.arg in ("default", "default_factory", "metadata", "compare")
                and (annotation(keyword.value) or isinstance(ast.literal_eval(keyword.value), dict | str | int))
                for keyword in keywords
            )
        case _:
            return False


def fields(body: list[ast.stmt]) -> None:
    names: list[str] = []
    for each in body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=field)):
                assert annotation(each.annotation)
                assert value(each.value)
                names.append(field)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case _:
                pytest.fail(ast.unparse(each))
    assert len(names) == len(set(names))


def sent(node: ast.expr) -> bool:
    """Return True for what a method sends along: its parameters, and texts."""
    match node:
        case ast.Name() | ast.Constant(value=str()):
            return True
        case ast.Dict(keys=keys, values=values):
            return all(sent(one) for one in [*filter(None, keys), *values])
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return all(map(sent, elts))
        case _:
            return False


def method(node: ast.stmt, send: list[ast.expr]) -> str:
    """Check a method of an operation, whose arguments it adds to `send`, and return its name."""
    assert isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    assert node.returns is not None
    assert annotation(node.returns)
    assert all(one.annotation is not None and annotation(one.annotation) for one in node.args.args[1:])
    body = [one for one in node.body if not isinstance(one, ast.Expr)]
    match body:
        case [
            ast.AnnAssign(
                target=ast.Name(id="answer"),
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="_send")) as call,
            )
            | ast.AnnAssign(
                target=ast.Name(id="answer"),
                value=ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="_send")) as call),
            ),
            ast.Return(value=ast.Name(id="answer")),
        ] | [
            ast.Raise(exc=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="_send")) as call)
            | ast.Raise(
                exc=ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="_send")) as call)
            )
        ]:
            send += [*call.args, *(one.value for one in call.keywords)]
        case _:
            pytest.fail(ast.unparse(node))
    return node.name


CLIENTS = {node.name: node for node in TEMPLATE.body if isinstance(node, ast.ClassDef)}


def client(node: ast.ClassDef) -> None:
    """Check the methods of a client beyond those of the template, and the attributes that its `__init__` adds."""
    own = {ast.dump(one) for one in CLIENTS[node.name].body}
    send: list[ast.expr] = []
    names: list[str] = []
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            known = {ast.dump(one) for one in CLIENTS[node.name].body[1].body}  # type: ignore[attr-defined]
            for one in each.body:
                match one:
                    case _ if ast.dump(one) in known:
                        pass
                    case ast.AnnAssign(
                        target=ast.Attribute(value=ast.Name(id="self"), attr=name),
                        annotation=ast.Name(id=space),
                        value=ast.Call(func=ast.Name(id=made), args=[ast.Attribute(attr="_send")], keywords=[]),
                    ):
                        assert space == made
                        names.append(name)
                    case _:
                        pytest.fail(ast.unparse(one))
        elif ast.dump(each) not in own:
            names.append(method(each, send))
        else:
            names += [each.name] if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else []
    assert len(names) == len(set(names))
    assert all(map(sent, send))


def check(source: str) -> None:
    source.encode()
    tree = ast.parse(source)
    compile(source, "client", "exec")
    bound: list[str] = []
    seen = {ast.dump(node) for node in TEMPLATE.body}
    for node in tree.body:
        match node:
            case ast.ClassDef(name="Client" | "AsyncClient"):
                client(node)
                bound.append(node.name)
            case _ if ast.dump(node) in seen:
                bound += [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.ClassDef(name="_Bodies"):
                fields(node.body)
            case ast.ClassDef(name=name, bases=[ast.Name(id="ApiError")], keywords=[], decorator_list=[], body=body):
                bound.append(name)
                fields(body)
            case ast.ClassDef(name=name, bases=[], keywords=[], decorator_list=[], body=[_, init, *methods]):
                bound.append(name)
                kind = "Callable[..., Awaitable[Any]]" if name.startswith("Async") else "Callable[..., Any]"
                written = f"def __init__(self, send: {kind}) -> None:\n    self._send: {kind} = send"
                assert ast.unparse(init) == written
                send: list[ast.expr] = []
                names = [method(one, send) for one in methods]
                assert len(names) == len(set(names))
                assert all(map(sent, send))
            case ast.ClassDef(name=name, bases=[], keywords=[], body=body):
                bound.append(name)
                assert [ast.unparse(each) for each in node.decorator_list] == ["dataclass(frozen=True, kw_only=True)"]
                fields(body)
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as given
            ):
                bound.append(name)
                assert annotation(given)
            case ast.AnnAssign(target=ast.Name(id="_OPERATIONS"), value=ast.Dict(keys=keys, values=values)):
                assert all(isinstance(key, ast.Constant) for key in keys)
                for one in values:
                    assert isinstance(one, ast.Call)
                    assert ast.unparse(one.func) == "_Operation"
                    replies = one.args[2]
                    assert isinstance(replies, ast.Dict)
                    assert all(map(sent, one.args[:2]))
                    for reply in replies.values:
                        match reply:
                            case ast.Tuple(
                                elts=[ast.Name() | ast.Constant(value=None), ast.Dict(keys=medias, values=how)]
                            ):
                                assert all(isinstance(each, ast.Constant) for each in (*medias, *how))
                            case _:
                                pytest.fail(ast.unparse(reply))
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


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.fixture
def plain_recursion_limit() -> Iterator[None]:
    """That of a process of its own: mypy raises it for the process that it runs in."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("plain_recursion_limit")
def test_a_document_that_is_too_deep_is_refused_in_words() -> None:
    many = [{"type": "array", "items": {"const": number}} for number in range(200)]
    check(write_client(of_schema({"anyOf": many})))
    wide = [{"type": "array", "items": {"const": number}} for number in range(3000)]
    for schema in (nested(2000), {"anyOf": wide}):
        with pytest.raises(DeveloperError, match="nested too deeply there, or has a union of too many kinds"):
            write_client(of_schema(schema))


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
