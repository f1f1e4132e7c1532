"""`/profiles/:username`: what everyone sees of a user, and whether the viewer follows them."""

import attrs

from conduit.auth import Claims, User, current_user, token, viewer
from conduit.env import Env
from core import CoreError, Request, Response, Router, optional

profiles: Router[Env] = Router()
anyone = profiles.authenticated(optional(token))
signed_in = profiles.authenticated(token).authenticated(current_user)

# Whether the viewer ?1 follows the user `u`. Nobody in particular is null, who follows nobody.
FOLLOWING = "EXISTS (SELECT 1 FROM follows WHERE follower_id = ?1 AND followed_id = u.id)"
AUTHOR = f"""
    u.username AS "author.username", u.bio AS "author.bio", u.image AS "author.image", {FOLLOWING} AS "author.following"
"""


@attrs.frozen
class Profile:
    username: str
    bio: str | None
    image: str | None
    following: bool


@anyone.get("/:username", tool=True)
async def get_profile(req: Request[Env, Claims | None], res: Response) -> None:
    """Show a user's profile."""
    res.json(await shown(req.env, req.params["username"], viewer(req.user)))


@signed_in.post("/:username/follow", tool=True)
async def follow(req: Request[Env, User], res: Response) -> None:
    """Follow a user, whose articles are in the feed from then on."""
    statement = req.env.DB.prepare(
        "INSERT INTO follows (follower_id, followed_id) SELECT ?, id FROM users WHERE username = ? ON CONFLICT DO NOTHING"
    )
    await statement.bind(req.user.id, req.params["username"]).run()
    res.json(await shown(req.env, req.params["username"], req.user.id))


@signed_in.delete("/:username/follow", tool=True)
async def unfollow(req: Request[Env, User], res: Response) -> None:
    """Follow a user no longer."""
    statement = req.env.DB.prepare(
        "DELETE FROM follows WHERE follower_id = ? AND followed_id = (SELECT id FROM users WHERE username = ?)"
    )
    await statement.bind(req.user.id, req.params["username"]).run()
    res.json(await shown(req.env, req.params["username"], req.user.id))


async def shown(env: Env, username: str, viewer_id: int | None) -> dict[str, Profile]:
    find = env.DB.prepare(f"SELECT username, bio, image, {FOLLOWING} AS following FROM users u WHERE username = ?2")
    not_found = CoreError(404, "not found", field="profile")
    return {"profile": await find.bind(viewer_id, username).one(Profile, error=not_found)}
