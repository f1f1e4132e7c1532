"""The arguments of R2's calls, for every engine of a bucket: keys, values, parts and metadata as R2 takes them, and the
platform's errors for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar

import attrs

from core.bindings.r2 import KnownLengthStream, R2UploadedPart, R2UploadedPartDict, R2Value
from core.errors import R2Error, R2TypeError
from core.http.streams import encode, well_formed

A = TypeVar("A", bound=attrs.AttrsInstance)

MAX_KEY: Final = 1024
MAX_PARTS: Final = 10_000

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

Chosen: TypeAlias = Sequence[tuple[int, str]]
"""Number and etag of every part that an object is to be made of."""

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
    raise R2Error(f"{method}: {_MESSAGES[code] if text is None else text} ({code})")


def encode_key(method: Method, key: str) -> bytes:
    """A key as UTF-8. Raises R2TypeError for another type, R2Error for a key that is too long or has no UTF-8."""
    if not isinstance(key, str):
        raise R2TypeError(f"{method}: a key must be a str, not {type(key).__name__}. Write str(key) if that is meant")
    try:
        raw = key.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8; U+FFFD for it would make one object of several.
        refuse(method, 10020)
    if len(raw) > MAX_KEY:
        refuse(method, 10020)
    return raw


def source_of(method: Literal["put", "uploadPart"], value: R2Value) -> bytes | KnownLengthStream:
    """A value as bytes, or as the stream that it is. Raises R2TypeError for another type, or an unknown length."""
    if value is None and method == "put":
        return b""
    if isinstance(value, str):
        return encode(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if value is not None and hasattr(value, "__aiter__"):
        length = getattr(value, "length", None)
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise R2TypeError(
                "Provided readable stream must have a known length "
                "(request/response body or readable half of FixedLengthStream)"
            )
        return value
    interface = "R2Bucket" if method == "put" else "R2MultipartUpload"
    raise R2TypeError(
        f"Failed to execute '{method}' on '{interface}': parameter 2 is not of type "
        "'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'."
    )


def check_part_number(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise R2TypeError(f"Part number must be an int, not {number!r}")
    if not 1 <= number <= MAX_PARTS:
        raise R2TypeError(f"Part number must be between 1 and {MAX_PARTS} (inclusive). Actual value was: {number}")
    return number


def chosen_parts(parts: Iterable[R2UploadedPart | R2UploadedPartDict]) -> Chosen:
    """Number and etag of every part that `complete` names. Raises R2TypeError for a number that no part has."""
    return [
        (check_part_number(part.part_number), part.etag)
        if isinstance(part, R2UploadedPart)
        else (check_part_number(part["part_number"]), part["etag"])
        for part in parts
    ]


def record(cls: type[A], given: A | Mapping[str, Any], option: str) -> A:
    """An instance of `cls`, given as one or as its fields. Raises R2TypeError for a field that it has not."""
    if isinstance(given, cls):
        return given
    fields: Any = given
    if not isinstance(given, Mapping):
        raise R2TypeError(f"{option} must be a dict, headers or an {cls.__name__}, not {type(fields).__name__}")
    known = sorted(field.name for field in attrs.fields(cls))
    unknown = set(fields).difference(known)
    if unknown:
        raise R2TypeError(f"{option} has no {', '.join(sorted(unknown))}: it has {', '.join(known)}")
    return cls(**fields)


def check_custom_metadata(metadata: Mapping[Any, object] | None) -> dict[str, str]:
    """A copy of custom metadata. Raises R2TypeError where a name or a value is not a str."""
    custom: dict[str, str] = {}
    for name, value in (metadata or {}).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise R2TypeError(f"custom_metadata[{name!r}] must be a str, not {value!r}. Write str(...) around it")
        custom[well_formed(name)] = well_formed(value)
    return custom
