"""`/profiles`: who sees what of whom, and following."""

from collections.abc import Awaitable, Callable

import pytest

from conduit.env import Env
from core.testing import Client

Join = Callable[[str], Awaitable[dict[str, str]]]


async def test_following_is_seen_by_who_follows_alone(client: Client[Env], join: Join) -> None:
    ada, grace = await join("ada"), await join("grace")

    async def following(method: str, path: str, headers: dict[str, str] | None = None) -> bool:
        response = await client.request(method, path, headers=headers)
        assert response.status == 200
        profile = (await response.json())["profile"]
        assert profile == {"username": "grace", "bio": None, "image": None, "following": profile["following"]}
        return bool(profile["following"])

    assert not await following("GET", "/api/profiles/grace", ada)
    assert await following("POST", "/api/profiles/grace/follow", ada)
    assert await following("POST", "/api/profiles/grace/follow", ada)  # twice is once
    assert await following("GET", "/api/profiles/grace", ada)
    assert not await following("GET", "/api/profiles/grace")
    assert not await following("GET", "/api/profiles/grace", grace)
    assert not await following("DELETE", "/api/profiles/grace/follow", ada)
    assert not await following("GET", "/api/profiles/grace", ada)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/profiles/nobody"),
        ("POST", "/api/profiles/nobody/follow"),
        ("DELETE", "/api/profiles/nobody/follow"),
    ],
)
async def test_an_unknown_profile_is_a_404(client: Client[Env], join: Join, method: str, path: str) -> None:
    response = await client.request(method, path, headers=await join("ada"))

    assert (response.status, await response.json()) == (404, {"errors": {"profile": ["not found"]}})
