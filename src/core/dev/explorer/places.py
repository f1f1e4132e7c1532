"""What the handlers of the explorer share, as their `req.env`: the application that is loaded, what was recorded of it,
and what goes on between two requests of the page.

Without an application every panel of bindings answers 409.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from copy import copy
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import TypeForm, TypeVar

from core.assembly.embedded import name_in_store
from core.assembly.project import Loaded
from core.dev.background import Background
from core.dev.guard import Guard
from core.dev.journal import Journal
from core.dev.options import Options
from core.dev.record import Recorder
from core.errors import CoreError
from core.http import json as strict_json
from core.http.json import JsonObject
from core.request import Request
from core.telemetry.metrics import Meter
from core.validation.structure import structure

T = TypeVar("T")


@attrs.define(eq=False)
class Places:
    """The explorer of one serving process. `found` is None while the application cannot be loaded, for `failed`."""

    options: Options
    guard: Guard
    recorder: Recorder
    journal: Journal
    found: Loaded | None
    failed: BaseException | None
    background: Background | None
    meter: Meter = attrs.field(factory=Meter)
    """Counts since the application was loaded."""
    application: Callable[[Any, Any, Any], Awaitable[None]] | None = None
    """Answers a request that is sent again."""
    running: dict[str, threading.Event] = attrs.field(factory=dict[str, threading.Event])
    """What stops statements that run, by their id."""
    gathering: asyncio.Task[JsonObject] | None = None
    """Makes the document of the API."""

    @property
    def loaded(self) -> Loaded:
        if self.found is None:
            raise CoreError(409, "The application is not loaded")
        return self.found


def binding_of(req: Request[Places], kind: str) -> Any:
    """The binding that a request names, which has to be of a kind. Its calls here pass no hook: what the explorer asks
    is neither counted nor recorded as the application's.
    """
    loaded, name = req.env.loaded, req.params["binding"]
    found = loaded.configuration.bindings.get(name)
    if found is None or found.kind != kind or name in loaded.bindings.absent:
        raise CoreError(404, f"There is no binding {name} of the kind {kind}")
    binding: Any = copy(loaded.bindings.values[name])
    binding._hook = None
    return binding


def file_of(req: Request[Places], kind: str) -> Path | None:
    """The database behind the binding that a request names."""
    binding_of(req, kind)
    loaded = req.env.loaded
    name = name_in_store(loaded.configuration.bindings[req.params["binding"]])
    return None if name is None else loaded.store.file(kind, name)


async def run_core(options: Options, *arguments: str) -> tuple[int | None, str, str]:
    """Run `core` in a process of its own: what it loads is freed with it, and the server goes on meanwhile. Returns its
    exit code, what it wrote, and what it wrote of errors.
    """
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
    return process.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace")


def json_of(req: Request[Places], name: str, type_: TypeForm[T], what: str) -> T:
    """A value in the query of a request, an object in JSON; an empty one where there is none. `what` it is to be."""
    try:
        return structure(strict_json.loads(req.query.get(name) or "{}"), type_, "client")
    except ValueError as error:
        raise CoreError(400, f"`{name}` is not {what} in JSON: {error}") from None


def key_of(req: Request[Places]) -> str:
    key = req.query.get("key")
    if key is None:
        raise CoreError(400, "The query lacks `key`")
    return key
