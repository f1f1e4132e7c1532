"""Options that cannot be honoured: each is refused when the middleware is built, by an error that shows the call.

A new middleware has its rows here: what it is given to be whole, and then one bad set of options after another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from core.errors import OptionError
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.body_limit import body_limit
from core.middleware.cache import MemoryCache, cache
from core.middleware.compress import compress
from core.middleware.cors import cors
from core.middleware.csrf import csrf
from core.middleware.ip_restriction import ip_restriction
from core.middleware.jwt import jwt_auth
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import NONCE, secure_hdrs
from core.middleware.sessions import sessions
from core.middleware.static import static
from core.middleware.timeout import timeout
from core.middleware.trusted_hosts import trusted_hosts


def secret(req: object) -> str:
    return "hunter2"


def wants_two(a: object, b: object) -> str:
    return "x"


def wants_three(a: object, b: object, c: object) -> list[str]:
    return []


BAD: list[tuple[Callable[..., Any], dict[str, Any], list[dict[str, Any]]]] = [
    (bearer_auth, {}, [{}, {"token": secret, "verify": secret}, {"token": "abc"}, {"token": secret, "max_length": 0}]),
    (
        basic_auth,
        {},
        [
            {},
            {"username": "ada"},
            {"password": secret},
            {"username": "a:b", "password": secret},
            {"username": secret, "password": secret},
            {"username": "ada", "password": "plain"},
            {"username": "ada", "password": secret, "realm": 'a"b'},
            {"username": "ada", "password": secret, "realm": "a\r\nb"},
        ],
    ),
    (
        body_limit,
        {},
        [{"max_size": -1}, {"max_size": "1mb"}, {"max_size": 1, "status": 200}, {"max_size": 1, "message": ""}],
    ),
    (
        cache,
        {},
        [
            {"max_age": 0},
            {"max_body": -1},
            {"name": "a b"},
            {"kv_binding": ""},
            {"kv_binding": "A", "store": MemoryCache()},
        ],
    ),
    (
        cors,
        {"origins": "*"},
        [
            {"origins": 7},
            {"origins": [7]},
            {"origins": wants_three},
            {"methods": "GET"},
            {"methods": ["GE T"]},
            {"headers": ["X-A\r\nX-B"]},
            {"expose_headers": "X-A"},
            {"max_age": -1},
            {"max_age": 1.5},
        ],
    ),
    (
        csrf,
        {},
        [{"origins": ["*"]}, {"origins": ["https://a.test/"]}, {"origins": 7}, {"status": 200}, {"message": ""}],
    ),
    (compress, {}, [{"min_size": -1}, {"level": 0}, {"level": 10}, {"level": True}]),
    (
        jwt_auth,
        {},
        [
            {"secret": "JWT_SECRET"},
            {},
            {"secret": secret, "jwks": "https://a.test"},
            {"secret": secret, "algorithms": "HS256"},
            {"secret": secret, "algorithms": []},
            {"secret": secret, "issuer": []},
            {"secret": secret, "audience": [7]},
            {"secret": secret, "max_length": 1},
            {"jwks": "http://a.test/keys"},
            {"jwks": "https://a.test/keys", "algorithms": ["HS256"]},
        ],
    ),
    (logger, {}, [{"format": "tiny"}, {"write": "stdout"}, {"level": "INFO", "write": logging.root}]),
    (
        rate_limit,
        {"kv_binding": "KV", "limit": 1, "window": 60},
        [
            {"limit": 0},
            {"limit": True},
            {"limit": 1.5},
            {"window": 0},
            {"window": 0.5},
            {"message": ""},
            {"name": ""},
            {"on_store_error": "maybe"},
            {"key_fn": "ip"},
            {"skip": True},
            {"cost": 2},
        ],
    ),
    (
        request_id,
        {},
        [
            {"header_name": "X Request Id"},
            {"header_name": "X-Id\r\nSet-Cookie"},
            {"header_name": ""},
            {"header_name": "Set-Cookie"},
            {"max_length": 0},
            {"max_length": True},
            {"generator": wants_two},
            {"generator": "uuid"},
        ],
    ),
    (
        secure_hdrs,
        {},
        [
            {"x_frame_options": True},
            {"x_frame_options": None},
            {"content_security_policy": {}},
            {"content_security_policy": {"default_src": ["a; script-src *"]}},
            {"content_security_policy": {"default_src": ["a, script-src *"]}},
            {"content_security_policy": {"default_src": [7]}},
            {"content_security_policy": {"default src": "'self'"}},
            {"content_security_policy": {"script_src": [NONCE, "a\nb"]}},
            {"reporting_endpoints": {"a": 'https://a/"'}},
            {"reporting_endpoints": {"a b": "https://a/"}},
        ],
    ),
    (
        ip_restriction,
        {},
        [
            {},
            {"allow": ["10.0.0.1/8"]},
            {"allow": ["example.test"]},
            {"allow": "10.0.0.0/8"},
            {"deny": [7]},
            {"allow": [], "status": 200},
        ],
    ),
    (
        sessions,
        {"kv_binding": "SESSIONS", "secret": secret},
        [
            {"kv_binding": ""},
            {"secret": "abc"},
            {"max_age": 59},
            {"cookie": "a b"},
            {"cookie": "a\r\nb"},
            {"path": "/;x"},
            {"secure": False},
            {"same_site": "Sometimes"},
            {"same_site": "None", "secure": False, "cookie": "s"},
        ],
    ),
    (
        static,
        {},
        [
            {"directory": ""},
            {},
            {"directory": "/nowhere-at-all"},
            {"bucket": ""},
            {"bucket": "A", "directory": "."},
            {"directory": ".", "prefix": "x"},
            {"bucket": "A", "index": "a/b"},
            {"bucket": "A", "index": ""},
            {"bucket": "A", "cache_control": "a\nb"},
        ],
    ),
    (timeout, {"duration": 1}, [{"status": 200}, {"status": 600}, {"status": "408"}, {"message": ""}]),
    (
        bearer_auth,
        {"token": secret},
        [
            {"scheme": ""},
            {"scheme": "two words"},
            {"header": "not a name"},
            {"cookie": "a b"},
            {"cookie": "a", "header": "X-Token"},
            {"cookie": "a", "scheme": "Token"},
        ],
    ),
    (
        jwt_auth,
        {"secret": secret},
        [
            {"scheme": ""},
            {"scheme": "two words"},
            {"header": "not a name"},
            {"cookie": "a b"},
            {"cookie": "a", "header": "X-Token"},
            {"cookie": "a", "scheme": "Token"},
        ],
    ),
    (
        jwt_auth,
        {},
        [
            {"keys": []},
            {"keys": {}},
            {"keys": "x"},
            {"keys": {"keys": "x"}},
            {"keys": ["x"]},
            {"keys": [{"kty": "oct", "k": "AA"}]},
            {"keys": [{"kty": "RSA", "d": "AA"}]},
            {"keys": [], "jwks": "https://a.test"},
            {"secret": secret, "keys": []},
        ],
    ),
    (
        static,
        {"directory": "."},
        [{"fallback": ""}, {"fallback": "/index.html"}, {"fallback": "../secret.txt"}, {"fallback": 7}],
    ),
    (
        trusted_hosts,
        {},
        [
            {"hosts": "example.com"},
            {"hosts": []},
            {"hosts": ["https://example.com"]},
            {"hosts": ["example.com:80"]},
            {"hosts": ["Example.com"]},
            {"hosts": ["*"]},
            {"hosts": ["a.*"]},
            {"hosts": [7]},
            {"hosts": None},
            {"hosts": ["a.test"], "status": 200},
        ],
    ),
]


@pytest.mark.parametrize(
    ("factory", "whole", "options"), [(factory, whole, bad) for factory, whole, rows in BAD for bad in rows]
)
def test_a_bad_option_is_a_clear_error_when_it_is_built(
    factory: Callable[..., Any], whole: dict[str, Any], options: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match=rf"^{factory.__name__}\(") as caught:
        factory(**{**whole, **options})
    # One option alone is the culprit, and the message names it.
    assert len(options) != 1 or next(iter(options)) in str(caught.value)
