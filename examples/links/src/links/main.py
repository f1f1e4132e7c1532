"""The application: middleware, routers, the consumer of the queue, and a page for what goes wrong, in this order."""

import logging
from pathlib import Path

from core import AuthenticationError, CoreError, Next, Request, Response, create_app, public
from core.hosts.workers import durable_object, entrypoint
from core.middleware.body_limit import body_limit
from core.middleware.csrf import csrf
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_headers
from core.middleware.static import static
from links.auth import COOKIE
from links.clicks import count
from links.env import Env
from links.live import Live as _Live
from links.pages import render
from links.routes.accounts import accounts
from links.routes.links import links

log = logging.getLogger(__name__)

app = create_app(Env, default_deny=True)  # every route is public(), or behind an authenticator
app.use(request_id())
app.use(logger())
app.use(secure_headers())
app.use(csrf())
app.use(body_limit(max_size=10_000))

app.use("/static", public(), static(directory=Path(__file__).parent / "static", cache_control="max-age=3600"))
app.use("/accounts", public(), accounts)
app.use(links)

app.queue("clicks")(count)


@app.on_error
async def show_error(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    """A page that says what went wrong. Whose token has expired gets the form to sign in."""
    if isinstance(err, AuthenticationError):
        res.delete_cookie(COOKIE).status(401).html(render("sign-in.html"))
        return
    if not isinstance(err, CoreError):
        log.error("%s %s failed", req.method, req.path, exc_info=err)
        err = CoreError(500, "Something went wrong")
    for name, value in err.headers.items():
        res.header(name, value)
    page = render("error.html", message=err.message, issues=err.metadata.get("issues", []))
    res.status(err.status).html(page)


# What the hosted platform looks for in this module: the application, and its class of Durable Objects.
Default = entrypoint(app)
Live = durable_object(_Live, Env)
