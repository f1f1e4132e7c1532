"""The service of R2 buckets, asked as workerd asks it, and otherwise. Its calls are in the contract, inside workerd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from core.runtime.r2 import R2Service, serve_buckets

LARGE = 3 * 1024 * 1024


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[R2Service]:
    async with serve_buckets(["files", "others"], tmp_path, None, print) as service:
        yield service


class Client:
    """One connection, of one bucket."""

    def __init__(self, service: R2Service, bucket: str = "files", token: str | None = None) -> None:
        external = service.externals[bucket]
        self._address = external.address.split(":")
        self._token = external.token if token is None else token

    async def __aenter__(self) -> Self:
        self._reader, self.writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, asked: Any, body: bytes = b"", *, length: int | None = None) -> None:
        """A PUT of `length` bytes after its JSON, of which those of `body` come now."""
        said = json.dumps(asked).encode()
        whole = len(said) + (len(body) if length is None else length)
        head = f"PUT / HTTP/1.1\r\nHost: h\r\nAuthorization: {self._token}\r\nCF-R2-Metadata-Size: {len(said)}\r\n"
        self.writer.write(f"{head}Content-Length: {whole}\r\n\r\n".encode() + said + body)

    async def answer(self) -> tuple[int, Any, Any, bytes]:
        """Status, JSON, error and bytes."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        size = int(headers.get("cf-r2-metadata-size", 0))
        said = await self._reader.readexactly(size)
        body = await self._reader.readexactly(int(headers["content-length"]) - size)
        error = json.loads(headers.get("cf-r2-error", "null"))
        return int(head[0].split(" ")[1]), json.loads(said or b"null"), error, body

    async def get(self, key: str) -> tuple[int, Any, Any, bytes]:
        asked = json.dumps({"version": 1, "method": "get", "object": key})
        self.writer.write(f"GET / HTTP/1.1\r\nauthorization: {self._token}\r\ncf-r2-request: {asked}\r\n\r\n".encode())
        return await self.answer()


async def test_an_object_is_in_the_bucket_of_its_token_alone(service: R2Service) -> None:
    async with Client(service) as files, Client(service, "others") as others:
        files.send({"method": "put", "object": "a"}, b"text")
        assert (await files.answer())[1]["size"] == 4
        status, described, _, body = await files.get("a")
        assert (status, described["name"], body) == (200, "a", b"text")
        status, _, error, _ = await others.get("a")
        assert (status, error["v4code"]) == (404, 10007)


@pytest.mark.parametrize("token", ["", "another"])
async def test_without_its_token_nothing_is_told(service: R2Service, token: str) -> None:
    async with Client(service, token=token) as client:
        assert (await client.get("a"))[:2] == (403, None)


async def test_a_body_that_breaks_off_leaves_nothing(service: R2Service, tmp_path: Path) -> None:
    async with Client(service) as client:
        assert (await client.get("a"))[0] == 404
        client.send({"method": "put", "object": "a"}, bytes(LARGE), length=LARGE + 1)
        await client.writer.drain()
    await asyncio.wait(service.conversations)
    async with Client(service) as client:
        assert (await client.get("a"))[0] == 404
    assert not list((tmp_path / "r2" / "files.files").iterdir())


async def test_a_refused_body_is_read_to_its_end_and_the_connection_goes_on(service: R2Service) -> None:
    async with Client(service) as client:
        client.send({"method": "put", "object": "k" * 1025}, bytes(LARGE))
        status, _, error, _ = await client.answer()
        assert (status, error["v4code"]) == (400, 10020)
        assert error["message"] == "The specified object name is not valid."
        assert (await client.get("a"))[0] == 404


async def test_objects_are_there_for_the_next_service(service: R2Service, tmp_path: Path) -> None:
    async with Client(service) as client:
        for key, body in (("small", b"text"), ("large", bytes(LARGE))):
            client.send({"method": "put", "object": key}, body)
            assert (await client.answer())[0] == 200
    await service.close()

    async with serve_buckets(["files"], tmp_path, None, print) as again, Client(again) as client:
        assert (await client.get("small"))[3] == b"text"
        assert (await client.get("large"))[3] == bytes(LARGE)
