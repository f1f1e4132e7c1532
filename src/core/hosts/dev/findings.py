"""What `core check` finds, for the start-up screen and the explorer: one line for each finding."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import ConfigurationError

__all__ = ["findings_of"]


def findings_of(config: Path) -> list[str]:
    """The findings in a program and its configuration file, as `file:line: error: message  [code]`."""
    from core.config.check import configuration_findings, sort_findings
    from core.config.load import load_all
    from core.config.program import Options, check_program

    try:
        configurations = load_all(config)
    except ConfigurationError as error:
        found = configuration_findings(error, config)
    else:
        found = sort_findings(check_program(configurations, Options()))
    return [_relative(finding.text, config.parent) for finding in found]


def _relative(text: str, root: Path) -> str:
    return text.removeprefix(f"{root}{os.sep}")
