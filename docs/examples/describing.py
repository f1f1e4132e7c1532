"""What the description cannot read in the code, said where the handler is registered."""

import attrs

from core import Request, Response, create_app, describe, http

app = create_app()


@attrs.frozen
class Report:
    title: str
    pages: int = attrs.field(validator=attrs.validators.ge(1))


async def legacy(request: http.Request) -> http.Response:
    """An application of another team, as a function of the standard's request and response."""
    return http.Response.from_json({"title": request.path, "pages": 3})


# --8<-- [start:answers]
async def report(req: Request, res: Response) -> None:
    """The report of a month.

    It is made by the old application.
    """
    res.send(await legacy(req.to_http()))


app.get("/reports/:month", describe(report, answers={200: Report, 304: None}, tags=["reports"]))
# --8<-- [end:answers]


# --8<-- [start:marks]
@app.get("/v1/reports")
@describe(deprecated=True)
async def old_reports(req: Request, res: Response) -> None:
    res.redirect("/reports/2026-11")


@app.get("/debug")
@describe(hidden=True)
async def debug(req: Request, res: Response) -> None:
    res.text("for us")
    # --8<-- [end:marks]


# --8<-- [start:validator]
def whole_dozens(instance: object, attribute: object, value: int) -> None:
    if value % 12:
        raise ValueError("is not a multiple of 12")


describe(whole_dozens, holds={"multipleOf": 12})


@attrs.frozen
class Order:
    eggs: int = attrs.field(default=12, validator=whole_dozens)
    # --8<-- [end:validator]


@app.post("/orders")
async def order(req: Request, res: Response) -> None:
    res.status(201).json(await req.json(Order))
