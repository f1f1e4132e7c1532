"""A memory image in a bundle: only its empty pages are left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.runtime.bundle import without_zeros

PAGE = 65536
pages = st.sampled_from([bytes(PAGE), b"\1" + bytes(PAGE - 1), bytes(PAGE - 1) + b"\1", b"x" * PAGE])


@given(st.lists(pages, max_size=8), st.sampled_from([b"", bytes(7), b"end"]))
def test_the_pieces_are_the_image_and_none_of_them_is_empty(whole: list[bytes], rest: bytes) -> None:
    image = b"".join(whole) + rest
    left, pieces = without_zeros(image)
    again = bytearray(len(image))
    for at, start, size in pieces:
        again[at : at + size] = left[start : start + size]
        assert any(left[start : start + size])
    assert bytes(again) == image
    assert sum(size for _, _, size in pieces) == len(left)
    empty = sum(page == bytes(PAGE) for page in whole)
    assert len(left) <= len(image) - empty * PAGE
