"""Links: made, followed, counted, seen live, deleted; and whose they are."""

from collections.abc import Awaitable, Callable

import pytest

from core import http
from core.http.websocket import WebSocketClosed
from core.testing import Client, FakeClock, FakeQueue
from links.cache import Target, remember
from links.env import Env
from links.live import GONE
from links.main import app

Join = Callable[[str], Awaitable[Client[Env]]]
Count = Callable[[], Awaitable[None]]
URL = "https://example.com/a/long/address"


async def shorten(client: Client[Env], slug: str = "tea", url: str = URL) -> http.Response:
    return await client.post("/links", body=http.URLSearchParams({"url": url, "slug": slug}))


async def test_a_link_leads_away_and_its_clicks_are_counted_and_seen(
    ada: Client[Env], visitor: Client[Env], count_clicks: Count
) -> None:
    made = await shorten(ada)
    assert (made.status, made.headers["Location"]) == (303, "/links/tea")
    page = await ada.websocket("/links/tea/live")
    assert await page.receive() == "0"

    for _ in range(2):
        led = await visitor.get("/tea")
        assert (led.status, led.headers["Location"], led.headers["Cache-Control"]) == (302, URL, "no-store")
    await count_clicks()

    assert await page.receive() == "2"
    assert ">2</output> clicks" in await (await ada.get("/links/tea")).text()
    assert '<span class="clicks">2</span>' in await (await ada.get("/")).text()
    again = await ada.websocket("/links/tea/live")
    assert await again.receive() == "2"


async def test_a_click_that_comes_twice_is_counted_once(
    ada: Client[Env], visitor: Client[Env], count_clicks: Count
) -> None:
    await shorten(ada)
    await visitor.get("/tea")
    await count_clicks()

    clicks = ada.env.CLICKS
    assert isinstance(clicks, FakeQueue)
    assert clicks.redeliver() == 1
    await count_clicks()

    assert ">1</output> clicks" in await (await ada.get("/links/tea")).text()


async def test_a_name_is_used_once_and_may_be_left_out(ada: Client[Env]) -> None:
    await shorten(ada)

    taken = await shorten(ada, url="https://example.com/another")
    random = await shorten(ada, slug="")

    assert taken.status == 409
    assert "slug: is already taken" in await taken.text()
    assert (await ada.get(random.headers["Location"])).status == 200


@pytest.mark.parametrize("wrong", [{"url": "javascript:alert(1)"}, {"slug": "a/b"}, {"slug": "x" * 33}])
async def test_what_cannot_be_a_link_is_told(ada: Client[Env], wrong: dict[str, str]) -> None:
    response = await shorten(ada, **wrong)

    assert response.status == 422
    assert f"<li>{next(iter(wrong))}: " in await response.text()


async def test_an_address_is_text_on_the_page(ada: Client[Env]) -> None:
    await shorten(ada, url="https://example.com/<script>")

    assert "https://example.com/&lt;script&gt;" in await (await ada.get("/")).text()


async def test_a_link_of_somebody_else_is_not_there(ada: Client[Env], join: Join) -> None:
    await shorten(ada)
    bob = await join("bob")

    assert (await bob.get("/links/tea")).status == 404
    assert (await bob.post("/links/tea/delete")).status == 404
    with pytest.raises(WebSocketClosed) as refused:
        await bob.websocket("/links/tea/live")
    assert refused.value.code == 404
    assert "tea" not in await (await bob.get("/")).text()
    assert (await ada.get("/links/tea")).status == 200


@pytest.mark.parametrize("path", ["/nothing", "/favicon.ico", f"/{'x' * 600}"])
async def test_a_link_that_nobody_made_is_a_page_that_says_so(visitor: Client[Env], path: str) -> None:
    response = await visitor.get(path)

    assert response.status == 404
    assert "Not Found" in await response.text()


async def test_a_deleted_link_is_gone_elsewhere_after_a_minute_and_counts_for_nobody(
    ada: Client[Env], env: Env, clock: FakeClock, count_clicks: Count
) -> None:
    far = Client(app, env, ada.ctx, place=1)
    await shorten(ada)
    await far.get("/tea")
    page = await ada.websocket("/links/tea/live")
    assert await page.receive() == "0"

    assert (await ada.post("/links/tea/delete")).status == 303
    with pytest.raises(WebSocketClosed) as ended:
        await page.receive()
    assert ended.value.code == GONE
    assert (await ada.get("/tea")).status == 404
    assert (await far.get("/tea")).status == 302  # what KV still says there

    await shorten(ada, url="https://example.com/another")
    await count_clicks()
    assert ">0</output> clicks" in await (await ada.get("/links/tea")).text()
    await clock.advance(60)
    assert (await far.get("/tea")).headers["Location"] == "https://example.com/another"


async def test_an_entry_that_was_written_after_the_delete_is_removed_by_the_first_click(
    ada: Client[Env], visitor: Client[Env], env: Env, count_clicks: Count
) -> None:
    await shorten(ada)
    await ada.post("/links/tea/delete")
    await remember(env, "tea", Target(1, URL))  # by a visitor who read the database before it

    assert (await visitor.get("/tea")).status == 302
    await count_clicks()

    assert (await visitor.get("/tea")).status == 404
