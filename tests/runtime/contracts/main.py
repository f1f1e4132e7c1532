"""The contracts, run inside a worker or on CPython: one request runs one case on the place's bindings."""

from __future__ import annotations

import asyncio
import time
import traceback
from importlib import import_module
from typing import Any

from queues import QUEUES, queue_name  # type: ignore[import-not-found]  # it lies beside this file in the bundle
from tests.contracts import durable_object

from core import Request, Response, create_app, http
from core.backends.workerd.durable_object import WorkerdDurableObjectNamespace

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
    """The clock of one of the bundled services, which stands still between two moves."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self._now = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return self._now

    async def advance(self, seconds: float, /) -> None:
        """Move the service's clock."""
        await self._ask(f"advance={round(seconds * 1000)}")

    async def run(self) -> None:
        """Let it go with the machine's clock again."""
        await self._ask("run")

    async def _ask(self, query: str) -> None:
        answer = await self._service.fetch(http.Request(f"http://service/clock?{query}", method="POST"))
        assert answer.status == 200, await answer.text()
        self._now = (await answer.json())["now"] / 1000


class RealClock:
    """The machine's clock, which nobody can move: it waits."""

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def advance(self, seconds: float, /) -> None:
        """Wait."""
        if seconds > 10:
            raise TimeoutError(f"{seconds} s are too long to wait for")
        await asyncio.sleep(seconds)


class QueueClock(ServiceClock):
    """The queues' clock. A move goes in steps, each with its deliveries."""

    def __init__(self, service: Any, line: WorkerLine) -> None:
        super().__init__(service)
        self._line = line

    async def advance(self, seconds: float, /) -> None:
        """Move the clock on by what is asked, a second or more at a time."""
        left = seconds
        while True:
            step = min(left, max(1.0, seconds / 12))
            await super().advance(step)
            await self._line.settle()
            left -= step
            if left <= 0:
                return


class WorkerLine:
    """A queue from one end to the other: settings are the configuration's here, so there is a queue for each."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._name = queue_name()
        self._used: set[str] = {self._name}

    @property
    def queue(self) -> Any:
        """The sending side of the queue whose settings were asked for."""
        return getattr(self._env, self._name.replace("-", "_").upper())

    async def settle(self) -> None:
        """Return when what is due was delivered, however long that takes.

        A queue acts on the clock at its next call, and delivers by its alarm, at once. The messages of another queue
        go the same way, each sent after those alarms were set and after the one before had arrived.
        """
        for name in sorted(self._used):
            await getattr(self._env, name.replace("-", "_").upper()).metrics()
        for _ in range(3):
            number = len(PROBES)
            await self._env.Q_PROBES.send(number)
            while len(PROBES) == number:  # noqa: ASYNC110 - its consumer is another request
                await asyncio.sleep(0.002)

    async def consume(self, handler: Any, **settings: Any) -> None:
        """Let `handler` consume the queue of these settings."""
        dead_letters = settings.pop("dead_letters", None)
        self._name = queue_name(**settings, dead=dead_letters is not None)
        self._used.add(self._name)
        CONSUMERS[self._name] = handler
        if dead_letters is not None:
            self._used.add("q-letters")
            CONSUMERS["q-letters"] = dead_letters

    async def stop(self) -> None:
        """End consuming; what still comes is acknowledged unseen."""
        CONSUMERS.clear()


CONSUMERS: dict[str, Any] = {}
PROBES: list[int] = []


async def consume(batch: Any, env: Any, ctx: Any) -> None:
    handler = CONSUMERS.get(batch.queue)
    if handler is not None:
        await handler(batch)


async def probed(batch: Any, env: Any, ctx: Any) -> None:
    PROBES.extend(message.body for message in batch.messages)


for _name in QUEUES:
    app.queue(_name)(probed if _name == "q-probes" else consume)


@app.post("/run/:kind/:case")
async def run(req: Request, res: Response) -> None:
    kind = req.params["kind"]
    contract = import_module(f"tests.contracts.{kind}").contract
    case = next(case for case in contract.cases if case.name == req.params["case"])
    one: Any
    other: Any
    one, other = (getattr(req.env, name) for name in BINDINGS[kind]) if kind in BINDINGS else (None, None)
    if kind == "queue":
        one = WorkerLine(req.env)
    if isinstance(one, WorkerdDurableObjectNamespace):
        one, other = (WorkerdDurableObjectNamespace(each._js, Subject) for each in (one, other))
    clock: Any = None
    try:
        if case.timed:
            if isinstance(one, WorkerLine):
                clock = QueueClock(req.env.QUEUE_CLOCK, one)
            else:
                clock = RealClock() if kind == "durable_object" else ServiceClock(req.env.CLOCK)
            if isinstance(clock, ServiceClock):
                await ServiceClock.advance(clock, 0)  # from now on it stands still
        await case.run(one, other=other, clock=clock)
    except BaseException as error:  # whatever it is, the test outside shows it
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "contracts" in f.filename]
        where = f"line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
        res.status(500).json(
            {"error": f"{type(error).__name__}: {error}", "where": where, "trace": traceback.format_exc()}
        )
        return
    finally:
        # The clock is shared by all cases: it goes back to where it was. The queues' stays: messages of the case before
        # are gone for good.
        if isinstance(clock, ServiceClock) and not isinstance(clock, QueueClock):
            await clock.run()
    res.status(204).send()
