"""Secrets of the account's Secrets Store."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.crossing import ask, bare
from core.errors import BindingError

__all__ = ["WorkerdSecretsStoreSecret"]


class WorkerdSecretsStoreSecret:
    """`SecretsStoreSecret` over the runtime's."""

    __slots__ = ("_secret",)

    def __init__(self, secret: Any) -> None:
        self._secret = bare(secret)

    async def get(self) -> str:
        """Its text. See `SecretsStoreSecret.get`."""
        return str(await ask(lambda name, message: BindingError(message), self._secret.get))
