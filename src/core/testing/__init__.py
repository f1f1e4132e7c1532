"""Fakes, a client and a pytest plugin: everything to test an application with, no runtime needed.

The fakes are the embedded engines over memory, with a call log, a clock that a test moves, and faults
that it injects; one contract suite runs over them and over the real runtime. Each is loaded when it is
first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.values import lazily

if TYPE_CHECKING:
    from core.testing.ai import FakeAi
    from core.testing.client import Client
    from core.testing.clock import FakeClock
    from core.testing.context import FakeExecutionContext
    from core.testing.d1 import FakeD1Database
    from core.testing.durable_object import FakeDurableObjectNamespace
    from core.testing.environment import env
    from core.testing.hyperdrive import FakeHyperdrive
    from core.testing.kv import FakeKVNamespace
    from core.testing.queue import FakeQueue
    from core.testing.r2 import FakeR2Bucket
    from core.testing.rate_limit import FakeRateLimit
    from core.testing.recorded.replay import Recorded
    from core.testing.recorded.values import ANY_ID, ANY_TIME, Answer, Jwt, Revealed, Signed
    from core.testing.simulation.checkers import (
        exactly_once_effect,
        linearizable,
        never_more_than,
        no_lost_update,
        no_read_of_older_than,
    )
    from core.testing.simulation.decorators import call_log, replay, simulate
    from core.testing.simulation.drawn import CoreStateMachine
    from core.testing.simulation.log import SimulatedCall
    from core.testing.spans import SpanRecorder

__all__ = [
    "ANY_ID",
    "ANY_TIME",
    "Answer",
    "Client",
    "CoreStateMachine",
    "FakeAi",
    "FakeClock",
    "FakeD1Database",
    "FakeDurableObjectNamespace",
    "FakeExecutionContext",
    "FakeHyperdrive",
    "FakeKVNamespace",
    "FakeQueue",
    "FakeR2Bucket",
    "FakeRateLimit",
    "Jwt",
    "Recorded",
    "Revealed",
    "Signed",
    "SimulatedCall",
    "SpanRecorder",
    "call_log",
    "env",
    "exactly_once_effect",
    "linearizable",
    "never_more_than",
    "no_lost_update",
    "no_read_of_older_than",
    "replay",
    "simulate",
]

if not TYPE_CHECKING:
    __getattr__ = lazily(
        __name__,
        {
            "core.testing.ai": "FakeAi",
            "core.testing.client": "Client",
            "core.testing.clock": "FakeClock",
            "core.testing.context": "FakeExecutionContext",
            "core.testing.d1": "FakeD1Database",
            "core.testing.durable_object": "FakeDurableObjectNamespace",
            "core.testing.environment": "env",
            "core.testing.hyperdrive": "FakeHyperdrive",
            "core.testing.kv": "FakeKVNamespace",
            "core.testing.queue": "FakeQueue",
            "core.testing.r2": "FakeR2Bucket",
            "core.testing.rate_limit": "FakeRateLimit",
            "core.testing.recorded.replay": "Recorded",
            "core.testing.recorded.values": "ANY_ID ANY_TIME Answer Jwt Revealed Signed",
            "core.testing.simulation.checkers": "exactly_once_effect linearizable never_more_than no_lost_update no_read_of_older_than",
            "core.testing.simulation.decorators": "call_log replay simulate",
            "core.testing.simulation.drawn": "CoreStateMachine",
            "core.testing.simulation.log": "SimulatedCall",
            "core.testing.spans": "SpanRecorder",
        },
    )
