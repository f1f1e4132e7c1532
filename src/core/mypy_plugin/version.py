"""The version that mypy drops its cache by, and starts its daemon anew:
a digest of everything that the findings depend on.

mypy itself only watches the one file that `plugins` names, and reads `__version__` from that module.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

__all__ = ["MADE_OF", "OWN_VERSION", "restart_daemon_on"]


_CORE: Final = Path(__file__).parent.parent
_ROOMS: Final = tuple(_CORE / room for room in ("analysis", "config", "mypy_plugin", "openapi", "routing", "sql"))
_FILES: Final = (
    *(path for room in _ROOMS for path in sorted(room.rglob("*.py"))),
    _CORE / "middleware" / "declared.py",
    _CORE / "bindings" / "kinds.py",
)
MADE_OF: Final = (*map(str, _ROOMS), *map(str, _FILES))
"""The files and folders that the version is made of."""


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in _FILES:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


OWN_VERSION: Final = _digest_of_sources()


def restart_daemon_on(digest: str) -> None:
    """Let `dmypy run` start anew when `digest` changes: it asks no plugin about changed data, only for its version."""
    sys.modules["core.mypy_plugin"].__version__ = f"{OWN_VERSION}-{digest}"  # type: ignore[attr-defined]  # see above
