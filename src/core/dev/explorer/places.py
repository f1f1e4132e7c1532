"""The bindings of the application that is loaded, as the panels look them up. Without one every panel answers 409."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import attrs

from core.assembly.embedded import name_in_store
from core.assembly.project import Loaded
from core.dev.explorer.rows import Caller
from core.dev.record import Recorder
from core.errors import CoreError
from core.request import Request


class Places:
    """The bindings, and the files that they are kept in."""

    def __init__(self, loaded: Loaded | None) -> None:
        self._loaded = loaded

    @property
    def loaded(self) -> Loaded:
        """The application."""
        if self._loaded is None:
            raise CoreError(409, "The application is not loaded")
        return self._loaded

    def binding(self, req: Request[Any], kind: str) -> Any:
        """The binding that a request names, which has to be of a kind. Its calls here pass no hook: what the explorer
        asks is neither counted nor recorded as the application's.
        """
        loaded, name = self.loaded, req.params["binding"]
        if loaded.kinds.get(name) != kind or name in loaded.bindings.absent:
            raise CoreError(404, f"There is no binding {name} of the kind {kind}")
        binding: Any = copy(loaded.bindings.values[name])
        binding._hook = None
        return binding

    def file(self, req: Request[Any], kind: str) -> Path | None:
        """The database behind the binding that a request names."""
        self.binding(req, kind)
        name = name_in_store(self.loaded.configuration.bindings[req.params["binding"]])
        return None if name is None else self.loaded.store.file(kind, name)


class Panel:
    """The handlers of one panel."""

    def __init__(self, places: Places, recorder: Recorder) -> None:
        self._places = places
        self._recorder = recorder

    def _caller(self, req: Request[Any]) -> Caller:
        return Caller(req, self._recorder)


@attrs.frozen
class Keys:
    """Keys to delete."""

    keys: list[str]


def key_of(req: Request[Any]) -> str:
    """The key in the query of a request."""
    key = req.query.get("key")
    if key is None:
        raise CoreError(400, "The query lacks `key`")
    return key
