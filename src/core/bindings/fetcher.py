"""Another worker, as a handler calls it: a service binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from core.bindings import binding_call

if TYPE_CHECKING:
    from core.http import Request, Response

__all__ = ["Fetcher"]


@runtime_checkable
class Fetcher(Protocol):
    """Something that answers requests: another worker, static assets, a browser, a client certificate.

    A service binding may have methods of its own too (RPC). Declare them on a Protocol that derives from this one:

        class Auth(Fetcher, Protocol):
            async def verify(self, token: str) -> bool: ...
    """

    @binding_call
    async def fetch(self, request: Request | str, /) -> Response:
        """The answer to a request, or to a GET of an absolute URL.

        The host of the URL is for the other worker to read; where the request goes is decided by the binding. Raises
        BindingError when the other worker fails before it answers.
        """
        raise AssertionError
