"""A real Chromium for tests, or the reason why there is none."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

__all__ = ["AXE", "CHROMIUM", "needs_axe", "needs_chromium"]

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

_REASON = (
    "playwright is missing: pip install playwright"
    if importlib.util.find_spec("playwright") is None
    else "Chromium is missing: apt install chromium"
    if CHROMIUM is None
    else ""
)
needs_chromium = pytest.mark.skipif(bool(_REASON), reason=_REASON)
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is missing: npm ci --prefix tests/explorer")
