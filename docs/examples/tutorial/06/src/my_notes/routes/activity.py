"""`/activity`: what happened to the notes of who asks."""

from core import Request, Response, Router

from my_notes.auth import User, auth
from my_notes.env import Env

activity: Router[Env] = Router()
mine = activity.authenticated(auth)


@mine.get("/")
async def list_activity(req: Request[Env, User], res: Response) -> None:
    entries = await req.env.ACTIVITY.get_by_name(req.user.sub).recent()
    res.json({"activity": entries})
