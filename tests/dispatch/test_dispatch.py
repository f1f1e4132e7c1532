"""The response pipeline under every order of staging, sending, raising and going on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.fetch import ask

from core import CoreError, Next, Request, Response, create_app

ACTIONS = ("stage", "send", "raise", "refuse", "catch", "hook", "cookie")


@dataclass
class Model:
    """The expected steps, written out beside the real thing."""

    sent: tuple[int, Any] | None = None
    staged: dict[str, str] = field(default_factory=dict[str, str])
    cookies: int = 0
    hooks: int = 0


class Raised(Exception):
    def __init__(self, status: int, body: Any) -> None:
        self.outcome = (status, body)


async def act(action: str, place: str, res: Response) -> None:
    if action == "stage":
        res.header(f"x-{place}", "1")
    elif action == "cookie":
        res.cookie(f"c-{place}", "1")
    elif action == "hook":
        res.on_send(lambda status, ms: FIRED.append(status))
    elif action == "send":
        res.status(201).json({"by": place})
    elif action == "raise":
        raise RuntimeError(place)
    elif action == "refuse":
        raise CoreError(409, place)


FIRED: list[int] = []


def model_act(action: str, place: str, model: Model) -> None:
    if action == "stage":
        model.staged[f"x-{place}"] = "1"
    elif action == "cookie":
        model.cookies += 1
    elif action == "hook":
        model.hooks += 1
    elif action == "send":
        if model.sent is not None:
            raise Raised(500, {"error": "Internal Server Error"})
        model.sent = (201, {"by": place})
    elif action == "raise":
        raise Raised(500, {"error": "Internal Server Error"})
    elif action == "refuse":
        raise Raised(409, {"error": place})


steps = st.lists(st.sampled_from(ACTIONS), max_size=3)
layers = st.tuples(steps, st.booleans(), steps)


@given(st.lists(layers, max_size=4), steps)
async def test_the_pipeline_is_what_the_model_says(
    chain: list[tuple[list[str], bool, list[str]]], last: list[str]
) -> None:
    FIRED.clear()
    app = create_app()

    def middleware(number: int, before: list[str], goes_on: bool, after: list[str]) -> Any:
        async def step(req: Request, res: Response, next: Next) -> None:
            for index, action in enumerate(before):
                await act(action, f"b{number}-{index}", res)
            if goes_on:
                if "catch" in before:
                    try:
                        await next()
                    except CoreError:
                        res.header("x-caught", str(number))
                else:
                    await next()
            for index, action in enumerate(after):
                await act(action, f"a{number}-{index}", res)

        return step

    for number, (before, goes_on, after) in enumerate(chain):
        app.use(middleware(number, before, goes_on, after))

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        for index, action in enumerate(last):
            await act(action, f"h{index}", res)

    model = Model()

    def run(number: int) -> None:
        if number == len(chain):
            for index, action in enumerate(last):
                model_act(action, f"h{index}", model)
            return
        before, goes_on, after = chain[number]
        for index, action in enumerate(before):
            model_act(action, f"b{number}-{index}", model)
        if goes_on:
            try:
                run(number + 1)
            except Raised as raised:
                if "catch" not in before or raised.outcome[0] != 409:
                    raise
                model.staged["x-caught"] = str(number)
        for index, action in enumerate(after):
            model_act(action, f"a{number}-{index}", model)

    try:
        run(0)
        expected = model.sent or (500, {"error": "Internal Server Error"})
    except Raised as raised:
        expected = raised.outcome

    response = await ask(app)
    assert (response.status, json.loads(await response.text())) == expected
    assert {name: value for name, value in response.headers.items() if name.startswith("x-")} == model.staged
    assert len(response.headers.get_set_cookie()) == model.cookies
    assert [expected[0]] * model.hooks == FIRED
