"""`/profiles/:username`: what everyone sees of a user, and whether the viewer follows them."""

import attrs

from conduit.auth import Claims, User, current_user, token, viewer
from conduit.env import Env
from core import CoreError, Request, Response, Router, optional

profiles: Router[Env] = Router()
anyone = profiles.authenticated(optional(token))
signed_in = profiles.authenticated(token).authenticated(current_user)

# Of the user `u`, as the viewer ?1 sees them. Nobody in particular is null, who follows nobody.
PROFILE = """
    u.username, u.bio, u.image,
    EXISTS (SELECT 1 FROM follows WHERE follower_id = ?1 AND followed_id = u.id) AS following
"""


@attrs.frozen
class Profile:
    username: str
    bio: str | None
    image: str | None
    following: bool


@anyone.get("/:username")
async def get_profile(req: Request[Env, Claims | None], res: Response) -> None:
    res.json(await shown(req.env, req.params["username"], viewer(req.user)))


@signed_in.post("/:username/follow")
async def follow(req: Request[Env, User], res: Response) -> None:
    statement = req.env.DB.prepare(
        "INSERT INTO follows (follower_id, followed_id) SELECT ?, id FROM users WHERE username = ? ON CONFLICT DO NOTHING"
    )
    await statement.bind(req.user.id, req.params["username"]).run()
    res.json(await shown(req.env, req.params["username"], req.user.id))


@signed_in.delete("/:username/follow")
async def unfollow(req: Request[Env, User], res: Response) -> None:
    statement = req.env.DB.prepare(
        "DELETE FROM follows WHERE follower_id = ? AND followed_id = (SELECT id FROM users WHERE username = ?)"
    )
    await statement.bind(req.user.id, req.params["username"]).run()
    res.json(await shown(req.env, req.params["username"], req.user.id))


async def shown(env: Env, username: str, viewer_id: int | None) -> dict[str, Profile]:
    statement = env.DB.prepare(f"SELECT {PROFILE} FROM users u WHERE u.username = ?2")
    not_found = CoreError(404, "not found", field="profile")
    return {"profile": await statement.bind(viewer_id, username).one(Profile, error=not_found)}


def author(row: Profile) -> Profile:
    """The profile that a row of something else has among its columns."""
    return Profile(row.username, row.bio, row.image, row.following)
