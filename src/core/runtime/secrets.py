"""The secrets of a configuration: from the environment of this process, or from a file for each.

NAME has the value itself. NAME_FILE is the path of a file that has it, as images of containers read it. A folder has
a file NAME, as `/run/secrets` and systemd's credentials do. Two places that differ are a mistake: somebody replaced the
value in one of them. No message has a value.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from core.config.model import Configuration
from core.errors import DeveloperError, UsageError
from core.hosts.application import secrets_asked

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
# An environment takes 128 kB for one variable, and workerd gets its secrets there.
_LONGEST: Final = 100_000


def secrets_of(
    configuration: Configuration,
    env_class: type | None,
    environment: Mapping[str, str],
    folder: str | None = None,
    *,
    warn: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """The secrets that the configuration or the Env names. Raises DeveloperError for a missing one."""
    from core.backends.embedded.hyperdrive import VARIABLES

    worker = configuration.worker
    optional = [variable + table.binding for table in worker.hyperdrive for variable in VARIABLES]
    if worker.core.ai is not None and worker.core.ai.key is not None:
        optional.append(worker.core.ai.key)
    required = [] if worker.secrets is None else [*worker.secrets.required]
    bound = {name for name, binding in configuration.bindings.items() if binding.kind != "secret"}
    asked: Mapping[str, bool] = {} if env_class is None else secrets_asked(env_class)
    for name, needed in asked.items():
        if name not in bound:
            (required if needed else optional).append(name)
    return read_secrets(required, environment, folder, optional=optional, warn=warn)


def check_folder(folder: str | None) -> None:
    """Raise UsageError where the folder that `--secrets-dir` names is not there."""
    if folder is not None and not Path(folder).is_dir():
        raise UsageError(f"--secrets-dir {folder} is not a folder. Name the one that has a file for each secret")


def read_secrets(
    required: Iterable[str],
    environment: Mapping[str, str],
    folder: str | None = None,
    *,
    optional: Iterable[str] = (),
    warn: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """The values of these secrets, from the environment, and from `folder` or else the credentials that systemd gives.

    `warn` gets a line for each file that every user of the machine may read. Raises DeveloperError with a line for each
    value that is empty, each file that cannot be used, and for required ones that are nowhere.
    """
    problems: list[str] = []
    values: dict[str, str] = {}
    missing: list[str] = []
    check_folder(folder)
    within = folder or environment.get(CREDENTIALS)
    needed = list(dict.fromkeys(required))
    for name in dict.fromkeys((*needed, *optional)):
        places = {"the environment": environment[name]} if name in environment else {}
        if places and not environment[name]:
            problems.append(f"{name} is empty in the environment. Set it to the secret's value, or leave it out")
        files = [Path(environment[f"{name}_FILE"])] if environment.get(f"{name}_FILE") else []
        if within and os.path.lexists(Path(within) / name):
            files.append(Path(within) / name)
        places.update((str(file), _read(name, file, problems, warn)) for file in files)
        values.update((name, value) for value in places.values())
        if len(set(places.values())) > 1:
            problems.append(f"{name} is another in {' than in '.join(places)}. Leave all but one out")
        if not places and name in needed:
            missing.append(name)
    if missing:
        problems.append(
            f"the environment lacks {', '.join(missing)}, which the configuration requires as secrets. Set "
            f"{'it' if len(missing) == 1 else 'them'} for this process, or have a file for each: {missing[0]}_FILE=PATH, or "
            f"{missing[0]} in --secrets-dir"
        )
    if problems:
        raise DeveloperError("\n".join(problems))
    return values


def _read(name: str, path: Path, problems: list[str], warn: Callable[[str], None]) -> str:
    """The text of a file, without the line end that editors and `echo` put behind it."""

    def refuse(why: str, advice: str) -> str:
        problems.append(f"{name}: {path} {why}. {advice}")
        return ""

    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return refuse("is not a file", "Name one that has the secret's value and nothing else")
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        return refuse(f"cannot be read: {error.strerror}", "Let the user of this process read it")
    if mode & 0o006:
        warn(f"{name}: every user of this machine may read {path}, or change it. Leave that to one (chmod 400)")
    if len(data) > _LONGEST:
        return refuse(f"is longer than {_LONGEST:,} bytes", "A secret is one key or password")
    try:
        text = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        return refuse("is not UTF-8", "Encode a secret that is bytes, for example with base64")
    if not text or "\0" in text:
        return refuse("has a zero byte" if text else "is empty", "Write the secret's value into it")
    return text
