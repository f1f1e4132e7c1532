"""The embedded queues: messages in SQLite, and a broker that hands them to consumers in batches.

The time and order of batches, and the effects of ack and retry, follow the recordings in `tests/traces`; where the
platform's documentation says otherwise, the documentation.
"""

from core.backends.embedded.queue.broker import EmbeddedQueue as EmbeddedQueue
from core.backends.embedded.queue.broker import QueueBroker as QueueBroker
from core.backends.embedded.queue.broker import broker_of as broker_of
from core.backends.embedded.queue.consumer import Consumer as Consumer
from core.backends.embedded.queue.consumer import ConsumerSettings as ConsumerSettings
from core.backends.embedded.queue.messages import Delivery as Delivery
from core.backends.embedded.queue.messages import StoredMessage as StoredMessage
