"""The platform's vector indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from core.backends.workerd.conversion import binding_error, call_js, from_js, js_fields, js_value, of_fields, options
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
            from_js(await call_js(binding_error, self._js.query, js_value(list(vector)), **options(**given)))
        )

    async def _query_by_id(self, vector_id: str, **given: object) -> VectorizeMatches:
        return _matches(from_js(await call_js(binding_error, self._js.queryById, vector_id, **options(**given))))

    async def _insert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        return await self._change(self._js.insert, [_outgoing(vector) for vector in vectors])

    async def _upsert(self, vectors: Sequence[VectorizeVector]) -> VectorizeAsyncMutation:
        return await self._change(self._js.upsert, [_outgoing(vector) for vector in vectors])

    async def _delete_by_ids(self, ids: Sequence[str]) -> VectorizeAsyncMutation:
        return await self._change(self._js.deleteByIds, list(ids))

    async def _change(self, method: object, given: object) -> VectorizeAsyncMutation:
        found = from_js(await call_js(binding_error, method, js_value(given)))
        return VectorizeAsyncMutation(str(found.get("mutationId", "")))

    async def _get_by_ids(self, ids: Sequence[str]) -> list[VectorizeVector]:
        found = from_js(await call_js(binding_error, self._js.getByIds, js_value(list(ids))))
        return [of_fields(VectorizeVector, {**vector, "values": list(vector.get("values") or ())}) for vector in found]


def _outgoing(vector: VectorizeVector) -> dict[str, object]:
    return js_fields(attrs.evolve(vector, values=list(vector.values)))


def _matches(found: Mapping[str, Any]) -> VectorizeMatches:
    matches = [of_fields(VectorizeMatch, {**match, "score": float(match["score"])}) for match in found["matches"]]
    return VectorizeMatches(matches, int(found.get("count", len(matches))))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
