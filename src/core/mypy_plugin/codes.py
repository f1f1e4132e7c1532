"""The error codes as mypy knows them: each can be ignored and disabled by its name, and `core` disables them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy.errorcodes import ErrorCode

from core.config.checks import CHECKS, Code

_ALL: Final = ErrorCode("core", "Check the framework's rules in a program", "Core")

ERROR_CODES: Final[Mapping[Code, ErrorCode]] = {
    code: ErrorCode(code, check.title, "Core", sub_code_of=_ALL)
    for code, check in CHECKS.items()
    if check.title is not None
}
