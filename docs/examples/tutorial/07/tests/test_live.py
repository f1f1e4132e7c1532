"""`/activity/live`: what happens is heard at once, by its owner alone."""

import pytest
from core.http.websocket import WebSocketClosed
from core.testing import Client, FakeDurableObjectNamespace

from my_notes.env import Env


async def test_every_listener_of_an_account_hears_what_happens(ada: Client[Env]) -> None:
    phone = await ada.websocket("/activity/live")
    laptop = await ada.websocket("/activity/live")

    await ada.post("/notes", json={"text": "One"})

    assert [await phone.receive(), await laptop.receive()] == ["1: note 1 was written"] * 2


async def test_a_connection_outlives_the_instance(ada: Client[Env]) -> None:
    socket = await ada.websocket("/activity/live")
    rooms = ada.env.ACTIVITY
    assert isinstance(rooms, FakeDurableObjectNamespace)

    await rooms.evict("1")  # what the platform does with an object that is quiet for ten seconds
    await ada.post("/notes", json={"text": "One"})

    assert await socket.receive() == "1: note 1 was written"


async def test_who_is_not_signed_in_does_not_listen(client: Client[Env]) -> None:
    with pytest.raises(WebSocketClosed) as refused:
        await client.websocket("/activity/live")

    assert refused.value.code == 401


async def test_anything_but_a_websocket_is_told_so(ada: Client[Env]) -> None:
    assert (await ada.get("/activity/live")).status == 426
