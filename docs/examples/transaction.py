"""A middleware around a database: what the chain raises comes out of `await next()`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from core import Next, Request, Response, create_app

app = create_app()
journal: list[str] = []


@asynccontextmanager
async def transaction() -> AsyncGenerator[None, None]:
    """Commit at the end, roll back on any error."""
    journal.append("begin")
    try:
        yield
    except BaseException:
        journal.append("rollback")
        raise
    journal.append("commit")


# --8<-- [start:transaction]
@app.use
async def in_a_transaction(req: Request, res: Response, next: Next) -> None:
    async with transaction():
        await next()


# --8<-- [end:transaction]


@app.post("/orders")
async def create(req: Request, res: Response) -> None:
    order = await req.json()
    res.status(201).json({"id": order["id"]})
