"""Error handlers that do not fit the classes, the Env or the shape they are registered for."""

from __future__ import annotations

import attrs

from core import Bindings, KVNamespace, Next, Request, Response, ValidationError, create_app


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace


@attrs.frozen
class Other(Bindings):
    COUNTERS: KVNamespace


class Account: ...


class SomeError(Exception):
    code: int = 1


class Sub(SomeError): ...


class OtherError(Exception):
    why: str = ""


app = create_app(Env)
router = app.Router()


@app.on_error  # E
async def bare_narrower(err: SomeError, req: Request[Env], res: Response, next: Next) -> None: ...


@app.on_error  # E
async def bare_env(err: Exception, req: Request[Other], res: Response, next: Next) -> None: ...


@app.on_error  # E
async def bare_user(err: Exception, req: Request[Env, Account], res: Response, next: Next) -> None: ...


@router.on_error(SomeError)
async def own_attributes(err: SomeError, req: Request[Env], res: Response, next: Next) -> None:
    err.nope  # E


@router.on_error(SomeError)  # E
async def narrower(err: Sub, req: Request[Env], res: Response, next: Next) -> None: ...


@app.on_error(SomeError)  # E
async def wrong(err: OtherError, req: Request[Env], res: Response, next: Next) -> None: ...


@router.on_error(SomeError)  # E
async def wrong_env(err: SomeError, req: Request[Other], res: Response, next: Next) -> None: ...


@app.on_error(SomeError)  # E
async def three(err: SomeError, req: Request[Env], res: Response) -> None: ...


@app.on_error(SomeError)  # E
def sync(err: SomeError, req: Request[Env], res: Response, next: Next) -> None: ...


@app.on_error(SomeError, OtherError)  # E
async def one_of_two(err: SomeError, req: Request[Env], res: Response, next: Next) -> None: ...


app.on_error(404)  # E
router.on_error(int)  # E
ValidationError([{"path": "email"}])  # E
ValidationError([{"path": "email", "message": "is taken"}]).issues[0]["nope"]  # E
create_app(Env, problem_detail=True)  # E
