"""The options of `core dev`, and why it starts: values that travel from the watching process to the serving one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from core.telemetry.logs import LogFormat


@attrs.frozen
class Options:
    """The options of `core dev`.

    `config`: the configuration file. `environment`: a named environment of it. `state`: the folder of the embedded
    bindings that the command names; `configured_state`: the one of the configuration, which workerd does not use.
    `host`, `port`: the address; port 0 takes a free one. `reload`: start again on a change. `explorer`: whether the
    explorer and error pages are there; None means on loopback addresses only. `migrate`: apply pending migrations by
    itself. `token`: the one that the explorer's page sends. `log_format`: lines for people, or of JSON. `shares_state`:
    another `core dev` has the state folder, and the exchanges in it.
    """

    config: Path
    environment: str | None = None
    state: Path | None = None
    configured_state: str | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    reload: bool = True
    explorer: bool | None = None
    migrate: bool = True
    token: str = ""
    log_format: LogFormat = "text"
    shares_state: bool = False

    @property
    def root(self) -> Path:
        return self.config.parent

    @property
    def state_folder(self) -> Path:
        return self.state if self.state is not None else self.root / (self.configured_state or ".core/state")


@attrs.frozen
class Start:
    """The reason of a start: the first one, or changed files. `since` is the time of the change, in epoch seconds."""

    first: bool = True
    changed: tuple[str, ...] = ()
    since: float = 0.0
