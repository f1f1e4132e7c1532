"""The queues that the cases need: one for each combination of settings, since those are the configuration's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def queue_name(
    *,
    max_batch_size: int = 10,
    max_batch_timeout: float = 1,
    max_retries: int = 3,
    retry_delay: int = 0,
    dead: bool = False,
) -> str:
    """The name of the queue with these settings."""
    return f"q-{max_batch_size}-{max_batch_timeout:g}-{max_retries}-{retry_delay}{'-dead' if dead else ''}"


def settings(**given: Any) -> tuple[str, Mapping[str, Any]]:
    """A queue's name, and its settings as the runtime's service has them."""
    dead = given.pop("dead", False)
    every = {"max_batch_size": 10, "max_batch_timeout": 1, "max_retries": 3, "retry_delay": 0, **given}
    return queue_name(**every, dead=dead), {
        "maxBatchSize": every["max_batch_size"],
        "maxBatchTimeout": every["max_batch_timeout"],
        "maxRetries": every["max_retries"],
        "retryDelay": every["retry_delay"],
        **({"deadLetterQueue": "q-letters"} if dead else {}),
    }


QUEUES: Mapping[str, Mapping[str, Any]] = dict(
    [
        settings(),
        settings(max_batch_size=1),
        settings(max_batch_size=100),
        settings(max_batch_size=3, max_batch_timeout=60),
        settings(max_batch_timeout=2),
        settings(max_batch_timeout=0),
        settings(max_batch_size=3, max_batch_timeout=0, retry_delay=5),
        settings(max_batch_size=4, max_batch_timeout=0),
        settings(max_batch_size=1, max_retries=0),
        settings(max_batch_size=1, max_retries=1),
        settings(max_batch_size=1, max_retries=2),
        settings(max_batch_size=1, max_retries=1, dead=True),
        ("q-letters", {"maxBatchSize": 1, "maxBatchTimeout": 1}),
        ("q-probes", {"maxBatchSize": 1, "maxBatchTimeout": 0}),
    ]
)
