"""The client that was written from the description, against the application."""

from client import Client as NotesClient
from client import CreateNote201, GetNote200, GetNote404, NewNote, fetch_transport
from core import http
from core.testing import Client
from my_notes.env import Env


async def test_a_typed_client_writes_and_reads_a_note(ada: Client[Env]) -> None:
    api = NotesClient(fetch_transport(ada.fetch, http.Request))

    created = await api.create_note(NewNote(text="Remember the milk"))
    assert isinstance(created, CreateNote201)

    found = await api.get_note(str(created.body.id))
    assert isinstance(found, GetNote200)
    assert found.body.text == "Remember the milk"
    assert isinstance(await api.get_note("99"), GetNote404)
