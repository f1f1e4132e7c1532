"""A row of middleware answers as the same middleware would one by one, staging each header by itself.

A chain runs middleware that need no `next` without one, and a host writes the headers of a block once for all
responses. None of that may show: not in who wins where two stage one header, nor in `Vary`, nor in what a middleware
that ends the chain leaves undone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.asgi import ask as ask_asgi
from tests.support.asgi import scope_of
from tests.support.fetch import ask
from tests.support.secure_headers import DEFAULTS

from core import App, Next, Request, Response, create_app
from core.handlers import before
from core.http.header_block import HeaderBlock
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs

ORIGIN = "https://one.example"
OTHER = "https://two.example"
STAGED = ("vary", "x-frame-options", "content-type", "access-control-allow-origin", "x-request-id", "x-other")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

SECURE = {name.replace("_", "-"): value for name, value in DEFAULTS.items()}


def stage(res: Response, name: str) -> None:
    res.header(name, "of a step")


def put(block: HeaderBlock) -> Any:
    return before(lambda req, res: res.put(block), name="block")


def ours(kind: str, lines: list[str]) -> Any:
    """A middleware as applications register it."""
    match kind.split():
        case ["id"]:
            return request_id()
        case ["own-id", id]:
            return request_id(generator=lambda: id, accept_incoming=False)
        case ["id-as", name]:
            return request_id(header_name=name)
        case ["log"]:
            return logger(write=lines.append, format=lambda req, status, ms: f"{req.id or '-'} {status}")
        case ["secure"]:
            return secure_hdrs()
        case ["cors", "*"]:
            return cors(origins="*")
        case ["cors", *origins]:
            return cors(origins=origins)
        case ["step", name]:
            return before(lambda req, res: stage(res, name), name="step")
        case ["block", name]:
            return put(HeaderBlock({name: "of a block"}))
        case ["varies", name]:
            return put(HeaderBlock({"vary": name}, (name,)))
        case _:
            return plain(kind, lines)


def plain(kind: str, lines: list[str]) -> Any:
    """The same, written as one would by hand: a coroutine that stages header by header."""

    def leave(req: Request, res: Response) -> None:
        res.on_send(lambda status, ms: lines.append(f"{req.id or '-'} {status}"))

    async def middleware(req: Request, res: Response, next: Next) -> None:
        match kind.split():
            case ["id"]:
                req.id = req.header("x-request-id") or "?"
                res.header("x-request-id", req.id)
            case ["own-id", id]:
                if "!" in id:
                    raise RuntimeError("no id")
                req.id = id
                res.header("x-request-id", id)
            case ["id-as", name]:
                req.id = req.header(name) or "?"
                res.header(name, req.id)
            case ["log"]:
                leave(req, res)
            case ["secure"]:
                for name, value in SECURE.items():
                    res.header(name, value)
            case ["cors", *origins]:
                origin = req.header("origin")
                if origins != ["*"]:
                    res.vary("Origin")
                if origins == ["*"] or origin in origins:
                    res.header("access-control-allow-origin", "*" if origins == ["*"] else origin)
                else:
                    res.header("access-control-allow-origin", None)
            case ["step" | "block" as what, name]:
                res.header(name, f"of a {what}")
            case ["varies", name]:
                res.vary(name)
            case ["stage", name]:
                res.header(name, "before")
            case ["after", name]:
                await next()
                res.header(name, "after")
                return
            case ["append"]:
                res.append("vary", "Accept")
            case ["read"]:
                res.headers.get("vary")  # the headers that are live, for which a block is taken apart
            case ["stop"]:
                res.status(403).json({"error": "stopped"})
                return
            case _:
                raise AssertionError(kind)
        await next()

    return middleware


def application(
    row: list[str], handler: list[str], make: Callable[[str, list[str]], Any]
) -> tuple[App[Any], list[str]]:
    lines: list[str] = []
    app = create_app()
    for kind in row:
        app.use(make(kind, lines))

    @app.get("/")
    async def answer(req: Request, res: Response) -> None:
        for name in handler:
            res.header(name, "of the handler")
        res.json({"id": req.id != ""})

    return app, lines


Seen = tuple[int, bytes, dict[str, Any], list[str]]


def seen(status: int, body: bytes, headers: list[tuple[str, str]], lines: list[str]) -> Seen:
    found: dict[str, Any] = dict(headers)
    assert len(found) == len(headers), headers
    if "vary" in found:
        found["vary"] = frozenset(part.strip().lower() for part in found["vary"].split(","))
    # Ids that are made here come as "?", as the plain ones do.
    found = {name: UUID.sub("?", value) if isinstance(value, str) else value for name, value in found.items()}
    return status, body, found, [UUID.sub("?", line) for line in lines]


async def through_asgi(row: list[str], handler: list[str], headers: dict[str, str], make: Any) -> Seen:
    app, lines = application(row, handler, make)
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    start, body = await ask_asgi(app, scope_of(headers=[(b"host", b"example.test"), *pairs]))
    answered = [(name.decode(), value.decode()) for name, value in start["headers"] if name != b"content-length"]
    return seen(start["status"], body["body"], answered, lines)


async def through_fetch(row: list[str], handler: list[str], headers: dict[str, str], make: Any) -> Seen:
    app, lines = application(row, handler, make)
    response = await ask(app, headers=headers)
    answered = [(name, value) for name, value in response.headers.items() if name != "content-length"]
    return seen(response.status, await response.bytes(), answered, lines)


kinds = st.sampled_from(
    [
        "id",
        "own-id fine",
        "own-id not!",
        "id-as x-other",
        "id-as x-frame-options",
        "log",
        "secure",
        "cors *",
        f"cors {ORIGIN}",
        f"cors {OTHER}",
        f"cors {ORIGIN} {OTHER}",
        "step x-frame-options",
        "step vary",
        "block x-other",
        "varies Accept",
        "varies Cookie",
        "block x-frame-options",
        *[f"stage {name}" for name in STAGED],
        *[f"after {name}" for name in STAGED],
        "append",
        "read",
        "stop",
    ]
)
origins = st.sampled_from([{}, {"origin": ORIGIN}, {"origin": OTHER}, {"origin": "https://three.example"}])
ids = st.sampled_from([{}, {"x-request-id": "given"}])


def in_order(row: list[str]) -> bool:
    """True if a logger comes behind whatever makes ids, which registration demands."""
    return "log" not in row or not any("id" in kind.split()[0] for kind in row[row.index("log") :])


@pytest.mark.slow
@pytest.mark.parametrize("through", [through_asgi, through_fetch])
@given(
    st.lists(kinds, max_size=6).filter(in_order),
    st.lists(st.sampled_from(STAGED), max_size=3, unique=True),
    origins,
    ids,
)
@example(["id", "log", "secure", f"cors {ORIGIN}"], [], {"origin": ORIGIN}, {})
@example(["own-id not!", "log", "secure"], [], {}, {})
@example(["id-as x-frame-options", "secure"], [], {"x-frame-options": "given"}, {})
@example(["secure", f"cors {ORIGIN}"], ["vary", "content-type"], {"origin": ORIGIN}, {})
@example([f"cors {ORIGIN}", f"cors {OTHER}"], [], {"origin": ORIGIN}, {})
@example(["varies Accept", "varies Cookie"], [], {}, {})
async def test_a_row_answers_as_its_middleware_would_one_by_one(
    through: Any, row: list[str], handler: list[str], origin: dict[str, str], id: dict[str, str]
) -> None:
    headers = {**origin, **id}
    assert await through(row, handler, headers, ours) == await through(row, handler, headers, plain)
