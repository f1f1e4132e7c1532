"""Tests take no type arguments where none are wanted: the fixtures of the pytest plugin, and fakes."""

from __future__ import annotations

from typing import Any, assert_type

import attrs

from core import App, Bindings, KVNamespace, http
from core.testing import Client, FakeClock, FakeDurableObjectNamespace, FakeExecutionContext, FakeQueue


@attrs.frozen
class Env(Bindings):
    CACHE: KVNamespace


async def test_with_fixtures(
    core_client: Client, core_app: App, core_env: Env, core_ctx: FakeExecutionContext, core_clock: FakeClock
) -> None:
    assert_type(await core_client.get("/"), http.Response)


async def test_with_a_typed_client(core_client: Client[Env]) -> None:
    assert_type(core_client.env, Env)


def fakes(queue: FakeQueue, counters: FakeDurableObjectNamespace) -> list[Any]:
    return [queue, counters]
