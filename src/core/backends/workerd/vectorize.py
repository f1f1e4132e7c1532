"""The platform's vector indexes."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.conversion import from_js, of_fields
from core.backends.workerd.engine import JsEngine, js_call
from core.bindings.vectorize import (
    Vectorize,
    VectorizeAsyncMutation,
    VectorizeIndexInfo,
    VectorizeMatch,
    VectorizeMatches,
    VectorizeVector,
)


def _info(answer: object) -> VectorizeIndexInfo:
    found = from_js(answer)
    return VectorizeIndexInfo(
        vector_count=int(found.get("vectorCount", found.get("vectorsCount", 0))),
        dimensions=int(found.get("dimensions", 0)),
        processed_up_to_datetime=_text(found.get("processedUpToDatetime")),
        processed_up_to_mutation=_text(found.get("processedUpToMutation")),
    )


def _matches(answer: object) -> VectorizeMatches:
    found = from_js(answer)
    matches = [of_fields(VectorizeMatch, {**match, "score": float(match["score"])}) for match in found["matches"]]
    return VectorizeMatches(matches, int(found.get("count", len(matches))))


def _mutation(answer: object) -> VectorizeAsyncMutation:
    return VectorizeAsyncMutation(str(from_js(answer).get("mutationId", "")))


def _vectors(answer: object) -> list[VectorizeVector]:
    return [of_fields(VectorizeVector, {**each, "values": list(each.get("values") or ())}) for each in from_js(answer)]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class WorkerdVectorize(JsEngine, Vectorize):
    _describe = js_call(Vectorize.describe, _info)
    _query = js_call(Vectorize.query, _matches)
    _query_by_id = js_call(Vectorize.query_by_id, _matches)
    _insert = js_call(Vectorize.insert, _mutation)
    _upsert = js_call(Vectorize.upsert, _mutation)
    _delete_by_ids = js_call(Vectorize.delete_by_ids, _mutation)
    _get_by_ids = js_call(Vectorize.get_by_ids, _vectors)
