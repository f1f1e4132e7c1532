"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from core.backends.workerd.engine import JsEngine, js_call
from core.bindings.secret_store import SecretsStoreSecret


class WorkerdSecretsStoreSecret(JsEngine, SecretsStoreSecret):
    _get = js_call(SecretsStoreSecret.get, str)
