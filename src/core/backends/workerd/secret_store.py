"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from core.backends.workerd.conversion import binding_error, call_js
from core.backends.workerd.engine import JsEngine
from core.bindings.secret_store import SecretsStoreSecret


class WorkerdSecretsStoreSecret(JsEngine, SecretsStoreSecret):
    async def _get(self) -> str:
        return str(await call_js(binding_error, self._js.get))
