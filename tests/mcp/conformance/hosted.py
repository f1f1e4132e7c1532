"""The server behind any ASGI server: `uvicorn tests.mcp.conformance.hosted:served`."""

from __future__ import annotations

from tests.mcp.conformance.server import Env, app

from core.hosts.asgi import AsgiApplication, asgi
from core.mcp import Subscriptions
from core.testing import FakeDurableObjectNamespace

served: AsgiApplication = asgi(app, Env("a secret of the server", FakeDurableObjectNamespace(Subscriptions)))
