"""A server that speaks OpenAI's API, as far as the tests need it, with the models of the Ai contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.contracts.ai import BROKEN, ECHO, EMBED, says

from core.errors import AiError


class OpenAiServer:
    """Keeps every request in `requests`: method and path, headers, body."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *fields = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            data = await reader.readexactly(int(headers.get("content-length", "0")))
            body = json.loads(data) if data else None
            method, path, _ = line.split(" ")
            self.requests.append((f"{method} {path}", headers, body))
            await self.answer(writer, path, body)
            await writer.drain()
        finally:
            writer.close()

    async def answer(self, writer: asyncio.StreamWriter, path: str, body: Any) -> None:
        if path == "/v1/models":
            self.send(writer, 200, {"data": [{"id": ECHO}, {"id": EMBED}, {"id": BROKEN}]})
            return
        inputs = {"text": body["input"]} if path.endswith("/embeddings") else body
        said = says(body["model"], inputs)
        if isinstance(said, AiError):
            self.send(writer, 404, {"error": {"message": str(said), "type": "not_found"}})
        elif path.endswith("/embeddings"):
            vectors = [{"index": place, "embedding": vector} for place, vector in enumerate(said["data"])]
            self.send(writer, 200, {"data": vectors[::-1]})
        elif body.get("stream"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            events = [json.dumps({"choices": [{"delta": {"content": f"{word} "}}]}) for word in said.split(" ")]
            events[-1] = json.dumps({"choices": [{"delta": {"content": said.split(" ")[-1]}}]})
            text = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()
            # In chunks that cut events anywhere.
            for start in range(0, len(text), 37):
                chunk = text[start : start + 37]
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")
        else:
            usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
            self.send(writer, 200, {"choices": [{"message": {"content": said}}], "usage": usage})

    def send(self, writer: asyncio.StreamWriter, status: int, answer: Any) -> None:
        data = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)


@asynccontextmanager
async def openai_server() -> AsyncGenerator[OpenAiServer]:
    """A server on a free port of this machine."""
    server = OpenAiServer()
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()
