"""Numbers of an application in OpenMetrics: requests, calls of bindings, batches and crons, counted in one process.

    meter = Meter()
    measure(app, env, meter)
    exposition([meter.snapshot()])

Labels are the route's template, never a path; the names of bindings and their methods; no key, no value, nothing that a
client chooses. Snapshots of several processes add up. Nothing here is imported where nothing measures.
https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from core.bindings.calls import BindingCall, CallHook, Proceed, add_hook
from core.bindings.kinds import bindings_of
from core.dispatch.instruments import Instrument, Run, Work
from core.errors import CLIENT_GONE, QueueError

if TYPE_CHECKING:
    from core.app import App
    from core.bindings.queue import MessageBatch, QueueMetrics
    from core.context import ScheduledEvent
    from core.http.websocket import Upgrade, WebSocket
    from core.request import AnyRequest
    from core.response import Response
    from core.routing.table import Route

__all__ = [
    "BUCKETS",
    "CONTENT_TYPE",
    "FAMILIES",
    "Family",
    "Meter",
    "Snapshot",
    "add_up",
    "exposition",
    "measure",
    "measure_queues",
]

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of durations in seconds, as OpenTelemetry has them for HTTP."""


FamilyType: TypeAlias = Literal["counter", "gauge", "histogram", "info"]


class Family(NamedTuple):
    """A family of metrics. A counter's samples are named with `_total` behind `name`, an info's with `_info`."""

    name: str
    type: FamilyType
    labels: tuple[str, ...]
    help: str


_TYPES: Final[Mapping[str, FamilyType]] = {each: each for each in get_args(FamilyType)}


def _families(table: str) -> Iterator[Family]:
    """The families of a table: in each line a type, a name, the labels, and behind the colon the help."""
    for line in table.strip().splitlines():
        head, _, help = line.strip().partition(": ")
        type_, name, *labels = head.split()
        yield Family(name, _TYPES[type_], tuple(labels), help)


_TABLE: Final = """
    counter   core_http_requests method route status: Requests that were answered.
    histogram core_http_request_duration_seconds method route: Time from a request's arrival until its response is final.
    gauge     core_websockets_open: WebSockets of routes that are open.
    counter   core_binding_calls binding kind method outcome: Calls of bindings; outcome is ok or error.
    histogram core_binding_call_duration_seconds binding kind: Time that calls of bindings took.
    counter   core_queue_batches queue outcome: Batches that were consumed; outcome is ok or error.
    counter   core_queue_dead_letters queue: Messages that were given up after their last attempt.
    gauge     core_queue_messages queue: Messages that wait, or are being consumed.
    gauge     core_queue_oldest_message_age_seconds queue: Age of the oldest of these; 0 without any.
    counter   core_cron_runs cron outcome: Handlers of crons that ran; outcome is ok or error.
    counter   core_durable_object_alarms class outcome: Alarms of Durable Objects that ran; outcome is ok or error.
    gauge     core_durable_objects_alive class: Durable Objects whose instance is in memory.
    gauge     core_process_event_loop_lag_seconds process: Longest time that the event loop was late since the numbers were last asked for.
    gauge     core_process_open_connections process: Connections of clients, WebSockets included.
    gauge     core_process_requests_in_flight process: Requests being answered, WebSockets included.
    gauge     core_process_resident_memory_bytes process: Resident memory of a process.
    gauge     core_process_up process: 1 for a process that serves, else 0.
    counter   core_process_restarts process: Processes that ended, hung or grew, and were replaced.
    counter   core_reloads outcome: SIGHUP; outcome is replaced, or refused for a program that fails.
    gauge     core_start_time_seconds: Start of the supervisor, in seconds since 1970.
    info      core_build version place build: What runs: version of core, place, and build.
"""

FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in _families(_TABLE)}
"""Every metric by its name; docs/reference/metrics.md is held to this."""

_NO_ROUTE: Final = "unmatched"
_METHODS: Final = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})

Snapshot: TypeAlias = dict[str, list[tuple[list[str], list[float]]]]
"""The numbers of a process by family: labels, and a value; of a histogram the counts of its buckets, and the sum."""


class Meter:
    """The numbers of one process."""

    __slots__ = ("_numbers", "gauges")

    def __init__(self) -> None:
        self._numbers: dict[str, dict[tuple[str, ...], list[float]]] = {}
        self.gauges: list[Callable[[], None]] = []
        """Each sets some gauges, and is called before a snapshot is taken."""

    def add(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter, or to a gauge."""
        self._numbers.setdefault(name, {}).setdefault(labels, [0])[0] += by

    def set(self, name: str, *labels: str, to: float) -> None:
        """Set a gauge."""
        self._numbers.setdefault(name, {})[labels] = [to]

    def observe(self, name: str, *labels: str, seconds: float) -> None:
        """Put a duration into a histogram."""
        numbers = self._numbers.setdefault(name, {})
        found = numbers.get(labels)
        if found is None:
            found = numbers[labels] = [0.0] * (len(BUCKETS) + 2)
        found[bisect_left(BUCKETS, seconds)] += 1
        found[-1] += seconds

    def snapshot(self) -> Snapshot:
        """The numbers now, as they cross to another process in JSON."""
        for set_gauges in self.gauges:
            set_gauges()
        return {
            name: [([*labels], [*values]) for labels, values in numbers.items()]
            for name, numbers in self._numbers.items()
        }


def add_up(snapshots: Iterable[Snapshot], *, gauges: bool = True) -> Snapshot:
    """The numbers of several processes as one. Without `gauges` only what a process that has ended leaves behind."""
    total: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for snapshot in snapshots:
        for name, rows in snapshot.items():
            if not gauges and FAMILIES[name].type in ("gauge", "info"):
                continue
            numbers = total.setdefault(name, {})
            for labels, values in rows:
                before = numbers.get(tuple(labels))
                numbers[tuple(labels)] = (
                    [*values] if before is None else [a + b for a, b in zip(before, values, strict=True)]
                )
    return {name: [([*labels], values) for labels, values in numbers.items()] for name, numbers in total.items()}


def exposition(snapshots: Iterable[Snapshot]) -> str:
    """The numbers as the text of OpenMetrics, the snapshots added up."""
    total = add_up(snapshots)
    lines: list[str] = []
    for family in FAMILIES.values():
        rows = total.get(family.name)
        if rows is None:
            continue
        lines.append(f"# TYPE {family.name} {family.type}")
        if family.name.endswith(("_seconds", "_bytes")):
            lines.append(f"# UNIT {family.name} {family.name.rpartition('_')[2]}")
        lines.append(f"# HELP {family.name} {family.help}")
        for labels, values in sorted(rows):
            lines += _samples(family, labels, values)
    return "\n".join([*lines, "# EOF\n"])


def _samples(family: Family, labels: Sequence[str], values: Sequence[float]) -> list[str]:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(family.labels, labels, strict=True)]
    if family.type != "histogram":
        suffix = {"counter": "_total", "info": "_info", "gauge": ""}[family.type]
        return [f"{family.name}{suffix}{_braced(pairs)} {_number(values[0])}"]
    *counts, total = values
    lines: list[str] = []
    running = 0.0
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
        running += count
        le = f'le="{bound}"'
        lines.append(f"{family.name}_bucket{_braced([*pairs, le])} {_number(running)}")
    lines.append(f"{family.name}_sum{_braced(pairs)} {_number(total)}")
    lines.append(f"{family.name}_count{_braced(pairs)} {_number(running)}")
    return lines


def _braced(pairs: Sequence[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


# -- where the numbers come from


def measure(app: App[Any], env: object, meter: Meter, /) -> None:
    """Count the requests, batches and scheduled events of `app` and the calls of the bindings in `env`."""
    app.add_instrument(_Counts(meter))
    hook = _counting(meter)
    for name, kind, binding in bindings_of(env):
        add_hook(binding, hook, name=name, kind=kind)


async def measure_queues(env: object, meter: Meter, /) -> None:
    """Set the gauges of the queues that `env` has producers of, where their runtime gives numbers."""
    for name, kind, queue in bindings_of(env):
        if kind == "queue":
            try:
                metrics = await queue.metrics()
            except QueueError:
                continue
            set_queue(meter, name, metrics, time.time())


def set_queue(meter: Meter, name: str, metrics: QueueMetrics, now: float) -> None:
    """Set the gauges of a queue."""
    oldest = metrics.oldest_message_timestamp
    age = 0.0 if oldest is None else max(0.0, now - oldest.timestamp())
    meter.set("core_queue_messages", name, to=metrics.backlog_count)
    meter.set("core_queue_oldest_message_age_seconds", name, to=age)


def _counting(meter: Meter) -> CallHook:
    async def count(call: BindingCall, proceed: Proceed, /) -> object:
        began = time.perf_counter()
        outcome = "error"
        try:
            result = await proceed()
            outcome = "ok"
            return result
        finally:
            meter.add("core_binding_calls", call.binding, call.kind, call.method, outcome)
            meter.observe(
                "core_binding_call_duration_seconds", call.binding, call.kind, seconds=time.perf_counter() - began
            )

    return count


class _Counts(Instrument):
    __slots__ = ("_meter",)

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The same chain, counted when its response is final."""
        meter = self._meter
        path = _NO_ROUTE if route is None else route.pattern.text

        async def counted(req: AnyRequest, res: Response) -> object:
            method = req.method if req.method in _METHODS else "other"

            def end(req: AnyRequest, status: int, duration_ms: float) -> None:
                meter.add("core_http_requests", method, path, str(status))
                meter.observe("core_http_request_duration_seconds", method, path, seconds=duration_ms / 1000)
                if status == 101 and res.upgrade is not None:
                    res.upgrade = self._open(res.upgrade)

            res.on_finalize(end)
            try:
                return await run(req, res)
            except Exception:
                raise
            except BaseException as stray:
                from core.explain.unanswered import unanswerable

                if unanswerable(stray) is None:  # no response is finalized, and no hook runs
                    status = CLIENT_GONE if isinstance(stray, CancelledError) else 500
                    meter.add("core_http_requests", method, path, str(status))
                raise

        return counted

    def _open(self, upgrade: Upgrade) -> Upgrade:
        """The same session, counted while it is open."""
        from core.http.websocket import Upgrade

        meter, run = self._meter, upgrade.run

        async def session(socket: WebSocket) -> None:
            meter.add("core_websockets_open")
            try:
                await run(socket)
            finally:
                meter.add("core_websockets_open", by=-1)

        return Upgrade(session, upgrade.protocol, upgrade.headers, upgrade.peer, upgrade.cancel)

    def batch(self, batch: MessageBatch[Any], run: Work, /) -> Work:
        return partial(self._count, "core_queue_batches", batch.queue, run)

    def scheduled(self, event: ScheduledEvent, run: Work, /) -> Work:
        return partial(self._count, "core_cron_runs", event.cron, run)

    def alarm(self, name: str, run: Work, /) -> Work:
        return partial(self._count, "core_durable_object_alarms", name, run)

    async def _count(self, name: str, label: str, run: Work) -> None:
        outcome = "error"
        try:
            await run()
            outcome = "ok"
        finally:
            self._meter.add(name, label, outcome)
