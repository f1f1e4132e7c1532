"""The words for mistakes that a running program and `core check` both tell: wrong shapes of callables, names of peers.

Plain functions over plain values, imported after a failure only, and by development tools: a worker that starts loads
none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

__all__ = [
    "APP",
    "DEFINES",
    "MODULE",
    "MUTABLE",
    "REQUEST",
    "RESPONSE",
    "handler_in_use",
    "not_async",
    "path_parameter",
    "shared_default",
    "turned",
    "turned_status",
    "uncalled",
    "wrong_number",
]

# Names of other frameworks, by the class they are looked for on. A name in backquotes is the whole expression here.
REQUEST: Final[Mapping[str, str]] = {
    "body": "`await req.bytes()`, `await req.text()` or `await req.json(T)`",
    "data": "`await req.bytes()`, or `await req.form()`",
    "get_json": "`await req.json(T)`",
    "param": '`req.params["id"]`',
    "path_params": '`req.params["id"]`',
    "query_params": '`req.query.get("q")`',
    "args": '`req.query.get("q")`',
    "queries": '`req.query.get_all("tag")`',
    "client": "`req.ip`",
    "remote_addr": "`req.ip`",
    "app": "a module's own name: import the application",
    "valid": "`await req.json(T)` and `req.query.parse(T)`",
    "get": '`req.header("X-Name")`',
    "var": '`req.state["name"]`',
    "scope": "`req.method`, `req.path` and `req.headers`: no ASGI scope reaches a handler",
    "execution_ctx": "`req.ctx`",
}
RESPONSE: Final[Mapping[str, str]] = {
    "body_text": "`res.text(…)`",
    "set_cookie": '`res.cookie("name", "value")`',
    "set_header": '`res.header("X-Name", "value")`',
    "set": '`res.header("X-Name", "value")`',
    "write": "`res.send(body)`, or `res.stream(chunks)` for several",
    "end": "`res.send()`",
    "render": "`res.html(text)`",
    "not_found": '`raise CoreError(404, "Not Found")`',
    "media": "`res.json(value)`",
    "content": "`res.send(body)`",
    "code": "`res.status(201)`",
}
APP: Final[Mapping[str, str]] = {
    "route": '`@app.get("/path")` or `@app.on("PURGE", "/path")` for a handler; `app.use("/prefix", router)` for a router',
    "add_route": '`app.get("/path", handler)`',
    "add_api_route": '`app.get("/path", handler)`',
    "api_route": '`@app.on("GET", "/path")`',
    "include_router": '`app.use("/prefix", router)`',
    "register_blueprint": '`app.use("/prefix", router)`',
    "add_middleware": "`app.use(middleware)`",
    "middleware": "`app.use(middleware)`, with `async def middleware(req, res, next)`",
    "before_request": "`app.use(middleware)`: its lines before `await next()`",
    "after_request": "`app.use(middleware)`: its lines after `await next()`",
    "exception_handler": "`@app.on_error` over `async def handler(err, req, res, next)`",
    "add_exception_handler": "`app.on_error(handler)`",
    "errorhandler": "`@app.on_error` over `async def handler(err, req, res, next)`",
    "onError": "`@app.on_error` over `async def handler(err, req, res, next)`",
    "notFound": "`@app.not_found` over `async def handler(req, res)`",
    "run": "`core dev` on the command line, or `asgi(app, env)` for an ASGI server",
    "listen": "`core dev` on the command line, or `asgi(app, env)` for an ASGI server",
    "fire": "an entry file for the runtime, which `core new` writes",
    "request": '`await Client(app, env).get("/path")` of `core.testing`',
    "test_client": "`Client(app, env)` of `core.testing`",
    "basePath": '`router = app.Router()` and `app.use("/prefix", router)`',
    "state": "a variable of your module, or a binding",
    "dependency_overrides": "fakes in the Env of a test: `Client(app, Env(DB=FakeD1Database()))`",
    "cors": "`app.use(cors(…))` of `core.middleware.cors`",
    "ws": '`@app.websocket("/path")`',
}
MODULE: Final[Mapping[str, str]] = {
    "HTTPException": '`raise CoreError(404, "Not Found")`',
    "abort": '`raise CoreError(404, "Not Found")`',
    "jsonify": "`res.json(value)`",
    "JSONResponse": "`res.json(value)`",
    "HTMLResponse": "`res.html(text)`",
    "RedirectResponse": "`res.redirect(url)`",
    "StreamingResponse": "`res.stream(chunks)`",
    "APIRouter": "`Router()`",
    "Blueprint": "`Router()`",
    "Hono": "`create_app(Env)`",
    "FastAPI": "`create_app(Env)`",
    "Flask": "`create_app(Env)`",
    "Starlette": "`create_app(Env)`",
    "Litestar": "`create_app(Env)`",
    "Depends": "`app.authenticated(authenticator)` for users, a middleware or a plain call for the rest",
    "BackgroundTasks": "`req.ctx.wait_until(job())`",
    "TestClient": "`Client` of `core.testing`",
    "BaseModel": "an attrs class: `@attrs.frozen`",
    "Env": "a class of your own: `class Env(Bindings)` with `@attrs.frozen`",
    "Context": "`req: Request[Env]` and `res: Response`, two objects",
}

DEFINES: Final = frozenset(
    [f"{package}.{name}" for package in ("attr", "attrs") for name in ("define", "frozen", "mutable")]
)
"""The decorators that make attrs classes."""
MUTABLE: Final = frozenset(
    [
        *(f"builtins.{name}" for name in ("list", "dict", "set")),
        *(f"typing.{name}" for name in ("List", "Dict", "Set", "MutableMapping", "MutableSequence", "MutableSet")),
        *(f"collections.abc.{name}" for name in ("MutableMapping", "MutableSequence", "MutableSet")),
    ]
)
"""The types of values that a method may change."""


def wrong_number(name: str, demanded: int | None, first: str, *, is_class: bool = False, is_async: bool = True) -> str:
    """A callable that is neither handler nor middleware, by the number of its arguments and the name of the first."""
    if is_class or demanded is None:
        took = "takes neither two nor three arguments by position"
    else:
        took = f"takes {demanded} argument{'' if demanded == 1 else 's'}"
    if demanded == 4 and first in ("err", "error", "exc", "e"):
        hint = f" Register an error handler with on_error: app.on_error({name})"
    elif demanded is not None and demanded > 3:
        hint = ' Read parameters of the path from req.params["id"]'
    elif demanded == 1 and is_async:
        hint = f" Write `async def {name}(req, res)`"
    else:
        hint = f" Call it to make the middleware: {name}(…)" if demanded is None or demanded <= 1 else ""
    return f"{name} {took}. A handler takes (req, res), a middleware (req, res, next).{hint}"


def turned(name: str, names: Sequence[str]) -> str | None:
    """Parameters whose names show that they are in the wrong order; None for all others."""
    for right in (("req", "res"), ("request", "response"), ("req", "res", "next"), ("request", "response", "next")):
        if set(names) == set(right) and (*names,) != right:
            order = "(req, res, next)" if len(names) == 3 else "(req, res)"
            return f"{name} takes ({', '.join(names)}), in the wrong order. Write `async def {name}{order}`"
    return None


def path_parameter(name: str, third: str) -> str:
    """A handler that takes a parameter of its path where a middleware takes `next`."""
    return (
        f"{name} takes `{third}` as its third argument, which is `next`. Read it from the path: `async def "
        f'{name}(req, res)` and `req.params["{third}"]`'
    )


def not_async(name: str) -> str:
    """A handler or middleware that is not async."""
    return f"{name} is not async. Write `async def {name}(…)`"


def handler_in_use(name: str, prefix: str) -> str:
    """A handler `(req, res)` in the place of a middleware."""
    return (
        f"{name} takes (req, res) and is a handler. A middleware takes (req, res, next). Register a route to answer "
        f'requests: all("{prefix}", {name})'
    )


def uncalled(name: str) -> str:
    """`wait_until(job)` with the function itself."""
    return f"wait_until({name}): a function is not awaitable. Call it: wait_until({name}())"


def turned_status(given: object) -> str:
    """`CoreError("Not found", 404)`, and a status that is not an error's."""
    return (
        f"CoreError({given!r}, …): the status must be an int from 400 to 599, an error's. Write "
        f'CoreError(404, "{given if isinstance(given, str) else "Not Found"}")'
    )


def shared_default(class_: str, field: str, type_: str, kind: str) -> str:
    """A list, a dict or a set as the default of an attrs class's field."""
    return (
        f"{class_}.{field}: all instances share its default, a {kind}. Write "
        f"{field}: {type_} = attrs.field(factory={kind})"
    )
