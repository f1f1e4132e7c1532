"""The parts of an upload, and the checks that make an object of them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from core.backends.embedded.r2.arguments import check_part_number
from core.backends.embedded.r2.errors import refuse
from core.backends.embedded.r2.rows import Described, Row
from core.bindings.r2 import R2UploadedPart, R2UploadedPartDict

MIN_PART: Final = 5 * 1024**2

Chosen: TypeAlias = Sequence[tuple[int, str]]
"""Number and etag of every part that an object is to be made of."""


class Part(NamedTuple):
    """A part that was uploaded."""

    number: int
    size: int
    etag: str
    md5: bytes


def chosen_parts(parts: Iterable[R2UploadedPart | R2UploadedPartDict]) -> Chosen:
    """Number and etag of every part that `complete` names. Raises R2TypeError for a number that no part has."""
    return [
        (check_part_number(part.part_number), part.etag)
        if isinstance(part, R2UploadedPart)
        else (check_part_number(part["part_number"]), part["etag"])
        for part in parts
    ]


def find_parts(uploaded: Iterable[Part], chosen: Chosen) -> list[Part]:
    """The parts that were chosen, in their order, if an object can be made of them."""
    if len({number for number, _ in chosen}) != len(chosen):
        refuse("completeMultipartUpload", 10001)
    by_number = {part.number: part for part in uploaded}
    parts: list[Part] = []
    for number, etag in chosen:
        part = by_number.get(number)
        if part is None or part.etag != etag:
            refuse("completeMultipartUpload", 10025)
        parts.append(part)
    if any(part.size < MIN_PART for part in parts[:-1]):
        refuse("completeMultipartUpload", 10011)
    parts.sort()
    sizes = [part.size for part in parts]
    # All but the last of one size, and large enough in this order too; the last one not larger than they are.
    if any(size < MIN_PART or size != sizes[0] for size in sizes[:-1]) or sizes[-1:] > sizes[:1]:
        refuse("completeMultipartUpload", 10048)
    return parts


def joined(key: bytes, parts: Sequence[Part], uploaded: int, described: Described) -> Row:
    """The object that parts become."""
    digest = hashlib.md5(b"".join([part.md5 for part in parts]), usedforsecurity=False).hexdigest()
    size = sum(part.size for part in parts)
    return Row(key, secrets.token_hex(16), size, f"{digest}-{len(parts)}", uploaded, "{}", *described)
