"""The platform's email, from the side that sends."""

from __future__ import annotations

from core.backends.workerd.conversion import js_bytes, js_fields, js_stream
from core.backends.workerd.engine import JsEngine
from core.bindings.email import EmailBuilder, EmailMessage, EmailSendResult, SendEmail


class WorkerdSendEmail(JsEngine, SendEmail):
    async def _send(self, message: EmailMessage | EmailBuilder, /) -> EmailSendResult:
        outgoing = js_fields(message) if isinstance(message, EmailBuilder) else await _message(message)
        sent = await self._call("send", outgoing)
        return EmailSendResult(str(getattr(sent, "messageId", "") or ""))


async def _message(message: EmailMessage) -> object:
    """The platform's own class of message, which only its module can make."""
    import _pyodide_entrypoint_helper as helper

    raw = message.raw
    content = raw if isinstance(raw, str) else js_bytes(raw) if isinstance(raw, bytes) else js_stream(raw)
    module = await helper.doAnImport("cloudflare:email")
    return module.EmailMessage.new(message.from_, message.to, content)
