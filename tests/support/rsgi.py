"""An RSGI scope and protocol, as granian hands them over."""

from __future__ import annotations

from typing import Any

import attrs


class Lines(list[tuple[str, str]]):
    """The headers of an RSGI scope."""

    def get(self, name: str) -> str | None:
        return next(iter(self.get_all(name)), None)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self if key == name]

    def items(self) -> list[tuple[str, str]]:
        return list(self)


@attrs.define
class Scope:
    headers: Lines
    client: str = "192.0.2.1:5"
    path: str = "/"
    proto: str = "http"
    method: str = "GET"
    query_string: str = ""
    scheme: str = "http"
    server: str = "127.0.0.1:8000"
    authority: str | None = None


class Protocol:
    """Keeps what was answered."""

    status = 0
    body: bytes = b""

    def response_bytes(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.body = status, body

    def response_empty(self, status: int, headers: Any) -> None:
        self.status = status
