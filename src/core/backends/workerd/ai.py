"""The platform's models, spoken to through their JavaScript object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import attrs

from core.backends.workerd.conversion import (
    bridge,
    chunks_of,
    constructor_name,
    from_js,
    js_bytes,
    none_of,
    of_fields,
    options,
)
from core.backends.workerd.engine import JsEngine, JsMethod, js_attribute, js_call
from core.backends.workerd.fetch import response_of
from core.bindings import as_type
from core.bindings.ai import (
    Ai,
    AiAsyncBatchResponse,
    AiGateway,
    AiGatewayLog,
    AiGatewayUniversalRequest,
    AiModel,
    AiStream,
    MarkdownDocument,
    MarkdownResult,
)
from core.bindings.calls import BoundHook
from core.errors import AiError
from core.http import Response


class WorkerdAi(JsEngine, Ai):
    _errors = AiError
    ai_gateway_log_id: JsMethod = js_attribute("aiGatewayLogId", none_of)

    async def _run(self, model: str, inputs: Mapping[str, object], type_: object = None, /, **given: Any) -> object:
        stream = given.pop("stream", False)
        if stream:
            inputs = {**inputs, "stream": True}
        answer = await self._call("run", model, inputs, **{name: value or None for name, value in given.items()})
        if stream:
            return AiStream(chunks_of(answer))
        if given.get("return_raw_response"):
            return response_of(answer)
        if constructor_name(answer) == "ReadableStream":
            # A model that answers with bytes: a picture or a voice.
            return b"".join([chunk async for chunk in chunks_of(answer)])
        found = from_js(answer)
        if given.get("queue_request"):
            return AiAsyncBatchResponse(found["request_id"])
        return as_type(found, type_)

    async def _models(self, **given: object) -> list[AiModel]:
        # The platform has these names as Python has them.
        asked = {name: value for name, value in given.items() if value is not None}
        found: list[dict[str, Any]] = from_js(await self._call("models", asked))
        return [
            of_fields(
                AiModel,
                {
                    **model,
                    "task": cast("dict[str, Any]", model.get("task") or {}).get("name"),
                    "properties": {each["property_id"]: str(each["value"]) for each in model.get("properties") or ()},
                },
            )
            for model in found
        ]

    async def _to_markdown(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        across = bridge()
        documents = [
            {
                "name": file.name,
                "blob": across.js.Blob.new(across.to_js([js_bytes(file.content)]), **options(type=file.content_type)),
            }
            for file in files
        ]
        found: Any = from_js(await self._call("toMarkdown", documents))
        results = cast("list[dict[str, Any]]", found if isinstance(found, list) else [found])
        return [
            of_fields(MarkdownResult, {**result, "mimeType": result.get("mimeType") or result.get("mimetype") or ""})
            for result in results
        ]

    def gateway(self, gateway_id: str) -> WorkerdAiGateway:
        return WorkerdAiGateway(self._js.gateway(gateway_id), gateway_id, self._hook)


def _log(answer: object) -> AiGatewayLog:
    known = {field.name for field in attrs.fields(AiGatewayLog)}
    given: dict[str, Any] = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in from_js(answer).items()
        if name in known
    }
    return AiGatewayLog(**given)


class WorkerdAiGateway(JsEngine, AiGateway):
    _errors = AiError

    def __init__(self, gateway: object, id: str, hook: BoundHook | None) -> None:
        super().__init__(gateway, hook)
        self._id = id

    def _call_target(self) -> tuple[object, ...]:
        return (self._id,)

    async def _run(
        self, data: AiGatewayUniversalRequest | Sequence[AiGatewayUniversalRequest], **given: object
    ) -> Response:
        requests = [data] if isinstance(data, AiGatewayUniversalRequest) else data
        return response_of(await self._call("run", [attrs.asdict(request) for request in requests], **given))

    _get_log = js_call(AiGateway.get_log, _log)
    _patch_log = js_call(AiGateway.patch_log)
    _get_url = js_call(AiGateway.get_url, str)
