"""Hyperdrive's addresses, read across when they are asked for."""

from __future__ import annotations

from core.backends.workerd.engine import JsAttribute, JsBacked


class WorkerdHyperdrive(JsBacked):
    """See `Hyperdrive`."""

    connection_string = JsAttribute("connectionString", str)
    host = JsAttribute("host", str)
    port = JsAttribute("port", int)
    user = JsAttribute("user", str)
    password = JsAttribute("password", str)
    database = JsAttribute("database", str)
