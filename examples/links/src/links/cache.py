"""Where links lead, kept in KV: it answers in a millisecond where the database is far away.

KV may be up to a minute behind, and whoever read the database before a DELETE may write to KV after it. So each entry
ends by itself, and a click on one whose link is gone removes it (`clicks.count`).
"""

import attrs

from links.env import Env

LIFETIME = 300  # seconds


@attrs.frozen
class Target:
    id: int
    url: str


async def look_up(env: Env, slug: str) -> Target:
    """Where a link leads. Raises a 404 where there is none."""
    target = await env.CACHE.get_json(f"link:{slug}", Target)
    if target is None:
        target = await env.DB.prepare("SELECT id, url FROM links WHERE slug = ?").bind(slug).one(Target)
        await remember(env, slug, target)
    return target


async def remember(env: Env, slug: str, target: Target) -> None:
    await env.CACHE.put_json(f"link:{slug}", target, expiration_ttl=LIFETIME)


async def forget(env: Env, slug: str) -> None:
    await env.CACHE.delete(f"link:{slug}")
