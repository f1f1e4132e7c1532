"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from core.backends.workerd.conversion import call_js, unwrap
from core.bindings.calls import Hookable
from core.bindings.secret_store import SecretsStoreSecret
from core.errors import BindingError


class WorkerdSecretsStoreSecret(Hookable, SecretsStoreSecret):
    """`SecretsStoreSecret` over the runtime's."""

    def __init__(self, secret: object) -> None:
        self._secret = unwrap(secret)

    async def _get(self) -> str:
        return str(await call_js(lambda name, message: BindingError(message), self._secret.get))
