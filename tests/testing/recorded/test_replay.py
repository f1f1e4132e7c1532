"""A replay over the fakes: nothing but the records and the time that it is given decides."""

from __future__ import annotations

import attrs
import pytest

from core import Bindings, KVNamespace, Request, Response, create_app
from core.middleware.cache import cache
from core.testing.recorded.replay import play
from core.testing.recorded.values import Record, Sent


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace


app = create_app(Env)


@app.get("/note", cache(max_age=60))
async def note(req: Request[Env], res: Response) -> None:
    res.json(await req.env.KV.get("note"))


@pytest.mark.parametrize("value", ["one", "two", None])
async def test_an_answer_that_an_earlier_replay_kept_is_not_given_again(value: str | None) -> None:
    records: list[Record] = [{"key": "note", "value": value}] if value is not None else []

    answer = await play(app, None, Sent("GET", "/note", {}, {}, ..., None), {"KV": records}, 100.0)

    assert (answer.status, answer.body) == (200, value)
