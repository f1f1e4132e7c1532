"""`/notes/:id/file`: what goes in comes out, for its owner."""

import pytest
from core.testing import Client

from my_notes.env import Env

PICTURE = b"\x89PNG not really"


@pytest.fixture(autouse=True)
async def note(ada: Client[Env]) -> None:
    await ada.post("/notes", json={"text": "A picture"})


async def test_a_file_comes_back_as_it_was_put(ada: Client[Env]) -> None:
    headers = {"Content-Length": str(len(PICTURE))}
    put = await ada.put("/notes/1/file", body=PICTURE, headers=headers)

    assert put.status == 204
    response = await ada.get("/notes/1/file")
    assert await response.bytes() == PICTURE
    assert response.headers["Content-Disposition"] == "attachment"


async def test_nobody_else_reads_or_writes_it(ada: Client[Env], bob: Client[Env]) -> None:
    headers = {"Content-Length": str(len(PICTURE))}
    await ada.put("/notes/1/file", body=PICTURE, headers=headers)

    assert (await bob.get("/notes/1/file")).status == 404
    assert (await bob.put("/notes/1/file", body=PICTURE, headers=headers)).status == 404


async def test_a_file_that_is_too_large_or_of_no_length_is_refused(ada: Client[Env]) -> None:
    too_large = {"Content-Length": "10000001"}

    assert (await ada.put("/notes/1/file", body=PICTURE, headers=too_large)).status == 413
    assert (await ada.put("/notes/1/file", body=PICTURE)).status == 411
    assert (await ada.get("/notes/1/file")).status == 404
