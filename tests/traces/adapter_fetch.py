"""The `fetch` programs on `core.http`: how JavaScript's constructors and statics are said in Python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.traces.harness import UNDEFINED, Adapter, Program, Special, snake

from core import http
from core.http.url import URL, encode_query, parse_query


class SearchParams:
    """JavaScript's URLSearchParams, as far as the recordings use it: pairs between `parse_query` and `encode_query`."""

    def __init__(self, init: Any = "") -> None:
        self.pairs: list[tuple[str, str]]
        if isinstance(init, str):
            self.pairs = parse_query(init.removeprefix("?"))
        else:
            self.pairs = [(name, value) for name, value in (init.items() if hasattr(init, "items") else init)]

    def keys(self) -> list[str]:
        return [name for name, _ in self.pairs]

    def values(self) -> list[str]:
        return [value for _, value in self.pairs]

    def items(self) -> list[tuple[str, str]]:
        return self.pairs

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.pairs if key == name), None)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.pairs)

    def append(self, name: str, value: str) -> None:
        self.pairs.append((name, value))

    def sort(self) -> None:
        self.pairs.sort(key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))

    def to_string(self) -> str:
        return encode_query(self.pairs)

    __str__ = to_string


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
                return SearchParams(value.value)
            case "promise":
                return _settled(value.value)
            case "rejected":
                return _rejected(value.value)
            case _:
                return value.value

    def construct(self, name: str, args: list[Any]) -> Any:
        args = _given(args)
        match name:
            case "Headers":
                return http.Headers(*args)
            case "URL":
                return URL(*args)
            case "URLSearchParams":
                return SearchParams(*args)
            case "Request":
                return http.Request(args[0], **_init(args[1:]))
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
