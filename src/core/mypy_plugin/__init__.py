"""The mypy plugin: `plugins = core.mypy_plugin`.

It proves facts that the types alone cannot: that `Env` and the configuration file agree, that literal names of bindings
and path parameters exist, that SQL fits the migrations. Everything it decides is decided in `core.program`, so that
`core check` says the same; here mypy's trees are only read. Options are in `core.program.settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy.plugin import Plugin

# mypy keeps this beside its cache, and drops the cache when it changes. It is set by the plugin that mypy makes first.
__version__ = ""


def plugin(version: str) -> type[Plugin]:
    """Return the plugin's class. mypy calls this first."""
    from core.mypy_plugin.hooks import CorePlugin  # a module called `plugin` would take the place of this function

    return CorePlugin
