"""Answers of build workers, kept beside the toolchain: starting a worker to ask takes seconds.

A key has all that an answer depends on. A file that cannot be read, or is not what was written, counts as empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from core.cache_file import write_cache
from core.runtime.toolchain import cache_folder

__all__ = ["keep", "kept", "key_of"]

_MOST = 64
"""The number of answers that are kept; the oldest go first."""


def key_of(parts: Iterable[bytes]) -> str:
    """The key of an answer that depends on `parts`, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def kept(key: str) -> dict[str, Any] | None:
    """The answer under `key`; None where there is none."""
    return _all().get(key)


def keep(key: str, answer: dict[str, Any]) -> None:
    """Keep an answer for the builds to come."""
    answers = _all()
    answers[key] = answer
    for oldest in [*answers][:-_MOST]:
        del answers[oldest]
    write_cache(_file(), json.dumps(answers).encode())


def _file() -> Path:
    return cache_folder() / "compiled.json"


def _all() -> dict[str, dict[str, Any]]:
    try:
        found: dict[str, Any] = json.loads(_file().read_bytes())
        return {key: answer for key, answer in found.items() if isinstance(answer, dict)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
