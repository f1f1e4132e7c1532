"""The `fetch` programs on `core.http`: how JavaScript's constructors and statics are said in Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.traces.harness import UNDEFINED, Adapter, Program, Special, snake

from core import http
from core.http.forms import Form
from core.http.query import URLSearchParams
from core.http.url import URL


class Context:
    """An execution context that runs what it is given."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Future[Any]] = []

    def wait_until(self, awaitable: Any) -> None:
        if hasattr(awaitable, "__await__"):
            self.tasks.append(asyncio.ensure_future(awaitable))

    def pass_through_on_exception(self) -> None:
        pass


class FetchAdapter(Adapter):
    """Constructors, statics and the few names that differ."""

    async def open(self, program: Program) -> Mapping[str, Any]:
        self.context = Context()
        return {"CTX": self.context}

    async def close(self) -> None:
        await asyncio.gather(*self.context.tasks, return_exceptions=True)

    def special(self, value: Special, target: Any) -> Any:
        match value.kind:
            case "stream":
                return _chunks(value.value, value.tag.get("chunk"))
            case "headers":
                return http.Headers(value.value)
            case "url":
                return URL(value.value)
            case "urlsearchparams":
                return URLSearchParams(value.value)
            case "formdata":
                return Form([(name, item) for name, item in value.value])
            case "promise":
                return _settled(value.value)
            case "rejected":
                return _rejected(value.value)
            case _:
                return super().special(value, target)

    def construct(self, name: str, args: list[Any]) -> Any:
        args = _given(args)
        match name:
            case "Headers":
                return http.Headers(*args)
            case "URL":
                return URL(*args)
            case "URLSearchParams":
                return URLSearchParams(*args)
            case "Request":
                return http.Request(args[0], **_init(args[1:]))
            case "FormData":
                return Form([])
            case "Response":
                return http.Response(*args[:1], **_init(args[1:]))
            case _:
                raise NotImplementedError(name)

    def static(self, name: str, method: str, args: list[Any]) -> Any:
        args = _given(args)
        if (name, method) == ("Response", "json"):
            return http.Response.from_json(args[0] if args else None, **_init(args[1:]))
        return getattr(getattr(http, name), method)(*args)

    def method(self, target: Any, op: str) -> Callable[..., Any]:
        # A buffer is bytes here, so there is one method for both.
        return super().method(target, "bytes" if op == "arrayBuffer" else op)


def _given(args: list[Any]) -> list[Any]:
    while args and args[-1] is UNDEFINED:
        args = args[:-1]
    return args


def _init(args: list[Any]) -> dict[str, Any]:
    """The options of a constructor, from an object or from another response."""
    given = args[0] if args else None
    if isinstance(given, http.Response):
        return {"status": given.status, "headers": given.headers, "status_text": given.status_text}
    if given is None or given is UNDEFINED:
        return {}
    return {snake(name): value for name, value in given.items() if value is not UNDEFINED}


async def _chunks(data: bytes, size: int | None) -> AsyncIterator[bytes]:
    step = size or len(data) or 1
    for start in range(0, len(data), step):
        yield data[start : start + step]


async def _settled(value: Any) -> Any:
    return value


async def _rejected(value: Any) -> Any:
    raise RuntimeError(str(value))


def adapter(folder: Path | None) -> Adapter:
    """A fresh adapter; these values need no folder."""
    return FetchAdapter(folder)
