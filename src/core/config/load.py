"""From a configuration file to `Configuration`, or to one error that lists every mistake in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from core.config.bindings import bindings_of
from core.config.document import Document, Problems, as_table, read_document
from core.config.keys import inherit, unchecked_of
from core.config.model import Configuration, Worker
from core.config.rules import check_level
from core.config.secrets import LocalSecret, read_local_secrets
from core.config.structure import worker_of_level
from core.config.words import dotted, listed
from core.errors import ConfigurationError


def load(path: Path, *, environment: str | None = None) -> Configuration:
    """Read one environment of a configuration file; None is the top level.

    All of the file is checked, the other environments too. Raises ConfigurationError with every mistake, each with
    file, line, key path and fix.
    """
    everything = load_all(path)
    for configuration in everything:
        if configuration.environment == environment:
            return configuration
    names = [configuration.environment for configuration in everything if configuration.environment is not None]
    near = get_close_matches(environment or "", names, n=1)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif names:
        hint = f"There is {listed(names, 'or')}."
    else:
        hint = f"Write [env.{environment}], or leave the environment out."
    raise ConfigurationError([f"{path.name}: there is no environment {environment}. {hint}"])


def load_all(path: Path) -> list[Configuration]:
    """Read every environment of a configuration file: the top level first, then the named ones in their order.

    Raises ConfigurationError with every mistake.
    """
    document = read_document(path)
    problems = Problems(document)
    top = worker_of_level(document, None, problems)
    workers: list[tuple[str | None, Worker]] = [(None, top)]
    if not isinstance(document.data.get("env", {}), dict):
        problems.add(("env",), " must be a table of environments. Write [env.staging].")
    for name, own in as_table(document.data.get("env")).items():
        if not isinstance(own, dict):
            problems.add(("env", name), f" must be a table. Write [env.{name}].")
            continue
        workers.append((name, inherit(top, worker_of_level(document, name, problems), name, document.data)))
    secrets: dict[str | None, Mapping[str, LocalSecret]] = {}
    for level, _ in workers:
        check_level(document, level, problems)
        try:
            secrets[level] = read_local_secrets(path.parent, level)
        except ConfigurationError as error:
            problems.foreign += [problem for problem in error.problems if problem not in problems.foreign]
    problems.raise_all()
    names = [name for name, _ in workers if name is not None]
    return [
        Configuration(
            path=path,
            environment=name,
            environments=names,
            worker=worker,
            bindings=bindings_of(document, name, worker, secrets[name]),
            unchecked=unchecked_of(document, name, worker, problems.unknown),
            digest=_digest(document, secrets[name]),
            lines={dotted(path): line for path, line in document.lines.items()},
        )
        for name, worker in workers
    ]


def _digest(document: Document, secrets: Mapping[str, LocalSecret]) -> str:
    names = [f"{name}:{secret.file.name}:{secret.line}" for name, secret in secrets.items()]
    return hashlib.sha256(document.content + "\n".join(names).encode()).hexdigest()
