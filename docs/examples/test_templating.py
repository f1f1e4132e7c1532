"""The pages of `templating.py`: escaped, and closed to forms of other sites."""

import templating
from core import http
from core.testing import Client, env


async def test_what_a_guest_wrote_is_text_on_the_page_and_no_html() -> None:
    client = Client(templating.app, env(templating.Env))

    signed = await client.post("/guests", body=http.URLSearchParams({"name": "<script>"}))

    assert (signed.status, signed.headers["location"]) == (303, "/guests")
    page = await (await client.get("/guests")).text()
    assert "<li>&lt;script&gt;</li>" in page
    assert "<script>" not in page


async def test_a_missing_name_is_told_on_the_form() -> None:
    client = Client(templating.app, env(templating.Env))

    answer = await client.post("/guests", body=http.URLSearchParams({"name": " "}))

    assert answer.status == 422
    assert '<p role="alert">A name is missing.</p>' in await answer.text()


async def test_the_form_of_another_site_is_refused() -> None:
    client = Client(templating.app, env(templating.Env))

    answer = await client.post(
        "/guests", body=http.URLSearchParams({"name": "Eve"}), headers={"Sec-Fetch-Site": "cross-site"}
    )

    assert answer.status == 403
    assert "Eve" not in await (await client.get("/guests")).text()
