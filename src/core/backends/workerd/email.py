"""The platform's email, from the side that sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from core.backends.workerd.conversion import call_js, js_bytes, js_stream, js_value, unwrap
from core.bindings.email import EmailAddress, EmailBuilder, EmailMessage, EmailSendResult
from core.calls import Hookable, binding_call
from core.errors import BindingError, BindingTypeError

__all__ = ["WorkerdSendEmail"]


class WorkerdSendEmail(Hookable):
    """`SendEmail` over the runtime's."""

    def __init__(self, sender: Any) -> None:
        self._sender = unwrap(sender)

    @binding_call
    async def send(self, message: EmailMessage | EmailBuilder, /) -> EmailSendResult:
        """Send one. See `SendEmail.send`."""
        if isinstance(message, EmailBuilder):
            outgoing = js_value(_built(message))
        else:
            outgoing = await _message(message)
        sent = await call_js(_error, self._sender.send, outgoing)
        return EmailSendResult(str(getattr(sent, "messageId", "") or ""))


async def _message(message: EmailMessage) -> Any:
    """The platform's own class of message, which only its module can make."""
    import _pyodide_entrypoint_helper as helper

    raw = message.raw
    content = raw if isinstance(raw, str) else js_bytes(raw) if isinstance(raw, bytes) else js_stream(raw)
    module = await helper.doAnImport("cloudflare:email")
    return module.EmailMessage.new(message.from_, message.to, content)


def _built(message: EmailBuilder) -> dict[str, Any]:
    named = {
        "from": _address(message.from_),
        "subject": message.subject,
        "to": _addresses(message.to),
        "cc": _addresses(message.cc),
        "bcc": _addresses(message.bcc),
        "replyTo": None if message.reply_to is None else _address(message.reply_to),
        "headers": None if message.headers is None else dict(message.headers),
        "text": message.text,
        "html": message.html,
        "attachments": [
            {
                "filename": file.filename,
                "type": file.type,
                "content": file.content,
                "disposition": file.disposition,
                **({} if file.content_id is None else {"contentId": file.content_id}),
            }
            for file in message.attachments
        ]
        or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _address(address: str | EmailAddress) -> Any:
    return address if isinstance(address, str) else attrs.asdict(address)


def _addresses(addresses: str | EmailAddress | Sequence[str | EmailAddress] | None) -> Any:
    if addresses is None or isinstance(addresses, (str, EmailAddress)):
        return None if addresses is None else _address(addresses)
    return [_address(address) for address in addresses]


def _error(name: str, message: str) -> BindingError:
    return BindingTypeError(message) if name == "TypeError" else BindingError(message)
