"""The RealWorld API: users, profiles, articles, comments, tags, favourites and a feed."""

import logging

from conduit.env import Env
from conduit.routes.articles import Filter, NewArticle, articles, create_article, list_articles
from conduit.routes.comments import NewComment, comments, create_comment
from conduit.routes.profiles import profiles
from conduit.routes.tags import tags
from conduit.routes.users import users
from core import AuthenticationError, CoreError, Next, Request, Response, create_app
from core.mcp import MCP
from core.middleware.body_limit import body_limit
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.request_id import request_id

log = logging.getLogger(__name__)

app = create_app(Env)
app.use(request_id())
app.use(logger())
app.use(cors(origins="*"))
app.use(body_limit(max_size=1_000_000))

app.use("/api", users)
app.use("/api/profiles", profiles)
app.use("/api/articles", articles, comments)
app.use("/api/tags", tags)

mcp = MCP(app, "conduit")  # for models, at /mcp: these, and the routes that are marked `tool=True`
mcp.expose(list_articles, query=Filter)
mcp.expose(create_article, body=NewArticle, key="article")
mcp.expose(create_comment, body=NewComment, key="comment")


@app.not_found
async def refuse(req: Request[Env], res: Response) -> None:
    raise CoreError(404, "not found", field="path")


@app.on_error(AuthenticationError)
async def refuse_token(err: AuthenticationError, req: Request[Env], res: Response, next: Next) -> None:
    res.status(401).json({"errors": {"token": ["is missing" if err.missing else "is invalid"]}})


@app.on_error
async def answer_error(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    """`{"errors": {field: [message, …]}}`, with the field that is named in the error, or `body`."""
    if not isinstance(err, CoreError):
        log.error("%s %s failed", req.method, req.path, exc_info=err)
        err = CoreError(500, "Internal Server Error")
    errors: dict[str, list[str]] = {}
    for issue in err.metadata.get("issues", [{"path": err.metadata.get("field", "body"), "message": err.message}]):
        # The path of an issue is `user.email` or `article.tagList[0]`; clients know the field alone.
        field = issue["path"].partition(".")[2].partition("[")[0] or issue["path"]
        errors.setdefault(field, []).append(issue["message"])
    res.status(err.status).json({"errors": errors})
