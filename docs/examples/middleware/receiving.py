"""Limits on requests: bodies, forms, and messages on a WebSocket."""

import attrs

from core import Request, Response, create_app
from core.http.forms import FormLimits
from core.http.websocket import WebSocket
from core.middleware.body_limit import body_limit

app = create_app()

# --8<-- [start:limit]
app.use(body_limit(max_size=1_000_000))
# --8<-- [end:limit]


# --8<-- [start:form]
@attrs.frozen
class Profile:
    name: str
    age: int


@app.post("/profile")
async def profile(req: Request, res: Response) -> None:
    form = await req.form(FormLimits(file=500_000))
    photo = form.file("photo")
    res.json({"name": form.parse(Profile).name, "photo": None if photo is None else photo.size})


# --8<-- [end:form]


# --8<-- [start:websocket]
@app.websocket("/rooms/:id", protocols=("chat",))
async def chat(req: Request, socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(f"{req.params['id']}: {message!s}")


# --8<-- [end:websocket]
