"""The configuration file of a command: the one named, or the nearest one above the current folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from core.dev.options import Options

__all__ = ["add_project_options", "find_configuration", "project_options"]


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
