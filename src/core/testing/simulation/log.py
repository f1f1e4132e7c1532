"""The calls of a simulated run, in order: what checkers and reports read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_READS = frozenset({"get", "get_with_metadata", "list", "head", "first", "all", "raw", "one", "describe"})


@attrs.define(eq=False)
class SimulatedCall:
    """A call of a binding in a simulated run.

    `began`, `took_effect` and `ended` number all such moments of the run in their order; a call that failed before its
    effect, or whose event died, has None. `time` is in seconds since 1970. `event` names the request (batch, schedule)
    that made it, as the report does; "" is the test itself.
    """

    event: str
    binding: str
    kind: str
    method: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    place: int
    time: float
    began: int
    took_effect: int | None = None
    ended: int | None = None
    result: Any = None
    error: BaseException | None = None
    fault: str = ""

    @property
    def writes(self) -> bool:
        """True unless the call only reads. A statement of SQL reads if it begins with SELECT."""
        if self.kind == "d1" and self.args and isinstance(self.args[0], str):
            return not self.args[0].lstrip().lower().startswith("select")
        return self.method not in _READS

    @property
    def key(self) -> object:
        """The key of an entry or object, the name of a Durable Object; None for a database and for a list."""
        if self.kind == "d1" or not self.args or not isinstance(self.args[0], str):
            return None
        return self.args[0]

    @property
    def call(self) -> str:
        """The call as it is shown: `KV.get("n")`."""
        given = [shown(value) for value in self.args]
        given += [f"{name}={shown(value)}" for name, value in self.options.items()]
        return f"{self.binding}.{self.method}({', '.join(given)})"

    def __str__(self) -> str:
        if self.error is not None:
            outcome = f" raises {type(self.error).__name__}: {self.error}"
        elif self.ended is None:
            outcome = ""
        else:
            outcome = f" -> {shown(self.result)}"
        return f"{self.event or 'the test'}: {self.call}{outcome}{f'  [{self.fault}]' if self.fault else ''}"


def shown(value: object) -> str:
    """A value on one line, without addresses."""
    text = _ADDRESS.sub("", repr(value))
    return text if len(text) <= 100 else text[:97] + "..."
