"""Email: the messages that a worker may send."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from core.bindings import binding_call
from core.values import frozen

__all__ = [
    "EmailAddress",
    "EmailAttachment",
    "EmailBuilder",
    "EmailDestination",
    "EmailMessage",
    "EmailSendResult",
    "SendEmail",
]


@frozen
class EmailAddress:
    """An address with the name that is shown for it."""

    email: str
    name: str


EmailDestination: TypeAlias = str | EmailAddress | Sequence[str | EmailAddress]
"""The recipients of an email: an address, or several."""


@frozen
class EmailAttachment:
    """A file of an email. An inline one has the `content_id` that the HTML names it by (`cid:logo`)."""

    filename: str
    type: str
    content: str | bytes
    disposition: Literal["attachment", "inline"] = "attachment"
    content_id: str | None = None


@frozen
class EmailMessage:
    """An email as it is: the whole text of RFC 5322, with the addresses of its envelope."""

    from_: str
    to: str
    raw: str | bytes | AsyncIterable[bytes]


@frozen(kw_only=True)
class EmailBuilder:
    """An email to be put together: at least one of `to`, `cc` and `bcc`, and of `text` and `html`."""

    from_: str | EmailAddress
    subject: str
    to: EmailDestination | None = None
    cc: EmailDestination | None = None
    bcc: EmailDestination | None = None
    reply_to: str | EmailAddress | None = None
    headers: Mapping[str, str] | None = None
    text: str | None = None
    html: str | None = None
    attachments: Sequence[EmailAttachment] = ()


@frozen
class EmailSendResult:
    """The email was taken in, under this id."""

    message_id: str


@runtime_checkable
class SendEmail(Protocol):
    """Sends email, to the addresses that the configuration allows."""

    @binding_call
    async def send(self, message: EmailMessage | EmailBuilder, /) -> EmailSendResult:
        """Send one. Raises BindingError when the address is not allowed or the email is malformed."""
        raise AssertionError
