"""The error of a request body that breaks off. A file of its own, for no request needs it that does not."""

from __future__ import annotations

from core.errors import CoreError


class BodyEndedError(CoreError):
    """A request body that ended early. `status` is what its client is told: CLIENT_GONE for one that is gone."""
