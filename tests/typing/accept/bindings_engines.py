"""Every engine fits the Protocol of its kind: the workers runtime's, the embedded ones."""

from __future__ import annotations

from typing import Any

from core.backends.embedded.ai import EmbeddedAi
from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.hyperdrive import EmbeddedHyperdrive
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.rate_limit import EmbeddedRateLimit
from core.backends.embedded.version_metadata import EmbeddedVersionMetadata
from core.backends.workerd.ai import WorkerdAi
from core.backends.workerd.analytics_engine import WorkerdAnalyticsEngineDataset
from core.backends.workerd.d1 import WorkerdD1Database
from core.backends.workerd.durable_object import WorkerdDurableObjectNamespace, WorkerdDurableObjectState
from core.backends.workerd.email import WorkerdSendEmail
from core.backends.workerd.fetcher import WorkerdFetcher
from core.backends.workerd.hyperdrive import WorkerdHyperdrive
from core.backends.workerd.images import WorkerdImages
from core.backends.workerd.kv import WorkerdKVNamespace
from core.backends.workerd.queue import WorkerdMessage, WorkerdMessageBatch, WorkerdQueue
from core.backends.workerd.r2 import WorkerdR2Bucket
from core.backends.workerd.rate_limit import WorkerdRateLimit
from core.backends.workerd.secret_store import WorkerdSecretsStoreSecret
from core.backends.workerd.vectorize import WorkerdVectorize
from core.backends.workerd.version_metadata import WorkerdVersionMetadata
from core.backends.workerd.workflow import WorkerdWorkflow
from core.bindings.ai import Ai
from core.bindings.analytics_engine import AnalyticsEngineDataset
from core.bindings.d1 import D1Database
from core.bindings.durable_object import DurableObject, DurableObjectNamespace, DurableObjectState
from core.bindings.email import SendEmail
from core.bindings.fetcher import Fetcher
from core.bindings.hyperdrive import Hyperdrive
from core.bindings.images import Images
from core.bindings.kv import KVNamespace
from core.bindings.queue import Message, MessageBatch, Queue
from core.bindings.r2 import R2Bucket
from core.bindings.rate_limit import RateLimit
from core.bindings.secret_store import SecretsStoreSecret
from core.bindings.vectorize import Vectorize
from core.bindings.version_metadata import VersionMetadata
from core.bindings.workflow import Workflow

ai: list[type[Ai]] = [WorkerdAi, EmbeddedAi]
datasets: type[AnalyticsEngineDataset] = WorkerdAnalyticsEngineDataset
databases: list[type[D1Database]] = [WorkerdD1Database, EmbeddedD1Database]
objects: type[DurableObjectNamespace[Any]] = WorkerdDurableObjectNamespace
embedded_objects: type[DurableObjectNamespace[Any]] = EmbeddedDurableObjectNamespace[DurableObject[Any]]
states: type[DurableObjectState] = WorkerdDurableObjectState
emails: type[SendEmail] = WorkerdSendEmail
fetchers: type[Fetcher] = WorkerdFetcher
hyperdrives: list[type[Hyperdrive]] = [WorkerdHyperdrive, EmbeddedHyperdrive]
images: type[Images] = WorkerdImages
namespaces: list[type[KVNamespace]] = [WorkerdKVNamespace, EmbeddedKVNamespace]
queues: list[type[Queue[Any]]] = [WorkerdQueue, EmbeddedQueue]
messages: type[Message[Any]] = WorkerdMessage
batches: type[MessageBatch[Any]] = WorkerdMessageBatch
buckets: list[type[R2Bucket]] = [WorkerdR2Bucket, EmbeddedR2Bucket]
limiters: list[type[RateLimit]] = [WorkerdRateLimit, EmbeddedRateLimit]
secrets: type[SecretsStoreSecret] = WorkerdSecretsStoreSecret
indexes: type[Vectorize] = WorkerdVectorize
versions: list[type[VersionMetadata]] = [WorkerdVersionMetadata, EmbeddedVersionMetadata]
workflows: type[Workflow[Any]] = WorkerdWorkflow
