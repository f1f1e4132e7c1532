"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.conversion import call_js, unwrap
from core.bindings.secret_store import SecretsStoreSecret
from core.calls import Hookable, binding_call, implements
from core.errors import BindingError

__all__ = ["WorkerdSecretsStoreSecret"]


@implements(SecretsStoreSecret)
class WorkerdSecretsStoreSecret(Hookable):
    """`SecretsStoreSecret` over the runtime's."""

    def __init__(self, secret: Any) -> None:
        self._secret = unwrap(secret)

    @binding_call
    async def get(self) -> str:
        return str(await call_js(lambda name, message: BindingError(message), self._secret.get))
