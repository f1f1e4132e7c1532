"""The plugin's tests with another mypy: `python tests/mypy_plugin/with_mypy.py 1.17.0 [pytest arguments]`.

Makes an environment of its own, `.venv-mypy-VERSION` beside the project, when it is not there yet, and runs the tests
of the plugin in it. The documented range of versions is tried at both ends: the project's own environment has the
newest, and this one the oldest.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("hypothesis>=6.100", "pyjwt[crypto]>=2.10", "pytest>=8.3", "pytest-asyncio>=1.0")


def environment(version: str) -> Path:
    """The Python of an environment with that mypy."""
    folder = ROOT / f".venv-mypy-{version}"
    python = folder / "bin" / "python"
    stamp = folder / "made"
    if not stamp.exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"mypy=={version}", *NEEDED, "-e", str(ROOT)], check=True)
        stamp.touch()
    return python


def main() -> int:
    """Run the tests."""
    if len(sys.argv) < 2:
        sys.exit("name a version of mypy, for example: python tests/mypy_plugin/with_mypy.py 1.17.0")
    python = environment(sys.argv[1])
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/mypy_plugin", *sys.argv[2:]]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
