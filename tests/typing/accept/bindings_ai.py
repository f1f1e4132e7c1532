"""Models, every way to run one, with the type of every result."""

from typing import Any, assert_type

from core.bindings.ai import (
    Ai,
    AiAsyncBatchResponse,
    AiGateway,
    AiGatewayLog,
    AiModel,
    AiStream,
    AiTextEmbeddings,
    AiTextGeneration,
    GatewayOptions,
    MarkdownDocument,
    MarkdownResult,
)
from core.http import Response

MODEL = "@cf/meta/llama-3.1-8b-instruct"


async def runs(ai: Ai) -> None:
    inputs = {"messages": [{"role": "user", "content": "hello"}]}
    assert_type(await ai.run(MODEL, inputs), Any)
    assert_type(await ai.run(MODEL, inputs, AiTextGeneration), AiTextGeneration)
    assert_type(await ai.run(MODEL, {"text": ["a"]}, AiTextEmbeddings), AiTextEmbeddings)
    assert_type(await ai.run(MODEL, inputs, dict[str, str]), dict[str, str])
    assert_type(await ai.run(MODEL, inputs, stream=True), AiStream)
    assert_type(await ai.run(MODEL, inputs, return_raw_response=True), Response)
    assert_type(await ai.run(MODEL, {"requests": [inputs]}, queue_request=True), AiAsyncBatchResponse)
    await ai.run(MODEL, inputs, gateway=GatewayOptions("g", cache_ttl=60), tags=["a"], extra_headers={"x": "y"})
    assert_type(ai.ai_gateway_log_id, str | None)


async def streams(answer: AiStream) -> None:
    async for chunk in answer:
        assert_type(chunk, bytes)
    async for piece in answer.text():
        assert_type(piece, str)
    async for event in answer.events():
        assert_type(event, Any)


async def the_rest(ai: Ai) -> None:
    assert_type(await ai.models(search="llama", per_page=5), list[AiModel])
    assert_type(await ai.to_markdown([MarkdownDocument("a.pdf", b"")]), list[MarkdownResult])
    gateway = ai.gateway("g")
    assert_type(gateway, AiGateway)
    assert_type(await gateway.get_log("l"), AiGatewayLog)
    assert_type(await gateway.get_url("openai"), str)
    await gateway.patch_log("l", feedback=1, score=0.5)
