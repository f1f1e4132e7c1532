"""The embedded queues: messages in SQLite, and a broker that hands them to consumers in batches.

The time and order of batches, and the effects of ack and retry, follow the recordings in `tests/traces`; where the
platform's documentation says otherwise, the documentation.
"""

from __future__ import annotations

from core.backends.embedded.queue.broker import EmbeddedQueue, QueueBroker, broker_of
from core.backends.embedded.queue.consumer import Consumer, ConsumerSettings
from core.backends.embedded.queue.messages import DeliveredMessage, Delivery, StoredMessage

__all__ = [
    "Consumer",
    "ConsumerSettings",
    "DeliveredMessage",
    "Delivery",
    "EmbeddedQueue",
    "QueueBroker",
    "StoredMessage",
    "broker_of",
]
