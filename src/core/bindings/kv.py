"""A key-value namespace, as a handler sees it: `KVNamespace`, and the values it gives."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, overload, runtime_checkable

import attrs
from typing_extensions import TypeForm, TypeVar

from core.bindings import binding_call
from core.values import frozen

if TYPE_CHECKING:
    T = TypeVar("T")

__all__ = ["KVBulkType", "KVKey", "KVListResult", "KVNamespace", "KVPutValue", "KVType", "KVValue"]

V = TypeVar("V", default=Any)

KVType: TypeAlias = Literal["text", "json", "bytes", "stream"]
"""The form in which `get` reads a value. The default is `"text"`."""

KVBulkType: TypeAlias = Literal["text", "json"]
"""The form in which `get` of several keys reads their values."""

KVPutValue: TypeAlias = str | bytes | bytearray | memoryview | AsyncIterable[bytes]
"""A value that `put` stores: text, bytes, or a stream of bytes. At most 25 MiB (26 214 400 bytes)."""


@frozen
class KVKey:
    """One key of a `list`: its `name`, its `metadata` and its `expiration` in seconds since 1970, where it has them."""

    name: str
    expiration: int | None = None
    metadata: Any = None


@frozen
class KVListResult:
    """One page of keys, in the order of their UTF-8 bytes.

    Only `list_complete` says whether there is more: in production a page may be short, or empty, with more to
    come. `cursor` continues the list, and is None on the last page.
    """

    keys: list[KVKey]
    list_complete: bool
    cursor: str | None = None
    cache_status: str | None = attrs.field(default=None, eq=False)


@frozen
class KVValue(Generic[V]):
    """A value with its `metadata`, which is None where the key has none or is missing."""

    value: V
    metadata: Any = None
    cache_status: str | None = attrs.field(default=None, eq=False)


@runtime_checkable
class KVNamespace(Protocol):
    """A key-value namespace.

    A key is 1 to 512 bytes of UTF-8, except `.` and `..`; it is neither normalised nor folded, so case and accents
    count. A value is at most 25 MiB. In production a write may take up to 60 seconds to be seen elsewhere, and one
    key takes one write a second.

    Every method raises `KVError`, in the platform's own words: `KVTypeError` (also a TypeError) for a key or a value
    of a kind that the platform does not take, `KVError` itself for everything else.
    """

    @overload
    async def get(  # type: ignore[overload-overlap]  # a str is a Sequence[str] too: it is taken as one key
        self, key: str, type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> str | None: ...
    @overload
    async def get(self, key: str, type: Literal["json"], *, cache_ttl: int | None = None) -> Any: ...
    @overload
    async def get(self, key: str, type: Literal["bytes"], *, cache_ttl: int | None = None) -> bytes | None: ...
    @overload
    async def get(
        self, key: str, type: Literal["stream"], *, cache_ttl: int | None = None
    ) -> AsyncIterator[bytes] | None: ...
    @overload
    async def get(
        self, key: Sequence[str], type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> dict[str, str | None]: ...
    @overload
    async def get(
        self, key: Sequence[str], type: Literal["json"], *, cache_ttl: int | None = None
    ) -> dict[str, Any]: ...
    @binding_call
    async def get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> Any:
        """Return the value under `key`, or None where it is missing or has expired.

        `"text"` decodes UTF-8 and puts U+FFFD for invalid bytes; a byte order mark stays. `"json"` is strict JSON (no
        `NaN`); a stored `null` reads as None. `"stream"` is an async iterator of bytes that can be read once.

        Several keys, 1 to 100 of them, give a dict in the order asked, None for a missing one; `"text"` and
        `"json"` only.

        `cache_ttl`: seconds, at least 30, that the place that reads may go on answering from its cache.

        Raises `KVSyntaxError` (also a ValueError) for `"json"` over a value that is none.
        """
        raise AssertionError

    @binding_call
    async def get_json(self, key: str, type_: TypeForm[T], /, *, cache_ttl: int | None = None) -> T | None:
        """Return the JSON value under `key` as a `T`: an attrs class, a TypedDict, `list[A | B]`, ...

        None where the key is missing or holds `null`. Raises `KVSyntaxError` where it is not JSON, and
        `StructureError` (every mistake, each with its path) where it is not a `T`.
        """
        raise AssertionError

    @overload
    async def get_with_metadata(  # type: ignore[overload-overlap]  # as in get
        self, key: str, type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> KVValue[str | None]: ...
    @overload
    async def get_with_metadata(  # type: ignore[overload-overlap]  # as in get
        self, key: str, type: Literal["json"], *, cache_ttl: int | None = None
    ) -> KVValue[Any]: ...
    @overload
    async def get_with_metadata(
        self, key: str, type: Literal["bytes"], *, cache_ttl: int | None = None
    ) -> KVValue[bytes | None]: ...
    @overload
    async def get_with_metadata(
        self, key: str, type: Literal["stream"], *, cache_ttl: int | None = None
    ) -> KVValue[AsyncIterator[bytes] | None]: ...
    @overload
    async def get_with_metadata(
        self, key: Sequence[str], type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> dict[str, KVValue[str] | None]: ...
    @overload
    async def get_with_metadata(
        self, key: Sequence[str], type: Literal["json"], *, cache_ttl: int | None = None
    ) -> dict[str, KVValue[Any] | None]: ...
    @binding_call
    async def get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> Any:
        """As `get`, with the metadata. A missing key is `KVValue(None, None)`; of several keys, it is None."""
        raise AssertionError

    @binding_call
    async def put(
        self,
        key: str,
        value: KVPutValue,
        *,
        expiration: float | None = None,
        expiration_ttl: float | None = None,
        metadata: Any = None,
    ) -> None:
        """Store `value` under `key`. Everything that was there is replaced, metadata and expiration included.

        `expiration`: when the key goes, in seconds since 1970, at least 60 from now. `expiration_ttl`: the same as
        seconds from now, at least 60; it wins when both are given. Fractions are cut off.
        `metadata`: any JSON of at most 1024 bytes when written compactly; None is none.

        A put that is refused leaves the old value. Raises `KVTypeError` for other kinds of values (numbers, dicts,
        None: write JSON with `put_json`), `KVError` for a value that is too large, or expires too soon.
        """
        raise AssertionError

    @binding_call
    async def put_json(
        self,
        key: str,
        value: Any,
        *,
        expiration: float | None = None,
        expiration_ttl: float | None = None,
        metadata: Any = None,
    ) -> None:
        """Store `value` as compact JSON: the values of JSON, and attrs instances, datetimes, UUIDs, Decimals, enums.

        Raises `KVTypeError` for a value that cannot be written as JSON, NaN and the infinities included.
        """
        raise AssertionError

    @binding_call
    async def delete(self, key: str) -> None:
        """Remove `key`. A missing key is fine."""
        raise AssertionError

    @binding_call
    async def list(self, *, prefix: str | None = None, limit: int = 1000, cursor: str | None = None) -> KVListResult:
        """Return one page of keys that begin with `prefix`, in the order of their UTF-8 bytes.

        `limit`: keys a page, at most 1000; 0 and below are the same as 1000. `cursor`: the last page's; it means
        "after that page's last key", whatever was put or deleted meanwhile.
        """
        raise AssertionError
