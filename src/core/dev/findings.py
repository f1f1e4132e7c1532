"""Findings of `core check` for the start-up screen and the explorer: one line for each."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import ConfigurationError, DeveloperError

__all__ = ["findings_of"]


def findings_of(config: Path) -> list[str]:
    """The findings in a program and its configuration file, as `file:line: error: message  [code]`."""
    from core.analysis.findings import configuration_findings, sort_findings
    from core.analysis.program import Options, check_program
    from core.analysis.settings import find_settings
    from core.config.load import load_all

    try:
        settings = find_settings(config.parent)
        configurations = load_all(config)
    except ConfigurationError as error:
        found = configuration_findings(error, config)
    except DeveloperError as error:
        return [f"error: {error}"]
    else:
        chosen = configurations if settings is None else settings.chosen(configurations)
        found = sort_findings(check_program(chosen, Options.of(settings)))
    return [_relative(finding.text, config.parent) for finding in found]


def _relative(text: str, root: Path) -> str:
    return text.removeprefix(f"{root}{os.sep}")
