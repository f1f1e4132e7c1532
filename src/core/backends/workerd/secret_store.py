"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.conversion import call_js, unwrap
from core.calls import Hookable, binding_call
from core.errors import BindingError

__all__ = ["WorkerdSecretsStoreSecret"]


class WorkerdSecretsStoreSecret(Hookable):
    """`SecretsStoreSecret` over the runtime's."""

    def __init__(self, secret: Any) -> None:
        self._secret = unwrap(secret)

    @binding_call
    async def get(self) -> str:
        """Its text. See `SecretsStoreSecret.get`."""
        return str(await call_js(lambda name, message: BindingError(message), self._secret.get))
