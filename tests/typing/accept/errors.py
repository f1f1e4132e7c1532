"""Error handlers: for all errors, for one class or several, on applications, routers and views."""

from __future__ import annotations

from typing import Any, Literal, Protocol, assert_type

import attrs

from core import (
    App,
    Bindings,
    CoreError,
    ErrorHandler,
    KVNamespace,
    Next,
    Request,
    Response,
    Router,
    ValidationError,
    create_app,
)
from core.errors import Issue
from core.router import ErrorDecorator


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace


class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...


class SomeError(Exception):
    code: int = 1


class OtherError(Exception):
    why: str = ""


app = create_app(Env, method_not_allowed=True, problem_details=True)
router: Router[Env] = app.Router()


async def who(req: Request[Env]) -> str:
    return "ada"


@app.on_error
async def every(err: Exception, req: Request[Env], res: Response, next: Next) -> None: ...


@App(Env).on_error
async def wider(err: BaseException, req: Request[HasSessions], res: Response, next: Next) -> Response | None:
    return res.json(str(err))


@app.on_error(SomeError)
async def some(err: SomeError, req: Request[Env], res: Response, next: Next) -> Response:
    return res.json(err.code)


@router.on_error(SomeError)
async def some_wider(err: Exception, req: Request[HasSessions], res: Response, next: Next) -> None: ...


@app.authenticated(who).on_error(CoreError)
async def of_a_view(err: CoreError, req: Request[Env], res: Response, next: Next) -> None:
    res.status(err.status).json(err.message)


@router.on_error(OtherError)
async def with_parameters(
    err: OtherError, req: Request[Env, object, Literal["id"]], res: Response, next: Next
) -> None: ...


@router.on_error(ValidationError, KeyError)
async def two(err: ValidationError | KeyError, req: Request[Env], res: Response, next: Next) -> None: ...


assert_type(app.on_error(LookupError), ErrorDecorator[LookupError, Env])
handler: ErrorHandler[Env] = every


def issues(error: ValidationError) -> list[str]:
    assert_type(error.issues, list[Issue])
    assert_type(error.issues[0]["path"], str)
    return [issue["message"] for issue in error.issues]


def raised() -> list[Any]:
    return [
        CoreError(404),
        CoreError(404, "Not here", code="X"),
        ValidationError([{"path": "email", "message": "is taken"}], status=409),
    ]
