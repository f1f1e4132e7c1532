"""The consumer of the clicks: a batch is one transaction, and one message to each page that shows a link of it."""

import json

import attrs

from core import ExecutionContext, MessageBatch
from links.cache import forget
from links.env import Env
from links.messages import Click


@attrs.frozen
class Count:
    id: int
    clicks: int


async def count(batch: MessageBatch[Click], env: Env, ctx: ExecutionContext) -> None:
    """Count each click once, however often its message comes."""
    clicks = json.dumps([{"id": message.id, "link": message.body.link} for message in batch.messages])
    insert = env.DB.prepare(
        """
        INSERT INTO clicks (id, link)
        SELECT value ->> 'id', links.id FROM json_each(?) JOIN links ON links.id = value ->> 'link'
        WHERE true ON CONFLICT DO NOTHING
        """
    )
    counts = env.DB.prepare("SELECT id, clicks FROM links WHERE id IN (SELECT value ->> 'link' FROM json_each(?))").as_(
        Count
    )
    _, counted = await env.DB.batch((insert.bind(clicks), counts.bind(clicks)))
    for each in counted.results:
        await env.LIVE.get_by_name(str(each.id)).tell(each.clicks)
    there = {each.id for each in counted.results}
    for slug in {message.body.slug for message in batch.messages if message.body.link not in there}:
        await forget(env, slug)
