"""The embedded Ai: what goes to the server, and what is said when there is none or it fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tests.contracts.ai import ECHO
from tests.support.openai_server import openai_server

from core.backends.embedded.ai import AiServer, EmbeddedAi
from core.bindings.ai import GatewayOptions, MarkdownDocument
from core.errors import AiError, MissingExtraError, OptionError, UnsupportedBindingError

CHAT = {"messages": [{"role": "user", "content": "hello"}]}


async def test_without_a_server_a_run_says_how_to_name_one() -> None:
    ai = EmbeddedAi(None, binding="MODELS")
    with pytest.raises(
        UnsupportedBindingError, match=r"MODELS: no model is embedded.*\[core.ai\] with url = "
    ) as raised:
        await ai.run(ECHO, CHAT)
    assert "FakeAi" in str(raised.value)
    with pytest.raises(UnsupportedBindingError):
        await ai.run(ECHO, CHAT, stream=True)
    with pytest.raises(UnsupportedBindingError):
        await ai.models()


async def test_the_request_has_the_servers_model_the_key_and_the_options() -> None:
    async with openai_server() as server:
        ai = EmbeddedAi(AiServer(f"{server.url}/", "s3cret", models={"@cf/meta/llama": ECHO}))
        await ai.run("@cf/meta/llama", {**CHAT, "max_tokens": 5, "temperature": 0.5}, extra_headers={"x-a": "b"})
    line, headers, body = server.requests[0]
    assert line == "POST /v1/chat/completions"
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["x-a"] == "b"
    assert body == {**CHAT, "model": ECHO, "max_tokens": 5, "temperature": 0.5}


async def test_a_model_that_is_not_mapped_goes_to_the_one_that_is_named_for_all() -> None:
    async with openai_server() as server:
        await EmbeddedAi(AiServer(server.url, model=ECHO)).run("@cf/any", CHAT)
    assert server.requests[0][2]["model"] == ECHO


async def test_usage_is_passed_on() -> None:
    async with openai_server() as server:
        answer = await EmbeddedAi(AiServer(server.url)).run(ECHO, CHAT)
    assert answer["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_the_key_is_in_no_repr() -> None:
    assert "s3cret" not in repr(AiServer("http://127.0.0.1:1", "s3cret"))
    assert "s3cret" not in repr(EmbeddedAi(AiServer("http://127.0.0.1:1", "s3cret")))


@pytest.mark.parametrize("url", ["", "ftp://x", "127.0.0.1:1", "http://"])
def test_what_is_no_url_is_refused_when_it_is_named(url: str) -> None:
    with pytest.raises(OptionError, match="is not an http or https URL"):
        AiServer(url)


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(AiError, match=r"the AI server http://127.0.0.1:1/v1 cannot be reached"):
        await EmbeddedAi(AiServer("http://127.0.0.1:1/v1")).run(ECHO, CHAT)


async def test_a_refusal_carries_the_servers_words_and_status() -> None:
    async with openai_server() as server:
        with pytest.raises(AiError, match="answered 404: no such model: @nope") as raised:
            await EmbeddedAi(AiServer(server.url)).run("@nope", CHAT)
    assert raised.value.status == 404


async def test_inputs_of_an_unknown_task_are_refused_with_what_there_is() -> None:
    with pytest.raises(AiError, match="'image' are of no task that is embedded"):
        await EmbeddedAi(AiServer("http://127.0.0.1:1")).run("@cf/x", {"image": [1]})


async def test_what_only_the_platform_has_says_so() -> None:
    ai = EmbeddedAi(AiServer("http://127.0.0.1:1"))
    with pytest.raises(UnsupportedBindingError):
        await ai.run(ECHO, CHAT, gateway=GatewayOptions("g"))
    with pytest.raises(UnsupportedBindingError):
        await ai.run(ECHO, CHAT, queue_request=True)
    with pytest.raises(UnsupportedBindingError):
        await ai.to_markdown([MarkdownDocument("a.pdf", b"")])
    with pytest.raises(UnsupportedBindingError):
        ai.gateway("g")


async def test_a_header_cannot_smuggle_another_request() -> None:
    async with openai_server() as server:
        with pytest.raises(AiError, match=r"Illegal header value .* Remove it from extra_headers"):
            await EmbeddedAi(AiServer(server.url)).run(ECHO, CHAT, extra_headers={"x": "a\r\nHost: b"})
    assert server.requests == []


@asynccontextmanager
async def saying(answer: bytes) -> AsyncGenerator[str]:
    """A server that says this and nothing else."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        listening.close()
        await listening.wait_closed()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "not send a complete HTTP/1.1 answer: Server disconnected without sending"),
        (b"SSH-2.0-x\r\n", "not send a complete HTTP/1.1 answer: Server disconnected without sending"),
        (b"SSH-2.0-x\r\n\r\n", "not send a complete HTTP/1.1 answer: illegal status line"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}",
            "not send a complete HTTP/1.1 answer: peer closed connection",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "not send a complete HTTP/1.1 answer: illegal chunk header",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nnot json", "what is not JSON"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "has not the shape of OpenAI's API"),
        (b"HTTP/1.1 500 X\r\n\r\nplain words", "answered 500: plain words"),
    ],
)
async def test_a_server_that_answers_badly_is_an_error_that_says_how(answer: bytes, message: str) -> None:
    async with saying(answer) as url:
        with pytest.raises(AiError, match=message):
            await EmbeddedAi(AiServer(url)).run(ECHO, CHAT)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (b'data: {"error": {"message": "no memory"}}', "/v1: no memory"),
        (b'data: {"error": "no memory"}', "/v1: no memory"),
        (b"data: {oops", "has not the shape of OpenAI's API: Expecting property name"),
        (b"data: [1]", "has not the shape of OpenAI's API"),
        (b'data: {"choices": null}', "has not the shape of OpenAI's API"),
    ],
)
async def test_a_stream_that_goes_wrong_is_an_error_that_says_how(events: bytes, message: str) -> None:
    async with saying(b"HTTP/1.1 200 OK\r\n\r\n" + events + b"\n\n") as url:
        answer = await EmbeddedAi(AiServer(url)).run(ECHO, CHAT, stream=True)
        with pytest.raises(AiError, match=message):
            await anext(answer.text())


async def test_a_stream_ends_with_the_usage_and_passes_over_events_without_data() -> None:
    events = b'data:\n\ndata: {"choices": [{"text": "Hi"}], "usage": {"total_tokens": 3}}\n\ndata: [DONE]\n\n'
    async with saying(b"HTTP/1.1 200 OK\r\n\r\n" + events) as url:
        answer = await EmbeddedAi(AiServer(url)).run(ECHO, {"prompt": "p", "raw": True}, stream=True)
        said = [event async for event in answer.events()]
    assert said == [{"response": "Hi"}, {"response": "", "usage": {"total_tokens": 3}}]


@pytest.mark.parametrize("answer", [b"[]", b'{"data": [{"name": "a"}]}'])
async def test_a_list_of_models_of_another_shape_is_an_error(answer: bytes) -> None:
    async with saying(b"HTTP/1.1 200 OK\r\n\r\n" + answer) as url:
        with pytest.raises(AiError, match="has not the shape of OpenAI's API"):
            await EmbeddedAi(AiServer(url)).models()


async def test_a_silent_server_is_given_up_after_its_timeout() -> None:
    hung_up = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(AiError, match=r"sent nothing for 0\.05 seconds"):
            await EmbeddedAi(AiServer(url, timeout=0.05)).run(ECHO, CHAT)
        await hung_up.wait()


async def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'core-edge\[dev\]'"):
        await EmbeddedAi(AiServer("http://127.0.0.1:1/v1")).run(ECHO, CHAT)


async def test_tool_calls_come_in_the_platforms_shape() -> None:
    answer = (
        b'{"choices": [{"message": {"content": null, "tool_calls": [{"function":'
        b' {"name": "add", "arguments": "{\\"a\\": 1}"}}]}}]}'
    )
    async with saying(b"HTTP/1.1 200 OK\r\n\r\n" + answer) as url:
        said = await EmbeddedAi(AiServer(url)).run(ECHO, CHAT)
    assert said == {"response": None, "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}


async def test_a_stream_that_is_given_up_closes_its_connection() -> None:
    async with openai_server() as server:
        answer = await EmbeddedAi(AiServer(server.url)).run(ECHO, CHAT, stream=True)
        pieces = answer.text()
        assert await anext(pieces) == "echo: "
        await pieces.aclose()  # type: ignore[attr-defined]  # an async generator, as a stream is read
