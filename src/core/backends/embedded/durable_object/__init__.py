"""The embedded Durable Objects: Python classes, one instance per id, each with a database of its own."""

from __future__ import annotations

from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.namespace import EmbeddedDurableObjectNamespace
from core.backends.embedded.durable_object.objects import Objects, ObjectState
from core.backends.embedded.durable_object.storage import ObjectStorage

__all__ = ["EmbeddedDurableObjectNamespace", "ObjectId", "ObjectState", "ObjectStorage", "Objects"]
