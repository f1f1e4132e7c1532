"""Hyperdrive's addresses, read across when they are asked for."""

from __future__ import annotations

from core.backends.workerd.engine import JsBacked, JsMethod, js_attribute
from core.bindings.hyperdrive import Hyperdrive


class WorkerdHyperdrive(JsBacked, Hyperdrive):
    connection_string: JsMethod = js_attribute("connectionString", str)
    host: JsMethod = js_attribute("host", str)
    port: JsMethod = js_attribute("port", int)
    user: JsMethod = js_attribute("user", str)
    password: JsMethod = js_attribute("password", str)
    database: JsMethod = js_attribute("database", str)
