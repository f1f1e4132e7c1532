"""The seven workloads: what is asked, and what every peer must answer before it is measured.

plaintext, json, param, full (four middleware, a query, ten rows of JSON), post (a body parsed and validated
into a typed object), notfound, error. Paths rotate, since some peers remember whole paths. The logger of `full`
measures the time it prints, in every peer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

ROWS = [{"id": number, "name": f"user {number}", "email": f"user{number}@example.test"} for number in range(10)]
ORIGIN = "https://example.test"
SECURE_HEADERS = {
    "content-security-policy": "default-src 'self'",
    "strict-transport-security": "max-age=31536000; includeSubDomains",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "strict-origin-when-cross-origin",
    "x-xss-protection": "0",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
}
BODY = {"name": "Ada Lovelace", "email": "ada@example.test", "age": 36}
PATHS = 512


@dataclass(frozen=True)
class Workload:
    """One kind of request: `paths` rotate; `answer` is the body, a template for the number in the path."""

    name: str
    method: str
    paths: list[str]
    status: int
    query: str = ""
    body: bytes = b""
    text: str | None = None

    def expected(self, number: int) -> Any:
        """The answer of a peer to the path of that number, as parsed JSON or as a string."""
        match self.name:
            case "plaintext":
                return "hello"
            case "json":
                return {"message": "hello"}
            case "param":
                return {"id": str(number)}
            case "full":
                return {"id": str(number), "page": 2, "limit": 10, "rows": ROWS}
            case "post":
                return BODY
            case "notfound":
                return {"error": "Not Found"}
            case _:
                return {"error": "Internal Server Error"}


def numbered(template: str) -> list[str]:
    return [template.format(number) for number in range(PATHS)]


WORKLOADS = [
    Workload("plaintext", "GET", ["/"], 200),
    Workload("json", "GET", ["/json"], 200),
    Workload("param", "GET", numbered("/users/{}"), 200),
    Workload("full", "GET", numbered("/full/users/{}"), 200, query="page=2&limit=10"),
    Workload("post", "POST", ["/users"], 201, body=json.dumps(BODY).encode()),
    Workload("notfound", "GET", numbered("/missing/{}"), 404),
    Workload("error", "GET", ["/error"], 500),
]

HEADERS = [
    (b"host", b"example.test"),
    (b"user-agent", b"bench/1.0"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"origin", ORIGIN.encode()),
    (b"content-type", b"application/json"),
]


def scope_of(workload: Workload, path: str) -> dict[str, Any]:
    """A new ASGI scope, as a server makes one for every request."""
    headers = list(HEADERS)
    if workload.body:
        headers.append((b"content-length", b"%d" % len(workload.body)))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": workload.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": workload.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
