"""One request over fakes that hold given records: its answer, and what it wrote.

The fixture `core_recorded` sends it in a recorded test, whose literals `--core-update` writes again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any, cast

from core.app import App
from core.bindings.calls import BindingCall, Proceed, add_hook
from core.bindings.secret import Secret
from core.config.model import Configuration
from core.middleware.memory import forget_all
from core.testing.client import Client
from core.testing.clock import FakeClock
from core.testing.context import FakeExecutionContext
from core.testing.durable_object import FakeDurableObjectNamespace
from core.testing.environment import env
from core.testing.recorded.shrink import lasting
from core.testing.recorded.state import alone, fakes_of, fill, held, parsed, text_of, values_of
from core.testing.recorded.values import Answer, Sent, StandIn, State, mapped
from core.testing.recorded.writing import rewritten

_LONGEST = 30.0
"""Seconds of the machine that an answer may take: a stream may have no end."""
_DEEPEST = 20
"""Levels of a result that are looked into: an object may lead back to itself."""


async def play(
    app: App[Any],
    config: str | Path | Configuration | None,
    sent: Sent,
    seed: State,
    time: float,
    seen: set[object] | None = None,
) -> Answer:
    """Send a request to `app` over fakes with the records of `seed`, at `time`, and wait for its background work.

    `seen` gets the texts and numbers in the arguments and results of its calls of bindings.

    Raises EnvError where a fake is missing, sqlite3.Error for rows that a database does not take, and TimeoutError for
    an answer that does not end.
    """
    forget_all()
    clock = FakeClock(time)
    bindings = None if app.env_class is None else env(app.env_class, config=config, clock=clock)
    await fill(bindings, seed)
    before = held(bindings)
    if seen is not None:
        _watch(bindings, seen)
    context = FakeExecutionContext(clock=clock)

    def real(value: object) -> Any:
        return mapped(value, lambda part, _: part.text(reveal) if isinstance(part, StandIn) else part)

    def reveal(name: str) -> str:
        value = values_of(bindings)[name]
        return value.reveal() if isinstance(value, Secret) else str(value)

    async with Client(app, bindings, context, base_url="http://localhost", ip="127.0.0.1", contract=False) as client:
        client.cookies.update(real(sent.cookies))
        async with asyncio.timeout(_LONGEST):
            response = await client.request(
                sent.method, sent.url, headers=real(sent.headers), json=real(sent.json), body=sent.body
            )
            data = await response.bytes()
            await context.drain()
            for fake in fakes_of(bindings).values():
                if isinstance(fake, FakeDurableObjectNamespace):
                    await fake.objects.rest()
    after = held(bindings)
    body: object = text_of(data) or None
    if data and "json" in (response.headers.get("Content-Type") or ""):
        body = parsed(body)
    return Answer(response.status, body, response.headers.get("Location"), alone(after, before), alone(before, after))


def _watch(bindings: object, seen: set[object]) -> None:
    async def hook(call: BindingCall, proceed: Proceed, /) -> object:
        _note((call.target, call.args, *call.options.values()), seen)
        result = await proceed()
        _note(result, seen)
        return result

    for name, fake in fakes_of(bindings).items():
        add_hook(fake, hook, name=name, kind="")


def _note(value: object, seen: set[object], depth: int = 0) -> None:
    parts: Collection[object] = ()
    match value:
        case str() | int() | float() | bytes():
            seen.add(value)
        case dict():
            parts = [*cast("dict[object, object]", value).items()]
        case list() | tuple() | set() | frozenset():
            parts = cast("Collection[object]", value)
        case _:
            parts = [getattr(value, field.name, None) for field in getattr(value, "__attrs_attrs__", ())]
    for each in parts if depth < _DEEPEST else ():
        _note(each, seen, depth + 1)


class Recorded:
    """Sends the request of a recorded test over fakes that hold the records of `seed`, and returns the answer.

        answer = core_recorded("GET", "/users/7", seed={"DB.users": [{"id": 7, "name": "Ada"}]})
        assert answer == Answer(status=200, body={"id": 7, "name": "Ada"})

    `seed`: records by place, which is `DB.users` for a table, and the name of the binding for keys (`key`, `value`,
    `expiration`, `metadata`) and objects. `time`: that of the clock, in seconds since 1970. A value of `headers`,
    `cookies` or `json` may be a Jwt, a Signed or a Revealed, made of a secret of the test's Env.
    """

    def __init__(self, app: App[Any], config: Path | None, test: tuple[Path, str] | None = None) -> None:
        self._app = app
        self._config = config
        self._test = test
        """The file and name of a test whose literals are written again."""
        self._calls = 0

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, object] | None = None,
        cookies: dict[str, object] | None = None,
        json: object = ...,
        body: str | bytes | None = None,
        seed: State | None = None,
        time: float = 1_800_000_000,
    ) -> Answer:
        """Send the request. Background work has ended when it returns."""
        sent = Sent(method, url, headers or {}, cookies or {}, json, body)
        replay = partial(play, self._app, self._config, sent, seed or {})
        if self._test is not None:
            import pytest

            file, function = self._test
            before = file.read_text("utf-8")
            after = rewritten(before, function, self._calls, asyncio.run(lasting(replay, time)))
            if after != before:
                file.write_text(after, "utf-8")
                pytest.skip(f"{file.name} was written again")
        answer = asyncio.run(replay(time))
        self._calls += 1
        return answer
