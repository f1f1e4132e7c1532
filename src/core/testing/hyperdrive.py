"""`FakeHyperdrive`: an address for a test. The database that answers there is the test's own."""

from __future__ import annotations

from core.backends.embedded.hyperdrive import EmbeddedHyperdrive
from core.context import Clock, system_clock


class FakeHyperdrive(EmbeddedHyperdrive):
    """A `Hyperdrive` for tests: the address of a database that the test started, or by default of none.

    In a test:

        env(Env, DATABASE=FakeHyperdrive("postgres://test:test@127.0.0.1:54321/test"))
    """

    def __init__(
        self, connection_string: str = "postgres://user:password@fake.invalid:5432/fake", *, clock: Clock = system_clock
    ) -> None:
        super().__init__(connection_string, binding="FakeHyperdrive")
