"""The version that mypy drops its cache by, and starts its daemon anew: a digest of all that decides what is found.

mypy itself only watches the one file that `plugins` names, and reads `__version__` from that module.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

__all__ = ["OWN_VERSION", "restart_daemon_on"]


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    core = Path(__file__).parent.parent
    for room in ("analysis", "config", "mypy_plugin", "openapi", "routing", "sql"):
        for path in sorted((core / room).rglob("*.py")):
            digest.update(path.read_bytes())
    for path in (core / "middleware" / "declared.py", core / "bindings" / "kinds.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


OWN_VERSION: Final = _digest_of_sources()


def restart_daemon_on(digest: str) -> None:
    """Let `dmypy run` start anew when `digest` changes: it asks no plugin about changed data, only for its version."""
    sys.modules["core.mypy_plugin"].__version__ = f"{OWN_VERSION}-{digest}"  # type: ignore[attr-defined]  # see above
