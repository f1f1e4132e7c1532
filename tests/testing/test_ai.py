"""`FakeAi`: answers that a test wrote down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.bindings.ai import Ai, AiTextGeneration, MarkdownDocument
from core.errors import AiError
from core.testing import FakeAi, FakeClock
from core.testing.calls import Call

HELLO = {"prompt": "hello"}


async def test_one_answer_is_for_every_model_and_every_run() -> None:
    ai: Ai = FakeAi("Hello, Ada")
    for model in ("@cf/a", "@cf/b"):
        assert await ai.run(model, HELLO) == {"response": "Hello, Ada"}
    assert (await ai.run("@cf/a", HELLO, AiTextGeneration)).response == "Hello, Ada"


async def test_answers_by_model() -> None:
    ai = FakeAi({"@cf/a": "A", "@cf/b": {"shape": [0, 0], "data": []}})
    assert await ai.run("@cf/a", HELLO) == {"response": "A"}
    assert await ai.run("@cf/b", HELLO) == {"shape": [0, 0], "data": []}
    with pytest.raises(AiError, match=r'FakeAi has no answer for @cf/c. Write ai.script\("...", model="@cf/c"\)'):
        await ai.run("@cf/c", HELLO)


async def test_scripted_answers_come_in_their_order_before_what_is_always_said() -> None:
    ai = FakeAi("always")
    ai.script("first", times=1)
    ai.script("second", times=2)
    said = [(await ai.run("@cf/a", HELLO))["response"] for _ in range(4)]
    assert said == ["first", "second", "second", "always"]


async def test_an_answer_may_be_a_function_or_an_exception() -> None:
    ai = FakeAi(lambda model, inputs: f"{model}: {inputs['prompt']}")
    assert (await ai.run("@cf/a", HELLO))["response"] == "@cf/a: hello"
    ai.script(AiError("too many requests"), times=1)
    with pytest.raises(AiError, match="too many requests"):
        await ai.run("@cf/a", HELLO)


async def test_a_stream_gives_the_pieces_that_were_written_or_words() -> None:
    ai = FakeAi(["Hel", "lo"])
    assert [piece async for piece in (await ai.run("@cf/a", HELLO, stream=True)).text()] == ["Hel", "lo"]
    ai.script("one two")
    assert [piece async for piece in (await ai.run("@cf/a", HELLO, stream=True)).text()] == ["one ", "two"]


async def test_a_slow_stream_takes_its_time_on_the_clock() -> None:
    clock = FakeClock()
    ai = FakeAi(["a", "b"], clock=clock)
    answer = await ai.run("@cf/a", HELLO, stream=True)
    ai.latency = 5
    pieces = answer.text()
    import asyncio

    waiting = asyncio.ensure_future(anext(pieces))
    await clock.advance(4)
    assert not waiting.done()
    await clock.advance(1)
    assert await waiting == "a"


async def test_calls_and_faults_are_those_of_every_fake() -> None:
    ai = FakeAi("x")
    inputs: Mapping[str, Any] = {"messages": []}
    await ai.run("@cf/a", inputs, stream=True)
    assert ai.calls == [Call("run", ("@cf/a", inputs), {"stream": True})]
    ai.fail_next(AiError("down"))
    with pytest.raises(AiError, match="down"):
        await ai.run("@cf/a", inputs)


async def test_documents_can_be_scripted_too() -> None:
    ai = FakeAi()
    ai.script("# Title", model="to_markdown")
    (result,) = await ai.to_markdown([MarkdownDocument("a.pdf", b"...")])
    assert (result.name, result.data) == ("a.pdf", "# Title")
