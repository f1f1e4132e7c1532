"""A project of `core new`, deployed by its README: the packages, a dry run, and every import against the upload."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.npm import npm_folder

pytestmark = pytest.mark.runtime

# What the platform's runtime has of its own.
_RUNTIME = {"js", "pyodide", "pyodide_js", "_pyodide", "_cloudflare_compat_flags", "_pyodide_entrypoint_helper"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A new project with every binding."""
    command(sys.executable, "-m", "core", "new", "shop", "--with", "kv,queue,r2", folder=tmp_path)
    return tmp_path / "shop"


def command(*words: str, folder: Path) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "WRANGLER_SEND_METRICS": "false", "CI": "1", "HOME": str(folder.parent)}
        if words[0].endswith("wrangler")
        else None,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dry_run(project: Path) -> tuple[Path, str]:
    """The folder of the upload, and the output of the tool."""
    tool = npm_folder(Path(__file__).parent / "wrangler") / "node_modules" / ".bin" / "wrangler"
    out = project.parent / "out"
    return out, command(str(tool), "deploy", "--dry-run", "--outdir", str(out), folder=project)


def missing_in(out: Path) -> list[str]:
    """The modules that the program imports, and that the upload lacks: from `main.py` on."""
    missing: list[str] = []
    queue = [out / "main.py"]
    seen = set(queue)
    for file in queue:  # which grows meanwhile
        tree = ast.parse(file.read_bytes())
        package = file.relative_to(out).parts[:-1]
        package = package[1:] if package[:1] == ("python_modules",) else package
        for names in needed(tree, ".".join(package)):
            found = [place for name in names if (place := place_of(out, name)) is not None]
            if not found and names[0].split(".")[0] not in sys.stdlib_module_names | _RUNTIME | {"annotationlib"}:
                missing.append(f"{file.relative_to(out)} imports {names[0]}")
            queue += [place for place in found if place not in seen]
            seen.update(found)
    assert len(seen) > 60, "the imports were not followed"
    return missing


def needed(tree: ast.AST, package: str) -> Iterator[list[str]]:
    """The modules imported outside of `try` and questions, in functions too, each with those that it may be of."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Try() | ast.If():
                continue
            case ast.Import(names=names):
                for alias in names:
                    yield [alias.name]
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield [base]
                for alias in names:
                    yield [f"{base}.{alias.name}", base]
            case _:
                yield from needed(node, package)


def place_of(out: Path, module: str) -> Path | None:
    path = module.replace(".", "/")
    tries = (out / top / f"{path}{end}" for top in ("", "python_modules") for end in (".py", "/__init__.py"))
    return next((place for place in tries if place.is_file()), None)


def test_what_core_build_puts_into_python_modules_goes_up_whole(shop: Path) -> None:
    command(sys.executable, "-m", "core", "build", "--hosted", folder=shop)
    out, said = dry_run(shop)
    for binding in ("env.COUNTERS", "env.EVENTS", "env.DB", "env.FILES"):
        assert binding in said
    assert missing_in(out) == []
    assert "Default = entrypoint(app)" in (out / "main.py").read_text()
    # The base class of Default, which the runtime has not contained since 2026-04-21.
    assert place_of(out, "workers") is not None
    assert not (out / "python_modules" / "core" / "cli").exists()


def test_a_whole_installation_goes_up_without_what_a_worker_never_loads(shop: Path) -> None:
    """The platform's own tool installs the wheels as they are. The configuration leaves our tools out of the upload."""
    wanted = [*tomllib.loads((shop / "pyproject.toml").read_text())["project"]["dependencies"], "workers-runtime-sdk"]
    root = Path(__file__).parents[2]
    wanted[wanted.index("core-edge")] = str(root)
    command(
        sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", "python_modules", *wanted, folder=shop
    )
    assert (shop / "python_modules" / "core" / "cli").is_dir()
    out, _ = dry_run(shop)
    assert missing_in(out) == []
    assert place_of(out, "workers") is not None
    ours = out / "python_modules" / "core"
    assert not [folder for folder in ("cli", "dev", "mypy_plugin", "testing", "runtime") if (ours / folder).exists()]


def test_a_folder_that_somebody_else_filled_is_kept(shop: Path) -> None:
    (shop / "python_modules").mkdir()
    (shop / "python_modules" / "mine.py").write_text("")
    with pytest.raises(AssertionError, match="was filled by something else"):
        command(sys.executable, "-m", "core", "build", "--hosted", folder=shop)
    assert (shop / "python_modules" / "mine.py").exists()
