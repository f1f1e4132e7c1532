"""The rows, the bodies and the clock of one bucket, for the bucket itself and for its uploads in parts."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from core.backends.embedded.disk import StoreError
from core.backends.embedded.r2.bodies import Bodies
from core.backends.embedded.r2.errors import Method, store_failure
from core.backends.embedded.r2.rows import SCHEMA
from core.backends.embedded.store import Database, Store, run_script
from core.errors import R2Error

__all__ = ["BucketStorage"]

T = TypeVar("T")


class BucketStorage:
    """The rows and bodies of the bucket `name` of `store`."""

    def __init__(self, store: Store, name: str) -> None:
        self._clock = store.clock
        self.database: Database = store.database("r2", name)
        self.connection: sqlite3.Connection = self.database.connection
        self.bodies: Bodies = Bodies(self.database, store.files("r2", name))
        self.database.insist(self._set_up)

    def now(self) -> int:
        """Milliseconds since 1970."""
        return math.floor(self._clock.time() * 1000)

    async def wait(self, method: Method, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises R2Error where that fails."""
        try:
            return await self.database.patiently(action)
        except StoreError as error:
            raise store_failure(method, error) from error
        except sqlite3.Error as error:
            raise R2Error(f"{method}: {error}: {self.database.location} (10001)") from error

    def _set_up(self) -> None:
        with self.database.transaction() as connection:
            run_script(connection, SCHEMA)
            self.bodies.sweep()
