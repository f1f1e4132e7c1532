"""Who may talk to a server: OAuth's protected resource, as clients find it (RFC 9728, RFC 6750).

An authenticator of the application decides. Here its refusals become the headers by which a client finds out where to
get a token, and for which scope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from core import router
from core.errors import AuthenticationError, CoreError, RegistrationError
from core.handlers import arguments_of, info_of, name_of
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware

METADATA: Final = "/.well-known/oauth-protected-resource"


class Server(Protocol):
    """What is told of a server."""

    name: str
    path: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...]


def guard_of(server: Server, behind: Any) -> Middleware[Any, Any]:
    """The middleware that `behind` becomes. Raises RegistrationError for one that takes any audience."""
    if arguments_of(behind) != 1 and info_of(behind) is None:
        raise RegistrationError("MCP(…, behind=…): an authenticator is `async def (req)` and returns the user")
    demands = getattr(behind, "demands", None)
    if demands is not None and demands.audiences is None:
        raise RegistrationError(
            f'MCP("{server.name}", behind={name_of(behind)}): a token for another server would be good here (RFC 8707). Give '
            'jwt_auth(…, audience="https://notes.example/mcp")'
        )
    return router.guard_of(behind, partial(challenge, server))


def challenge(server: Server, req: AnyRequest, error: CoreError) -> CoreError:
    """A refusal, with the header that names the metadata and the scope; any other error as it is."""
    if error.status not in (401, 403):
        return error
    scope = error.metadata.get("scope") or " ".join(server.scopes)
    parts = [f'resource_metadata="{_address(server, req, METADATA)}"', *([f'scope="{scope}"'] if scope else [])]
    if error.status == 403:
        parts.insert(0, 'error="insufficient_scope"')
    elif not (isinstance(error, AuthenticationError) and error.missing):
        parts.insert(0, 'error="invalid_token"')
    return CoreError(error.status, error.message, headers={"WWW-Authenticate": f"Bearer {', '.join(parts)}"})


def metadata_of(server: Server) -> Callable[[AnyRequest, Response], Awaitable[None]]:
    """The handler of the metadata."""

    async def metadata(req: AnyRequest, res: Response) -> None:
        found = {
            "resource": _address(server, req),
            "authorization_servers": server.authorization_servers,
            "bearer_methods_supported": ["header"],
            "resource_name": server.name,
        }
        res.json({**found, "scopes_supported": server.scopes} if server.scopes else found)

    return metadata


def _address(server: Server, req: AnyRequest, below: str = "") -> str:
    from core.http.url import URL

    return f"{URL(req.url).origin}{req.root_path}{below}{server.path}"
