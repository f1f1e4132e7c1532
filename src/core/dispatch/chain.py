"""One chain, built of middleware and the function they lead to.

A chain is a plain function that starts the first step and returns an awaitable; a middleware's `next` does the
same for the step after it, so there is no coroutine between two steps but theirs. Decided here: how often `next` may be
called, and the parameters that a middleware sees. This file has nothing of paths or routes, nor of the answer to an
error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from core.errors import NextCalledTwiceError
from core.handlers import Before, info_of, name_of
from core.http.paths import split_path
from core.request import AnyRequest, Params
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware, Next

Run = Callable[[Any, Response], Awaitable[object]]
"""Starts a chain, and returns an awaitable of its end."""


def build_chain(middleware: Sequence[Middleware[Any, Any]], end: Run) -> Run:
    """A chain that runs `middleware` in their order, and then `end`."""
    run = end
    functions: list[Before] = []
    for each in reversed(middleware):
        info = info_of(each)
        if info is not None and info.public:
            continue
        if info is not None and info.before is not None:
            functions.insert(0, info.before)
        else:
            run, functions = _run_middleware(each, _run_before(functions, run)), []
    return _run_before(functions, run)


def _run_before(functions: Sequence[Before], follow: Run) -> Run:
    """Run steps that need no `next`, and then `follow`, unless one of them answers instead."""
    if not functions:
        return follow

    def run(req: AnyRequest, res: Response) -> Awaitable[object]:
        for function in functions:
            instead = function(req, res)
            if instead is not None:
                return instead
        return follow(req, res)

    return run


def _run_middleware(middleware: Middleware[Any, Any], follow: Run) -> Run:
    """Run `middleware`, whose `next` starts `follow`."""

    def run(req: AnyRequest, res: Response) -> Awaitable[object]:
        called = False

        def next(err: BaseException | None = None, /) -> Awaitable[Any]:
            nonlocal called
            if err is not None:
                raise err
            if called:
                raise NextCalledTwiceError(
                    f"{name_of(middleware)} called next() twice, and the rest of the chain runs once. Keep what the first "
                    "call gave"
                )
            called = True
            return follow(req, res)

        return middleware(req, res, next)

    return run


def set_own_parameters(middleware: Middleware[Any, Any], names: Sequence[tuple[str, int]]) -> Middleware[Any, Any]:
    """`middleware`, seeing the parameters of its own prefix beside the route's: each name with its segment's index."""

    async def run(req: AnyRequest, res: Response, next: Next, /) -> None:
        open_req: Any = req  # whose parameters handlers only read
        theirs = open_req.params
        segments = ["", *split_path(req.path)]
        own = open_req.params = Params({**theirs, **{name: segments[index] for name, index in names}})

        def follow(err: BaseException | None = None, /) -> Awaitable[None]:
            if err is not None:
                raise err
            return follow_with_theirs()

        async def follow_with_theirs() -> None:
            open_req.params = theirs
            try:
                await next()
            finally:
                open_req.params = own

        try:
            await middleware(req, res, follow)
        finally:
            open_req.params = theirs

    run.__qualname__ = name_of(middleware)
    return run
