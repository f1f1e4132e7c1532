"""Expositions of OpenMetrics, read by the parser of those who made the format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.openmetrics import parser

__all__ = ["families", "samples"]

_parse: Callable[[str], Iterable[Any]] = getattr(parser, "text_string_to_metric_families")  # noqa: B009 - it has no types


def families(text: str) -> dict[str, str]:
    """The type of every family by its name."""
    return {family.name: family.type for family in _parse(text)}


def samples(text: str) -> dict[tuple[str, str], float]:
    """Every sample by its name and its labels, such as `method=GET,route=/`."""
    return {
        (sample.name, ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in _parse(text)
        for sample in family.samples
    }
