"""`core_recorded`: what a recorded test calls, and `--core-update`, which writes its literals again."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from core.app import App
from core.testing.recorded.replay import Sent, play
from core.testing.recorded.shrink import lasting
from core.testing.recorded.values import Answer, State
from core.testing.recorded.writing import rewritten


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
        headers: dict[str, Any] | None = None,
        cookies: dict[str, Any] | None = None,
        json: Any = ...,
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
