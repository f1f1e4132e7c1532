"""The words for mistakes that a running program and `core check` both tell: wrong shapes of callables, wrong defaults.

Plain functions over plain values, imported after a failure only, and by development tools: a worker that starts loads
none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Final

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
_COROUTINE: Final = 0x80  # inspect.CO_COROUTINE


def wrong_number(name: str, value: object, demanded: int | None, *, is_middleware: bool) -> str:
    """A value that is neither handler nor middleware, by the number of its arguments and the name of the first.

    `is_middleware` says that it stands where only a middleware may: one without arguments makes it, then.
    """
    if not callable(value):
        return not_callable(value)
    code = getattr(value, "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    is_async = code is not None and bool(code.co_flags & _COROUTINE)
    if isinstance(value, type) or demanded is None:
        took = "takes neither two nor three arguments by position"
    else:
        took = f"takes {demanded} argument{'' if demanded == 1 else 's'}"
    if name == "<lambda>":
        hint = " Write a function, `async def handler(req, res)`"
    elif demanded == 4 and first in ("err", "error", "exc", "e"):
        hint = f" Register an error handler with on_error: app.on_error({name})"
    elif demanded is not None and demanded > 3:
        hint = ' Read parameters of the path from req.params["id"]'
    elif (demanded == 1 and is_async) or (demanded == 0 and not is_middleware):
        hint = f" Write `async def {name}(req, res)`"
    elif demanded is None or demanded <= 1:
        hint = f" Call it to make the middleware: {name}(…)"
    else:
        hint = ""
    return f"{name} {took}. A handler takes (req, res), a middleware (req, res, next).{hint}"


def module_in_place(value: object, name: str = "") -> str | None:
    """A module of the framework in the place of its function, under the name that the program has it by."""
    if isinstance(value, ModuleType) and value.__name__.startswith("core."):
        inner = value.__name__.rpartition(".")[2]
        if callable(getattr(value, inner, None)):
            return f"`{name or inner}` is the module. Write `from {value.__name__} import {inner}`"
    return None


def not_callable(value: object) -> str:
    """A value that cannot be called in the place of a handler or a middleware."""
    return module_in_place(value) or f"{value!r} is not callable. Give an async function"


def turned(name: str, names: Sequence[str]) -> str | None:
    """Parameters whose names show that they are in the wrong order, or that one is missing; None for all others."""
    if len(names) == 3 and (*names[1:],) in (("req", "res"), ("request", "response")) and names[0] != "next":
        first = names[0]
        return (
            f"{name} takes `{first}` before ({', '.join(names[1:])}). Give it one: functools.partial({name}, {first})"
        )
    for right in (("req", "res"), ("request", "response"), ("req", "res", "next"), ("request", "response", "next")):
        if set(names) == set(right) and (*names,) != right:
            order = "(req, res, next)" if len(names) == 3 else "(req, res)"
            return f"{name} takes ({', '.join(names)}), in the wrong order. Write `async def {name}{order}`"
    return None


def third_argument(name: str, third: str, *, in_path: bool) -> str:
    """A handler that takes a parameter of its path, or a body, where a middleware takes `next`."""
    problem = f"{name} takes `{third}` as its third argument, which is `next`"
    if in_path:
        return f'{problem}. Read it from the path: `async def {name}(req, res)` and `req.params["{third}"]`'
    return (
        f"{problem}. Read values in the handler: `async def {name}(req, res)`, and `await req.json(T)` for the body, "
        "`req.query.parse(T)` for the query"
    )


def never_given(name: str, parameter: str, default: str) -> str:
    """A handler's parameter with a default, which nobody gives it."""
    return (
        f"{name} takes `{parameter}`, which no request gives: it is always {default}. Read it in the handler: "
        f'`req.query.get("{parameter}")`, or `req.query.parse(T)` for several with their types'
    )


def not_async(name: str, *, yields: bool = False) -> str:
    """A handler or middleware that is not async, or that `yields`."""
    if yields:
        return (
            f"{name} yields, and a handler sends. Put what yields into an async function `pieces` of its own, and "
            "`return res.stream(pieces())`"
        )
    if not name.isidentifier():  # a lambda
        return f"{name} is not async. Write a function, `async def handler(req, res)`"
    return f"{name} is not async. Write `async def {name}(…)`"


def unfit_body(method: str, taken: str, given: object) -> str:
    """`res.send`, `res.text` or `res.html` over a value of another type than those `taken`."""
    kind = type(given)
    said = f"res.{method}() takes {taken}, not {kind.__name__}."
    if kind.__name__ == "Secret":
        return f"{said} A secret belongs in no answer. Remove it from there"
    if hasattr(kind, "__await__"):
        return f"{said} Write `await` before the call"
    if callable(given):
        return f"{said} Call it, and await it where it is async"
    if hasattr(given, "http_metadata") and hasattr(given, "body"):
        return f"{said} Send an object of a bucket with `res.stream(found.body)`"
    if method != "send" and isinstance(given, bytes | bytearray):
        return f"{said} Use res.send(body) for bytes"
    return f"{said} Use res.json(value) for values{' and res.stream(chunks) for streams' if method == 'send' else ''}"


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


def refused_status(given: object) -> str:
    """`res.status(7)`."""
    if given == 101:
        return "res.status(101): only a WebSocket switches protocols. Register it: app.websocket(path)"
    return f"res.status({given!r}): a status is an int from 200 to 599"


def refused_redirect(given: object) -> str:
    """`res.redirect(url, 200)`."""
    return f"res.redirect(status={given!r}) must be 301, 302, 303, 307 or 308. Write res.redirect(url, 302)"


def unreadable(type_: str) -> str:
    """A type that no JSON value can be read as."""
    return (
        f"{type_} cannot be read from JSON. Use attrs classes, TypedDicts, lists, dicts, unions, Literals, enums, dates, "
        "UUIDs, decimals and scalars"
    )


UNPACKED: Final = (
    "a tuple with an unpacked part cannot be read. Write out a part of a known length, and give one of any length a "
    "field of its own: rest: list[str]"
)


def alike(classes: Sequence[str]) -> str:
    """Classes of a union whose objects nobody can tell apart."""
    return (
        f"{' | '.join(classes)} cannot be read: no field tells their objects apart. Give each a field that has no default "
        f'and that no other has, or one name with another Literal in each: kind: Literal["{classes[0].lower()}"]'
    )


def shared_default(class_: str, field: str, type_: str, kind: str) -> str:
    """A list, a dict or a set as the default of an attrs class's field."""
    return (
        f"{class_}.{field}: all instances share its default, a {kind}. Write "
        f"{field}: {type_} = attrs.field(factory={kind})"
    )
