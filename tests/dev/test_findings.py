"""The findings that the start-up screen of `core dev` and the explorer show."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.dev.screen import findings_of

PROGRAM = """\
import attrs
from core import KVNamespace, create_app

@attrs.frozen
class Env:
    SESSIONS: KVNamespace

app = create_app(Env)
"""
WRANGLER = """\
name = "shop"
main = "app.py"
compatibility_date = "2026-04-01"

[[kv_namespaces]]
binding = "SESSIONS"
id = "a"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    tmp_path.joinpath("app.py").write_text(PROGRAM)
    tmp_path.joinpath("wrangler.toml").write_text(WRANGLER)
    tmp_path.joinpath(".git").mkdir()
    return tmp_path / "wrangler.toml"


def test_a_class_that_the_options_name_as_an_env_need_not_derive_from_bindings(config: Path) -> None:
    assert any("does not derive from Bindings" in line for line in findings_of(config))
    config.with_name("pyproject.toml").write_text('[tool.core-mypy]\nenv = ["app.Env"]\n')
    assert findings_of(config) == []
    config.write_text(WRANGLER.replace("SESSIONS", "OTHERS"))
    assert [line.split(":")[0] for line in findings_of(config)] == ["app.py"]


def test_options_that_cannot_be_read_are_a_finding(config: Path) -> None:
    config.with_name("pyproject.toml").write_text("[tool.core-mypy]\nenvs = []\n")
    (line,) = findings_of(config)
    assert line.startswith("error: pyproject.toml [tool.core-mypy]: there is no option envs")
