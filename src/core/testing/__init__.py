"""Fakes, a client and a pytest plugin: everything to test an application with, no runtime needed.

The fakes are the embedded engines over memory, with a call log, a clock that a test moves, and faults
that it injects; one contract suite runs over them and over the real runtime. Each is loaded when it is
first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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
    from core.testing.recorded.fixture import Recorded
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

_HOMES = {
    "ANY_ID": "recorded.values",
    "ANY_TIME": "recorded.values",
    "Answer": "recorded.values",
    "Client": "client",
    "CoreStateMachine": "simulation.drawn",
    "FakeAi": "ai",
    "FakeClock": "clock",
    "FakeD1Database": "d1",
    "FakeDurableObjectNamespace": "durable_object",
    "FakeExecutionContext": "context",
    "FakeHyperdrive": "hyperdrive",
    "FakeKVNamespace": "kv",
    "FakeQueue": "queue",
    "FakeR2Bucket": "r2",
    "Jwt": "recorded.values",
    "Recorded": "recorded.fixture",
    "Revealed": "recorded.values",
    "Signed": "recorded.values",
    "SimulatedCall": "simulation.log",
    "SpanRecorder": "spans",
    "call_log": "simulation.decorators",
    "env": "environment",
    "exactly_once_effect": "simulation.checkers",
    "linearizable": "simulation.checkers",
    "never_more_than": "simulation.checkers",
    "no_lost_update": "simulation.checkers",
    "no_read_of_older_than": "simulation.checkers",
    "replay": "simulation.decorators",
    "simulate": "simulation.decorators",
}


if not TYPE_CHECKING:  # a type checker would take the module to have every name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'core.testing' has no attribute {name!r}")
        value: object = getattr(import_module(f"core.testing.{home}"), name)
        globals()[name] = value
        return value
