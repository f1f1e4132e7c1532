"""A secret of the account's Secrets Store, which a worker reads when it needs it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from core.bindings import binding_call

__all__ = ["SecretsStoreSecret"]


@runtime_checkable
class SecretsStoreSecret(Protocol):
    """A secret that is stored for several workers."""

    @binding_call
    async def get(self) -> str:
        """Its text. Raises BindingError when it is not there any more."""
        raise AssertionError
