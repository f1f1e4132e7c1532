"""The platform's errors of R2: their messages, and the number that ends each."""

from __future__ import annotations

from typing import Final, Literal, NoReturn, TypeAlias

from core.backends.embedded.disk import StoreError
from core.errors import R2Error

Method: TypeAlias = Literal[
    "get",
    "head",
    "put",
    "delete",
    "list",
    "createMultipartUpload",
    "uploadPart",
    "completeMultipartUpload",
    "abortMultipartUpload",
]

_MESSAGES: Final[dict[int, str]] = {
    10001: "We encountered an internal error. Please try again.",
    100100: "Your proposed upload exceeds the maximum allowed object size.",
    10011: "Your proposed upload is smaller than the minimum allowed object size.",
    10012: "Your metadata headers exceed the maximum allowed metadata size.",
    10020: "The specified object name is not valid.",
    10022: "MaxKeys params must be positive integer <= 1000.",
    10024: "The specified multipart upload does not exist.",
    10025: "One or more of the specified parts could not be found.",
    10039: "The requested range is not satisfiable",
    10048: "There was a problem with the multipart upload.",
}


def refuse(method: Method, code: int, text: str | None = None) -> NoReturn:
    """Raise the platform's error of a number, with its usual message or with `text`."""
    error = R2Error(f"{method}: {_MESSAGES[code] if text is None else text} ({code})")
    error.code = code
    raise error


def store_failure(method: Method, error: StoreError) -> R2Error:
    """The error of a call whose files or database could not be read or written."""
    return R2Error(f"{method}: {error} (10001)")
