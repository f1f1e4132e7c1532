"""The code of further how-to pages does what the pages say."""

import changing
import counting
import sharing_objects
import validating
from core import R2Error, Secret
from core.testing import Client, FakeClock, FakeD1Database, FakeDurableObjectNamespace, FakeR2Bucket, env


# --8<-- [start:counter]
async def test_a_counter_is_exact_and_forgets_when_its_alarm_goes_off() -> None:
    counters = FakeDurableObjectNamespace(counting.Counter)
    client = Client(counting.app, counting.Env(COUNTERS=counters))

    assert [await (await client.post("/counters/a")).json() for _ in range(2)] == [{"count": 1}, {"count": 2}]

    assert await counters.run_alarm("a")
    assert await (await client.post("/counters/a")).json() == {"count": 1}
    # --8<-- [end:counter]


async def test_every_mistake_of_a_body_and_of_a_query_is_named() -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE readers (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE)")
    client = Client(validating.app, validating.Env(DB=db))

    right = {"items": [{"sku": "ABC-1234", "quantity": 2}], "deliver_on": "2027-01-02"}
    assert await (await client.post("/orders", json=right)).json() == {"items": 1, "deliver_on": "2027-01-02"}
    wrong = {"items": [{"sku": "abc", "quantity": "2"}], "deliver_on": "soon"}
    issues = (await (await client.post("/orders", json=wrong)).json())["issues"]
    assert {issue["path"] for issue in issues} == {"items[0].sku", "items[0].quantity", "deliver_on"}

    assert await (await client.get("/orders?q=tea&limit=5")).json() == {"q": "tea", "limit": 5, "sort": "name"}
    issues = (await (await client.get("/orders?limit=500&sort=size")).json())["issues"]
    assert {issue["path"] for issue in issues} == {"q", "limit", "sort"}

    many = right | {"items": right["items"] * 6, "express": True}  # type: ignore[operator]  # the list in a dict of unions
    issues = (await (await client.post("/bookings", json=many)).json())["issues"]
    assert issues == [{"path": "express", "message": "takes five items at most"}]

    assert await (await client.post("/parcels", json={"order": right})).json() == {"parcel": {"items": 1}}
    issues = (await (await client.post("/parcels", json={"order": {**right, "items": []}})).json())["issues"]
    assert [issue["path"] for issue in issues] == ["order.items"]

    ada = {"name": "Ada", "email": "ada@example.com"}
    assert (await client.post("/readers", json=ada)).status == 201
    again = await client.post("/readers", json={**ada, "name": "Another Ada"})
    taken = {"error": "Conflict", "issues": [{"path": "email", "message": "is already taken"}]}
    assert (again.status, await again.json()) == (409, taken)


async def test_an_object_is_read_once_and_shared_for_a_quarter_of_an_hour() -> None:
    clock = FakeClock()
    bindings = env(
        sharing_objects.Env,
        clock=clock,
        FILES=FakeR2Bucket(clock=clock),
        LINK_SECRET=Secret("of thirty-two bytes, or more of it"),
    )
    client = Client(sharing_objects.app, bindings)
    await bindings.FILES.put("tea.txt", b"Earl Grey")

    first = await client.get("/files/tea.txt")
    assert await first.text() == "Earl Grey"
    again = await client.get("/files/tea.txt", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304
    assert (await client.get("/files/tea.txt", headers={"If-Match": '"another"'})).status == 412
    assert (await client.get("/files/tea.txt", headers={"If-Match": "no etag"})).status == 400
    assert (await client.get("/files/none")).status == 404

    link = (await (await client.post("/files/tea.txt/link")).json())["url"]
    assert await (await client.get(link)).text() == "Earl Grey"
    assert (await client.get(link[:-1] + ("A" if link[-1] != "A" else "B"))).status == 404
    await clock.advance(15 * 60)
    assert (await client.get(link)).status == 404


# --8<-- [start:fault]
async def test_a_failed_bucket_is_a_503_that_reveals_nothing() -> None:
    bucket = FakeR2Bucket()
    bucket.fail_next(R2Error("get: We encountered an internal error. Please try again. (10001)"))
    client = Client(sharing_objects.app, env(sharing_objects.Env, FILES=bucket))

    response = await client.get("/files/tea.txt")

    assert (response.status, await response.json()) == (503, {"error": "Service Unavailable"})
    # --8<-- [end:fault]


async def test_a_name_that_is_left_out_is_told_from_null() -> None:
    client = Client(changing.app, None)
    assert await (await client.patch("/items/1", json={"note": None})).json() == {
        "title": "as it was",
        "given": {"note": None},
    }
    assert (await client.patch("/items/1", json={"title": None})).status == 422
