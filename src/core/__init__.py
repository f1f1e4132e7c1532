"""A typed framework for HTTP APIs on an edge worker runtime.

Everything public is named here and loaded when it is first asked for: a worker pays for what it
uses, and a type checker sees it all.
"""

from __future__ import annotations

from core.values import lazily

# Type checkers know the name. `typing` takes most of the time of `import core`, in which Ctrl-C prints a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from core import http as http
    from core.app import App, RouteInfo, create_app
    from core.bindings.ai import Ai
    from core.bindings.d1 import (
        D1Database,
        D1DatabaseSession,
        D1ExecResult,
        D1Meta,
        D1PreparedStatement,
        D1Result,
    )
    from core.bindings.durable_object import (
        DurableObject,
        DurableObjectNamespace,
        DurableObjectState,
        DurableObjectStorage,
    )
    from core.bindings.kv import KVKey, KVListResult, KVNamespace, KVValue
    from core.bindings.object_socket import DurableObjectWebSocket, web_socket_pair
    from core.bindings.queue import Message, MessageBatch, MessageSendRequest, Queue
    from core.bindings.r2 import (
        R2Bucket,
        R2Conditional,
        R2HTTPMetadata,
        R2MultipartUpload,
        R2Object,
        R2ObjectBody,
        R2Objects,
        R2Range,
    )
    from core.bindings.secret import Secret
    from core.context import Clock, EdgeMetadata, ExecutionContext, ScheduledEvent, StateKey
    from core.description import describe
    from core.env import Bindings
    from core.errors import (
        AuthenticationError,
        BindingError,
        CoreError,
        D1Error,
        DeveloperError,
        KVError,
        QueueError,
        R2Error,
        ValidationError,
    )
    from core.errors.conflicts import conflict
    from core.handlers import public
    from core.middleware.allow import allow
    from core.middleware.optional import optional
    from core.request import Params, Query, Request
    from core.response import Response
    from core.router import Router
    from core.types import Authenticator, ErrorHandler, Handler, Middleware, Next
    from core.validation.unset import UNSET, Unset, given

__all__ = [
    "Ai",
    "App",
    "AuthenticationError",
    "Authenticator",
    "BindingError",
    "Bindings",
    "Clock",
    "CoreError",
    "D1Database",
    "D1DatabaseSession",
    "D1Error",
    "D1ExecResult",
    "D1Meta",
    "D1PreparedStatement",
    "D1Result",
    "DeveloperError",
    "DurableObject",
    "DurableObjectNamespace",
    "DurableObjectState",
    "DurableObjectStorage",
    "DurableObjectWebSocket",
    "EdgeMetadata",
    "ErrorHandler",
    "ExecutionContext",
    "Handler",
    "KVError",
    "KVKey",
    "KVListResult",
    "KVNamespace",
    "KVValue",
    "Message",
    "MessageBatch",
    "MessageSendRequest",
    "Middleware",
    "Next",
    "Params",
    "Query",
    "Queue",
    "QueueError",
    "R2Bucket",
    "R2Conditional",
    "R2Error",
    "R2HTTPMetadata",
    "R2MultipartUpload",
    "R2Object",
    "R2ObjectBody",
    "R2Objects",
    "R2Range",
    "Request",
    "Response",
    "RouteInfo",
    "Router",
    "ScheduledEvent",
    "Secret",
    "StateKey",
    "UNSET",
    "Unset",
    "ValidationError",
    "allow",
    "conflict",
    "create_app",
    "describe",
    "given",
    "http",
    "optional",
    "public",
    "web_socket_pair",
]

if not TYPE_CHECKING:
    __getattr__ = lazily(
        __name__,
        {
            "core.app": "App RouteInfo create_app",
            "core.bindings.ai": "Ai",
            "core.bindings.d1": "D1Database D1DatabaseSession D1ExecResult D1Meta D1PreparedStatement D1Result",
            "core.bindings.durable_object": "DurableObject DurableObjectNamespace DurableObjectState DurableObjectStorage",
            "core.bindings.kv": "KVKey KVListResult KVNamespace KVValue",
            "core.bindings.object_socket": "DurableObjectWebSocket web_socket_pair",
            "core.bindings.queue": "Message MessageBatch MessageSendRequest Queue",
            "core.bindings.r2": (
                "R2Bucket R2Conditional R2HTTPMetadata R2MultipartUpload R2Object R2ObjectBody R2Objects R2Range"
            ),
            "core.bindings.secret": "Secret",
            "core.context": "Clock EdgeMetadata ExecutionContext ScheduledEvent StateKey",
            "core.description": "describe",
            "core.env": "Bindings",
            "core.errors": (
                "AuthenticationError BindingError CoreError D1Error DeveloperError KVError QueueError R2Error ValidationError"
            ),
            "core.errors.conflicts": "conflict",
            "core.handlers": "public",
            "core.middleware.allow": "allow",
            "core.middleware.optional": "optional",
            "core.request": "Params Query Request",
            "core.response": "Response",
            "core.router": "Router",
            "core.types": "Authenticator ErrorHandler Handler Middleware Next",
            "core.validation.unset": "UNSET Unset given",
            "core.http": "http",
        },
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
