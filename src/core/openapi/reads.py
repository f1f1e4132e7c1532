"""What is read of a request: its body, its parameters and their types, with the errors of reading them."""

from __future__ import annotations

from typing import Final

from mypy.nodes import CallExpr, ComparisonExpr, Expression, IndexExpr, MemberExpr

from core.openapi.facts import BODIES, TEXT, Field
from core.openapi.failures import INVALID, LOOKUPS, NOT_FOUND, error, object_of
from core.openapi.here import Here
from core.openapi.sent import contents
from core.openapi.trees import argument, constant
from core.validation.schema import Schema, any_of

REQUEST: Final = "core.request.Request"
PAGED: Final = {"core.pagination.page_of": "page", "core.pagination.cursor_of": "cursor"}
_FILE: Final = "application/octet-stream"
_NAMED: Final = {"header": "header", "signed_cookie": "cookie"}
"""The methods of a request that read one name of a part."""
_PLACES: Final = {"core.request.Query": "query", "core.request.Params": "path", "core.http.forms.Form": "form"}
"""The part of a request that fields are read from, by the class that reads them."""


def _read(
    here: Here, line: int, part: str, name: str | None = None, schema: Schema | None = None, *, required: bool = False
) -> None:
    here.read(line, part, name, schema=schema, required=required)
    if part == "json":
        here.refuse(error(400, "Invalid JSON"), line)
        if not here.state.limited:
            here.refuse(error(413, "Payload Too Large"), line)
    if part == "form" and name is None and schema is None:
        for refused in (error(400), error(413), error(415, "Unsupported Media Type")):
            here.refuse(refused, line)
    if schema is not None and name is None and _may_fail(here, part, schema):
        here.refuse(NOT_FOUND if part == "path" else INVALID, line)


def _read_names(
    here: Here, name: Expression, part: str, schema: Schema | None = None, *, required: bool = False
) -> None:
    """What has a name is read of the request, or what each of several names has."""
    names = here.texts(name)
    for each in names:
        _read(here, name.line, part, each, schema, required=required and len(names) == 1)
    if not names and part != "form":
        _read(here, name.line, part)


def _may_fail(here: Here, part: str, schema: Schema) -> bool:
    """Return True if a value that is read into a type can be wrong. A string is never wrong in a query."""
    if part == "json":
        return schema != {}
    facts = here.program.schemas.classes.get(schema.get("$class", ""))
    return facts is None or any(map(_is_demanding, facts.fields))


def request(here: Here, call: CallExpr, callee: MemberExpr, receiver: str) -> None:
    """A call of a method of a request, or of a part of it."""
    method = callee.name
    if receiver == REQUEST and method in BODIES:
        typed = method == "json" and bool(call.args)
        schema = here.program.structured(call, here.frame) if typed else None
        _read(here, call.line, method, schema=_in_its_envelope(here, call, schema) if schema is not None else None)
        return
    if receiver == REQUEST and method == "require_match":
        _requires_match(here, call)
        return
    if receiver == REQUEST and method == "limit_body":
        here.state.limited = True
        for refusal in call.args[1:]:
            here.raises(refusal)
    if receiver == REQUEST and method in _NAMED:
        where, method = _NAMED[method], "get"
    else:
        where = _place(here, callee.expr, receiver)
    if not where or not call.args:
        return
    if method == "parse":
        _read(here, call.line, where, schema=here.program.structured(call, here.frame))
    elif method in ("get", "get_all", "text", "file", "files") and where != "path":
        kind: Schema = contents(_FILE) if method in ("file", "files") else TEXT
        if method == "get_all" and where == "form":
            kind = any_of([TEXT, contents(_FILE)])
        several = method in ("get_all", "files")
        _read_names(here, call.args[0], where, {"type": "array", "items": kind} if several else kind)


def _in_its_envelope(here: Here, call: CallExpr, schema: Schema) -> Schema:
    """The body whose member `req.json(T, key="…")` reads."""
    given = argument(call, 99, "key")
    if given is None or constant(given) == (None,):
        return schema
    key = here.text(given)
    if key is None:
        return {"$unknown": "the key of req.json(…). Give a constant"}
    return object_of({key: schema})


def _requires_match(here: Here, call: CallExpr) -> None:
    """`req.require_match(etag)`: the client has seen the version it changes, or is refused."""
    given = argument(call, 1, "required")
    required = constant(given) if given is not None else (False,)
    here.read(call.line, "header", "If-Match")
    here.refuse(error(412, "Precondition Failed"), call.line)
    if required != (False,):
        here.refuse(error(428, "Precondition Required"), call.line)


def _place(here: Here, expression: Expression, receiver: str) -> str:
    """Return the part of a request that an expression is: `req.headers`, or a query that a name was given."""
    if receiver in _PLACES:
        return _PLACES[receiver]
    name = here.attribute_of(REQUEST, expression)
    return {"headers": "header", "cookies": "cookie", "query": "query"}.get(name, "")


def index(here: Here, expression: IndexExpr) -> None:
    """`req.query["page"]`, or the item of any other value, which may not be there."""
    receiver = here.class_of(expression.base)
    where = _place(here, expression.base, receiver)
    if where not in ("", "path"):
        required = where != "form" or here.class_of(expression) != ""
        _read_names(here, expression.index, where, TEXT, required=required)
    if where != "path" and (failure := LOOKUPS.get("core" if where else receiver)):
        here.fails(failure, expression.line)


def contains(here: Here, expression: ComparisonExpr) -> None:
    """`"draft" in req.query` asks for a parameter."""
    operands = expression.operands
    for operator, left, right in zip(expression.operators, operands[:-1], operands[1:], strict=True):
        where = _place(here, right, here.class_of(right)) if operator in ("in", "not in") else ""
        if where not in ("", "path"):
            _read_names(here, left, where)


def paged(here: Here, call: CallExpr, which: str) -> None:
    """`page_of(req)` and `cursor_of(req, T)`: the part of a list that the query asks for."""
    limit: Schema = {"type": "integer", "minimum": 1}
    for word, key, otherwise in (("most", "maximum", 100), ("limit", "default", 20)):
        given = argument(call, 99, word)
        known = here.schema(given).get("const") if given is not None else otherwise
        if known is not None:
            limit[key] = known
    part: Schema = {"type": "integer", "minimum": 1, "default": 1} if which == "page" else TEXT
    for name, schema in ((which, part), ("limit", limit)):
        _read(here, call.line, "query", name, schema)
    here.refuse(INVALID, call.line)


def _is_demanding(field: Field) -> bool:
    return field.default is None or {key: part for key, part in field.schema.items() if key != "description"} != TEXT
