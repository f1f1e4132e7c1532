"""A chat room in `core dev`: the page's own example, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.rooms import TOML, everyone_hears_everything
from tests.support.running import RunningDev
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "chatting.py"


def test_a_room_of_200_sockets_and_who_may_not_enter(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(TOML)
    (tmp_path / "main.py").write_text(EXAMPLE.read_text())
    with RunningDev(tmp_path, tmp_path / "state") as dev:
        place = f"{dev.address.removeprefix('http://')}/rooms/tea"

        async def try_it() -> None:
            await everyone_hears_everything(lambda number: f"ws://{place}?name=m{number}", 200, 5)
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://{place}", additional_headers={"Origin": "https://evil.test"})
            assert refused.value.response.status_code == 403

        asyncio.run(try_it())
        answer = dev.fetch("/rooms/tea")
        assert answer.status == 426
    assert "error" not in dev.output


def test_the_platform_s_class_may_have_the_name_of_the_binding(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(TOML)
    (tmp_path / "rooms.py").write_text(EXAMPLE.read_text())
    (tmp_path / "main.py").write_text(
        "import rooms\nfrom core.hosts.workers import durable_object, entrypoint\n\n"
        "app = rooms.app\nDefault = entrypoint(app)\nRoom = durable_object(rooms.Room, rooms.Env)\n"
    )
    with RunningDev(tmp_path, tmp_path / "state") as dev:
        assert dev.fetch("/rooms/tea").status == 426
