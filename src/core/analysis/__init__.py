"""A program read from its text, and the findings about it."""

from __future__ import annotations

from typing import Final

__all__ = ["METHODS"]

METHODS: Final = frozenset(["all", "delete", "get", "head", "options", "patch", "post", "put"])
"""The methods of a router that register a route by its path alone. `on` takes the method first. Here, since the mypy
plugin asks for it in every run, and imports no rule before there is something to check.
"""
