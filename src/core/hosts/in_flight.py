"""The requests of a process that are in flight: each in flight with its route, its id and the calls that it waits in.

Nothing is kept per request for this. It is read out of the event loop's tasks, whose frames have it, when somebody
asks: an operator, or a supervisor that is about to end a process which does not answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Final

from core.dispatch.dispatcher import Dispatcher

_RESPOND: Final = Dispatcher.respond.__code__


def requests_in_flight(loop: asyncio.AbstractEventLoop, running: Sequence[FrameType] = ()) -> str:
    """The requests of a loop, one after the other, those that wait and then the one whose frames are `running`.

    Each has its method, path, route, id and age, and the innermost calls of the application at last.
    """
    found = [shown for task in asyncio.all_tasks(loop) if (shown := _shown([*_waiting(task.get_coro())], "waits"))]
    if busy := _shown(running, "runs"):
        found.append(busy)
    return "\n".join([f"{len(found)} {'request' if len(found) == 1 else 'requests'} in flight", *found])


def calls_of(frames: Sequence[FrameType]) -> str:
    """Frames as a traceback has them, the most recent call last."""
    lines = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames).format()
    return "".join(lines).rstrip("\n")


def _shown(frames: Sequence[FrameType], how: str) -> str | None:
    """The title and calls of the request that frames belong to; None where they belong to none."""
    at = [index for index, frame in enumerate(frames) if _answers(frame)]
    if not at:
        return None
    # The innermost dispatcher knows the route; the outermost request has the id and began first.
    inner, outer = frames[at[-1]].f_locals, frames[at[0]].f_locals["req"]
    req: Any = inner["req"]
    dispatcher = inner["self"] if "self" in inner else inner["dispatcher"]
    route, _ = dispatcher.finder.route_of(req.method, req.path)
    name = f", request {outer.id}" if outer.id else ""
    age = time.time() - outer.start_time
    title = (
        f"{req.method} {outer.path} ({route.label if route is not None else 'no route'}){name} {how} since {age:.1f} s"
    )
    return f"{title}\n{calls_of(frames[at[-1] + 1 :])}".rstrip("\n")


def _answers(frame: FrameType) -> bool:
    """Return True for a frame that has a request on its way: the dispatcher's, or of the ASGI host in its place."""
    code = frame.f_code
    if code.co_qualname == "asgi.<locals>.serve" and frame.f_globals.get("__name__") == "core.hosts.asgi":
        return "req" in frame.f_locals  # a WebSocket is the dispatcher's
    return code is _RESPOND


def _waiting(work: object) -> Iterator[FrameType]:
    """The frames of a coroutine that waits, outermost first."""
    while work is not None:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(work, f"{kind}_frame", None)
            if frame is not None:
                yield frame
                work = getattr(work, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)
                break
        else:
            return


def frames_of(thread: int) -> list[FrameType]:
    """The frames of a thread, outermost first."""
    frame = sys._current_frames().get(thread)
    return [] if frame is None else [frame for frame, _ in traceback.walk_stack(frame)][::-1]
