"""A Vectorize index: vectors under ids, found by likeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from core.bindings import binding_call
from core.values import frozen

__all__ = [
    "Vectorize",
    "VectorizeAsyncMutation",
    "VectorizeFilter",
    "VectorizeIndexInfo",
    "VectorizeMatch",
    "VectorizeMatches",
    "VectorizeMetadata",
    "VectorizeMetadataValue",
    "VectorizeVector",
]

VectorizeMetadataValue: TypeAlias = str | int | float | bool | list[str]
VectorizeMetadata: TypeAlias = Mapping[str, VectorizeMetadataValue | Mapping[str, VectorizeMetadataValue]]
"""Metadata of a vector; at most 10 KiB as JSON."""

_Plain: TypeAlias = str | int | float | bool | None
VectorizeFilter: TypeAlias = Mapping[
    str, _Plain | Mapping[Literal["$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin"], _Plain | Sequence[_Plain]]
]
"""Conditions on metadata that is indexed; all must hold. At most 2048 bytes as JSON."""


@frozen
class VectorizeVector:
    """A vector: its id of at most 64 bytes, a number for each dimension of the index, and the metadata beside it."""

    id: str
    values: Sequence[float]
    namespace: str | None = None
    metadata: VectorizeMetadata | None = None


@frozen
class VectorizeMatch:
    """A vector that was found. `score` is by the index's metric; values and metadata only when they were asked for."""

    id: str
    score: float
    values: Sequence[float] | None = None
    namespace: str | None = None
    metadata: VectorizeMetadata | None = None


@frozen
class VectorizeMatches:
    """The matches of a query, the most similar first."""

    matches: list[VectorizeMatch]
    count: int


@frozen
class VectorizeAsyncMutation:
    """A change that was taken in. It is seen a few seconds later, in the order of these ids."""

    mutation_id: str


@frozen
class VectorizeIndexInfo:
    """The index: the number of vectors and dimensions, and the last change and ISO 8601 time it has processed."""

    vector_count: int
    dimensions: int
    processed_up_to_datetime: str | None = None
    processed_up_to_mutation: str | None = None


@runtime_checkable
class Vectorize(Protocol):
    """An index of vectors. A change is seen some seconds after it was made."""

    @binding_call
    async def describe(self) -> VectorizeIndexInfo:
        """Return a description of the index."""
        raise AssertionError

    @binding_call
    async def query(
        self,
        vector: Sequence[float],
        *,
        top_k: int = 5,
        namespace: str | None = None,
        return_values: bool = False,
        return_metadata: bool | Literal["all", "indexed", "none"] = "none",
        filter: VectorizeFilter | None = None,
    ) -> VectorizeMatches:
        """The `top_k` vectors most like `vector`: at most 100, or 20 with values or all metadata."""
        raise AssertionError

    @binding_call
    async def query_by_id(
        self,
        vector_id: str,
        *,
        top_k: int = 5,
        namespace: str | None = None,
        return_values: bool = False,
        return_metadata: bool | Literal["all", "indexed", "none"] = "none",
        filter: VectorizeFilter | None = None,
    ) -> VectorizeMatches:
        """The vectors most like one of the index."""
        raise AssertionError

    @binding_call
    async def insert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        """Add vectors, at most 1000. Those whose id is there already are left as they are."""
        raise AssertionError

    @binding_call
    async def upsert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        """Add vectors, at most 1000, in place of those of the same ids."""
        raise AssertionError

    @binding_call
    async def delete_by_ids(self, ids: Sequence[str]) -> VectorizeAsyncMutation:
        """Delete vectors. Missing ones are fine."""
        raise AssertionError

    @binding_call
    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorizeVector]:
        """Vectors by id, at most 20, without the missing ones."""
        raise AssertionError
