"""A guard behind an authenticator: of those who are known, only some may go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from typing_extensions import TypeIs, TypeVar

from core.errors import CoreError
from core.handlers import MiddlewareInfo
from core.middleware import options
from core.middleware.authentication import Authentication
from core.request import AnyRequest
from core.types import Authenticator

__all__ = ["allow"]

U = TypeVar("U")
T = TypeVar("T")


@overload
def allow(check: Callable[[U], TypeIs[T]], /, *, message: str = "Forbidden") -> Authenticator[Any, T, U]: ...
@overload
def allow(check: Callable[[U], bool], /, *, message: str = "Forbidden") -> Authenticator[Any, U, U]: ...
def allow(check: Callable[[Any], bool], /, *, message: str = "Forbidden") -> Authenticator[Any, Any, Any]:
    """Let in the users for whom `check(user)` is true; all others get 403 `{"error": "Forbidden"}`.

        def is_editor(user: User) -> bool:
            return user.role in ("editor", "admin")

        editors = signed_in.authenticated(allow(is_editor))

        @editors.delete("/articles/:slug")
        async def delete(req: Request[Env, User], res: Response) -> None: ...

    A `check` that narrows, `def is_admin(user: User) -> TypeIs[Admin]`, gives the handlers `req.user: Admin`. On a
    router whose user is of another type, or unknown, it is an error for a type checker; without an authenticator before
    it the application does not start. A check that needs a binding is an authenticator of your own. Raises OptionError.
    """
    if not callable(check):
        raise options.refuse("allow", "check", check, "must be a function of the user")
    options.text("allow", "message", message)

    async def authenticate(req: AnyRequest) -> object:
        # A function that turned out to be async gives something true: only True itself lets in.
        if check(req.user) is not True:
            raise CoreError(403, message)
        return req.user

    info = MiddlewareInfo("allow", requires=("req.user",), authenticates=True)
    return Authentication[Any, Any]("allow", authenticate, info=info)
