"""The errors that callers of an object get for a reset, and for a value that cannot be copied."""

from __future__ import annotations

from core.errors import DurableObjectError, DurableObjectTypeError

__all__ = ["clone_error", "reset_error"]


def clone_error(message: str) -> DurableObjectTypeError:
    """The error for a value that the structured clone refuses."""
    error = DurableObjectTypeError(message)
    error.js_name = "DataCloneError"
    return error


def reset_error(why: BaseException) -> BaseException:
    """The error of a call that a reset ended: the reason itself when it is ours, else an error that names it."""
    if isinstance(why, DurableObjectError):
        return DurableObjectError(str(why))
    return DurableObjectError(f"The Durable Object was reset: {type(why).__name__}: {why}")
