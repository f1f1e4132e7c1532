"""Differences between two documents: their words, and whether they break a client, edit by edit as oasdiff tells.

`edits.json` has a document, and edits of it with the level that oasdiff 494bcf9 gives them, run over both documents;
where that of `core` is another one, it stands behind it with the reason.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.openapi.test_client_hostile import documents

from core.openapi.changes import Change, compare
from core.openapi.rules import RULES

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


def told(old: Schema, new: Schema) -> list[tuple[str, str]]:
    return [(change.level, change.message) for change in compare(old, new)]


DATA = json.loads((Path(__file__).parent / "edits.json").read_text("utf-8"))
LEVELS = {"breaking": "error", "warning": "warning", "change": "info"}


def key_in(holder: object, part: str) -> Any:
    return int(part) if isinstance(holder, list) else part.replace("~1", "/")


def edited(edits: dict[str, Any]) -> Any:
    """The document with values at places: "(gone)" takes one away, "-" is behind the last item of an array."""
    document: Any = copy.deepcopy(DATA["document"])
    for place, value in edits.items():
        short, _, rest = place.partition("/")
        *way, last = (DATA["short"].get(short, "") + "/" + rest).replace("//", "/")[1:].split("/")
        here: Any = document
        for part in way:
            here = here[key_in(here, part)]
        if value == "(gone)":
            del here[key_in(here, last)]
        elif last == "-":
            here.append(value)
        else:
            here[key_in(here, last)] = value
    return document


@pytest.mark.parametrize(("edit", "edits", "oasdiff", "own"), [(*edit[:3], edit[3:]) for edit in DATA["edits"]])
def test_an_edit_has_the_level_of_oasdiff(edit: str, edits: dict[str, Any], oasdiff: str, own: list[str]) -> None:
    found = compare(DATA["document"], edited(edits))
    level = LEVELS[found[0].level] if found else "none"
    if own:
        assert (level, oasdiff) == (own[0], oasdiff)
        assert oasdiff != own[0], "the reason is needless"
    else:
        # oasdiff is silent about some changes that break nobody.
        assert level == oasdiff or {level, oasdiff} == {"info", "none"}
    assert all(change.advice for change in found if change.level != "change")


def test_every_rule_has_an_edit() -> None:
    messages = {change.message for edit in DATA["edits"] for change in compare(DATA["document"], edited(edit[1]))}
    for rule in RULES.values():
        for words in rule.words.split(" | "):
            pattern = re.compile(re.sub(r"\\{\d\\}", ".+", re.escape(words)))
            assert any(map(pattern.fullmatch, messages)), words


def test_a_document_that_means_the_same_has_no_changes() -> None:
    same = json.loads(json.dumps(DATA["document"]))
    user = same["components"]["schemas"].pop("User")
    user["properties"]["email"] = {"type": ["null", "string"]}
    user["properties"]["role"] = {"anyOf": [{"const": "user", "type": "string"}, {"const": "admin", "type": "string"}]}
    user["properties"]["pet"]["anyOf"].reverse()
    half = {"type": "object", "properties": user["properties"]}
    same["components"]["schemas"]["Person"] = {"allOf": [half, {"required": user["required"][::-1]}]}
    assert compare(DATA["document"], json.loads(json.dumps(same).replace("schemas/User", "schemas/Person"))) == []


def test_what_is_gone_breaks_and_what_is_new_does_not() -> None:
    old = document({"responses": {"200": {}, "404": {"headers": {"Retry-After": {}}}}})
    new = document({"responses": {"200": {}, "404": {}, "409": {}}})
    assert told(old, new) == [
        ("warning", "no longer sends the header Retry-After of 404"),
        ("change", "also answers 409"),
    ]
    assert told(new, old)[-1] == ("change", "no longer answers 409")
    empty: Schema = {"openapi": "3.2.0", "paths": {}}
    assert told(old, empty) == [("breaking", "is gone (GET /users/{id})")]
    assert told(empty, old) == [("change", "is new (GET /users/{id})")]


def test_parameters() -> None:
    def reading(**more: Any) -> Schema:
        return document({"parameters": [{"name": "page", "in": "query", "schema": INTEGER, **more}]})

    assert told(document({}), reading()) == [("change", "also takes the query parameter page")]
    assert told(document({}), reading(required=True)) == [("breaking", "now demands the query parameter page")]
    assert told(reading(), reading(required=True)) == [
        ("breaking", "now demands the query parameter page, which could be left out")
    ]
    assert told(reading(), document({})) == [("warning", "no longer reads the query parameter page")]


def test_security() -> None:
    open_, closed = document({}), document({"security": [{"bearer": []}]})
    assert told(open_, closed) == [
        ("breaking", "no longer lets requests without credentials in"),
        ("change", "also lets bearer in"),
    ]
    assert told(closed, open_) == [("change", "also lets requests without credentials in")]


def test_the_wording_of_an_error_is_no_promise_but_its_code_is() -> None:
    def failing(message: str, code: str) -> Schema:
        return obj(error={"const": message, "type": "string"}, code={"const": code, "type": "string"})

    assert told(answering(failing("Taken", "A"), "409"), answering(failing("In use", "A"), "409")) == []
    assert told(answering(failing("Taken", "A"), "409"), answering(failing("Taken", "B"), "409")) == [
        ("breaking", 'also answers "B" as `code` of the body of 409'),
        ("change", 'no longer answers "A" as `code` of the body of 409'),
    ]
    one, two = {"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Two"}
    bodies = {"One": obj(error={"const": "Invalid JSON"}), "Two": obj(error={"const": "Malformed path"})}
    assert told(answering(one, "400", **bodies), answering({"anyOf": [one, two]}, "400", **bodies)) == []


@given(documents())
def test_every_document_is_as_it_was(document: dict[str, Any]) -> None:
    assert compare(document, document) == []


def test_a_class_that_holds_itself_has_an_end() -> None:
    reference = {"$ref": "#/components/schemas/Tree"}
    old = answering(reference, Tree=obj(name=STRING, children={"type": "array", "items": reference}))
    new = answering(reference, Tree=obj(children={"type": "array", "items": reference}))
    assert told(old, new) == [("breaking", "no longer answers `name` of the body of 200")]
    assert compare(old, old) == []


def test_those_that_break_come_first_and_read_as_sentences() -> None:
    found = compare(answering(obj(a=STRING)), answering(obj(b=STRING)))
    assert [str(change) for change in found] == [
        "`get_user` no longer answers `a` of the body of 200",
        "`get_user` also answers `b` of the body of 200",
    ]
    assert isinstance(found[0], Change)


@pytest.mark.parametrize(
    ("old", "new", "level", "words"),
    [
        (
            {"format": "date", "formatMinimum": "2020-01-01"},
            {"formatMinimum": "2021-01-01"},
            "breaking",
            "formatMinimum",
        ),
        ({"format": "date", "formatMinimum": "2020-01-01"}, {"formatMinimum": "2019-01-01"}, "change", "formatMinimum"),
        ({"format": "decimal", "formatMaximum": "9.5"}, {"formatMaximum": "10"}, "change", "formatMaximum 10"),
        ({"format": "decimal", "formatMaximum": "10"}, {"formatMaximum": "9.5"}, "breaking", "formatMaximum 9.5"),
        ({"multipleOf": 12}, {"multipleOf": 6}, "warning", "another `multipleOf`"),
        ({}, {"multipleOf": 6}, "breaking", "has a `multipleOf`"),
        ({"not": {"enum": ["a"]}}, {"not": {"enum": ["a", "b"]}}, "warning", "another `not`"),
    ],
)
def test_what_a_field_requires_is_compared(old: Schema, new: Schema, level: str, words: str) -> None:
    before, after = taking(obj(field={**STRING, **old})), taking(obj(field={**STRING, **old, **new}))
    assert compare(before, before) == []
    [change] = compare(before, after)
    assert (change.level, words in change.message) == (level, True), change.message


def test_the_places_of_a_tuple_are_compared() -> None:
    def pair(*items: Schema) -> Schema:
        return {"type": "array", "prefixItems": [*items], "minItems": len(items), "maxItems": len(items)}

    assert told(answering(pair(STRING, INTEGER)), answering(pair(STRING, INTEGER))) == []
    changes = told(answering(pair(STRING, INTEGER)), answering(pair(STRING, STRING)))
    assert changes[0][0] == "breaking"
    assert all("[1]" in message for _, message in changes)


def event(name: str, data: Schema) -> Schema:
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    return obj(event={"type": "string", "const": name}, data=text)


def sending(*events: Schema) -> Schema:
    items = {"itemSchema": {"anyOf": [*events]}} if len(events) > 1 else {"itemSchema": events[0]}
    return document({"responses": {"200": {"content": {"text/event-stream": items}}}})


def test_the_data_of_events_is_compared() -> None:
    said, left = event("said", obj(id=INTEGER, text=STRING)), event("left", obj(id=INTEGER))
    less, more = event("said", obj(id=INTEGER)), event("said", obj(id=INTEGER, text=STRING, by=STRING))
    gone = ("breaking", "no longer answers `data.text` of the body of 200")
    for others in ((), (left,)):
        assert told(sending(said, *others), sending(less, *others)) == [gone]
        assert told(sending(*others, said), sending(more, *others)) == [
            ("change", "also answers `data.by` of the body of 200")
        ]
    text = obj(event={"type": "string", "const": "said"}, data=STRING)
    assert told(sending(text), sending(said))[0] == ("breaking", "also answers object as `data` of the body of 200")


def test_a_member_of_a_union_is_known_by_its_constants() -> None:
    cat, dog = obj(kind={"const": "cat"}, name=STRING), obj(kind={"const": "dog"}, name=STRING)
    old_dog = obj(kind={"const": "dog"}, name=STRING, age=INTEGER)
    assert told(answering({"anyOf": [cat, dog]}), answering({"anyOf": [old_dog, cat]})) == [
        ("change", "also answers `age` of the body of 200")
    ]
    fish = obj(kind={"const": "fish"})
    assert told(answering({"anyOf": [cat, dog]}), answering({"anyOf": [cat, fish]})) == [
        ("breaking", 'also answers kind "fish" as the body of 200'),
        ("change", 'no longer answers kind "dog" as the body of 200'),
    ]


def test_websockets_and_mounts_that_are_gone_are_told() -> None:
    talk = {"operationId": "talk", "parameters": [{"name": "as", "in": "query", "schema": STRING}]}
    empty: Schema = {"openapi": "3.2.0", "paths": {}}
    sockets = {**empty, "paths": {"/rooms/{room}": {"x-websocket": talk}}}
    assert told(sockets, empty) == [("breaking", "is gone (WebSocket /rooms/{room})")]
    assert told({**empty, "x-mounted": ["/old"]}, empty) == [("breaking", "is gone (mount /old)")]
    silent = {**empty, "paths": {"/rooms/{room}": {"x-websocket": {"operationId": "talk"}}}}
    assert told(sockets, silent) == [("warning", "no longer reads the query parameter as")]
