"""The further kinds of bindings, every method of them, with the type of every result."""

from collections.abc import AsyncIterable
from typing import assert_type

import attrs

from core.bindings.analytics_engine import AnalyticsEngineDataset
from core.bindings.assets import Assets
from core.bindings.email import EmailAddress, EmailBuilder, EmailMessage, EmailSendResult, SendEmail
from core.bindings.fetcher import Fetcher
from core.bindings.hyperdrive import Hyperdrive
from core.bindings.images import ImageInfo, Images, ImageTransformationResult, ImageTransformer
from core.bindings.rate_limit import RateLimit, RateLimitOutcome
from core.bindings.secret_store import SecretsStoreSecret
from core.bindings.vectorize import (
    Vectorize,
    VectorizeAsyncMutation,
    VectorizeIndexInfo,
    VectorizeMatch,
    VectorizeMatches,
    VectorizeVector,
)
from core.bindings.version_metadata import VersionMetadata
from core.bindings.workflow import Workflow, WorkflowInstance, WorkflowInstanceCreateOptions, WorkflowStatus
from core.http import Request, Response


@attrs.frozen
class Order:
    id: int


async def services(service: Fetcher, assets: Assets, request: Request) -> list[Fetcher]:
    assert_type(await service.fetch(request), Response)
    assert_type(await assets.fetch("https://assets.local/logo.png"), Response)
    return [service, assets]


async def limits(limiter: RateLimit) -> None:
    outcome = await limiter.limit(key="ada")
    assert_type(outcome, RateLimitOutcome)
    assert_type(outcome.success, bool)


async def vectors(index: Vectorize) -> None:
    assert_type(await index.describe(), VectorizeIndexInfo)
    found = await index.query([1.0, 2.0], top_k=3, filter={"kind": {"$eq": "a"}, "n": 1}, return_metadata="all")
    assert_type(found, VectorizeMatches)
    assert_type(found.matches, list[VectorizeMatch])
    assert_type(found.matches[0].score, float)
    assert_type(await index.query_by_id("a", return_values=True), VectorizeMatches)
    assert_type(await index.insert([VectorizeVector("a", [1.0], metadata={"k": "v"})]), VectorizeAsyncMutation)
    assert_type(await index.upsert([VectorizeVector("a", [1.0])]), VectorizeAsyncMutation)
    assert_type(await index.delete_by_ids(["a"]), VectorizeAsyncMutation)
    assert_type(await index.get_by_ids(["a"]), list[VectorizeVector])


def analytics(events: AnalyticsEngineDataset) -> None:
    events.write_data_point(indexes=["ada"], blobs=["GET", None], doubles=[1, 2.5])


def databases(postgres: Hyperdrive) -> None:
    assert_type(postgres.connection_string, str)
    assert_type(postgres.port, int)


async def workflows(orders: Workflow[Order]) -> None:
    run = await orders.create(id="a", params=Order(1))
    assert_type(run, WorkflowInstance)
    assert_type(await orders.create_batch([WorkflowInstanceCreateOptions("b", Order(2))]), list[WorkflowInstance])
    assert_type(await orders.get("a"), WorkflowInstance)
    assert_type(await run.status(), WorkflowStatus)
    await run.send_event(type="paid", payload={"by": "card"})
    await run.pause()
    await run.resume()
    await run.restart()
    await run.terminate()


async def emails(mail: SendEmail) -> None:
    assert_type(await mail.send(EmailMessage("a@b.test", "c@d.test", "raw")), EmailSendResult)
    built = EmailBuilder(from_=EmailAddress("a@b.test", "A"), to=["c@d.test"], subject="Hello", text="Hello")
    assert_type((await mail.send(built)).message_id, str)


async def images(images: Images, source: bytes) -> None:
    assert_type(await images.info(source), ImageInfo)
    image = images.input(source).transform({"width": 100, "fit": "cover"}).draw(images.input(source), opacity=0.5)
    assert_type(image, ImageTransformer)
    made = await image.output(format="image/webp", quality=80)
    assert_type(made, ImageTransformationResult)
    assert_type(made.response(), Response)
    assert_type(made.image(), AsyncIterable[bytes])


async def the_rest(version: VersionMetadata, secret: SecretsStoreSecret) -> None:
    assert_type(version.id, str)
    assert_type(version.tag, str)
    assert_type(version.timestamp, str)
    assert_type(await secret.get(), str)
