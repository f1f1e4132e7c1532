"""`core client`: what it writes, for documents of ours and of others, used against applications that answer."""

# A client is imported while the test runs: pyright cannot know its types. test_client_typing.py checks them.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import attrs
import pytest
from tests.support.command_line import run
from tests.support.running import RunningDev

from core import Bindings, CoreError, Request, Response, create_app, http
from core.bindings.fetcher import Fetcher
from core.errors import DeveloperError
from core.openapi.client import write_client
from core.openapi.reading import load_document
from core.testing import Client, env
from users_api.env import Env as UsersEnv
from users_api.main import app as users_app

ROOT = Path(__file__).parents[2]
USERS = ROOT / "examples" / "users"
CONDUIT = ROOT / "examples" / "conduit"
_numbers = itertools.count()

Answers = Callable[[str, str, Mapping[str, str], bytes | None], tuple[int, str, bytes]]


def module(document: Mapping[str, Any]) -> Any:
    """The client of a document, imported."""
    name = f"generated_{next(_numbers)}"
    made = ModuleType(name)
    sys.modules[name] = made
    exec(compile(write_client(document), f"{name}.py", "exec"), made.__dict__)
    return made


def described(paths: Mapping[str, Any], version: str = "3.1.0", **components: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, "components": components}


def answering(schema: Any, **components: Any) -> dict[str, Any]:
    """A document with one operation, `get`, that answers 200 with JSON."""
    response = {"description": "OK", "content": {"application/json": {"schema": schema}}}
    return described({"/": {"get": {"operationId": "get", "responses": {"200": response}}}}, schemas=components)


def client(of: Any, answers: Answers, **options: Any) -> Any:
    """A client whose requests are answered by a function: status, content type, body."""

    def send(method: str, path: str, headers: Mapping[str, str], body: bytes | None, /) -> Any:
        status, media, content = answers(method, path, headers, body)
        return of.Answered(status, {"content-type": media}, (bytes([byte]) for byte in content))

    return of.Client(send, **options)


def body_of(schema: Any, value: Any, **components: Any) -> Any:
    made = module(answering(schema, **components))
    return client(made, lambda *_: (200, "application/json", json.dumps(value).encode())).get()


# What it is used for


@pytest.fixture
def users() -> Any:
    return module(json.loads((USERS / "openapi.json").read_text("utf-8")))


@pytest.fixture
def served() -> Client[UsersEnv]:
    fakes = env(UsersEnv, config=USERS / "wrangler.toml", JWT_SECRET="a-secret-for-tests-that-is-long-enough")
    return Client(users_app, fakes, contract=USERS / "openapi.json")


async def test_in_a_test_it_needs_no_network(users: Any, served: Client[UsersEnv]) -> None:
    api = users.AsyncClient(users.fetch_transport(served.fetch, http.Request))
    ada = users.NewUser(name="Ada", email="ada@example.com")

    created = await api.answer(api.users.create_user, ada)
    assert (created.status, type(created.body).__name__) == (201, "CreateUserAnswer")
    assert created.headers["x-request-id"]
    record = users.UserRecord(id=1, name="Ada", email="ada@example.com")
    assert await api.users.get_user(created.body.id) == record
    assert (await api.users.list_users(limit=1)).results == [record]
    with pytest.raises(users.NotFound, match=r"GET /users/\{id\}: 404: ") as missing:
        await api.users.get_user("7")
    assert (missing.value.status, missing.value.body.error) == (404, "User not found")
    with pytest.raises(users.Conflict) as twice:
        await api.users.create_user(ada)
    assert twice.value.body.issues[0].message == "is already taken"
    with pytest.raises(users.ApiError) as refused:
        await api.users.update_user(1, users.UserChange(name="Grace"))
    assert isinstance(refused.value, users.Unauthorized)
    await served.ctx.drain()  # type: ignore[union-attr]  # it is the fake one


def test_over_httpx_it_speaks_to_a_server(users: Any, tmp_path: Path) -> None:
    import httpx

    with RunningDev(USERS, tmp_path / "state", "--no-reload") as dev, httpx.Client(base_url=dev.address) as connection:
        api = users.Client(users.httpx_transport(connection))
        created = api.users.create_user(users.NewUser(name="Ada", email="ada@example.com"))
        answer = api.answer(api.users.get_user, created.id)
        assert (answer.status, answer.body.name, answer.headers["content-type"]) == (200, "Ada", "application/json")
        with pytest.raises(users.NotFound):
            api.users.get_user(0)


async def test_the_larger_example_is_used_over_httpx_with_its_own_scheme_of_tokens(tmp_path: Path) -> None:
    import httpx

    made = module(json.loads((CONDUIT / "openapi.json").read_text("utf-8")))
    with RunningDev(CONDUIT, tmp_path / "state", "--no-reload") as dev:
        async with httpx.AsyncClient(base_url=dev.address) as connection:
            anyone = made.AsyncClient(made.async_httpx_transport(connection))
            new_user = made.NewUser(username="ada", email="ada@example.com", password="analytical")
            joined = await anyone.users.sign_up(made.SignUpBody(user=new_user))
            with pytest.raises(made.Conflict) as again:
                await anyone.users.sign_up(made.SignUpBody(user=new_user))
            assert again.value.body.errors == {"email": ["has already been taken"]}
            with pytest.raises(made.Unauthorized) as refused:
                await anyone.users.get_user()
            assert refused.value.headers["www-authenticate"] == "Token"

            ada = made.AsyncClient(made.async_httpx_transport(connection), headers=made.jwt(joined.user.token))
            new = made.NewArticle(
                title="A title", description="What it is about", body="All of it", tag_list=["b", "a"]
            )
            written = await ada.articles.create_article(made.CreateArticleBody(article=new))
            assert written.article.author == made.Profile(username="ada", bio=None, image=None, following=False)
            slug = written.article.slug
            comment = made.CreateCommentBody(comment=made.NewComment(body="First"))
            await ada.comments.create_comment(slug, comment)
            assert [one.body for one in (await anyone.comments.list_comments(slug)).comments] == ["First"]
            await ada.articles.favorite(slug)
            listed = await anyone.articles.list_articles(favorited="ada", limit=1)
            assert [(one.title, one.tag_list, one.favorites_count) for one in listed.articles] == [
                ("A title", ["a", "b"], 1)
            ]
            assert (await anyone.tags.list_tags()).tags == ["a", "b"]
            await ada.articles.delete_article(slug)
            with pytest.raises(made.NotFound):
                await anyone.articles.get_article(slug)


async def test_a_worker_calls_another_through_a_service_binding(users: Any, served: Client[UsersEnv]) -> None:
    @attrs.frozen
    class Env(Bindings):
        USERS: Fetcher

    front = create_app(Env)

    @front.get("/name/:id")
    async def name(req: Request[Env], res: Response) -> None:
        api = users.AsyncClient(users.fetch_transport(req.env.USERS.fetch, http.Request))
        try:
            res.text((await api.users.get_user(req.params["id"])).name)
        except users.NotFound:
            raise CoreError(404, "There is nobody") from None

    await served.post("/users", json={"name": "Ada", "email": "ada@example.com"})
    asking = Client(front, Env(USERS=served))
    assert await (await asking.get("/name/1")).text() == "Ada"
    assert (await asking.get("/name/2")).status == 404
    await served.ctx.drain()  # type: ignore[union-attr]


# Answers


async def test_an_answer_that_is_not_declared_is_an_exception_with_all_of_it() -> None:
    made = module(answering({"type": "integer"}))
    with pytest.raises(made.UnexpectedAnswer, match="GET /: 500: it is not declared") as raised:
        client(made, lambda *_: (500, "text/plain", b"oh")).get()
    assert (raised.value.status, raised.value.body) == (500, b"oh")


@pytest.mark.parametrize(
    ("schema", "content", "message"),
    [
        ({"type": "integer"}, b"{", "GET /: 200: Expecting property name"),
        ({"type": "integer"}, b"\xff", "GET /: 200: 'utf-8' codec"),
        ({"type": "integer"}, b"[" * 100_000, "GET /: 200: "),
        ({"type": "integer"}, b"1e999", "body: inf is not an integer"),
        ({"type": "integer"}, b"true", "body: True is not an integer"),
        ({"type": "boolean"}, b"1", "body: 1 is not a boolean"),
        ({"type": "string", "format": "date"}, b'"2020-13-01"', "body: '2020-13-01' is not a date"),
        ({"type": "string", "format": "uuid"}, b"1", "body: 1 is not a UUID"),
        ({"type": "string", "enum": ["a", "b"]}, b'"c"', "body: 'c' is none of 'a', 'b'"),
        ({"const": 1}, b"true", "body: True is none of 1"),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, b"{}", "body: a is missing"),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            b'[{}, {"a": 1}]',
            r"body\[1\]: a: 1 is not a string",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, b"1", "1 is not a string and 1 is not null"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, b'{"k": "v"}', "body: k: 'v' is not"),
    ],
)
async def test_a_body_of_another_shape_is_unexpected_and_never_a_plain_value_error(
    schema: Any, content: bytes, message: str
) -> None:
    made = module(answering(schema))
    with pytest.raises(made.UnexpectedAnswer, match=message):
        client(made, lambda *_: (200, "application/json", content)).get()


def test_an_answer_that_may_be_empty_has_no_body_then() -> None:
    answer = {"content": {"application/json": {"schema": {"type": ["integer", "null"]}}}, "x-may-be-empty": True}
    paths = {"/": {"get": {"operationId": "get", "responses": {"200": answer, "404": answer}}}}
    for whole, known in ((b"", None), (b"3", 3)):
        for status in (200, 404):
            made = module(described(paths))
            api = client(made, lambda *_, status=status, whole=whole: (status, "application/json", whole))
            if status == 200:
                assert api.get() == known
            else:
                with pytest.raises(made.NotFound) as missing:
                    api.get()
                assert missing.value.body == known
    never = module(answering({"type": ["integer", "null"]}))
    with pytest.raises(never.UnexpectedAnswer):
        client(never, lambda *_: (200, "application/json", b"")).get()


async def test_a_range_is_a_class_of_error_and_default_stands_for_all_others() -> None:
    text = {"description": "", "content": {"text/plain": {}}}
    made = module(
        described(
            {
                "/": {
                    "get": {"operationId": "get", "responses": {"200": text, "4XX": text, "default": text}},
                    "put": {"operationId": "put", "responses": {"default": text}},
                }
            }
        )
    )
    with pytest.raises(made.ClientError) as tea:
        client(made, lambda *_: (418, "text/plain", b"tea")).get()
    assert (tea.value.status, tea.value.body) == (418, "tea")
    assert client(made, lambda *_: (201, "text/plain", b"x")).put() == "x"
    for method in ("get", "put"):
        with pytest.raises(made.ApiError) as failed:
            getattr(client(made, lambda *_: (500, "text/plain", b"oh")), method)()
        assert (type(failed.value), failed.value.body) == (made.ApiError, "oh")


def test_an_answer_of_several_media_types_is_what_its_content_type_says() -> None:
    rows = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
    problem = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    content: dict[str, Any] = {
        "text/csv": {"schema": {"type": "string"}},
        "application/zip": {},
        "image/*": {},
        "application/jsonl": {"itemSchema": {"type": "integer"}},
        "text/event-stream; charset=utf-8": {},
        "Application/JSON; charset=utf-8": {"schema": rows},
    }
    failed = {"application/json": {"schema": rows}, "application/problem+json": {"schema": problem}, "text/plain": {}}
    responses = {"200": {"content": content}, "400": {"content": failed}, "default": {"content": failed}}
    made = module(described({"/": {"get": {"operationId": "export", "responses": responses}}}))
    seen: list[Mapping[str, str]] = []

    def export(media: str, body: bytes, status: int = 200) -> Any:
        def answers(method: str, path: str, headers: Mapping[str, str], _: bytes | None) -> tuple[int, str, bytes]:
            seen.append(headers)
            return status, media, body

        return client(made, answers).export()

    assert export("application/json", b'{"rows": 1}') == made.ExportAnswer(rows=1)
    assert export("text/csv; charset=utf-8", b"a,b") == "a,b"
    for media in ("application/zip", "IMAGE/png"):
        assert export(media, b"\xff").read() == b"\xff"
    assert list(export("application/jsonl", b"1\n2")) == [1, 2]
    assert list(export("text/event-stream", b"data: a\n\n")) == [made.Event("a")]
    # One that the document does not have is read as the first that a client speaks.
    assert export("application/vnd.rows+json", b'{"rows": 1}') == made.ExportAnswer(rows=1)
    with pytest.raises(made.UnexpectedAnswer):
        export("text/html", b"<p>")
    assert made.Client.export.__annotations__["return"] == (
        "ExportAnswer | str | Stream[bytes] | Stream[int] | Stream[Event[str]]"
    )
    assert seen[0]["accept"].startswith("Application/JSON; charset=utf-8, text/csv, application/zip")
    for status, error in ((400, made.BadRequest), (500, made.ApiError)):
        for media, body, known in (
            ("application/json", b'{"rows": 1}', made.ExportAnswer(rows=1)),
            ("application/problem+json", b'{"title": "no"}', made.Error(title="no")),
            ("text/plain", b"no", "no"),
        ):
            with pytest.raises(error) as raised:
                export(media, body, status)
            assert (type(raised.value), raised.value.body) == (error, known)


def test_an_object_in_another_format_than_json_is_not_asked_for_beside_it() -> None:
    pet = {"type": "object", "properties": {"name": {"type": "string"}}}
    both = {"application/xml": {"schema": pet}, "application/json": {"schema": pet}}
    responses = {"200": {"content": both}, "201": {"content": {"application/xml": {"schema": pet}}}}
    made = module(described({"/": {"get": {"operationId": "get", "responses": responses}}}))
    assert made.Client.get.__annotations__["return"] == "GetAnswer | str"
    assert made._OPERATIONS["get"].replies["200"][1].keys() == {"application/json"}


def test_an_answer_without_a_content_type_is_bytes_where_the_document_has_them() -> None:
    content: dict[str, Any] = {"application/json": {"schema": {"type": "integer"}}, "application/octet-stream": {}}
    made = module(described({"/": {"get": {"operationId": "get", "responses": {"200": {"content": content}}}}}))
    assert client(made, lambda *_: (200, "", b"1")).get().read() == b"1"


async def test_an_operation_that_answers_errors_alone_does_not_return() -> None:
    failed: dict[str, Any] = {"content": {"application/json": {"schema": {"type": "string"}}}}
    paths = {"/": {"get": {"operationId": "fail", "responses": {"404": failed, "default": failed}}}}
    made = module(described(paths))
    assert made.Client.fail.__annotations__["return"] == "NoReturn"
    assert made.AsyncClient.fail.__annotations__["return"] == "NoReturn"
    for status, error in ((404, made.NotFound), (500, made.ApiError), (200, made.ApiError)):
        with pytest.raises(error) as raised:
            client(made, lambda *_, status=status: (status, "application/json", b'"no"')).fail()
        assert (type(raised.value), raised.value.body) == (error, "no")

    app = create_app()

    @app.get("/")
    async def fail(req: Request, res: Response) -> None:
        res.status(404).json("no")

    with pytest.raises(made.NotFound):
        await made.AsyncClient(made.fetch_transport(Client(app, None).fetch, http.Request)).fail()


async def test_events_and_lines_are_streams_of_values_and_errors_are_raised_beside_them() -> None:
    item = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": item}
    events = {"text/event-stream": {"itemSchema": {"type": "object", "properties": {"data": data}}}}
    not_found = {"description": "", "content": {"text/plain": {}}}
    made = module(
        described(
            {
                "/events": {"get": {"responses": {"200": {"content": events}, "404": not_found}}},
                "/lines": {"get": {"responses": {"200": {"content": {"application/jsonl": {"itemSchema": item}}}}}},
                "/texts": {"get": {"responses": {"200": {"content": {"text/event-stream": {}}}}}},
            },
            "3.2.0",
        )
    )
    sent = ': hi\r\nevent: x\r\ndata: {"n":\r\ndata: 1}\r\n\r\nid: 3\r\rdata: {"n": 2}\n\ndata: {"n": "ü"}\n\n'.encode()
    seen: list[Mapping[str, str]] = []

    def answers(method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, str, bytes]:
        seen.append(headers)
        return {"/events": (200, "text/event-stream", sent), "/lines": (200, "application/jsonl", b'{"n":1}\n{"n":2}')}[
            path
        ]

    stream = client(made, answers).get_events()
    assert seen[0]["accept"] == "text/event-stream, text/plain"
    assert [(one.data.n, one.event, one.id) for one in (next(stream), next(stream))] == [
        (1, "x", ""),
        (2, "message", "3"),
    ]
    with pytest.raises(
        made.UnexpectedAnswer, match="GET /events: 200: an item of the stream: n: 'ü' is not an integer"
    ):
        next(stream)
    assert [line.n for line in client(made, answers).get_lines()] == [1, 2]
    with pytest.raises(made.NotFound) as gone:
        client(made, lambda *_: (404, "text/plain", b"no")).get_events()
    assert gone.value.body == "no"
    texts = client(made, lambda *_: (200, "text/event-stream", b"data:a\ndata: b\n\n")).get_texts()
    assert list(texts) == [made.Event("a\nb")]


def test_the_connection_is_closed_at_the_end_of_a_stream_by_with_and_by_an_error() -> None:
    media: dict[str, Any] = {"application/jsonl": {"itemSchema": {"type": "integer"}}}
    made = module(described({"/": {"get": {"operationId": "get", "responses": {"200": {"content": media}}}}}))
    closed: list[bytes] = []

    def api(content: bytes) -> Any:
        return made.Client(lambda *_: made.Answered(200, {}, iter([content]), lambda: closed.append(content)))

    assert list(api(b"1\n2\n").get()) == [1, 2]
    with api(b"3\n4\n").get() as stream:
        assert next(stream) == 3
    with pytest.raises(made.UnexpectedAnswer):
        list(api(b"x").get())
    with api(b"5\n").get():
        pass
    assert closed == [b"1\n2\n", b"3\n4\n", b"x", b"5\n"]


# Types


def test_schemas_of_equal_shape_are_one_class_under_the_words_that_they_share() -> None:
    def failing(text: str, **more: Any) -> dict[str, Any]:
        properties = {"error": {"type": "string", "const": text}, **more}
        return {"type": "object", "properties": properties, "required": ["error"]}

    done = {"type": "object", "properties": {"ok": {"type": "boolean", "const": True}}, "required": ["ok"]}
    user = {"type": "object", "properties": {"error": {"type": "integer"}}, "required": ["error"]}
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    components = {
        "UserNotFoundError": failing("User not found"),
        "GoneError": failing("It is gone"),
        "CodeError": failing("Taken", code={"type": "string", "const": "TAKEN"}),
        "User": user, "Person": user, "Node": node,
    }  # fmt: skip
    answers = {
        name: {
            "get": {"operationId": name, "responses": {"200": {"content": {"application/json": {"schema": schema}}}}}
        }
        for name, schema in (("do", done), ("redo", done), ("see", {"$ref": "#/components/schemas/GoneError"}))
    }
    made = module(described({f"/{name}": item for name, item in answers.items()}, schemas=components))
    assert made.UserNotFoundError is made.GoneError is made.Error
    assert made.Person is made.User
    assert made.CodeError(error="x").code is made.UNSET
    assert made.OkAnswer().ok is True
    assert [client(made, lambda *_: (200, "", b'{"ok": true}')).do()] == [made.OkAnswer()]
    # A text for people is any text, so that a new one breaks no client.
    assert client(made, lambda *_: (200, "", b'{"error": "Other words"}')).see() == made.Error(error="Other words")


def test_the_second_body_of_an_operation_is_called_after_its_status() -> None:
    def of(name: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
        return {"description": "", "content": {"application/json": {"schema": schema}}}

    made = module(described({"/": {"post": {"operationId": "invite", "responses": {"201": of("a"), "202": of("b")}}}}))
    assert made.Client.invite.__annotations__["return"] == "InviteAnswer | InviteAccepted"


def test_classes_that_no_schema_names_are_called_as_people_would() -> None:
    def of(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": [*properties]}

    text, number = {"type": "string"}, {"type": "integer"}
    page = of(articles={"type": "array", "items": {"$ref": "#/components/schemas/Article"}}, articlesCount=number)
    issues = {"type": "array", "items": of(path=text, message=text)}
    reply = of(replies={"type": "array", "items": of(author=text)})
    components = {
        "Article": of(title=text, categories={"type": "array", "items": of(label=text)}),
        "NotFoundError": of(error=text),
        "GoneError": of(error=text),
        "InvalidError": of(error=text, issues=issues),
        "ConflictError": of(error=text, issues=issues),
        "LoginError": of(errors=of(token=text)),
        "Thread": reply,
        "ThreadReply": of(score=number),
    }
    answers = {
        name: {"get": {"operationId": name, "responses": {"200": {"content": {"application/json": {"schema": page}}}}}}
        for name in ("list", "feed")
    }
    made = module(described({f"/{name}": item for name, item in answers.items()}, schemas=components))
    assert made.ArticlesAnswer(articles=[], articles_count=0)
    assert made.ArticleCategory(label="tea")
    assert made.NotFoundError is made.GoneError is made.Error
    assert made.InvalidError is made.ConflictError is made.ErrorWithIssues
    assert made.ErrorWithIssues(error="x", issues=[made.ErrorIssue(path="title", message="is missing")])
    assert made.LoginError(errors=made.LoginErrors(token="x"))
    # A name of the document is its schema's, whatever comes first.
    assert made.ThreadReply(score=1)
    assert made.ThreadRepliesItem(author="ada")


def test_a_class_has_a_number_only_where_nothing_else_tells_it_apart() -> None:
    def of(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": [*properties]}

    text = {"type": "string"}
    gone = {"content": {"application/json": {"schema": {"anyOf": [{"$ref": "#/components/schemas/A"}, of(b=text)]}}}}
    either = {"content": {"application/json": {"schema": {"anyOf": [of(c=text), of(d=text)]}}}}
    responses = {"200": either, "410": gone, "4XX": {"content": {"application/json": {"schema": of(e=text)}}}}
    responses["default"] = {"content": {"application/json": {"schema": of(f=text)}}}
    made = module(described({"/": {"get": {"operationId": "see", "responses": responses}}}, schemas={"A": of(a=text)}))
    assert made.SeeGoneError(b="x")
    assert made.SeeClientError(e="x")
    assert made.SeeError(f="x")
    assert made.SeeAnswer1(c="x")
    assert made.SeeAnswer2(d="x")


async def test_values_are_what_their_formats_say() -> None:
    schema = {
        "type": "object",
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "key": {"type": "string", "format": "uuid"},
            "whole": {"type": "integer"},
            "or_null": {"type": ["string", "null"]},
            "old_null": {"type": "string", "nullable": True},
            "left_out": {"type": "string"},
        },
        "required": ["at", "day", "key", "whole", "or_null", "old_null"],
    }
    body = body_of(
        schema,
        {
            "at": "2026-01-02T03:04:05Z", "day": "2026-01-02", "key": str(UUID(int=1)),
            "whole": 1.0, "or_null": None, "old_null": None, "unknown": 1,
        },
    )  # fmt: skip
    assert body.at == dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert (body.day, body.key, body.whole) == (dt.date(2026, 1, 2), UUID(int=1), 1)
    assert (body.or_null, body.old_null, body.left_out.name) == (None, None, "UNSET")


async def test_all_of_is_one_class_recursion_works_and_a_union_is_the_class_that_knows_the_fields() -> None:
    components = {
        "Base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        "Tree": {
            "allOf": [
                {"$ref": "#/components/schemas/Base"},
                {"properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}},
            ]
        },
        "Cat": {"type": "object", "properties": {"purrs": {"type": "boolean"}}},
        "Dog": {"type": "object", "properties": {"barks": {"type": "boolean"}}},
        "Loop": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/components/schemas/Loop"}}]},
    }
    tree = body_of({"$ref": "#/components/schemas/Tree"}, {"id": 1, "children": [{"id": 2}]}, **components)
    assert (type(tree).__name__, tree.children[0].id) == ("Tree", 2)
    either = {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]}
    assert type(body_of(either, {"barks": True}, **components)).__name__ == "Dog"
    assert body_of({"$ref": "#/components/schemas/Loop"}, [1, [2]], **components) == [1, [2]]


async def test_names_that_python_or_the_module_has_are_other_names() -> None:
    names = ["class", "list", "dt", "userId", "user_id", "1st", "", "field", "str", "ünï", "None"]
    schema = {"type": "object", "properties": {name: {"type": "array", "items": {"type": "string"}} for name in names}}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in ["self", "body", "from", "x-y"]
    ]
    response = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Client"}}}}
    operation = {"parameters": parameters, "responses": {"200": response}}
    made = module(
        described(
            {"/list": {"get": {"operationId": "list", **operation}, "put": {"operationId": "list", **operation}}},
            schemas={"Client": schema, "client": {"type": "object", "properties": {"mapping": {"type": "string"}}}},
        )
    )
    given = json.dumps({name: [name] for name in names}).encode()
    seen: list[str] = []

    def answers(method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> tuple[int, str, bytes]:
        seen.append(path)
        return 200, "application/json", given

    api = client(made, answers)
    body = api.list_(self_="a", body_="b", from_="c", x_y="d")
    assert seen == ["/list?self=a&body=b&from=c&x-y=d"]
    assert api.list_2() == body
    assert sorted(vars(body)) == sorted(
        ["class_", "list_", "dt_", "user_id", "user_id_2", "value_1st", "value", "field_", "str_", "ünï", "none"]
    )
    assert json.loads(made._json(body)) == json.loads(given)


def test_a_schema_called_as_a_class_of_the_module_and_a_form_with_files_have_names_with_words() -> None:
    text, binary = {"type": "string"}, {"type": "string", "contentMediaType": "application/octet-stream"}
    schemas = {
        "File": {"type": "object", "properties": {"name": text}},
        "Upload": {"type": "object", "properties": {"title": text, "cover": binary}},
        "Note": {"type": "object", "properties": {"words": text}},
    }
    paths = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "requestBody": {
                    "content": {"multipart/form-data": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
                },
                "responses": {"204": {"description": "No Content"}},
            }
        }
        for name, schema in (("upload", "Upload"), ("write", "Note"))
    }
    made = module(described(paths, schemas=schemas))
    assert made.FileModel(name="a")
    assert made.UploadForm(cover=made.File(b"x", "a.txt"))
    assert not [name for name in vars(made) if name[0].isupper() and name[-1].isdigit()]


async def test_fields_without_a_name_of_their_own_are_kept() -> None:
    schema = {
        "type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "integer"},
    }  # fmt: skip
    body = body_of(schema, {"a": 1, "b": 2})
    assert (body.a, body.additional_properties) == (1, {"b": 2})


# Requests


async def test_parameters_are_written_as_their_styles_say() -> None:
    array = {"type": "array", "items": {"type": "integer"}}
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "many", "in": "query", "schema": array},
        {"name": "comma", "in": "query", "explode": False, "schema": array},
        {"name": "pipe", "in": "query", "style": "pipeDelimited", "schema": array},
        {"name": "deep", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
        {"name": "doc", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "yes", "in": "query", "schema": {"type": "boolean"}},
        {"name": "X-Trace", "in": "header", "required": True, "schema": {"type": "integer"}},
        {"name": "theme", "in": "cookie", "schema": {"type": "string"}},
    ]
    schemes = {
        "key": {"type": "apiKey", "in": "query", "name": "api_key"},
        "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "basic": {"type": "http", "scheme": "basic"},
        "Client": {"type": "http", "scheme": "bearer"},
    }
    responses = {"200": {"description": ""}}
    made = module(
        described({"/x/{id}": {"get": {"operationId": "x", "parameters": parameters, "responses": responses}}},
                  securitySchemes=schemes)
    )  # fmt: skip
    seen: list[Any] = []

    def answers(*given: Any) -> tuple[int, str, bytes]:
        seen.append(given)
        return 200, "", b""

    api = client(made, answers, headers=made.session("s"), query=made.key("k"))
    api.x(
        "a/b ü", many=[1, 2], comma=[1, 2], pipe=[1, 2], deep={"k": 1}, doc={"k": 1}, yes=True, x_trace=7, theme="dark"
    )
    method, path, headers, body = seen[0]
    assert (method, body) == ("GET", None)
    assert path == (
        "/x/a%2Fb%20%C3%BC?api_key=k&many=1&many=2&comma=1%2C2&pipe=1%7C2&deep%5Bk%5D=1&doc=%7B%22k%22%3A1%7D&yes=true"
    )
    assert headers == {"accept": "*/*", "x-trace": "7", "cookie": "sid=s; theme=dark"}
    assert made.basic("a", "b") == {"Authorization": "Basic YTpi"}
    assert made.client("t") == {"Authorization": "Bearer t"}


async def test_forms_files_and_texts_arrive_as_they_were_given() -> None:
    app = create_app()

    @app.post("/form")
    async def form(req: Request, res: Response) -> None:
        given = await req.form()
        res.json({name: given.text(name) for name in ("name", "left_out")})

    @app.post("/upload")
    async def upload(req: Request, res: Response) -> None:
        given = await req.form()
        file = given.file("file")
        assert file is not None
        res.json({"name": given.text("name"), "file": [file.filename, file.content_type, file.content().decode()]})

    @app.post("/text")
    async def text(req: Request, res: Response) -> None:
        res.text(f"{req.header('Content-Type')} {await req.text()}")

    def posting(media: str, schema: Any, answer: str = "application/json") -> dict[str, Any]:
        return {
            "post": {
                "requestBody": {"required": True, "content": {media: {"schema": schema}}},
                "responses": {"200": {"content": {answer: {}}}},
            }
        }

    fields = {"name": {"type": "string"}, "left_out": {"type": "string"}}
    made = module(
        described(
            {
                "/form": posting("application/x-www-form-urlencoded", {"type": "object", "properties": fields}),
                "/upload": posting(
                    "multipart/form-data",
                    {"type": "object", "properties": {**fields, "file": {"type": "string", "format": "binary"}}},
                ),
                "/text": posting("text/plain", {"type": "string"}, "text/plain"),
            }
        )
    )
    api = made.AsyncClient(made.fetch_transport(Client(app, None).fetch, http.Request))
    assert await api.post_form(made.PostFormBody(name="ü&=")) == {"name": "ü&=", "left_out": None}

    async def pieces() -> AsyncIterator[bytes]:
        yield b"hel"
        yield b"lo"

    for content in (b"hello", io.BytesIO(b"hello"), [b"hel", b"lo"], pieces()):
        file = made.File(content, 'a"b.txt', "text/plain")
        answer = await api.post_upload(made.PostUploadBody(name="n", file=file))
        assert answer == {"name": "n", "file": ['a"b.txt', "text/plain", "hello"]}
    assert await api.post_text("ü") == "text/plain; charset=utf-8 ü"
    with pytest.raises(TypeError, match="only AsyncClient sends an async iterable"):
        client(made, lambda *given: (200, "", b"".join(given[3]))).post_upload(
            made.PostUploadBody(file=made.File(pieces()))
        )


# The command


def test_the_same_document_gives_the_same_file_and_check_says_so(tmp_path: Path) -> None:
    document, file = USERS / "openapi.json", tmp_path / "client.py"
    written = run("client", str(document), "-o", str(file))
    assert (written.returncode, written.stdout) == (0, f"{file} written.\n"), written.stderr
    first = file.read_text("utf-8")
    checked = run("client", str(document), "-o", str(file), "--check")
    assert (checked.returncode, checked.stdout) == (0, f"{file} is up to date.\n")
    assert run("client", str(document)).stdout == first

    file.write_text(first.replace("async def get_user(", "async def got_user("), "utf-8")
    checked = run("client", str(document), "-o", str(file), "--check")
    assert checked.returncode == 1
    assert "-    async def got_user(self, id: str | int) -> UserRecord:" in checked.stdout
    assert checked.stdout.endswith(f"{file} is not up to date. Run `core client {document} -o {file}`.\n")


def test_what_is_written_passes_the_formatter_and_needs_the_standard_library_alone(tmp_path: Path) -> None:
    file = tmp_path / "client.py"
    file.write_text(write_client(json.loads((USERS / "openapi.json").read_text("utf-8"))), "utf-8")
    ruff = Path(sys.executable).parent / "ruff"
    for arguments in (["format", "--check", "--isolated"], ["check", "--isolated"]):
        done = subprocess.run([ruff, *arguments, file], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    subprocess.run([sys.executable, "-S", "-I", file], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the document is not JSON"),
        ("[1]", "it is not an object"),
        ("a: 1\n\tb: 2", "neither JSON nor YAML: .* line 2 column 1. Write it anew: core openapi -o"),
        ('{"swagger": "2.0"}', "It is of version 2: convert it first"),
        ('{"openapi": "3.0.0", "paths": {"/a": {"get": null}}}', "GET /a: the document is not valid OpenAPI there"),
        ('{"openapi": "3.0.0", "paths": [1]}', "the paths: the document is not valid OpenAPI there"),
        ('{"openapi": "3.0.0", "components": {"schemas": {"A": {"properties": [1]}}}}', "the schemas: the document is"),
        ('{"openapi": "3.0.0", "paths": {"/": {"$ref": "other.yaml"}}}', "which is in another file. Bundle it"),
        ('{"openapi": "3.0.0", "paths": {"/": {"$ref": "#/nowhere"}}}', "which it does not have. Add it"),
    ],
)
def test_a_document_that_cannot_be_used_is_told_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(DeveloperError, match=message):
        write_client(load_document(text, "the document", "core openapi -o openapi.json"))


def test_a_document_in_yaml_is_the_same_as_in_json() -> None:
    text = "openapi: 3.0.0\ninfo: {title: T, version: 2020-01-01}\npaths: {/a: {get: {responses: {200: {}}}}}\n"
    document = load_document(text, "api.yaml", "core openapi -o api.yaml")
    assert document["info"]["version"] == "2020-01-01"
    assert document["paths"]["/a"]["get"]["responses"] == {"200": {}}
    assert load_document(json.dumps(document), "api.json", "core openapi -o api.json") == document


def test_a_file_that_is_not_there_and_check_without_a_file_are_usage_errors(tmp_path: Path) -> None:
    missing = run("client", str(tmp_path / "no.json"))
    assert (missing.returncode, missing.stderr.count("core openapi -o")) == (2, 1)
    assert run("client", str(USERS / "openapi.json"), "--check").returncode == 2


def test_a_file_that_cannot_be_written_is_a_usage_error_and_one_of_other_bytes_is_written_over(tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(described({})), "utf-8")
    (tmp_path / "client.py").write_bytes(b"\xff")
    done = run("client", "openapi.json", "-o", "client.py", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "client.py written.\n", "")
    for place in (".", "openapi.json/client.py"):
        done = run("client", "openapi.json", "-o", place, folder=tmp_path)
        assert done.returncode == 2
        told = rf"error: {re.escape(place)} cannot be written: [A-Z][a-z ]+\. Name another file\n"
        assert re.fullmatch(told, done.stderr)


def test_operations_of_every_shape_are_methods() -> None:
    response = {"responses": {"204": {"description": ""}}}
    made = module(
        described({"/a": {"query": response, "additionalOperations": {"LINK": response}, "head": response}}, "3.2.0")
    )
    asked = client(made, lambda method, *_: (204, "", method.encode()))
    for call in (asked.query_a, asked.link_a, asked.head_a):
        assert call() is None
