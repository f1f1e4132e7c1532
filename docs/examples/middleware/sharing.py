"""Other origins, and what they may read or change: CORS and CSRF."""

import attrs

from core import Bindings, Request, Response, create_app
from core.middleware.cors import cors
from core.middleware.csrf import csrf


@attrs.frozen
class Env(Bindings):
    ALLOWED_ORIGINS: str


# --8<-- [start:app]
app = create_app(Env)
app.use(cors(origins=lambda req: req.env.ALLOWED_ORIGINS.split(","), credentials=True, max_age=600))
app.use(csrf(origins=lambda req: req.env.ALLOWED_ORIGINS.split(",")))
# --8<-- [end:app]


@app.post("/items")
async def add(req: Request[Env], res: Response) -> None:
    res.status(201).json({})
