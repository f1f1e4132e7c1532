"""An answer in time, from a route that waits for something slow."""

from core import Request, Response, create_app
from core.middleware.timeout import timeout

app = create_app()


# --8<-- [start:route]
@app.get("/report", timeout(duration=2000, status=504, message="The report takes too long"))
async def report(req: Request, res: Response) -> None:
    await req.clock.sleep(float(req.query.get("seconds", "0")))
    res.json({"report": "done"})


# --8<-- [end:route]
