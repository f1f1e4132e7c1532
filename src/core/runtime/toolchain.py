"""workerd's binary and pyodide: their place, and their installation, once, from npm, pinned by a lock file.

npm is needed for the installation alone; neither it nor Node takes part when an application runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

import attrs

from core.errors import DeveloperError

# Read from the package.json beside this file by a test, so that the two cannot drift.
PINNED = {"workerd": "1.20261117.1", "pyodide": "314.0.7"}

KEY = f"workerd-{PINNED['workerd']}-pyodide-{PINNED['pyodide']}"
"""The key under which everything made by this pair (adapters, snapshots) is valid."""

_SIZE = 176_000_000
"""The bytes of an installation, nearly."""

_PLATFORMS = {
    ("Linux", "x86_64"): "workerd-linux-64",
    ("Linux", "aarch64"): "workerd-linux-arm64",
    ("Linux", "arm64"): "workerd-linux-arm64",
}


@attrs.frozen
class Toolchain:
    """One installed pair of workerd and pyodide."""

    root: Path
    workerd: Path
    pyodide: Path

    @property
    def adapters(self) -> Sequence[str]:
        """Pyodide's call adapters, in hexadecimal, which are there once they were captured."""
        try:
            captured: Sequence[str] = json.loads((self.root / f"adapters-{KEY}.json").read_bytes())
        except (OSError, ValueError):
            return ()
        return captured

    @property
    def compiled_library(self) -> Path:
        """The standard library with bytecode, which is there once it was prepared."""
        return self.root / f"library-{KEY}.zip"


def cache_folder() -> Path:
    """The folder that installations are kept in: `$CORE_RUNTIME_CACHE`, else the user's cache."""
    if chosen := os.environ.get("CORE_RUNTIME_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "core-edge" / "runtime"


def find_toolchain() -> Toolchain | None:
    """The installation there is, or None. Installs nothing.

    `$CORE_RUNTIME` names a folder whose `node_modules` has the pinned versions, for machines without npm.
    """
    chosen = os.environ.get("CORE_RUNTIME")
    found = _at(Path(chosen) if chosen else cache_folder() / _digest())
    if chosen and found is None:
        raise DeveloperError(
            f"CORE_RUNTIME={chosen} has no node_modules with pyodide {PINNED['pyodide']} and "
            f"{_package()} {PINNED['workerd']}. Point it at the folder where "
            "`npm ci --ignore-scripts` was run with the framework's package-lock.json, or unset it."
        )
    return found


def missing_reason() -> str | None:
    """Return the reason why `toolchain()` would fail, or None."""
    if find_toolchain() is not None:
        return None
    if (platform.system(), platform.machine()) not in _PLATFORMS:
        return f"there is no workerd binary for {platform.system()} {platform.machine()}"
    if shutil.which("npm") is None:
        return "npm is not installed, and workerd and pyodide come from npm"
    return None


def toolchain(progress: Callable[[str], None] = lambda line: print(line, file=sys.stderr)) -> Toolchain:
    """The installation, made now if there is none, `progress` told each step. Raises DeveloperError."""
    found = find_toolchain()
    if found is not None:
        return found
    reason = missing_reason()
    if reason is not None:
        raise DeveloperError(
            f"{reason[0].upper()}{reason[1:]}. Install Node.js 20 or newer (npm comes with it), or copy an installed "
            f"runtime here and name its folder in CORE_RUNTIME. `core dev` without --runtime needs neither."
        )
    return _install(progress)


def _how_far(size: float, seconds: float) -> str:
    """The bytes that are there, and the time that the rest takes at the speed until now."""
    if not 1e6 <= size < _SIZE:
        return f"{size / 1e6:.0f} MB after {seconds:.0f} s"
    return f"{size / 1e6:.0f} of {_SIZE / 1e6:.0f} MB, about {seconds / size * (_SIZE - size):.0f} s left"


def _install(progress: Callable[[str], None]) -> Toolchain:
    target = cache_folder() / _digest()
    target.parent.mkdir(parents=True, exist_ok=True)
    progress(
        f"Fetching workerd {PINNED['workerd']} and pyodide {PINNED['pyodide']} from npm, once (about {_SIZE / 1e6:.0f} MB)…"
    )
    # Made beside its place and moved there whole, so that two commands at once cannot see half of it.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="installing-") as folder:
        place = Path(folder) / "runtime"
        place.mkdir()
        for name in ("package.json", "package-lock.json"):
            (place / name).write_bytes(_npm_file(name))
        npm = subprocess.Popen(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started = time.monotonic()
        output = ""
        while True:
            try:
                output, _ = npm.communicate(timeout=5)
                break
            except subprocess.TimeoutExpired:
                size = sum(entry.stat().st_size for entry in place.rglob("*") if entry.is_file())
                progress(f"  {_how_far(size, time.monotonic() - started)}")
        if npm.returncode != 0:
            said = "\n".join(f"  {line}" for line in output.strip().splitlines()[-12:])
            raise DeveloperError(
                f"npm could not fetch workerd and pyodide:\n{said}\nCheck the connection to your npm registry and run "
                "the command again, or copy an installed runtime here and name its folder in CORE_RUNTIME."
            )
        if _at(place) is None:
            raise DeveloperError(
                f"npm fetched no workerd binary for {platform.system()} {platform.machine()}. Run the command on Linux "
                "(x86_64 or arm64), or in a container of it."
            )
        with contextlib.suppress(OSError):  # another command was faster
            place.rename(target)
    installed = _at(target)
    if installed is None:
        raise DeveloperError(f"{target} is not a whole installation. Remove the folder and run the command again.")
    progress(f"Installed in {target}.")
    return installed


def _at(root: Path) -> Toolchain | None:
    modules = root / "node_modules"
    pyodide = modules / "pyodide"
    workerd = modules / "@cloudflare" / _package()
    for place, version in ((pyodide, PINNED["pyodide"]), (workerd, PINNED["workerd"])):
        try:
            if json.loads((place / "package.json").read_bytes())["version"] != version:
                return None
        except (OSError, ValueError, KeyError):
            return None
    binary = workerd / "bin" / "workerd"
    return Toolchain(root=root, workerd=binary, pyodide=pyodide) if binary.is_file() else None


def _package() -> str:
    return _PLATFORMS.get((platform.system(), platform.machine()), "workerd-linux-64")


def _digest() -> str:
    return hashlib.sha256(_npm_file("package-lock.json")).hexdigest()[:16]


def _npm_file(name: str) -> bytes:
    return (resources.files("core.runtime") / "npm" / name).read_bytes()
