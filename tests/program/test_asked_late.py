"""Writes before a question of an MCP server, each at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.load import load_all
from core.program.proof import prove

HEAD = '''import attrs
from core import Bindings, D1Database, KVNamespace, Queue, Request, create_app
from core.mcp import MCP

@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[str]

@attrs.frozen
class Sure:
    sure: bool

app = create_app(Env)
mcp = MCP(app, "notes", secret=lambda req: "secret")

@mcp.tool
async def delete(req: Request[Env], id: int) -> str:
    """Delete a note."""
'''
TOML = """name = "notes"
main = "app.py"
compatibility_date = "2026-04-01"
[[kv_namespaces]]
binding = "KV"
id = "kv"
[[d1_databases]]
binding = "DB"
database_name = "notes"
database_id = "db"
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
"""
ASK = 'answer = await mcp.ask(req, Sure, "Sure?")'
PUT = 'await req.env.KV.put("a", "b")'
INSERT = 'await req.env.DB.prepare("INSERT INTO notes VALUES (1)").run()'


def found(folder: Path, *body: str) -> list[str]:
    (folder / "app.py").write_text(HEAD + "".join(f"    {line}\n" for line in (*body, 'return ""')))
    (folder / "wrangler.toml").write_text(TOML)
    findings = prove(load_all(folder / "wrangler.toml")).findings
    first = HEAD.count("\n") + 1
    return [
        f"{finding.line - first} {finding.message}" for finding in findings if "runs the function again" in finding.text
    ]


def test_a_write_before_a_question_is_told_at_its_line(tmp_path: Path) -> None:
    words = "this is done twice. Write behind the last question"
    told = f"0 req.env.KV.put(): ask() in line 22 runs the function again from its first line, so {words}"
    assert found(tmp_path, PUT, ASK) == [told]


@pytest.mark.parametrize(
    "body",
    [
        (INSERT, ASK),
        ("kv = req.env.KV", 'await kv.delete("a")', ASK),
        ('await req.env.JOBS.send("a")', "if id:", f"    {ASK}"),
        ("if id:", f"    {PUT}", ASK),
        ("for _ in range(2):", f"    {PUT}", ASK),
        ("try:", f"    {PUT}", "finally:", f"    {ASK}"),
        (ASK, PUT, "await mcp.inputs(req, {})"),
        ("if id:", f"    {PUT}", "else:", "    pass", ASK),
    ],
)
def test_every_form_of_a_write_is_told(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert len(found(tmp_path, *body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        (ASK, PUT),
        ('await req.env.KV.get("a")', 'await req.env.DB.prepare("SELECT 1").all()', ASK),
        ("if id:", f"    {PUT}", "else:", f"    {ASK}"),
        ("if id:", f"    {PUT}", '    return ""', ASK),
        ("match id:", "    case 1:", f"        {PUT}", "    case _:", f"        {ASK}"),
        ("try:", f"    {ASK}", "except ValueError:", f"    {PUT}"),
        ("async def later() -> None:", f"    {PUT}", ASK),
        ("other = req", PUT, "await other.ask(req)"),
    ],
)
def test_what_is_not_done_twice_is_not_told(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []
