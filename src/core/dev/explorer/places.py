"""The bindings of the application that is loaded, as the panels look them up, and what else the panels share.

Without an application every panel of bindings answers 409.
"""

from __future__ import annotations

import asyncio
import sys
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from core.assembly.embedded import name_in_store
from core.assembly.project import Loaded
from core.dev.explorer.rows import Caller
from core.dev.options import Options
from core.dev.record import Recorder
from core.errors import CoreError
from core.request import AnyRequest
from core.router import Router


@attrs.frozen
class Places:
    """The bindings, and the files that they are kept in. `found` is None while the application cannot be loaded."""

    found: Loaded | None
    options: Options
    recorder: Recorder

    @property
    def loaded(self) -> Loaded:
        """The application."""
        if self.found is None:
            raise CoreError(409, "The application is not loaded")
        return self.found

    def binding(self, req: AnyRequest, kind: str) -> Any:
        """The binding that a request names, which has to be of a kind. Its calls here pass no hook: what the explorer
        asks is neither counted nor recorded as the application's.
        """
        loaded, name = self.loaded, req.params["binding"]
        if loaded.kinds.get(name) != kind or name in loaded.bindings.absent:
            raise CoreError(404, f"There is no binding {name} of the kind {kind}")
        binding: Any = copy(loaded.bindings.values[name])
        binding._hook = None
        return binding

    def file(self, req: AnyRequest, kind: str) -> Path | None:
        """The database behind the binding that a request names."""
        self.binding(req, kind)
        name = name_in_store(self.loaded.configuration.bindings[req.params["binding"]])
        return None if name is None else self.loaded.store.file(kind, name)


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it wrote."""

    code: int | None
    out: str
    errors: str


class Panel:
    """The handlers of one panel."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._recorder = places.recorder
        self._options = places.options

    def add_to(self, api: Router[Any, Any]) -> None:
        """Add the routes."""
        raise NotImplementedError

    async def _command(self, *arguments: str) -> Ended:
        """Run `core` in a process of its own: what it loads is freed with it, and the server goes on meanwhile."""
        options = self._options
        command = [sys.executable, "-m", "core", *arguments, "--config", str(options.config)]
        if options.environment is not None:
            command += ["--env", options.environment]
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=options.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, errors = await process.communicate()
        finally:
            if process.returncode is None:  # the server stops
                process.kill()
        return Ended(process.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))

    def _caller(self, req: AnyRequest) -> Caller:
        return Caller(req, self._recorder)


@attrs.frozen
class Keys:
    """Keys to delete."""

    keys: list[str]


def key_of(req: AnyRequest) -> str:
    """The key in the query of a request."""
    key = req.query.get("key")
    if key is None:
        raise CoreError(400, "The query lacks `key`")
    return key
