"""The clients of docs/how-to/typescript.md: written from the document of an example, compiled strictly, and used."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.running import RunningDev

ROOT = Path(__file__).parents[2]
USERS = ROOT / "examples" / "users"
SHOWN = ROOT / "docs" / "examples" / "typescript"
MODULES = Path(__file__).parent / "typescript" / "node_modules"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (MODULES / "typescript").is_dir() or shutil.which("node") is None,
        reason="the generators are missing: npm ci --prefix tests/openapi/typescript",
    ),
]

USE = """
import { nameOf, signUp, usersOf } from "./%s.js";

const api = usersOf(process.argv[2]!, "a token");
const id = await signUp(api, "Ada", "%s@example.com");
console.log(await nameOf(api, id), "|", await nameOf(api, 0));
"""
WRONG = """
import { getUser } from "./client/index.js";
import { usersOf } from "./with_openapi_fetch.js";

const api = usersOf("", "");
const { data, error } = await api.GET("/users/{id}", { params: { path: { id: "1" } } });
console.log(data.name); // E
if (error) console.log(error.message); // E
await api.POST("/users", { body: { name: "Ada" } }); // E
await api.GET("/user"); // E
await getUser({ path: { key: "1" } }); // E
"""


def ran(folder: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = tool if tool == "node" else str(MODULES / ".bin" / tool)
    return subprocess.run(
        [command, *arguments], cwd=folder, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typescript") / "project"
    shutil.copytree(SHOWN, folder)
    shutil.copy(USERS / "openapi.json", folder)
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"type": "module"}')
    for each in ("with_openapi_fetch", "with_hey_api"):
        (folder / f"use_{each}.ts").write_text(USE % (each, each))
    (folder / "globals.d.ts").write_text("declare const process: { argv: string[] };\n")
    written = ran(folder, "openapi-typescript", "openapi.json", "-o", "schema.d.ts")
    assert written.returncode == 0, written.stderr
    written = ran(folder, "openapi-ts", "--no-log-file")
    assert written.returncode == 0, written.stdout + written.stderr
    return folder


def test_they_compile_strictly_and_speak_to_the_server(folder: Path, tmp_path: Path) -> None:
    compiled = ran(folder, "tsc", "-p", ".")
    assert (compiled.returncode, compiled.stdout) == (0, "")
    with RunningDev(USERS, tmp_path / "state", "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        for each in ("with_openapi_fetch", "with_hey_api"):
            used = ran(folder, "node", f"out/use_{each}.js", dev.address)
            assert (used.stderr, used.stdout) == ("", "Ada | 404: User not found\n")


def test_what_the_document_does_not_have_is_an_error_there(folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    shutil.copytree(folder, wrong, symlinks=True)
    (wrong / "wrong.ts").write_text(WRONG)
    # The compiler's own declarations are looked at by the test above.
    lines = ran(wrong, "tsc", "-p", ".", "--noEmit", "--skipLibCheck").stdout.splitlines()
    found = {int(line.partition("(")[2].partition(",")[0]) for line in lines if line.startswith("wrong.ts(")}
    assert found == {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("// E")}
    assert found
    assert all(line.startswith(("wrong.ts(", " ")) for line in lines), lines
