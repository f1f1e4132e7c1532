"""`core completion`: a script for bash, zsh or fish that completes commands, options and their choices.

shtab writes it from the parsers of all commands. The script is complete: it asks nothing of Python while somebody
types.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from core.errors import MissingExtraError

DESCRIPTION: Final = """\
Print a completion script. Load it once, or from the shell's start-up file:

  bash   source <(core completion bash)
  zsh    source <(core completion zsh)
  fish   core completion fish | source

Needs pip install 'core-edge[dev]'."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises MissingExtraError without shtab."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("core completion: pip install 'core-edge[dev]'") from None
    from core.cli import COMMANDS, parser_for

    parser = parser_for(*COMMANDS)
    parser.add_argument("-V", "--version", action="store_true")
    for command in parser.commands.values():
        for action in command._actions:  # argparse lists them nowhere else
            if action.type is Path:
                setattr(action, "complete", shtab.DIRECTORY if action.metavar == "FOLDER" else shtab.FILE)  # noqa: B010  # shtab reads it
    print(shtab.complete(parser, args.shell))
    return 0
