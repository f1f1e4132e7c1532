"""The source of workerd and pyodide."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from core.errors import DeveloperError
from core.runtime import toolchain
from core.runtime.toolchain import PINNED, find_toolchain


def _npm(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((resources.files("core.runtime") / "npm" / name).read_bytes())
    return content


def test_the_versions_are_those_of_the_lock_file() -> None:
    packages: dict[str, Any] = _npm("package-lock.json")["packages"]
    assert packages["node_modules/pyodide"]["version"] == PINNED["pyodide"]
    assert packages["node_modules/@cloudflare/workerd-linux-64"]["version"] == PINNED["workerd"]


def test_the_lock_file_has_checksums_and_no_addresses() -> None:
    packages: dict[str, Any] = _npm("package-lock.json")["packages"]
    for name, package in packages.items():
        assert "resolved" not in package
        assert not name or package["integrity"].startswith("sha512-")


def test_without_npm_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORE_RUNTIME_CACHE", str(tmp_path))
    monkeypatch.delenv("CORE_RUNTIME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_toolchain() is None
    assert toolchain.missing_reason() == "npm is not installed, and workerd and pyodide come from npm"
    with pytest.raises(DeveloperError, match=r"Install Node\.js 20 or newer"):
        toolchain.toolchain()


def test_a_download_says_how_long_it_still_takes() -> None:
    whole = toolchain._SIZE
    assert toolchain._how_far(whole / 4, 5.0) == f"{whole / 4e6:.0f} of {whole / 1e6:.0f} MB, about 15 s left"
    assert toolchain._how_far(0, 5.0) == "0 MB after 5 s"
    assert toolchain._how_far(2_600, 5.0) == "0 MB after 5 s"  # npm's own files, before the first package comes
    assert toolchain._how_far(200_000_000, 50.0) == "200 MB after 50 s"


def test_a_folder_that_is_named_and_has_no_runtime_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORE_RUNTIME", str(tmp_path))
    with pytest.raises(DeveloperError, match="has no node_modules with pyodide"):
        find_toolchain()
