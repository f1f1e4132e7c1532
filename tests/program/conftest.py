"""Programs are started by forks."""

from __future__ import annotations

from tests.support.starting import quick_starts as quick_starts
