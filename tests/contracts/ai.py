"""The promises of every `Ai`, whatever runs its models.

The cases need models that behave: `@test/echo` answers `echo: ` and the last message, or the prompt; `@test/embed`
gives for each text a vector of its length and 1; `@test/broken` refuses.
"""

from __future__ import annotations

from typing import Any

from tests.contracts.contract import Contract, refused

from core.bindings.ai import Ai, AiStream, AiTextEmbeddings, AiTextGeneration
from core.errors import AiError
from core.validation.mistakes import StructureError

ECHO, EMBED, BROKEN = "@test/echo", "@test/embed", "@test/broken"


async def clean(ai: Ai) -> None:
    """There is nothing to clean."""


contract: Contract[Ai] = Contract("ai", clean)


def says(model: str, inputs: Any) -> Any:
    """Return the answers of the cases' models, for those who have to make them."""
    match model:
        case "@test/echo":
            last = inputs["messages"][-1]["content"] if "messages" in inputs else inputs["prompt"]
            return f"echo: {last}"
        case "@test/embed":
            texts = [inputs["text"]] if isinstance(inputs["text"], str) else inputs["text"]
            return {"shape": [len(texts), 2], "data": [[float(len(text)), 1.0] for text in texts]}
        case _:
            return AiError(f"no such model: {model}")


def asked(text: str) -> dict[str, Any]:
    """Inputs for a conversation of one message."""
    return {"messages": [{"role": "user", "content": text}]}


@contract.case()
async def a_conversation_is_answered(ai: Ai) -> None:
    answer = await ai.run(ECHO, asked("hello é😀"))
    assert answer["response"] == "echo: hello é😀"


@contract.case()
async def a_prompt_is_answered(ai: Ai) -> None:
    assert (await ai.run(ECHO, {"prompt": "hello"}))["response"] == "echo: hello"


@contract.case()
async def an_answer_can_be_asked_for_as_a_type(ai: Ai) -> None:
    answer = await ai.run(ECHO, asked("hello"), AiTextGeneration)
    assert isinstance(answer, AiTextGeneration)
    assert answer.response == "echo: hello"
    assert answer.tool_calls == []
    vectors = await ai.run(EMBED, {"text": ["a", "bcd"]}, AiTextEmbeddings)
    assert vectors == AiTextEmbeddings([2, 2], [[1.0, 1.0], [3.0, 1.0]])
    await refused(ai.run(ECHO, asked("hello"), AiTextEmbeddings), StructureError)


@contract.case()
async def one_text_is_embedded_as_one_of_a_list(ai: Ai) -> None:
    assert await ai.run(EMBED, {"text": "ab"}) == {"shape": [1, 2], "data": [[2.0, 1.0]]}


@contract.case()
async def a_stream_gives_the_answer_in_pieces(ai: Ai) -> None:
    answer = await ai.run(ECHO, asked("one two three"), stream=True)
    assert isinstance(answer, AiStream)
    pieces = [piece async for piece in answer.text()]
    assert "".join(pieces) == "echo: one two three"
    assert len(pieces) > 1


@contract.case()
async def a_stream_is_events_that_end_with_done(ai: Ai) -> None:
    # As the platform has it, `stream` may stand among the inputs too.
    answer = await ai.run(ECHO, {**asked("one two"), "stream": True})
    raw = b"".join([chunk async for chunk in answer])
    assert raw.startswith(b'data: {"response":')
    assert raw.endswith(b"data: [DONE]\n\n")


@contract.case()
async def a_raw_response_is_a_response(ai: Ai) -> None:
    response = await ai.run(ECHO, asked("hello"), return_raw_response=True)
    assert response.status == 200
    assert "echo: hello" in await response.text()


@contract.case()
async def a_model_that_refuses_is_an_error(ai: Ai) -> None:
    await refused(ai.run(BROKEN, asked("hello")), AiError)
    await refused(ai.run(BROKEN, asked("hello"), stream=True), AiError)


@contract.case()
async def the_models_can_be_listed(ai: Ai) -> None:
    assert {ECHO, EMBED} <= {model.id for model in await ai.models()}
