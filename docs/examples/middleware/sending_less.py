"""Less to send and less to make: cache, tags, compression, and a word of what took how long."""

from core import Request, Response, create_app
from core.middleware.cache import cache
from core.middleware.compress import compress
from core.middleware.etag import etag
from core.middleware.server_timing import server_timing, timing

# --8<-- [start:app]
app = create_app()
app.use(server_timing())
app.use(compress())
app.use(etag())
app.use("/catalogue", cache(max_age=60))


@app.get("/catalogue")
async def catalogue(req: Request, res: Response) -> None:
    with timing(req, "db", "Read the catalogue"):
        rows = [{"id": number, "name": f"Item {number}"} for number in range(100)]
    res.json(rows)


# --8<-- [end:app]
