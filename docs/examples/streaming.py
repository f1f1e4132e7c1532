"""Bodies in pieces: both ways, and as server-sent events."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

from core import Request, Response, create_app
from core.http.sse import Event

app = create_app()


# --8<-- [start:out]
async def rows() -> AsyncIterator[str]:
    yield "id,name\n"
    for number in range(3):
        yield f"{number},User {number}\n"


@app.get("/users.csv")
async def download(req: Request, res: Response) -> None:
    res.stream(rows(), content_type="text/csv")


# --8<-- [end:out]


# --8<-- [start:in]
@app.post("/digest")
async def digest(req: Request, res: Response) -> None:
    sha = hashlib.sha256()
    async for chunk in req.stream():
        sha.update(chunk)
    res.json({"sha256": sha.hexdigest()})


# --8<-- [end:in]


# --8<-- [start:events]
async def ticks() -> AsyncIterator[Event]:
    for number in range(3):
        yield Event(event="tick", data=str(number))
        await asyncio.sleep(0)


@app.get("/ticks")
async def tick(req: Request, res: Response) -> None:
    res.sse(ticks())


# --8<-- [end:events]
