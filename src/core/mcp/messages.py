"""One message: a JSON-RPC 2.0 request in the body of a POST, held against its headers.

Decided here: which messages are refused before anything of the application runs, in which words and with which status.
This file knows no tools. https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from core.errors import CoreError
from core.http import json
from core.http.json import JsonObject
from core.request import AnyRequest
from core.values import frozen, is_object

LATEST: Final = "2026-07-28"
"""The revision that carries everything in one request."""
EARLIER: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that begin with `initialize`; they are answered without a session."""
VERSIONS: Final = (LATEST, *EARLIER)
MAX_DEPTH: Final = 64
"""The number of arrays and objects that may be inside each other in a message."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
_STATUS: Final = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 500}

_META: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = f"{_META}protocolVersion"
CAPABILITIES_KEY: Final = f"{_META}clientCapabilities"
SERVER_KEY: Final = f"{_META}serverInfo"
LEVEL_KEY: Final = f"{_META}logLevel"
LISTEN_KEY: Final = f"{_META}subscriptionId"
Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[str, ...]] = get_args(Level)
"""Those of RFC 5424, the least important first."""
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""


class ProtocolError(Exception):
    """The error answer to a message; `status` is that of HTTP."""

    def __init__(self, code: int, message: str, data: object = None, *, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id: str | int | None = None
        """The id of the message, where it could be read."""
        self.status: int = _STATUS.get(code, 400) if status is None else status

    def body(self, id: object = None) -> JsonObject:
        """The JSON-RPC answer to the request of that id, or to the one that the error knows."""
        data = {} if self.data is None else {"data": self.data}
        error = {"code": self.code, "message": self.message, **data}
        return {"jsonrpc": "2.0", "id": self.id if id is None else id, "error": error}


@frozen
class Input:
    """A question to the client: one of the protocol's requests, with its parameters."""

    method: str
    params: Mapping[str, object]


class InputRequired(BaseException):
    """Ends a call with questions. It is no Exception: a tool that catches those has not failed."""

    def __init__(self, questions: Mapping[str, Input]) -> None:
        super().__init__("the client is asked")
        self.questions = questions


class Call:
    """One request of a client, once its form has been checked."""

    def __init__(self, method: str, id: object, params: JsonObject, meta: JsonObject, version: str) -> None:
        self.method = method
        self.id = id
        """None for a notification, which is not answered."""
        self.params = params
        self.meta = meta
        self.version = version
        self.stateless: bool = version == LATEST
        """True if the message says everything itself; False for the revisions that begin with `initialize`."""
        self.notify: Callable[[JsonObject], None] | None = None
        """Sends a notification ahead of the answer, where the client listens for one."""
        self.asked: JsonObject | None = None
        """The answers that the client has given to questions of the server so far."""
        self.honored: JsonObject | None = None
        """What a client that listens is told of; None for every other call."""

    def can_ask(self, method: str) -> bool:
        """True if the client has declared that it answers such questions."""
        declared: Any = self.meta.get(CAPABILITIES_KEY)
        # That of `elicitation/create` is `elicitation`.
        return self.stateless and is_object(declared) and method.partition("/")[0] in declared

    @property
    def least(self) -> int:
        """The index of the level from which on the client wants lines of a log; beyond all of them for none.

        A client of an earlier revision cannot be remembered, so it gets all lines, and chooses itself.
        """
        level = self.meta.get(LEVEL_KEY) if self.stateless else LEVELS[0]
        return LEVELS.index(level) if level in LEVELS else len(LEVELS)

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification ahead of the answer, where the client listens."""
        if self.notify is not None:
            self.notify(notification(method, params))

    def param(self, name: str, kind: type[Any], otherwise: object = ...) -> Any:
        """A parameter of this kind. Raises ProtocolError where it is missing or of another one."""
        value = self.params.get(name, otherwise)
        if value is ... or (not isinstance(value, kind) and value is not otherwise):
            words = "a string" if kind is str else "an object"
            raise ProtocolError(INVALID_PARAMS, f"params.{name} must be {words}")
        return value


def notification(method: str, params: JsonObject) -> JsonObject:
    """A message that nobody answers."""
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def check_origin(req: AnyRequest, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
    """Refuse a host that this server does not have, and a page of another origin.

    Over plain HTTP only the names of this machine are its own, and those of `hosts`: a name that an attacker points at
    a server of this network (DNS rebinding) is neither. Over HTTPS the certificate has proven the name.
    """
    from core.http.url import URL, is_same_origin

    url = URL(req.url)
    host = url.hostname
    if host not in hosts and (hosts or url.protocol != "https:") and not _is_loopback(host):
        words = 'The Host of this request is not known. The server names its own: MCP(…, hosts=["…"])'
        raise ProtocolError(INVALID_REQUEST, words, status=403)
    origin = req.header("origin")
    if origin is None or origin in origins or is_same_origin(origin, req.url):
        return
    try:
        local = _is_loopback(host) and _is_loopback(URL(origin).hostname)
    except TypeError:  # "null", the origin of a page that has none
        local = False
    if not local:
        words = 'Pages of this Origin may not connect. The server names them: MCP(…, origins=["…"])'
        raise ProtocolError(INVALID_REQUEST, words, status=403)


def _is_loopback(host: str) -> bool:
    # A URL writes every form of an address as four numbers.
    return host in ("localhost", "127.0.0.1", "[::1]") or host.endswith(".localhost")


async def read_call(req: AnyRequest) -> Call:
    """The message of a request. Raises ProtocolError, which has the id of the message where that could be read."""
    if (req.header("content-type") or "").partition(";")[0].strip().lower() != "application/json":
        raise ProtocolError(INVALID_REQUEST, "Content-Type must be application/json", status=415)
    try:
        body: Any = await req.json()
        json.check_depth(await req.text(), MAX_DEPTH)
    except CoreError as error:
        code, words = (PARSE_ERROR, "Parse error") if error.status == 400 else (INVALID_REQUEST, error.message)
        raise ProtocolError(code, words, status=error.status) from None
    except ValueError:
        raise ProtocolError(INVALID_REQUEST, f"The message is nested deeper than {MAX_DEPTH} levels") from None
    id: object = body.get("id") if is_object(body) else None
    try:
        return _call_of(req, body)
    except ProtocolError as error:
        error.id = id if isinstance(id, str | int) else None
        raise


def _call_of(req: AnyRequest, body: object) -> Call:
    if not is_object(body) or body.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'A message is one object with "jsonrpc": "2.0"')
    method, id, params = body.get("method"), body.get("id"), body.get("params", {})
    if not isinstance(method, str) or not is_object(params):
        raise ProtocolError(INVALID_REQUEST, "method must be a string, and params an object")
    if "id" in body and (not isinstance(id, str | int) or isinstance(id, bool)):
        raise ProtocolError(INVALID_REQUEST, "id must be a string or an integer")
    meta = params.get("_meta", {})
    if not is_object(meta):
        raise ProtocolError(INVALID_PARAMS, "params._meta must be an object")
    header, own = header_value(req, "MCP-Protocol-Version"), meta.get(VERSION_KEY)
    version = header or ("2025-03-26" if own is None else None)
    call = Call(method, id, params, meta, version or LATEST)
    if version == LATEST or own is not None:
        _check_stateless(req, call, header, own)
    elif version not in EARLIER and method != "initialize":
        raise unsupported(version)
    return call


def _check_stateless(req: AnyRequest, call: Call, header: str | None, own: object) -> None:
    if call.id is None and own is None:
        return  # a notification
    if not isinstance(own, str) or not isinstance(call.meta.get(CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"params._meta must have {VERSION_KEY} and {CAPABILITIES_KEY}")
    if header != own:
        raise mismatch("MCP-Protocol-Version")
    if own not in VERSIONS:
        raise unsupported(own)
    if own != LATEST:
        return
    if header_value(req, "Mcp-Method") != call.method:
        raise mismatch("Mcp-Method")
    name = _NAMED.get(call.method)
    if name is not None and header_value(req, "Mcp-Name") != call.params.get(name):
        raise mismatch("Mcp-Name")


def mismatch(header: str) -> ProtocolError:
    """A header that is missing or says something else than the body."""
    return ProtocolError(HEADER_MISMATCH, f"{header} is missing or differs from the body")


def unsupported(version: object) -> ProtocolError:
    """A revision that this server does not have."""
    data = {"supported": list(VERSIONS), "requested": version}
    return ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def text_of(value: object) -> str:
    """A value where there are only texts, as in a header or a query: itself, or its JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def header_value(req: AnyRequest, name: str) -> str | None:
    """A header of the protocol: as it is, or as `=?base64?…?=` where a header cannot have the characters."""
    text = req.header(name)
    # Not every server takes the blanks around a value away, as RFC 9110, section 5.5 demands.
    text = None if text is None else text.strip(" \t")
    if text is None or not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    from base64 import b64decode

    try:
        return b64decode(text[9:-2], validate=True).decode()
    except ValueError:
        raise mismatch(name) from None
