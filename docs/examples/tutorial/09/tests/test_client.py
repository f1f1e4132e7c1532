"""The client that was written from the description, against the application."""

import pytest
from client import AsyncClient, NewNote, NotFound, fetch_transport
from core import http
from core.testing import Client
from my_notes.env import Env


async def test_a_typed_client_writes_and_reads_a_note(ada: Client[Env]) -> None:
    api = AsyncClient(fetch_transport(ada.fetch, http.Request))

    created = await api.notes.create_note(NewNote(text="Remember the milk"))
    assert (await api.notes.get_note(str(created.id))).text == "Remember the milk"
    with pytest.raises(NotFound):
        await api.notes.get_note("99")
