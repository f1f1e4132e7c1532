"""The error codes: each can be ignored and disabled by its name, and `core` disables them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy.errorcodes import ErrorCode

__all__ = ["BINDING", "CORE", "ENV", "ORDER", "PARAMS", "QUEUE", "SQL", "code_of"]

CORE: Final = ErrorCode("core", "Check what the framework knows of a program", "Core")
ENV: Final = ErrorCode("core-env", "Check Env against the configuration file", "Core", sub_code_of=CORE)
BINDING: Final = ErrorCode("core-binding", "Check names of bindings given as texts", "Core", sub_code_of=CORE)
PARAMS: Final = ErrorCode("core-params", "Check path parameters and the order of handlers", "Core", sub_code_of=CORE)
SQL: Final = ErrorCode("core-sql", "Check SQL against the migrations", "Core", sub_code_of=CORE)
QUEUE: Final = ErrorCode("core-queue", "Check consumers of queues against producers", "Core", sub_code_of=CORE)
ORDER: Final = ErrorCode("core-order", "Check the order of middleware", "Core", sub_code_of=CORE)

_BY_NAME: Final[Mapping[str, ErrorCode]] = {code.code: code for code in (CORE, ENV, BINDING, PARAMS, SQL, QUEUE, ORDER)}


def code_of(name: str) -> ErrorCode:
    """The code of that name."""
    return _BY_NAME[name]
