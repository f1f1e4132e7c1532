"""An authenticator that lets everyone in, and says who is known: `req.user` is a user or None."""

from __future__ import annotations

from typing import Any, overload

from typing_extensions import TypeVar

from core.errors import AuthenticationError, CoreError, HandlerError
from core.handlers import MiddlewareInfo, arguments_of, info_of, name_of, require_async
from core.middleware.authentication import Authentication
from core.request import AnyRequest
from core.types import Authenticator

__all__ = ["optional"]

E = TypeVar("E")
U = TypeVar("U")
T = TypeVar("T")


@overload
def optional(authenticator: Authentication[E, T], /) -> Authentication[E, T | None]: ...
@overload
def optional(authenticator: Authenticator[E, T, U], /) -> Authenticator[E, T | None, U]: ...
def optional(authenticator: Authenticator[Any, Any, Any], /) -> object:
    """Ask `authenticator` who it is, and go on with None where a request brings no credentials.

        anyone = app.authenticated(optional(jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=User)))

        @anyone.get("/articles/:slug")
        async def show(req: Request[Env, User | None], res: Response) -> None: ...

    Credentials that are wrong are refused as before: a client whose token has expired shall know it. An authenticator
    of your own tells the two apart with `AuthenticationError(missing=True)`; another error of the status 401 counts as
    missing credentials, and every other error is raised.

    It guards nothing: `core routes` shows `?` for it, and `default_deny` wants such routes marked `public()`. Answers
    vary by `Authorization` and `Cookie`, or by the headers that the authenticator reads, so that no cache gives one
    reader's to another. Raises HandlerError for anything but an authenticator.
    """
    if arguments_of(authenticator) != 1 and not isinstance(authenticator, Authentication):
        raise HandlerError(
            f"optional({name_of(authenticator)}): an authenticator is `async def (req)` and returns the user"
        )
    require_async(authenticator, "optional")

    async def authenticate(req: AnyRequest) -> object:
        users = req.users
        if authenticator not in users:
            try:
                users[authenticator] = await authenticator(req)
            except CoreError as error:
                if error.status != 401 or (isinstance(error, AuthenticationError) and not error.missing):
                    raise
                return None
        return users[authenticator]

    declared = info_of(authenticator)
    info = MiddlewareInfo(
        f"optional({name_of(authenticator)})",
        provides=("req.user",),
        requires=() if declared is None else declared.requires,
        optional=True,
        # The headers that an application's own function reads are not known.
        varies=("Authorization", "Cookie") if declared is None else declared.varies or ("Authorization",),
    )
    return Authentication[Any, Any](info.name, authenticate, info=info)
