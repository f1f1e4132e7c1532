"""The pages of `templating.py`: escaped, and closed to forms of other sites."""

from urllib.parse import urlencode

import templating
from core.testing import Client, env

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def test_what_a_guest_wrote_is_text_on_the_page_and_no_html() -> None:
    client = Client(templating.app, env(templating.Env))

    signed = await client.post("/guests", body=urlencode({"name": "<script>"}), headers=FORM)

    assert (signed.status, signed.headers["location"]) == (303, "/guests")
    page = await (await client.get("/guests")).text()
    assert "<li>&lt;script&gt;</li>" in page
    assert "<script>" not in page


async def test_a_missing_name_is_told_on_the_form() -> None:
    client = Client(templating.app, env(templating.Env))

    answer = await client.post("/guests", body=urlencode({"name": " "}), headers=FORM)

    assert answer.status == 422
    assert '<p role="alert">A name is missing.</p>' in await answer.text()


async def test_the_form_of_another_site_is_refused() -> None:
    client = Client(templating.app, env(templating.Env))

    answer = await client.post(
        "/guests", body=urlencode({"name": "Eve"}), headers={**FORM, "Sec-Fetch-Site": "cross-site"}
    )

    assert answer.status == 403
    assert "Eve" not in await (await client.get("/guests")).text()
