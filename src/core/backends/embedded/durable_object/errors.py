"""The errors that callers of an object get for a reset, and for a value that cannot be copied."""

from __future__ import annotations

from core.diagnosis import words_of
from core.errors import DurableObjectError, DurableObjectTypeError

__all__ = ["clone_error", "reset_error"]


def clone_error(message: str) -> DurableObjectTypeError:
    """The error for a value that the structured clone refuses."""
    error = DurableObjectTypeError(message)
    error.js_name = "DataCloneError"
    return error


def reset_error(why: BaseException) -> BaseException:
    """The error of a call that a reset ended, in the words of the reason, as on the platform."""
    return DurableObjectError(words_of(why))
