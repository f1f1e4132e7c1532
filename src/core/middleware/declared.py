"""The declarations of the framework's own middleware for the checks, in the form that every package uses."""

from __future__ import annotations

from typing import Final

from core.extensions import DeclaredMiddleware, Extension

_KV: Final = {"kv_binding": "KVNamespace"}
_STORES: Final = "core.middleware.rate_limit_stores"

EXTENSION: Final = Extension(
    middleware=(
        DeclaredMiddleware("core.middleware.cache.cache", bindings=_KV),
        DeclaredMiddleware("core.middleware.logger.logger", reads=("req.id",)),
        DeclaredMiddleware("core.middleware.rate_limit.rate_limit", bindings=_KV),
        DeclaredMiddleware(
            f"{_STORES}.DurableObjectStore", bindings={"binding": "DurableObjectNamespace"}, first="binding"
        ),
        DeclaredMiddleware(f"{_STORES}.KVStore", bindings={"binding": "KVNamespace"}, first="binding"),
        DeclaredMiddleware(f"{_STORES}.PlatformStore", bindings={"binding": "RateLimit"}, first="binding"),
        DeclaredMiddleware("core.middleware.request_id.request_id", provides=("req.id",)),
        DeclaredMiddleware("core.middleware.sessions.sessions", bindings=_KV),
        DeclaredMiddleware("core.middleware.static.static", bindings={"bucket": "R2Bucket"}),
    )
)
