"""Every endpoint of the explorer's API, with JSON and queries of every wrong shape: an answer in words, never a 500."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.explorer.browser import call
from tests.support.running import RunningDev

import core.dev.explorer

pytestmark = pytest.mark.slow

SOURCES = Path(core.dev.explorer.__file__).parent
ENDPOINTS = sorted(
    (method.upper(), path)
    for source in SOURCES.glob("*.py")
    for method, path in re.findall(r'api\.(get|put|post|delete)\("([^"]+)"', source.read_text("utf-8"))
    if path
    not in ("/live", "/configuration", "/openapi", "/openapi/fresh")  # one has no end, and others start a checker
)
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/cron/run"): {"cron": "0 3 * * *"},
    ("PUT", "/objects/:binding/:id/entry"): {"key": "a", "json": "1"},
    ("POST", "/objects/:binding/:id/delete"): {"keys": ["a"]},
    ("POST", "/objects/:binding/:id/query"): {"sql": "SELECT 1"},
    ("PUT", "/objects/:binding/:id/alarm"): {"time": None},
    ("PUT", "/kv/:binding/value"): {
        "key": "a",
        "value": "b",
        "base64": "YQ==",
        "metadata": None,
        "expiration": None,
        "expiration_ttl": 60,
    },
    ("POST", "/kv/:binding/delete"): {"keys": None, "search": "a"},
    ("POST", "/queues/:queue/send"): {"body": 1, "content_type": "json", "delay_seconds": 0},
    ("POST", "/queues/:queue/redeliver"): {"seqs": [1], "search": "", "to": "jobs"},
    ("POST", "/queues/:queue/delete"): {"seqs": [1]},
    ("PUT", "/r2/:binding/metadata"): {"key": "a", "http_metadata": {}, "custom_metadata": {}},
    ("POST", "/r2/:binding/delete"): {"keys": ["a"]},
    ("PUT", "/d1/:binding/row"): {"table": "jobs", "key": None, "values": {"text": "a"}},
    ("POST", "/d1/:binding/query"): {"sql": "SELECT 1", "id": "a", "confirmed": False, "offset": 0},
    ("POST", "/d1/:binding/cancel"): {"id": "a"},
    ("POST", "/d1/:binding/explain"): {"sql": "SELECT 1"},
}
"""A good body of every endpoint that reads one."""
WRONG: list[Any] = [
    *(None, True, 1, -1, 1.5, 2**53 - 1, 2**63, 10**400, "", "x", "\0", "\ud800", "é", "x" * 3000),
    *(
        [],
        [None],
        ["\ud800"],
        [[]],
        {},
        {"a": []},
        {"a": {"b": 2**63}},
        {"base64": 1},
        {"base64": "é"},
        {"base64": "a"},
    ),
    *({"text": "\ud800"}, {"text": []}, {"text": 2**63}, {"text": True}, {"nothing": "x"}, {"": ""}, {"\0": "\ud800"}),
    *({"base64": "YQ=="}, {"content_type": "\n"}, {"cache_expiry": "x"}, {"text": {"base64": "?"}}),
]
BROKEN = [b"", b"{", b"\xff", b"[" * 100_000, b'{"cron": NaN}', json.dumps({"a": 1}).encode("utf-16")]
QUERIES = ["", "é", "-1", "1.5", "9" * 30, "9" * 5000, "\u0663", "null", "[]", "1", '"x"', '{"a": []}', "{", "[" * 3000]
NAMES = ["offset", "limit", "before", "sort", "search", "key", "name", "custom", "contentType", "download", "where"]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Ask an endpoint: `ask(method, path, body)` gives the status and the text of the answer."""
    workshop = Path(__file__).parent / "workshop"
    with RunningDev(workshop, tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        dev.fetch("/count", method="POST")
        call(dev, "POST", "/d1/DB/migrate")
        id = call(dev, "GET", "/objects/COUNTER")["rows"][0]["id"]
        key = call(dev, "GET", "/exchanges")["exchanges"][0]["key"]
        token = re.search(r'name="core-token" content="([^"]+)"', dev.fetch("/_core/").text)
        assert token is not None
        headers = {"X-Core-Token": token[1], "Content-Type": "application/json"}
        bindings = {"kv": "NOTES", "d1": "DB", "r2": "FILES", "objects": "COUNTER"}
        connection = http.client.HTTPConnection(dev.address.removeprefix("http://"), timeout=120)

        def ask(method: str, path: str, body: bytes | None = None, query: str = "") -> tuple[int, str]:
            named = {
                "binding": bindings.get(path.split("/")[1]),
                "id": id,
                "key": key,
                "queue": "jobs",
                "table": "jobs",
            }
            path = re.sub(r":(\w+)", lambda found: str(named[found[1]]), path)
            connection.request(method, f"/_core/api{path}{query}", body, headers)
            with connection.getresponse() as response:
                return response.status, response.read().decode()

        yield ask
        connection.close()


def test_every_endpoint_that_reads_json_has_a_good_body_here() -> None:
    unread = {
        *{("POST", "/d1/:binding/migrate"), ("POST", "/objects/:binding/:id/alarm/fire")},
        *{("POST", "/exchanges/:key/record"), ("POST", "/exchanges/:key/replay")},
        ("PUT", "/r2/:binding/object"),  # whose body is the object
    }
    assert {one for one in ENDPOINTS if one[0] in ("PUT", "POST")} - unread == BODIES.keys()


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_a_wrong_shape_is_answered_in_words(ask: Any, method: str, path: str) -> None:
    good = BODIES[method, path]
    bodies = [
        *BROKEN,
        *(json.dumps(wrong).encode() for wrong in WRONG),
        *(json.dumps({**good, name: wrong}).encode() for name in good for wrong in WRONG),
        *(json.dumps({name: value for name, value in good.items() if name != left}).encode() for left in good),
    ]
    for body in bodies:
        status, text = ask(method, path, body)
        assert status < 500, (body[:100], text)
        if status >= 400:
            assert json.loads(text)["error"], body[:100]


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_a_wrong_query_is_answered_in_words(ask: Any, method: str, path: str) -> None:
    for query in [
        *(f"?key=a&{name}={quote(value)}" for name in NAMES for value in QUERIES),
        *("?key=%FF", "?key=%00", "?search=%FF%00", "?offset", "?&&=&"),
    ]:
        status, text = ask(method, path, b"{}", query)
        assert status < 500, (query[:100], text)
        if status >= 400:
            assert json.loads(text)["error"], query[:100]
