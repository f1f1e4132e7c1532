"""Asking the client back, without keeping anything: the function runs again, with the answers that it has got.

A question that has no answer yet ends the call with `input_required`. The client answers in a further call, which
brings the answers, and the state that it was given. The server has signed that state, and bound it to the user, the
method, its arguments and ten minutes, so that an answer counts only for the call that asked.
https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/mrtr
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from core.errors import DeveloperError
from core.http import json
from core.http.json import JsonObject
from core.mcp.content import present
from core.mcp.messages import INVALID_PARAMS, MISSING_CAPABILITY, Call, Input, InputRequired, ProtocolError
from core.request import AnyRequest
from core.signing import sign, unsign
from core.validation.schema import Schema, schema_of
from core.values import is_object

_SECONDS: Final = 600
_PURPOSE: Final = "mcp request state"
_SCALARS: Final = ("string", "integer", "number", "boolean")


def elicit(type_: object, message: str) -> Input:
    """A form for the person at the client: one field for each of the attrs class `type_`, with `message` above it.

    Raises DeveloperError for a class with other fields than texts, numbers, booleans and choices of texts.
    """
    schema = schema_of(type_)
    properties = {name: _form_field(type_, name, field) for name, field in schema.get("properties", {}).items()}
    shown = {"type": "object", "properties": properties, **present(required=schema.get("required"))}
    return Input("elicitation/create", {"mode": "form", "message": message, "requestedSchema": shown})


def _form_field(type_: Any, name: str, schema: Schema) -> Schema:
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    if len(parts) == 1:
        schema = {**parts[0], **({"default": schema["default"]} if schema.get("default") is not None else {})}
    choices = schema.get("items", {}).get("enum") if schema.get("type") == "array" else None
    if schema.get("type") not in _SCALARS and not choices:
        raise DeveloperError(
            f"elicit({type_.__name__}, …): {name} is no field of a form. Use str, int, float, bool, a Literal of texts or a "
            "list of one"
        )
    return schema


def read_answers(call: Call, keys: Sequence[bytes], now: float, binding: str) -> JsonObject:
    """The answers in a call and in the state that came with it. Raises ProtocolError for a state of another call."""
    responses = call.params.get("inputResponses", {})
    if not is_object(responses) or not all(map(is_object, responses.values())):
        raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of objects")
    earlier: JsonObject = {}
    if "requestState" in call.params:
        text = unsign(_PURPOSE, call.param("requestState", str), keys)
        state: Any = json.loads(text) if text is not None else None
        if state is None or state["for"] != binding or state["until"] <= now:
            raise ProtocolError(INVALID_PARAMS, "requestState is not of this call, or is too old")
        earlier = state["answers"]
    return {**earlier, **responses}


def questions_of(call: Call, error: InputRequired, keys: Sequence[bytes], now: float, binding: str) -> JsonObject:
    """The result that asks the client. Raises ProtocolError where the client cannot answer."""
    missing: dict[str, JsonObject] = {
        q.method.partition("/")[0]: {} for q in error.questions.values() if not call.can_ask(q.method)
    }
    if missing:
        words = "The client has not declared the capabilities that this call requires"
        raise ProtocolError(MISSING_CAPABILITY, words, {"requiredCapabilities": missing})
    state = json.dumps({"for": binding, "until": int(now) + _SECONDS, "answers": call.asked or {}})
    requests = {key: {"method": each.method, "params": each.params} for key, each in error.questions.items()}
    return {"resultType": "input_required", "inputRequests": requests, "requestState": sign(_PURPOSE, state, keys)}


def binding_of(call: Call, req: AnyRequest) -> str:
    """The text that stands for one call: who calls what, with which arguments."""
    from hashlib import sha256
    from json import dumps

    user = req.user
    who = next((found for name in ("sub", "id") if (found := getattr(user, name, None)) is not None), user)
    plain = {key: value for key, value in call.params.items() if key not in ("_meta", "inputResponses", "requestState")}
    # Whatever the order in which the client writes the names of its objects.
    written = dumps(json.loads(json.dumps([who, call.method, plain])), sort_keys=True)
    return sha256(written.encode()).hexdigest()
