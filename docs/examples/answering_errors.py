"""Errors: one class at a time, one router at a time, and as problem details."""

import logging

from core import App, CoreError, Next, Request, Response, ValidationError

log = logging.getLogger(__name__)


class SoldOut(Exception):
    def __init__(self, item: str) -> None:
        super().__init__(item)
        self.item = item


# --8<-- [start:class]
app = App(problem_details=True, method_not_allowed=True)


@app.on_error(SoldOut)
async def sold_out(err: SoldOut, req: Request, res: Response, next: Next) -> None:
    raise CoreError(409, "Sold out", item=err.item)


@app.on_error
async def failed(err: Exception, req: Request, res: Response, next: Next) -> None:
    log.warning("%s %s: %s", req.method, req.path, type(err).__name__)
    await next(err)


@app.get("/items/:id")
async def show(req: Request, res: Response) -> None:
    raise SoldOut(req.params["id"])


# --8<-- [end:class]


# --8<-- [start:router]
pages = app.Router()


@pages.on_error(CoreError)
async def as_page(err: CoreError, req: Request, res: Response, next: Next) -> None:
    res.status(err.status).html(f"<h1>{err.status}</h1>")


@pages.get("/about")
async def about(req: Request, res: Response) -> None:
    raise CoreError(404)


app.use("/pages", pages)
# --8<-- [end:router]


# --8<-- [start:issues]
@app.post("/accounts")
async def sign_up(req: Request, res: Response) -> None:
    account = await req.json(dict[str, str])
    if account.get("name") == "ada":
        raise ValidationError([{"path": "name", "message": "is taken"}])
    res.status(201).json(account)


# --8<-- [end:issues]
