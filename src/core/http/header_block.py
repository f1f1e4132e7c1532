"""Headers that are the same on many responses, kept together so that they are encoded once.

`secure_hdrs()` and `cors()` stage the same headers on every response. As a block they are one reference on the
response, and a host encodes them once for each content type. `core.response.Response.put` decides how a block and the
headers that are staged one by one combine.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


class HeaderBlock:
    """Headers that a middleware puts on responses alike: a host writes them as bytes once. See `Response.put`."""

    __slots__ = ("dropped", "header_names", "values", "varies", "written")

    def __init__(self, values: dict[str, str], varies: tuple[str, ...] = (), dropped: Iterable[str] = ()) -> None:
        self.values: dict[str, str] = values
        """By lower-case name, checked; none is `set-cookie`, and none describes a body."""
        self.varies: tuple[str, ...] = varies
        """The request headers that `Vary` names, where `vary` is one of `values`. See `Response.vary`."""
        self.dropped: frozenset[str] = frozenset(dropped) - values.keys()
        """Names of headers that were staged earlier and are removed when the block is put."""
        self.header_names: frozenset[str] = frozenset((*values, *self.dropped, "content-type", "content-length"))
        """All these names, and those that describe the body. A header of another name can stand beside the block."""
        self.written: dict[str | None, list[tuple[bytes, bytes]]] = {}
        """The encoded headers, by content type, as a host made them."""


@lru_cache(256)  # blocks are made when middleware is, and so are few
def joined(earlier: HeaderBlock, later: HeaderBlock) -> HeaderBlock:
    """The headers of both; those of the later win where both have one."""
    varies = (*earlier.varies, *(name for name in later.varies if name not in earlier.varies))
    values = {name: value for name, value in earlier.values.items() if name not in later.dropped} | later.values
    if varies:
        values["vary"] = ", ".join(varies)
    return HeaderBlock(values, varies, earlier.dropped | later.dropped)
