"""A pytest that a test starts: without the plugins that only this project has installed,
which take two seconds to load.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PLAIN"]

PLAIN: Final = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")
"""Options for a pytest in a project of a test's own."""
