"""The link shortener in workerd, and the upload that the platform's own tool makes of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import Background, Make, Running, make_of, start_running
from tests.runtime.test_deploy import command, dry_run, missing_in
from tests.support.copies import copy_project
from tests.support.shortener import ALL_OF_IT, sign_up_and_see_a_click

from core.runtime.node import make_ready
from core.runtime.project import open_project
from core.runtime.toolchain import Toolchain

LINKS = Path(__file__).parents[2] / "examples" / "links"


@pytest.fixture(scope="module")
def links(
    tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A node with an empty database."""
    project = open_project(LINKS / "wrangler.toml")
    bundle = make_of(make, project)
    env = {**os.environ, "JWT_SECRET": "an-example-secret-that-everyone-may-know"}
    node = start_running(tools, bundle, background, tmp_path_factory.mktemp("links"), plan=project.plan, env=env)
    said: list[str] = []
    background.run(make_ready(node.node, bundle, migrate=True, say=said.append))
    assert said == ["DB: applied 0001_links.sql"]
    yield node
    node.stop()


def test_a_click_is_counted_and_seen(links: Running) -> None:
    """Its templates and its files are there too: they are files of its package."""
    assert sign_up_and_see_a_click(f"http://127.0.0.1:{links.port}") == ALL_OF_IT


def test_all_of_it_goes_up_to_the_platform(tmp_path: Path) -> None:
    project = tmp_path / "links"
    copy_project(LINKS, project)
    command(sys.executable, "-m", "core", "build", "--hosted", folder=project)

    out, said = dry_run(project)

    for binding in ("env.DB", "env.CACHE", "env.CLICKS", "env.LIVE (Live)"):
        assert binding in said
    assert missing_in(out) == []
    others = {file.name for file in (LINKS / "src").rglob("*.*") if file.parent.name in ("templates", "static")}
    assert others == {file.name for place in ("templates", "static") for file in (out / "links" / place).iterdir()}
