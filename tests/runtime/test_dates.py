"""Compatibility dates, back to the oldest that is accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from tests.runtime.conftest import PLAN, Background, Make, Running, start_running
from tests.runtime.test_rooms import MAIN as CHATTING
from tests.runtime.test_rooms import PLAN as ROOMS
from tests.support.rooms import everyone_hears_everything

from core.config.load import load
from core.runtime.plan import Plan
from core.runtime.project import plan_of
from core.runtime.toolchain import Toolchain


def dated(plan: Plan, date: str, folder: Path) -> Plan:
    """`plan` as a configuration of that date asks for it."""
    config = folder / "wrangler.json"
    config.write_text(json.dumps({"name": "dated", "main": "main.py", "compatibility_date": date}))
    asked = plan_of(load(config))
    return attrs.evolve(
        plan, compatibility_date=asked.compatibility_date, compatibility_flags=asked.compatibility_flags
    )


@pytest.mark.parametrize("date", ["2020-01-01", "2024-09-23", "2025-05-04", "2026-11-01"])
def test_the_bindings_work_under_a_date(start: Callable[..., Running], tmp_path: Path, date: str) -> None:
    worker = start(plan=dated(PLAN, date, tmp_path))
    assert worker.get("/").text == "hello"
    assert worker.request("PUT", "/kv/kept", "yes").status == 204
    assert worker.get("/kv/kept").json() == "yes"
    assert worker.request("POST", "/counters/own").json()["count"] == 2
    assert worker.get("/work/5").json()["row"]["next"] == 6
    worker.request("POST", "/jobs/7")
    worker.until("/kv/job:7", lambda value: value is not None)
    assert worker.get("/ticks/3").text == "0;1;2;"


def test_rooms_and_lobbies_work_under_the_oldest_date(
    tools: Toolchain, make: Make, background: Background, tmp_path: Path
) -> None:
    plan = dated(ROOMS, "2024-09-23", tmp_path)
    running = start_running(tools, make(CHATTING, ROOMS), background, tmp_path / "state", plan=plan)
    try:
        for place in ("rooms/tea?name=m", "lobby/m"):
            address = f"ws://127.0.0.1:{running.port}/{place}"
            asyncio.run(everyone_hears_everything((address + "{}").format, 10, 2))
    finally:
        running.stop()
