"""The mypy plugin: `plugins = core.mypy_plugin`.

It proves what the types alone cannot: that `Env` and the configuration file agree, that literal names of bindings and
path parameters exist, that SQL fits the migrations. Everything it decides is decided in `core.config`, so that
`core check` says the same; here mypy's trees are only read. Options are in `settings.py`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy.plugin import Plugin

__all__ = ["plugin"]


def _digest_of_sources() -> str:
    """A digest of all that decides what the plugin says: mypy itself only watches this one file."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for folder in (here, here.parent / "config", here.parent / "routing"):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# mypy keeps this beside its cache, and drops the cache when it changes.
__version__ = _own_version = _digest_of_sources()


def plugin(version: str) -> type[Plugin]:
    """What mypy calls first."""
    from core.mypy_plugin.hooks import CorePlugin  # a module called `plugin` would take the place of this function

    return CorePlugin


def restart_daemon_on(digest: str) -> None:
    """Let `dmypy run` start anew when `digest` changes: it asks no plugin about changed data, only for its version."""
    global __version__
    __version__ = f"{_own_version}-{digest}"
