"""The application: global middleware, routers, and what happens to errors, in this order."""

import logging

from core import CoreError, Next, Request, Response, create_app
from core.mcp import MCP
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout
from users_api.env import Env
from users_api.routes.users import (
    NewUser,
    Page,
    UserChange,
    UserRecord,
    create_user,
    delete_user,
    get_user,
    list_users,
    update_user,
    users,
)

log = logging.getLogger(__name__)

app = create_app(Env)
app.use(request_id())
app.use(logger(format="long"))
app.use(secure_hdrs())
app.use(cors(origins=lambda req: req.env.ALLOWED_ORIGINS.split(",")))
app.use(timeout(duration=10_000))

app.use("/users", users)

mcp = MCP(app, "users")  # for models, at /mcp; what a route refuses, its tool refuses
mcp.expose(list_users, description="The users, page by page.", query=Page)
mcp.expose(get_user, description="One user, by the number.", returns=UserRecord)
mcp.expose(create_user, description="Sign a user up.", body=NewUser)
mcp.expose(update_user, description="Change a user's name or address.", body=UserChange)
mcp.expose(delete_user, description="Delete a user, for administrators.")


@app.get("/health")
async def health(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})


@app.on_error
async def answer_error(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    """Add the request's id to every error, so that a client can name the line in the log."""
    if not isinstance(err, CoreError):
        log.error("%s %s failed", req.method, req.path, exc_info=err)
        err = CoreError(500, "Internal Server Error")
    for name, value in err.headers.items():
        res.header(name, value)
    res.status(err.status).json({**err.body, "requestId": req.id})
