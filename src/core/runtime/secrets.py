"""The secrets of a configuration, from the environment of this process."""

from __future__ import annotations

from collections.abc import Mapping

from core.config.model import Configuration
from core.errors import DeveloperError

__all__ = ["secrets_of"]


def secrets_of(configuration: Configuration, environment: Mapping[str, str]) -> dict[str, str]:
    """The values of the secrets that the configuration names. Raises DeveloperError where a required one is missing."""
    worker = configuration.worker
    required = [] if worker.secrets is None else [*worker.secrets.required]
    check_secrets(required, environment)
    key = None if worker.core.ai is None else worker.core.ai.key
    names = required if key is None else [*required, key]
    return {name: environment[name] for name in names if name in environment}


def check_secrets(names: list[str], environment: Mapping[str, str]) -> None:
    """Raise DeveloperError where the environment lacks one of these."""
    missing = [name for name in names if name not in environment]
    if missing:
        raise DeveloperError(
            f"the environment lacks {', '.join(missing)}, which the configuration requires as secrets. Set "
            f"{'it' if len(missing) == 1 else 'them'} for this process"
        )
