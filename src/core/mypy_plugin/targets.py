"""Every name that the plugin goes by. Whoever moves one must change it here; a test proves that each is there."""

from __future__ import annotations

from typing import Final

from core.analysis import METHODS
from core.middleware.declared import EXTENSION

__all__ = ["TARGETS"]

TARGETS: Final = (
    "core.env.Bindings",
    "core.app.App",
    "core.app.App.queue",
    "core.app.App.scheduled",
    "core.app.App.url_for",
    "core.app.create_app",
    "core.bindings.d1._Queries.batch",
    "core.bindings.d1._Queries.prepare",
    "core.bindings.d1.D1Database",
    "core.bindings.d1.D1DatabaseSession",
    "core.bindings.d1.D1PreparedStatement",
    "core.bindings.d1.D1PreparedStatement.all",
    "core.bindings.d1.D1PreparedStatement.as_",
    "core.bindings.d1.D1PreparedStatement.bind",
    "core.bindings.d1.D1PreparedStatement.first",
    "core.bindings.d1.D1PreparedStatement.one",
    "core.bindings.d1.D1PreparedStatement.raw",
    "core.bindings.d1.D1PreparedStatement.run",
    "core.bindings.durable_object.DurableObject",
    "core.bindings.durable_object.DurableObjectNamespace",
    "core.bindings.queue.MessageBatch",
    "core.shapes.BoundMiddleware",
    "core.shapes.Next",
    "core.shapes.Next.__call__",
    *(middleware.function for middleware in EXTENSION.middleware),
    "core.request.Params",
    "core.request.Params.parse",
    "core.request.Request",
    "core.request.Request.params",
    "core.request.Request.url_for",
    "core.response.Response",
    "core.response.Response.json",
    "core.router.Router",
    *sorted(f"core.router.Router.{name}" for name in METHODS | {"on", "use"}),
)
