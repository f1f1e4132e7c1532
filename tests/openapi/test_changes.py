"""Differences between two documents: their names, and whether they break a client, line by line of the table."""

from __future__ import annotations

from typing import Any

import pytest

from core.openapi.changes import Change, compare

Schema = dict[str, Any]
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def obj(required: list[str] | None = None, **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields) if required is None else required}


def answering(schema: Schema, status: str = "200", **components: Schema) -> Schema:
    return document({"responses": {status: {"content": {"application/json": {"schema": schema}}}}}, **components)


def taking(schema: Schema) -> Schema:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return document({"requestBody": body, "responses": {}})


def document(operation: Schema, **components: Schema) -> Schema:
    return {
        "openapi": "3.2.0",
        "paths": {"/users/{id}": {"get": {"operationId": "get_user", "responses": {}, **operation}}},
        "components": {"schemas": components},
    }


def told(old: Schema, new: Schema) -> list[tuple[bool, str]]:
    return [(change.breaking, change.message) for change in compare(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (obj(id=INTEGER), obj(id=INTEGER, email=STRING), (False, "also answers `email` of 200")),
        (obj(id=INTEGER, email=STRING), obj(id=INTEGER), (True, "no longer answers `email` of 200")),
        (obj(id=INTEGER), obj(["x"], id=INTEGER), (True, "may leave out `id` of 200")),
        (obj(id=STRING), obj(id={"anyOf": [STRING, NULL]}), (True, "also answers null as `id` of 200")),
        (obj(id={"anyOf": [STRING, NULL]}), obj(id=STRING), (False, "no longer answers null as `id` of 200")),
        (obj(a={"const": 1}), obj(a={"enum": [1, 2]}), (True, "also answers 2 as `a` of 200")),
    ],
)
def test_an_answer_may_only_give_less_variety(old: Schema, new: Schema, change: tuple[bool, str]) -> None:
    assert told(answering(old), answering(new)) == [change]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (obj(id=INTEGER), obj(["id"], id=INTEGER, email=STRING), (False, "also takes `email`")),
        (obj(id=INTEGER), obj(id=INTEGER, email=STRING), (True, "now demands `email`")),
        (obj(id=INTEGER, email=STRING), obj(id=INTEGER), (False, "no longer reads `email`")),
        (obj([], id=INTEGER), obj(id=INTEGER), (True, "now demands `id`")),
        (obj(id=STRING), obj(id={"anyOf": [STRING, NULL]}), (False, "also takes null as `id`")),
        (obj(id={"anyOf": [STRING, NULL]}), obj(id=STRING), (True, "no longer takes null as `id`")),
        (obj(a=STRING), obj(a={"type": "string", "maxLength": 5}), (True, "now has 5 as maxLength of `a`")),
        (obj(a={"type": "string", "maxLength": 5}), obj(a=STRING), (False, "no longer has maxLength of `a`")),
    ],
)
def test_a_request_may_only_take_more(old: Schema, new: Schema, change: tuple[bool, str]) -> None:
    assert told(taking(old), taking(new)) == [change]


def test_what_is_gone_breaks_and_what_is_new_does_not() -> None:
    old = document({"responses": {"200": {}, "404": {"headers": {"Retry-After": {}}}}})
    new = document({"responses": {"200": {}, "404": {}, "409": {}}})
    assert told(old, new) == [(True, "no longer sends the header Retry-After with 404"), (False, "also answers 409")]
    assert told(new, old)[0] == (True, "no longer answers 409")
    empty: Schema = {"openapi": "3.2.0", "paths": {}}
    assert told(old, empty) == [(True, "is gone (GET /users/{id})")]
    assert told(empty, old) == [(False, "is new (GET /users/{id})")]


def test_parameters() -> None:
    def reading(**more: Any) -> Schema:
        return document({"parameters": [{"name": "page", "in": "query", "schema": INTEGER, **more}]})

    assert told(document({}), reading()) == [(False, "also takes the query parameter page")]
    assert told(document({}), reading(required=True)) == [(True, "now demands the query parameter page")]
    assert told(reading(), reading(required=True)) == [
        (True, "now demands the query parameter page, which could be left out")
    ]
    assert told(reading(), document({})) == [(False, "no longer reads the query parameter page")]


def test_security() -> None:
    open_, closed = document({}), document({"security": [{"bearer": []}]})
    assert told(open_, closed) == [
        (True, "no longer lets requests without credentials in"),
        (False, "also lets bearer in"),
    ]
    assert told(closed, open_)[0][0]


def test_the_wording_of_an_error_is_no_promise_but_its_code_is() -> None:
    def failing(message: str, code: str) -> Schema:
        return obj(error={"const": message, "type": "string"}, code={"const": code, "type": "string"})

    assert told(answering(failing("Taken", "A"), "409"), answering(failing("In use", "A"), "409")) == []
    assert told(answering(failing("Taken", "A"), "409"), answering(failing("Taken", "B"), "409")) == [
        (True, 'also answers "B" as `code` of 409'),
        (False, 'no longer answers "A" as `code` of 409'),
    ]
    one, two = {"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Two"}
    bodies = {"One": obj(error={"const": "Invalid JSON"}), "Two": obj(error={"const": "Malformed path"})}
    assert told(answering(one, "400", **bodies), answering({"anyOf": [one, two]}, "400", **bodies)) == []


def test_a_class_that_holds_itself_has_an_end() -> None:
    reference = {"$ref": "#/components/schemas/Tree"}
    old = answering(reference, Tree=obj(name=STRING, children={"type": "array", "items": reference}))
    new = answering(reference, Tree=obj(children={"type": "array", "items": reference}))
    assert told(old, new) == [(True, "no longer answers `name` of 200")]
    assert compare(old, old) == []


def test_those_that_break_come_first_and_read_as_sentences() -> None:
    changes = compare(answering(obj(a=STRING)), answering(obj(b=STRING)))
    assert [str(change) for change in changes] == [
        "`get_user` no longer answers `a` of 200",
        "`get_user` also answers `b` of 200",
    ]
    assert isinstance(changes[0], Change)
