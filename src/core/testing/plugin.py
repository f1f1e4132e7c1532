"""The pytest plugin, loaded by its entry point: fixtures, and the rule that no background work is left behind.

It imports nothing of the framework until a fixture is asked for, so a project that only has the
package installed pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from core.app import App
    from core.testing.client import Client
    from core.testing.clock import FakeClock
    from core.testing.context import FakeExecutionContext

__all__: list[str] = []
