"""What is sent: the status, headers and content that calls of a response's methods put on it, and the answers of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

import attrs
from mypy.nodes import CallExpr, DictExpr, Expression
from mypy.types import Instance, NoneType

from core.openapi.facts import TEXT, Answer, Read
from core.openapi.failures import object_of
from core.openapi.here import RESPONSE, Here, State
from core.openapi.reading import is_json
from core.openapi.trees import argument, called, constant
from core.openapi.values import Value
from core.validation.schema import Schema

_HTTP_RESPONSE: Final = "core.http.response.Response"
_EVENT: Final = "core.http.sse.Event"
_SENDERS: Final[Mapping[str, str | None]] = {
    "json": "application/json",
    "text": "text/plain",
    "html": "text/html",
    "send": None,
    "redirect": None,
    "stream": "application/octet-stream",
    "sse": "text/event-stream",
    "file": "*/*",
}
_OF_FILES: Final = ("Accept-Ranges", "ETag", "Last-Modified")
OF_HEADERS: Final = frozenset(["append", "set", "setdefault", "update"])
METHODS: Final = frozenset([*_SENDERS, "status", "header", "append", "cookie", "delete_cookie"])
"""The methods of a response that are read here."""
_MAKERS: Final = {f"{_HTTP_RESPONSE}.from_json": "json", f"{_HTTP_RESPONSE}.redirect": "redirect"}
"""The methods that send what those of `http.Response` make."""
_DEEPEST: Final = 8
"""How many functions and streams stand between an event and the response."""
_NO_BODY: Final = frozenset([101, 204, 205, 304])
_UNKNOWN_EVENT: Final[Schema] = {
    "$unknown": "the data of an Event: yield it where it is made, or yield the data itself"
}
_LOCATION: Final[Schema] = {"type": "string", "format": "uri-reference"}


# -- responses


def respond(here: Here, call: CallExpr, method: str) -> None:
    """A call of one of a response's `METHODS`."""
    state = here.state
    if method == "status":
        state.status = here.program.statuses(Value(call.args[0], here.frame)) if call.args else ()
        state.late = (here.path, call.line) if state.sent else None
    elif method in ("header", "append", "set", "setdefault"):
        if len(call.args) == 2:
            stage(here, call.args[0], call.args[1])
    elif method == "update":
        for headers in call.args:
            stage_all(here, headers)
    elif method in ("cookie", "delete_cookie"):
        stage_as(here, "Set-Cookie")
    else:
        _send(here, call, method, call.line)


def stage(here: Here, name: Expression, value: Expression) -> None:
    """A header is put on the response."""
    if constant(value) == (None,):
        return
    through = next(filter(None, (at.notes.through(name) for at in here.frame.chain())), None)
    keys = here.keys(through) if through is not None else None
    for known in names(here, name, keys if keys is not None else here.texts(name) or None):
        if known.lower() == "content-type":
            here.state.media = _media(here, value)
        else:
            stage_as(here, known)


def stage_all(here: Here, headers: Expression) -> None:
    """The headers of a mapping are put on the response."""
    if isinstance(headers, DictExpr):
        for name, value in headers.items:
            if name is None:
                stage_all(here, value)
            else:
                stage(here, name, value)
    else:
        for known in names(here, headers, here.keys(headers)):
            stage_as(here, known)


def names(here: Here, headers: Expression, known: list[str] | None) -> list[str]:
    """The names of headers, which are a problem where they are not known."""
    if known is None:
        reason = "the name of a header that is put on the response is not known. Give a constant, or a Literal type"
        here.open(headers.line, reason, answers=False)
    return known or []


def are_staged(here: Here, headers: Expression) -> bool:
    """True for the headers of the response."""
    return here.attribute_of(RESPONSE, headers) == "headers"


def tagged(state: State) -> State:
    """What `etag()` makes of what was sent: each whole answer has a tag, and 304 the headers of them all."""
    sent = [each for each in state.sent if isinstance(each, Answer)]
    whole = [each for each in sent if 200 in each.status and each.media_type is not None and each.item is None]
    headers: dict[str, Schema] = {}
    for each in whole:
        if "etag" not in map(str.lower, each.headers):
            each.headers["ETag"] = TEXT
        headers.update(each.headers)
    if whole:
        state.effects.append(Read(part="header", name="If-None-Match", schema=TEXT))
        unchanged = Answer(status=(304,), headers=headers)
        state.sent = [*state.sent, unchanged]
        state.effects.append(unchanged)
    return state


def _media(here: Here, content_type: Expression) -> str:
    """The content type that an expression gives, without its parameters; any where that is not known."""
    return (here.text(content_type) or "*/*").partition(";")[0].strip()


def stage_as(here: Here, name: str) -> None:
    here.state.headers[name] = TEXT
    for answer in here.state.sent:
        answer.headers.setdefault(name, TEXT)


def _answered(
    here: Here,
    line: int,
    status: tuple[int, ...],
    media: str | None,
    body: Schema | None = None,
    item: Schema | None = None,
    headers: Mapping[str, Schema] | None = None,
) -> None:
    if not status:
        here.open(line, "the status of this answer is not known. Give a number, or a Literal type")
        return
    whole = {**here.state.headers, **(headers or {})}
    answer = Answer(path=here.path, line=line, status=status, media_type=media, body=body, item=item, headers=whole)
    here.effects.append(answer)
    here.state.sent, here.state.late = [*here.state.sent, answer], None


def _send(here: Here, call: CallExpr, method: str, line: int) -> None:
    body = argument(call, 0, "body" if method == "send" else "value")
    media = _SENDERS[method]
    status = here.state.status
    schema: Schema | None = None
    item: Schema | None = None
    headers: dict[str, Schema] = {}
    if method == "send" and body is not None and here.class_of(body) == _HTTP_RESPONSE:
        _pass_on(here, line, body)
        return
    match method:
        case "json":
            schema = here.schema(body) if body is not None else {}
        case "text" | "html":
            schema = TEXT
        case "redirect":
            given = argument(call, 1, "status")
            status = here.program.statuses(Value(given, here.frame)) if given is not None else (302,)
            headers["Location"] = _LOCATION
        case "stream" | "file":
            given = argument(call, 1, "content_type")
            media = _media(here, given) if given is not None else media
            schema = contents(media)
            if method == "file":
                named = argument(call, 99, "filename")
                known = [*_OF_FILES, *(["Content-Disposition"] if named is not None else [])]
                headers = dict.fromkeys(known, TEXT)
            if method == "file" and status == (200,):
                # As the request's conditions and ranges have it (RFC 9110, sections 13 and 14).
                whole = here.state.media or media
                ranged = {**headers, "Content-Range": TEXT}
                _answered(here, line, (206,), whole, contents(whole), headers=ranged)
                _answered(here, line, (304,), None, headers=headers)
                _answered(here, line, (416,), None, headers=ranged)
                here.read(line, "header", "If-None-Match", "If-Modified-Since", "Range", "If-Range")
        case "sse":
            headers["Cache-Control"] = TEXT
            item = _event(here, body)
        case _ if body is not None:
            media, schema = _sent(here, body)
        case _:
            pass
    if media is not None and here.state.media is not None and method != "sse":
        media = here.state.media
        schema = schema if method == "json" else contents(media)
    bare = tuple(each for each in status if each in _NO_BODY)
    if bare:
        _answered(here, line, bare, None, headers=headers)
    if bare != status or not status:
        rest = tuple(each for each in status if each not in bare)
        _answered(here, line, rest, media, schema, item, headers)


def _pass_on(here: Here, line: int, sent: Expression) -> None:
    """`res.send(http.Response(…))`: sent as by the methods of `res`, as far as it is made here."""
    found = here.program.made(Value(sent, here.frame))
    name = called(found[0]) if found is not None else ""
    if found is None or not name.startswith(_HTTP_RESPONSE):
        here.open(line, "a response is passed on, and which is not known. Make it here to have it described")
        return
    (made, frame), there = found, copy(here)
    there.frame, there.state = frame, attrs.evolve(here.state.copy(), status=(200,), media=None)
    status, headers = argument(made, 99, "status"), argument(made, 99, "headers")
    if status is not None:
        there.state.status = here.program.statuses(Value(status, frame))
    if headers is not None:
        stage_all(there, headers)
    _send(there, made, _MAKERS.get(name, "send"), line)
    here.state.sent, here.state.late = there.state.sent, None


def _sent(here: Here, body: Expression) -> tuple[str | None, Schema | None]:
    if isinstance(here.program.type_of(body, here.frame), NoneType):
        return None, None
    match here.class_of(body):
        case "builtins.str":
            return "text/plain", TEXT
        case "builtins.bytes" | "builtins.bytearray" | "builtins.memoryview":
            return "application/octet-stream", contents("application/octet-stream")
        case other:
            return "*/*", {"$unknown": other or "the body sent"}


def _event(here: Here, events: Expression | None) -> Schema:
    """One event of a stream: its data, and its name and id where it is an `Event(…)`."""
    given = here.program.item_of(events, here.frame, "typing.AsyncIterable") if events is not None else None
    if events is None or given is None:
        return _event_of({"$unknown": "the events of a stream"})
    if not isinstance(given, Instance) or given.type.fullname != _EVENT:
        return _event_of(here.program.schemas.of(given))
    yields = here.program.yielded(events, here.frame)
    whole = [each for place in yields for each in _made_event(here, Value(*place))]
    return whole[0] if len(whole) == 1 else {"anyOf": whole or [_event_of(_UNKNOWN_EVENT)]}


def _made_event(here: Here, event: Value, depth: int = 0) -> Iterator[Schema]:
    """Each event that a value may be: made where it is written, in a function, or taken of another stream."""
    made = here.program.made(event)
    if made is not None and called(made[0]) == _EVENT:
        parts = (argument(made[0], 99, name) for name in ("data", "event", "id"))
        yield _event_of(*(here.program.schema(part, made[1]) if part is not None else None for part in parts))
        return
    place = made or event.place
    ways = here.program.ways(*place) if place is not None and depth < _DEEPEST else []
    for each in ways:
        yield from _made_event(here, each, depth + 1)
    if not ways:
        yield _event_of(_UNKNOWN_EVENT)


def _event_of(data: Schema | None, event: Schema | None = None, id: Schema | None = None) -> Schema:
    """A server-sent event: the fields that it has, each a text."""
    properties: dict[str, Schema] = {}
    if data is not None:
        is_plain = data.get("type") == "string" or isinstance(data.get("const"), str)
        as_json = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
        properties["data"] = TEXT if is_plain else as_json
    for name, schema in (("event", event), ("id", id)):
        if schema is not None:
            properties[name] = schema if {"const", "enum"} & schema.keys() else TEXT
    return object_of(properties)


def contents(media: str | None) -> Schema:
    """A body that is made elsewhere than in `res.json`: of JSON that is a text already, nothing is known."""
    if media is not None and is_json(media):
        return {"$unknown": "JSON that is written as text: give res.json the value"}
    is_known = media is not None and "*" not in media
    return {"type": "string", "contentMediaType": media if is_known else "application/octet-stream"}
