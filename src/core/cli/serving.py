"""The options that several commands have in common: those of serving, and of a cluster."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_cluster", "add_log_format", "port_of"]


def add_log_format(group: Any) -> None:
    """Add the option that says how log records are written."""
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json writes every log record as one line of JSON (default: %(default)s)",
    )


def add_cluster(group: Any) -> None:
    """Add the options that name a cluster's bucket."""
    group.add_argument("--cluster", metavar="URL", help="s3://bucket/prefix or gs://bucket/prefix")
    group.add_argument("--cluster-endpoint", metavar="URL", help="the address of an S3-compatible service")
    group.add_argument("--cluster-region", metavar="NAME", help="the bucket's region")


def port_of(text: str) -> int:
    """The port that an option names."""
    if text.isascii() and text.isdigit() and 0 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")
