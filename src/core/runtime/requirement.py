"""A requirement of a distribution as it is in a worker: whether it applies there (PEP 508)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from core.errors import MissingExtraError
from core.runtime.bundle import BundleError

try:
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name
except ImportError:
    raise MissingExtraError("core build: pip install 'core-edge[dev]'") from None

__all__ = ["MARKERS", "Requirement", "applies", "canonicalize_name", "installed_requirement", "requirement"]

MARKERS: Final = {
    "python_version": "3.14",
    "python_full_version": "3.14.2",
    "os_name": "posix",
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "implementation_version": "3.14.2",
    "platform_release": "",
    "platform_version": "",
}
"""The environment of a worker, for requirements that depend on it."""

_NAME: Final = re.compile(r"\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def requirement(text: str) -> Requirement:
    """Return a requirement of the project. Raises BundleError where it cannot be read."""
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise BundleError(f"the requirement {text!r} cannot be read: {reason}. Write it as name>=version") from None


def installed_requirement(text: str) -> Requirement | None:
    """Return a requirement of an installed distribution; only its name where the rest cannot be read.

    Nobody who builds a bundle could correct it, and its installer was content.
    """
    try:
        return Requirement(text)
    except InvalidRequirement:
        name = _NAME.match(text)
        return None if name is None else Requirement(name[0])


def applies(wanted: Requirement, extras: Collection[str] = ()) -> bool:
    """Return True if a requirement applies inside a worker, with one of the `extras` of whoever requires it.

    A marker that compares what has no order counts as true.
    """
    try:
        return wanted.marker is None or any(
            wanted.marker.evaluate({**MARKERS, "extra": extra}) for extra in extras or ("",)
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True
