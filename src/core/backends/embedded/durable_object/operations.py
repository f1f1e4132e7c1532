"""Operations shared by storage and a transaction: keys and values, read and written with `await`, and the alarm."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from core.backends.embedded.durable_object.arguments import (
    MAX_PAIRS,
    encode_key,
    encode_value,
    several,
    to_milliseconds,
)
from core.backends.embedded.durable_object.records import ObjectRecords
from core.bindings.durable_object import DurableObjectTransaction, StorageOperations
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError

_MISSING: Final[Any] = object()


class Operations(StorageOperations):
    """Operations shared by storage and a transaction."""

    _storage: ObjectRecords

    async def _check(self, operation: str) -> None:
        """Raise if nothing can be done here any more; wait while another's transaction is open."""
        raise NotImplementedError

    async def get(self, keys: Any, /, *, allow_concurrency: bool = False, no_cache: bool = False) -> Any:
        await self._check("get()")
        if isinstance(keys, str):
            return self._storage.read(encode_key(keys))
        raws = sorted({encode_key(key) for key in several(keys)})
        values = [(raw, self._storage.read(raw, _MISSING)) for raw in raws]
        return {raw.decode(): value for raw, value in values if value is not _MISSING}

    async def list(self, *, allow_concurrency: bool = False, no_cache: bool = False, **keys: Any) -> dict[str, Any]:
        await self._check("list()")
        return dict(self._storage.scan(**keys))

    async def put(
        self,
        key: Any,
        value: Any = _MISSING,
        /,
        *,
        allow_concurrency: bool = False,
        allow_unconfirmed: bool = False,
        no_cache: bool = False,
    ) -> None:
        await self._check("put()")
        if isinstance(key, str):
            if value is _MISSING:
                raise DurableObjectTypeError("put() called with undefined value.")
            self._storage.write([(encode_key(key), encode_value(value))])
            return
        given = key  # not narrowed by what follows
        if not isinstance(key, Mapping) or value is not _MISSING:
            raise DurableObjectTypeError(
                "put() may only be called with a single key-value pair and optional options as put(key, value, options) "
                "or with multiple key-value pairs and optional options as put(entries, options)"
            )
        entries: Mapping[Any, Any] = given
        if len(entries) > MAX_PAIRS:
            raise DurableObjectValueError(
                f"Maximum number of key value pairs is {MAX_PAIRS}. {len(entries)} pairs were provided."
            )
        self._storage.write([(encode_key(name), encode_value(item)) for name, item in entries.items()])

    async def delete(
        self,
        keys: Any,
        /,
        *,
        allow_concurrency: bool = False,
        allow_unconfirmed: bool = False,
        no_cache: bool = False,
    ) -> Any:
        await self._check("delete()")
        if isinstance(keys, str):
            return self._storage.remove([encode_key(keys)]) > 0
        return self._storage.remove([encode_key(key) for key in several(keys)])

    async def get_alarm(self, *, allow_concurrency: bool = False) -> int | None:
        await self._check("getAlarm()")
        row = self._storage.read_alarm()
        return None if row is None or row.mark == self._storage.firing else row.time

    async def set_alarm(
        self, scheduled_time: datetime | float, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False
    ) -> None:
        await self._check("setAlarm()")
        self._storage.write_alarm(to_milliseconds(scheduled_time))

    async def delete_alarm(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        await self._check("deleteAlarm()")
        self._storage.remove_alarm()


class Transaction(Operations, DurableObjectTransaction):
    """The storage inside `transaction`. See `DurableObjectTransaction`."""

    def __init__(self, storage: ObjectRecords) -> None:
        self._storage = storage
        self._ended = False
        self.rolled_back: bool = False

    async def _check(self, operation: str) -> None:
        self._refuse_late(operation)

    def _refuse_late(self, operation: str) -> None:
        if self.rolled_back:
            raise DurableObjectError(f"Cannot {operation} on rolled back transaction")
        if self._ended:
            raise DurableObjectError(
                f"Cannot call {operation} on transaction that has already committed: "
                "did you move `txn` outside of the closure?"
            )

    def rollback(self) -> None:
        if not self.rolled_back:
            self._refuse_late("rollback()")
            self.rolled_back = True

    def end(self, *, rolled_back: bool) -> None:
        """Refuse whatever comes after the closure."""
        self._ended = True
        self.rolled_back = rolled_back
