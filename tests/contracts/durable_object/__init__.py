"""The promises of every Durable Object: its ids, its calls, its storage, its alarm, its WebSockets.

The cases call `Subject`, a class that a worker under test has to have: every implementation is tried with the same one.
"""

from __future__ import annotations

# Imported for the cases that each of them adds, in this order.
from tests.contracts.durable_object import calls, storage, sql, alarms, sockets  # isort: skip
from tests.contracts.durable_object.subject import Point, Subject, clean, contract

__all__ = ["Point", "Subject", "alarms", "calls", "clean", "contract", "sockets", "sql", "storage"]
