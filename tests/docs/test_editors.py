"""The settings of `docs/reference/checks/editors.md`, held against what `core check` writes about a program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/checks/editors.md").read_text("utf-8")
CORE = Path(sys.executable).parent / "core"

WRANGLER = """\
name = "shop"
main = "src/app.py"

[[kv_namespaces]]
binding = "SESSIONS"

[core.checks]
core-params = "warning"
"""

ENV = """\
import attrs
from core import Bindings, KVNamespace

@attrs.frozen
class Env(Bindings):
    SESSION: KVNamespace
"""

APP = """\
from core import Request, Response, create_app
from env import Env

app = create_app(Env)

@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["idd"])
"""

FOUND = [("src/app.py", 8, "warning", "core-params"), ("src/env.py", 6, "error", "core-env")]


def setting(title: str) -> str:
    """The file of that title on the page."""
    found = re.search(rf'```\w+ title="{re.escape(title)}"\n(.*?)```', PAGE, re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A program with a warning and an error, in two files."""
    for name, text in {"wrangler.toml": WRANGLER, "src/env.py": ENV, "src/app.py": APP}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path.resolve()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_vs_code_reads_the_findings_and_sees_where_a_look_begins_and_ends(shop: Path) -> None:
    (task,) = json.loads(setting(".vscode/tasks.json"))["tasks"]
    matcher = task["problemMatcher"]
    background = matcher["background"]
    lines: list[str] = []
    with subprocess.Popen([CORE, *task["command"].split()[1:]], cwd=shop, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        for line in watch.stdout:
            lines.append(line.rstrip("\n"))
            if re.search(background["endsPattern"], line):
                break
        watch.terminate()
    script = (
        "const [patterns, lines] = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(patterns.map(p => lines.map(l => l.match(new RegExp(p))))))"
    )
    pattern = matcher["pattern"]
    given = json.dumps([[pattern["regexp"], background["beginsPattern"], background["endsPattern"]], lines])
    done = subprocess.run(["node", "-e", script], input=given, capture_output=True, text=True, check=True)
    found, begins, ends = json.loads(done.stdout)
    keys = ("file", "line", "severity", "code")
    read = [[match[pattern[key]] for key in keys] for match in found if match is not None]
    assert [(file, int(line), severity, code) for file, line, severity, code in read] == FOUND
    assert [match is not None for match in begins] == [True, False, False, False]
    assert [match is not None for match in ends] == [False, False, False, True]


def nvim(shop: Path, *commands: str) -> Any:
    """Run commands in Neovim, in the program's folder, and return what they write into `out.json`."""
    (shop / "page.vim").write_text(setting("~/.config/nvim/after/ftplugin/python.vim"))
    (shop / "page.lua").write_text(setting("init.lua"))
    subprocess.run(
        [
            "nvim",
            "--headless",
            "-u",
            "NONE",
            "src/app.py",
            *(part for c in commands for part in ("-c", c)),
            "-c",
            "qa!",
        ],
        cwd=shop,
        env={"PATH": f"{CORE.parent}:/usr/bin:/bin", "HOME": str(shop)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    return json.loads((shop / "out.json").read_text())


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_fills_its_quickfix_list(shop: Path) -> None:
    entry = "[bufname(e.bufnr), e.lnum, e.type, e.text]"
    found = nvim(
        shop,
        "source page.vim",
        "silent make",
        f"call writefile([json_encode(map(filter(getqflist(), 'v:val.valid'), {{_, e -> {entry}}}))], 'out.json')",
    )
    assert [(file, line, kind, text.rpartition("  [")[2].rstrip("]")) for file, line, kind, text in found] == [
        (file, line, severity[0], code) for file, line, severity, code in FOUND
    ]


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_reads_diagnostics_with_the_pattern_for_nvim_lint(shop: Path) -> None:
    """By Neovim's own `vim.diagnostic.match`, which takes what the plugin's parser takes."""
    (shop / "read.lua").write_text(
        "local asked = {}\n"
        "package.loaded['lint.parser'] = { from_pattern = function(...) asked = { ... } end }\n"
        "package.loaded['lint'] = { linters = {} }\n"
        "dofile('page.lua')\n"
        "local linter, found = require('lint').linters.core, {}\n"
        "for _, line in ipairs(vim.fn.systemlist({ linter.cmd, unpack(linter.args) })) do\n"
        "  found[#found + 1] = vim.diagnostic.match(line, unpack(asked))\n"
        "end\n"
        "vim.fn.writefile({ vim.fn.json_encode(found) }, 'out.json')\n"
    )
    severities = {"error": 1, "warning": 2}
    assert [(d["lnum"], d["severity"], d["code"], d["source"]) for d in nvim(shop, "luafile read.lua")] == [
        (line - 1, severities[severity], code, "core") for _, line, severity, code in FOUND
    ]


def test_zed_knows_the_keys_and_values_of_the_task() -> None:
    """Those of `TaskTemplate` in its `crates/task`; a task with another value is not read."""
    (task,) = json.loads(setting(".zed/tasks.json"))
    types = {"label": str, "command": str, "use_new_terminal": bool, "reveal": str}
    assert {key: type(value) for key, value in task.items()} == types
    assert task["reveal"] in ("always", "no_focus", "never")
    assert (Path(CORE).name, "check", "--watch") == tuple(task["command"].split())


def test_pycharm_makes_links_of_absolute_paths(shop: Path) -> None:
    (shop / ".idea").mkdir()
    fields = dict(re.findall(r"^\| (\w[\w ]+) \| `(.+)` \|$", PAGE, re.MULTILINE))
    macros = {"$PyInterpreterDirectory$": str(CORE.parent), "$ProjectFileDir$": str(shop)}
    for macro, value in macros.items():
        fields = {name: text.replace(macro, value) for name, text in fields.items()}
    command = [fields["Program"], *fields["Arguments"].split()]
    done = subprocess.run(command, cwd=fields["Working directory"], capture_output=True, text=True)
    # As `RegexpFilter` of the IntelliJ platform replaces its macros. It opens files by absolute paths alone.
    filter_ = fields["Output filters"].replace("$FILE_PATH$", r"(?P<file>(?:[A-Za-z]:)?[0-9 a-z_A-Z\-\\./]+)")
    filter_ = filter_.replace("$LINE$", "(?P<line>[0-9]+)")
    found = [match for line in done.stdout.splitlines() if (match := re.search(filter_, line)) is not None]
    assert [(match["file"], int(match["line"])) for match in found] == [
        (str(shop / file), line) for file, line, _, _ in FOUND
    ]
