"""`/activity`: what happened to the notes of who asks, and what happens from now on."""

from core import CoreError, Request, Response, Router, describe

from my_notes.auth import User, auth
from my_notes.env import Env

activity: Router[Env] = Router()
mine = activity.authenticated(auth)


@mine.get("/")
async def list_activity(req: Request[Env, User], res: Response) -> None:
    entries = await req.env.ACTIVITY.get_by_name(req.user.sub).recent()
    res.json({"activity": entries})


@mine.get("/live")
@describe(answers={101: None})
async def listen(req: Request[Env, User], res: Response) -> None:
    if (req.header("Upgrade") or "").lower() != "websocket":
        raise CoreError(426, "Connect with a WebSocket")
    room = req.env.ACTIVITY.get_by_name(req.user.sub)
    res.send(await room.fetch(req.to_http()))
