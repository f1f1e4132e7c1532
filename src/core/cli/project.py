"""The options that several commands have in common: the project, whose configuration is named or near, and serving."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from core.dev.options import Options


def add_project_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which project is meant."""
    group = parser.add_argument_group("project")
    group.add_argument("--config", metavar="FILE", type=Path, help="configuration file (default: the nearest above)")
    group.add_argument("--env", metavar="NAME", dest="environment", help="a named environment of the file")
    group.add_argument(
        "--state", metavar="FOLDER", type=Path, help="where embedded bindings are kept (default: .core/state)"
    )


def project_options(args: argparse.Namespace) -> Options:
    """The project that these options mean. Raises UsageError where there is none."""
    from core.dev.options import Options

    return Options(
        config=find_configuration(args.config),
        environment=args.environment,
        state=None if args.state is None else args.state.resolve(),
    )


def find_configuration(given: Path | None) -> Path:
    """The configuration file. Raises UsageError where there is none."""
    from core.config.nearest import discover

    if given is not None and not given.exists():
        raise UsageError(f"{given} is not a file. Give the path of the configuration file with --config")
    try:
        return discover(given if given is not None else Path.cwd()).resolve()
    except ConfigurationError as error:
        raise UsageError(f"{error}. `core new NAME` makes a whole project") from None


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
