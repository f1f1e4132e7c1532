"""The platform's vector indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from core.backends.workerd.conversion import binding_error, call_js, from_js, js_fields, js_options, js_value
from core.backends.workerd.engine import JsEngine
from core.bindings.vectorize import (
    Vectorize,
    VectorizeAsyncMutation,
    VectorizeIndexInfo,
    VectorizeMatch,
    VectorizeMatches,
    VectorizeVector,
)


class WorkerdVectorize(JsEngine, Vectorize):
    """`Vectorize` over the runtime's."""

    async def _describe(self) -> VectorizeIndexInfo:
        found = from_js(await call_js(binding_error, self._js.describe))
        return VectorizeIndexInfo(
            vector_count=int(found.get("vectorCount", found.get("vectorsCount", 0))),
            dimensions=int(found.get("dimensions", 0)),
            processed_up_to_datetime=_text(found.get("processedUpToDatetime")),
            processed_up_to_mutation=_text(found.get("processedUpToMutation")),
        )

    async def _query(self, vector: Sequence[float], **given: object) -> VectorizeMatches:
        return _matches(
            from_js(await call_js(binding_error, self._js.query, js_value(list(vector)), **js_options(**given)))
        )

    async def _query_by_id(self, vector_id: str, **given: object) -> VectorizeMatches:
        return _matches(from_js(await call_js(binding_error, self._js.queryById, vector_id, **js_options(**given))))

    async def _insert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        return _mutation(
            await call_js(binding_error, self._js.insert, js_value([_outgoing(vector) for vector in vectors]))
        )

    async def _upsert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        return _mutation(
            await call_js(binding_error, self._js.upsert, js_value([_outgoing(vector) for vector in vectors]))
        )

    async def _delete_by_ids(self, ids: Sequence[str]) -> VectorizeAsyncMutation:
        return _mutation(await call_js(binding_error, self._js.deleteByIds, js_value(list(ids))))

    async def _get_by_ids(self, ids: Sequence[str]) -> list[VectorizeVector]:
        found = from_js(await call_js(binding_error, self._js.getByIds, js_value(list(ids))))
        return [
            VectorizeVector(
                vector["id"], list(vector.get("values") or ()), vector.get("namespace"), vector.get("metadata")
            )
            for vector in found
        ]


def _outgoing(vector: VectorizeVector) -> dict[str, object]:
    return js_fields(attrs.evolve(vector, values=list(vector.values)))


def _matches(found: Mapping[str, Any]) -> VectorizeMatches:
    matches = [
        VectorizeMatch(
            id=match["id"],
            score=float(match["score"]),
            values=match.get("values"),
            namespace=match.get("namespace"),
            metadata=match.get("metadata"),
        )
        for match in found["matches"]
    ]
    return VectorizeMatches(matches, int(found.get("count", len(matches))))


def _mutation(found: object) -> VectorizeAsyncMutation:
    return VectorizeAsyncMutation(str(from_js(found).get("mutationId", "")))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
