"""`/activity`: numbered without gaps, also when many write at once."""

import asyncio

from core.testing import Client

from my_notes.env import Env


async def test_what_happened_is_listed_in_order(ada: Client[Env], bob: Client[Env]) -> None:
    await ada.post("/notes", json={"text": "One"})
    await ada.post("/notes", json={"text": "Two"})

    assert await (await ada.get("/activity")).json() == {
        "activity": [
            {"number": 1, "text": "note 1 was written"},
            {"number": 2, "text": "note 2 was written"},
        ]
    }
    assert await (await bob.get("/activity")).json() == {"activity": []}


async def test_thirty_at_once_get_thirty_numbers_and_twenty_are_kept(env: Env) -> None:
    activity = env.ACTIVITY.get_by_name("1")

    added = await asyncio.gather(*(activity.add(f"entry {number}") for number in range(30)))

    assert sorted(entry.number for entry in added) == list(range(1, 31))
    assert [entry.number for entry in await activity.recent()] == list(range(11, 31))
