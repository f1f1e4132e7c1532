"""`core openapi --mcp`: the lists of MCP servers, committed, and what a change of them breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.command_line import run

APP = '''"""Pens."""
import attrs
from core import Request, Response, create_app
from core.mcp import MCP

@attrs.frozen
class Ink:
    name: str

@attrs.frozen
class Pen:
    color: str
    ink: Ink | None = None

app = create_app()
mcp = MCP(app, "pens")

@mcp.tool
async def draw(req: Request, pen: Pen, size: int = 3) -> Pen:
    """Draw."""
    return pen

@mcp.prompt
async def praise(req: Request, name: str) -> str:
    """Praise."""
    return name

@mcp.resource("pens://{id}")
async def pen(req: Request, id: int) -> str:
    """A pen."""
    return ""

@app.get("/pens/:id", tool=True)
async def show(req: Request, res: Response) -> None:
    """A pen."""
'''


@pytest.fixture
def pens(tmp_path: Path) -> Path:
    (tmp_path / "wrangler.toml").write_text('name = "pens"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text(APP)
    done = run("openapi", "--mcp", "-o", "mcp.json", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "mcp.json written.\n", "")
    return tmp_path


def test_the_lists_of_every_server_are_written(pens: Path) -> None:
    lists = json.loads((pens / "mcp.json").read_text("utf-8"))["mcp"]["/mcp"]
    assert [tool["name"] for tool in lists["tools"]] == ["draw", "show"]
    assert [prompt["name"] for prompt in lists["prompts"]] == ["praise"]
    assert [resource["uriTemplate"] for resource in lists["resourceTemplates"]] == ["pens://{id}"]
    done = run("openapi", "--mcp", "--check", folder=pens)
    assert (done.returncode, done.stdout) == (0, "mcp.json is up to date.\n")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("size: int = 3", "size: str = ''", "breaking: `draw` no longer takes integer as `size`"),
        (", size: int = 3", "", "breaking: `draw` no longer takes `size`"),
        ("size: int = 3", "size: int", "breaking: `draw` now demands `size`, which could be left out"),
        ("size: int = 3", "size: int = 3, wide: bool = False", "change: `draw` also takes `wide`"),
        ("    color: str\n", "    color: str\n    cap: bool\n", "breaking: `draw` now demands `pen.cap`"),
        ("    name: str\n", "    name: int\n", "breaking: `draw` no longer takes string as `pen.ink.name`"),
        ("def draw", "def paint", "breaking: `draw` is gone (POST /mcp tools/draw)"),
        (
            "def praise(req: Request, name: str)",
            "def praise(req: Request)",
            "breaking: `praise` no longer takes `name`",
        ),
        ("{id}", "all/{id}", "breaking: `pens://{id}` is gone (POST /mcp resources/pens://{id})"),
        (", tool=True", "", "breaking: `show` is gone (POST /mcp tools/show)"),
        ('"""Draw."""', '"""Draw a line."""', "Nothing changed for a client: other words."),
    ],
)
def test_what_breaks_a_client_is_told(pens: Path, old: str, new: str, told: str) -> None:
    assert old in APP
    changed = APP.replace(old, new)
    if new == "def praise(req: Request)":
        changed = changed.replace("return name", 'return ""')
    (pens / "main.py").write_text(changed)
    done = run("openapi", "--mcp", "--check", folder=pens)
    assert done.returncode == 1, done.stderr
    assert any(line.startswith(told) for line in done.stdout.splitlines()), done.stdout
    assert "Write it anew: core openapi --mcp -o mcp.json" in done.stdout


def test_an_application_without_a_server_and_a_file_of_another_kind_are_told(pens: Path) -> None:
    (pens / "mcp.json").write_text('{"openapi": "3.2.0"}')
    assert "mcp.json is not a list of tools" in run("openapi", "--mcp", "--check", folder=pens).stderr
    (pens / "mcp.json").write_text("<<<<<<< ours\n")
    broken = run("openapi", "--mcp", "--check", folder=pens).stderr
    assert (
        "mcp.json is not a list of tools: it is not an object. Write it anew: core openapi --mcp -o mcp.json" in broken
    )
    (pens / "main.py").write_text("from core import create_app\napp = create_app()\n")
    assert "has no MCP server. Make one" in run("openapi", "--mcp", folder=pens).stderr
