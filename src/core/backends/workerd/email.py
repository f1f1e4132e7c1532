"""The platform's email, from the side that sends."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from core.backends.workerd.conversion import binding_error, call_js, js_bytes, js_fields, js_stream, js_value, options
from core.backends.workerd.engine import JsEngine
from core.bindings.email import EmailAddress, EmailBuilder, EmailMessage, EmailSendResult, SendEmail


class WorkerdSendEmail(JsEngine, SendEmail):
    async def _send(self, message: EmailMessage | EmailBuilder, /) -> EmailSendResult:
        if isinstance(message, EmailBuilder):
            outgoing = js_value(_built(message))
        else:
            outgoing = await _message(message)
        sent = await call_js(binding_error, self._js.send, outgoing)
        return EmailSendResult(str(getattr(sent, "messageId", "") or ""))


async def _message(message: EmailMessage) -> object:
    """The platform's own class of message, which only its module can make."""
    import _pyodide_entrypoint_helper as helper

    raw = message.raw
    content = raw if isinstance(raw, str) else js_bytes(raw) if isinstance(raw, bytes) else js_stream(raw)
    module = await helper.doAnImport("cloudflare:email")
    return module.EmailMessage.new(message.from_, message.to, content)


def _built(message: EmailBuilder) -> dict[str, object]:
    return js_fields(message) | options(
        to=_addresses(message.to),
        cc=_addresses(message.cc),
        bcc=_addresses(message.bcc),
        attachments=[js_fields(file) for file in message.attachments],
    )


def _addresses(addresses: str | EmailAddress | Sequence[str | EmailAddress] | None) -> object:
    if addresses is None or isinstance(addresses, str):
        return addresses
    return attrs.asdict(addresses) if isinstance(addresses, EmailAddress) else [_addresses(each) for each in addresses]
