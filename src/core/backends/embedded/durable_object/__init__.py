"""The embedded Durable Objects: Python classes, one instance per id, each with a database of its own."""

from core.backends.embedded.durable_object.ids import ObjectId as ObjectId
from core.backends.embedded.durable_object.namespace import (
    EmbeddedDurableObjectNamespace as EmbeddedDurableObjectNamespace,
)
from core.backends.embedded.durable_object.objects import Objects as Objects
from core.backends.embedded.durable_object.objects import ObjectState as ObjectState
from core.backends.embedded.durable_object.storage import ObjectStorage as ObjectStorage
