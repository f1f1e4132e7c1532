"""The published contracts, run inside a worker: one request runs one case on the real bindings."""

from __future__ import annotations

import asyncio
import time
import traceback
from importlib import import_module
from typing import Any

from core import Request, Response, create_app
from core.backends.workerd.durable_object import WorkerdDurableObjectNamespace
from core.testing.contracts import durable_object

app = create_app()

# The class that the Durable Object cases call, where the runtime looks for it.
Subject = durable_object.Subject


class OtherSubject(Subject):
    """The same class in a namespace of its own."""


# How the bindings of a kind are called; a second one is for cases about two of them.
BINDINGS = {
    "kv": ("KV", "OTHER_KV"),
    "d1": ("DB", "OTHER_DB"),
    "r2": ("BUCKET", "OTHER_BUCKET"),
    "durable_object": ("OBJECTS", "OTHER_OBJECTS"),
}


class ServiceClock:
    """The clock of one of the bundled services, which a test can move."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self._ahead = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time() + self._ahead

    async def advance(self, seconds: float, /) -> None:
        """Move the service's clock."""
        self._ahead += seconds
        answer = await self._service.fetch(f"http://kv/clock?advance={round(seconds * 1000)}", method="POST")
        assert answer.status == 200, await answer.text()


class RealClock:
    """The machine's clock, which nobody can move: it waits."""

    _ahead = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def advance(self, seconds: float, /) -> None:
        """Wait."""
        if seconds > 10:
            raise TimeoutError(f"{seconds} s are too long to wait for")
        await asyncio.sleep(seconds)


@app.post("/run/:kind/:case")
async def run(req: Request, res: Response) -> None:
    kind = req.params["kind"]
    contract = import_module(f"core.testing.contracts.{kind}").contract
    case = next(case for case in contract.cases if case.name == req.params["case"])
    one, other = (getattr(req.env, name) for name in BINDINGS[kind])
    if kind == "durable_object":
        one, other = (WorkerdDurableObjectNamespace(each._namespace, Subject) for each in (one, other))
    clock = None
    try:
        if case.timed:
            clock = RealClock() if kind == "durable_object" else ServiceClock(req.env.CLOCK)
        await case.run(one, other=other, clock=clock)
    except BaseException as error:  # whatever it is, the test outside shows it
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "contracts" in f.filename]
        where = f"line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
        res.status(500).json(
            {"error": f"{type(error).__name__}: {error}", "where": where, "trace": traceback.format_exc()}
        )
        return
    finally:
        if clock is not None and clock._ahead:
            # The clock is shared by all cases: it goes back to where it was.
            await clock.advance(-clock._ahead)
    res.status(204).send()
