"""Its test: a fake in the place of the binding, and no server."""

from core.testing import Client, FakeKVNamespace
from hello import Env, app


async def test_a_friend_is_greeted() -> None:
    client = Client(app, Env(GREETINGS=FakeKVNamespace({"ada": "Ada Lovelace"})))

    response = await client.get("/hello/ada")

    assert response.status == 200
    assert await response.json() == {"hello": "Ada Lovelace"}
    assert (await client.get("/hello/bob")).status == 404
