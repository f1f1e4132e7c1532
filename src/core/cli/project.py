"""The options that several commands have in common: the project, whose configuration is named or near, and serving."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from core.config.model import Configuration
    from core.dev.options import Options


def add_configuration(group: Any, environment: str = "a named environment of the file") -> None:
    """Add the options that name the configuration; `environment` is the help of --env."""
    group.add_argument("--config", metavar="FILE", type=Path, help="configuration file (default: the nearest above)")
    group.add_argument("--env", metavar="NAME", dest="environment", help=environment)


def add_project_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("project")
    add_configuration(group)
    group.add_argument(
        "--state",
        metavar="FOLDER",
        type=Path,
        help="where embedded bindings are kept (default: [core] state, or .core/state)",
    )


def project_options(args: argparse.Namespace) -> Options:
    """The project that these options mean. Raises UsageError where there is none."""
    from core.dev.options import Options

    config = find_configuration(args.config)
    return Options(
        config=config,
        environment=args.environment,
        state=None if args.state is None else args.state.resolve(),
        configured_state=_configured_state(config, args.environment),
    )


def _configured_state(config: Path, environment: str | None) -> str | None:
    """The folder that `[core] state` names, of this file alone: a command that reads all of it says what is wrong."""
    from core.config.document import as_table, read_document

    try:
        data = read_document(config).data
    except ConfigurationError:
        return None
    levels = (as_table(as_table(data.get("env")).get(environment or "")), data)
    state = next((as_table(level["core"]).get("state") for level in levels if "core" in level), None)
    return state if isinstance(state, str) else None


def find_configuration(given: Path | None) -> Path:
    """The configuration file. Raises UsageError where there is none."""
    from core.config.nearest import discover

    if given is not None and not given.exists():
        raise UsageError(f"{given} is not a file. Give the path of the configuration file with --config")
    try:
        return discover(given if given is not None else Path.cwd()).resolve()
    except ConfigurationError as error:
        raise UsageError(f"{error}. `core new NAME` makes a whole project") from None


def configurations_of(path: Path, environment: str | None) -> list[Configuration]:
    """The configuration of one environment, or of all that the file has."""
    from core.config.load import load, load_all

    return load_all(path) if environment is None else [load(path, environment=environment)]


def find_databases(configuration: Configuration, given: str | None) -> list[str]:
    """The SQL databases of a project, or the one that --binding names. Raises UsageError where there is none."""
    names = [name for name, binding in configuration.bindings.items() if binding.kind == "d1"]
    if given is not None and given not in names:
        known = ", ".join(names) or "none"
        raise UsageError(f"there is no database {given}. Databases of the configuration: {known}")
    if not names:
        raise UsageError('the configuration has no database. Write [[d1_databases]] binding = "DB"')
    return names if given is None else [given]


def only_database(names: list[str]) -> str:
    """The one database among these. Raises UsageError where there are several."""
    if len(names) > 1:
        raise UsageError(f"there are several databases. Choose one with --binding: {', '.join(names)}")
    return names[0]


def given_of(args: argparse.Namespace, options: Iterable[str]) -> list[str]:
    """Those of the options, by their spelling, that were given."""
    names = {option: "environment" if option == "--env" else option.strip("-").replace("-", "_") for option in options}
    return [option for option, name in names.items() if getattr(args, name.lower())]


def find_bundle(given: Path | None, option: str = "") -> Path:
    """The folder of a bundle; `option` is how it is named. Raises UsageError where there is none."""
    folder = given or Path("dist")
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder. Run `core build` first, or name the folder of a bundle{option}")
    return folder


def add_log_format(group: Any) -> None:
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json writes every log record as one line of JSON (default: %(default)s)",
    )


def add_cluster(group: Any) -> None:
    group.add_argument("--cluster", metavar="URL", help="s3://bucket/prefix or gs://bucket/prefix")
    group.add_argument("--cluster-endpoint", metavar="URL", help="the address of an S3-compatible service")
    group.add_argument("--cluster-region", metavar="NAME", help="the bucket's region")


def number_of(least: int, most: int, what: str) -> Callable[[str], int]:
    """The type of an option that is a whole number; `what` says of a text that it is none."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text} is not {what}")

    return read


port_of: Callable[[str], int] = number_of(0, 65535, "a port: a number from 0 to 65535")
