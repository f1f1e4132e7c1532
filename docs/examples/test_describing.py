"""What the page on describing an API says of handlers is so."""

import describing
from core.description import description_of
from core.testing import Client


async def test_the_handlers_answer_as_they_are_described() -> None:
    client = Client(describing.app, None)
    assert await (await client.get("/reports/2026-11")).json() == {"title": "/reports/2026-11", "pages": 3}
    assert (await client.get("/v1/reports")).status == 302
    assert (await client.post("/orders", json={"eggs": 13})).status == 422
    assert await (await client.post("/orders", json={"eggs": 24})).json() == {"eggs": 24}
    said = description_of(describing.report)
    assert said is not None
    assert said.answers == {200: describing.Report, 304: None}
