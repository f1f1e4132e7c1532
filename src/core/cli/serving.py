"""The options that `core dev` and `core serve` share."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_log_format", "port_of"]


def add_log_format(group: Any) -> None:
    """Add the option that says how log records are written."""
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json writes every log record as one line of JSON (default: %(default)s)",
    )


def port_of(text: str) -> int:
    """The port that an option names."""
    if text.isascii() and text.isdigit() and 0 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")
