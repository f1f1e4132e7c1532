"""The application that the servers are measured with, for each of their interfaces."""

from __future__ import annotations

from core import Request, Response, create_app
from core.hosts.asgi import asgi
from core.hosts.rsgi import rsgi

app = create_app()


@app.get("/users/:id")
async def show(req: Request, res: Response) -> None:
    """Answer a small JSON document."""
    res.json({"id": req.params["id"], "name": "Ada", "email": "ada@example.com"})


@app.post("/users")
async def create(req: Request, res: Response) -> None:
    """Read a small JSON document."""
    body = await req.json()
    res.status(201).json({"id": 1, "name": body["name"]})


asgi_app = asgi(app)
rsgi_app = rsgi(app)
