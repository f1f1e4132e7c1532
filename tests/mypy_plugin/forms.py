"""Correct programs in the forms that engineers use. `#### name` begins a further file of the package that each is.

Every `params["…"]` and every text of SQL in them is one that a mistake is put into, to see that it was read.
"""

from __future__ import annotations

from tests.mypy_plugin.conftest import programs

FORMS = programs(
    '''
### bound_methods
class Users:
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    async def remove(self, req: Request[Env], res: Response) -> None:
        await req.env.DB.prepare("DELETE FROM users WHERE id = ?").bind(req.params["id"]).run()
        res.send()
app = create_app(Env)
users = Users()
app.get("/users/:id", users.show)
app.delete("/users/:id", users.remove)

### methods_registered_by_init
class Users:
    def __init__(self) -> None:
        self.router: Router[Env] = Router()
        self.router.get("/:id", self.show)
    async def show(self, req: Request[Env], res: Response) -> None:
        row = await req.env.DB.prepare("SELECT name FROM users WHERE id = ?").bind(req.params["id"]).first("name")
        res.json(row)
app = create_app(Env)
app.use("/users", Users().router)

### class_that_is_a_router
class Users(Router[Env]):
    def __init__(self) -> None:
        super().__init__()
        self.get("/:id")(self.show)
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.use("/users", Users())

### methods_found_by_name
class Resource:
    path = "/"
    def on(self, app: App[Env]) -> None:
        for method in ("get", "post"):
            handler = getattr(self, method, None)
            if handler is not None:
                app.on(method.upper(), self.path, handler)
class Users(Resource):
    path = "/users/:id"
    async def get(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    async def post(self, req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])
app = create_app(Env)
for resource in (Users(),):
    resource.on(app)

### static_and_class_methods
class Users:
    @staticmethod
    async def show(req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])
    @classmethod
    async def listed(cls, req: Request[Env], res: Response) -> None:
        res.json((await req.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(req.params["id"]).all()).results)
app = create_app(Env)
app.get("/users/:id", Users.show)
app.get("/lists/:id", Users.listed)

### inherited_methods
class Resource:
    async def show(self, req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])
class Users(Resource):
    async def listed(self, req: Request[Env], res: Response) -> None:
        res.json((await req.env.DB.prepare("SELECT id FROM users").all()).results)
app = create_app(Env)
app.get("/users", Users().listed)
app.get("/users/:id", Users().show)

### template_method
from abc import ABC, abstractmethod
class Show(ABC):
    async def __call__(self, req: Request[Env], res: Response) -> None:
        res.json(await self.read(req.env, req.params["id"]))
    @abstractmethod
    async def read(self, env: Env, id: str) -> object: ...
class ShowUser(Show):
    async def read(self, env: Env, id: str) -> object:
        return await env.DB.prepare("SELECT name FROM users WHERE id = ?").bind(id).first("name")
class ShowPost(Show):
    async def read(self, env: Env, id: str) -> object:
        return await env.DB.prepare("SELECT title FROM posts WHERE id = ?").bind(id).first("title")
app = create_app(Env)
app.get("/users/:id", ShowUser())
app.get("/posts/:id", ShowPost())

### callable_objects
@attrs.frozen
class Show:
    title: str
    async def __call__(self, req: Request[Env], res: Response) -> None:
        res.json([self.title, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.get("/a/:id", Show("a"))
app.get("/b/:id", Show("b"))

### handler_factory
def show(title: str) -> Any:
    async def handler(req: Request[Env], res: Response) -> None:
        res.json([title, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    return handler
app = create_app(Env)
app.get("/a/:id", show("a"))
app.get("/b/:id", show("b"))

### generic_handler_factory
from collections.abc import Awaitable, Callable
from typing import TypeVar
T = TypeVar("T")
@attrs.frozen
class User:
    id: int
    name: str
def shows(load: Callable[[Env, str], Awaitable[T | None]]) -> Callable[[Request[Env], Response], Awaitable[None]]:
    async def handler(req: Request[Env], res: Response) -> None:
        found = await load(req.env, req.params["id"])
        if found is None:
            raise CoreError(404, "none")
        res.json(found)
    return handler
async def user(env: Env, id: str) -> User | None:
    return await env.DB.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first(User)
app = create_app(Env)
app.get("/users/:id", shows(user))

### router_factory
def crud(table: Literal["users", "posts"]) -> Router[Env]:
    router: Router[Env] = Router()
    @router.get("/:id")
    async def show(req: Request[Env], res: Response) -> None:
        res.json(await req.env.DB.prepare(f"SELECT id FROM {table} WHERE id = ?").bind(req.params["id"]).first())
    return router
app = create_app(Env)
app.use("/users", crud("users"))
app.use("/posts", crud("posts"))

### app_factory
def make_app() -> App[Env]:
    app = create_app(Env)
    @app.get("/users/:id")
    async def show(req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    return app
app = make_app()

### app_factory_with_settings
@attrs.frozen
class Settings:
    debug: bool = False
    prefix: str = "/api"
def make_app(settings: Settings) -> App[Env]:
    app = create_app(Env)
    app.use(request_id(), logger())
    if settings.debug:
        app.use(timeout(duration=1000))
    router: Router[Env] = app.Router()
    @router.get("/users/:id")
    async def show(req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    app.use(settings.prefix, router)
    return app
app = make_app(Settings())

### register_functions
def users(app: App[Env]) -> None:
    async def show(req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])
    app.get("/users/:id", show)
def posts(app: App[Env]) -> None:
    @app.get("/posts/:post")
    async def show(req: Request[Env], res: Response) -> None:
        res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])
app = create_app(Env)
for register in (users, posts):
    register(app)

### loop_over_a_dict
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
async def listed(req: Request[Env], res: Response) -> None:
    res.json((await req.env.DB.prepare("SELECT id FROM users").all()).results)
ROUTES = {"/users": listed, "/users/:id": show}
app = create_app(Env)
for path, handler in ROUTES.items():
    app.get(path, handler)

### loop_over_a_list
from core import Handler
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
async def remove(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("DELETE FROM users WHERE id = ?").bind(req.params["id"]).run()
    res.send()
ROUTES: list[tuple[str, str, Handler[Env, Any]]] = [("GET", "/users/:id", show), ("DELETE", "/users/:id", remove)]
app = create_app(Env)
for method, path, handler in ROUTES:
    app.on(method, path, handler)

### registry_of_decorated
from collections.abc import Awaitable, Callable
Handles = Callable[[Request[Env], Response], Awaitable[None]]
registry: dict[str, Handles] = {}
def route(path: str) -> Callable[[Handles], Handles]:
    def keep(handler: Handles) -> Handles:
        registry[path] = handler
        return handler
    return keep
@route("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
for path, handler in registry.items():
    app.get(path, handler)

### marked_methods
def get(path: str) -> Any:
    def mark(function: Any) -> Any:
        function.path = path
        return function
    return mark
class Users:
    @get("/users/:id")
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
controller = Users()
for name in dir(controller):
    method = getattr(controller, name)
    if hasattr(method, "path"):
        app.get(method.path, method)

### partials
from functools import partial
async def show(kind: str, req: Request[Env], res: Response) -> None:
    res.json([kind, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.get("/a/:id", partial(show, "a"))

### partials_by_name
from functools import partial
async def show(req: Request[Env], res: Response, *, kind: str) -> None:
    res.json([kind, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
for kind in ("a", "b"):
    app.get(f"/{kind}/:id", partial(show, kind=kind))

### partial_of_a_method
from functools import partial
class Users:
    async def show(self, kind: str, req: Request[Env], res: Response) -> None:
        res.json([kind, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.get("/a/:id", partial(Users().show, "a"))

### decorator_in_a_variable
app = create_app(Env)
users = app.get("/users/:id")
@users
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### method_of_a_router_in_a_variable
app = create_app(Env)
get = app.get
@get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### decorated_with_wraps
import functools
from collections.abc import Awaitable, Callable
Handles = Callable[[Request[Env], Response], Awaitable[None]]
def timed(handler: Handles) -> Handles:
    @functools.wraps(handler)
    async def inner(req: Request[Env], res: Response) -> None:
        await handler(req, res)
    return inner
app = create_app(Env)
@app.get("/users/:id")
@timed
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### decorator_that_sends_what_is_returned
from collections.abc import Awaitable, Callable
from functools import wraps
def answering(function: Callable[[D1Database, str], Awaitable[object]]) -> Callable[[Request[Env], Response], Awaitable[None]]:
    @wraps(function)
    async def run(req: Request[Env], res: Response) -> None:
        res.json(await function(req.env.DB, req.params["id"]))
    return run
app = create_app(Env)
@app.get("/users/:id")
@answering
async def show(db: D1Database, id: str) -> dict[str, object]:
    return {"users": await db.prepare("SELECT name FROM users").all()}

### decorated_without_wraps
from collections.abc import Awaitable, Callable
Handles = Callable[[Request[Env], Response], Awaitable[None]]
def timed(handler: Handles) -> Handles:
    async def inner(req: Request[Env], res: Response) -> None:
        await handler(req, res)
    return inner
app = create_app(Env)
@app.get("/users/:id")
@timed
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
async def listed(req: Request[Env], res: Response) -> None:
    res.json((await req.env.DB.prepare("SELECT id FROM users").all()).results)
app.get("/users", timed(listed))

### decorated_twice
import functools
from collections.abc import Awaitable, Callable
Handles = Callable[[Request[Env], Response], Awaitable[None]]
def cached(seconds: int) -> Callable[[Handles], Handles]:
    def decorate(handler: Handles) -> Handles:
        async def inner(req: Request[Env], res: Response) -> None:
            res.header("Cache-Control", f"max-age={seconds}")
            await handler(req, res)
        return inner
    return decorate
def logged(handler: Handles) -> Handles:
    @functools.wraps(handler)
    async def inner(req: Request[Env], res: Response) -> None:
        await handler(req, res)
    return inner
app = create_app(Env)
@app.get("/users/:id")
@cached(60)
@logged
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### decorated_by_a_class
from collections.abc import Awaitable, Callable
Handles = Callable[[Request[Env], Response], Awaitable[None]]
class Timed:
    def __init__(self, handler: Handles) -> None:
        self._handler = handler
    async def __call__(self, req: Request[Env], res: Response) -> None:
        await self._handler(req, res)
app = create_app(Env)
@app.get("/users/:id")
@Timed
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### decorated_with_more_arguments
from collections.abc import Awaitable, Callable
@attrs.frozen
class User:
    id: int
    name: str
def with_user(handler: Callable[[Request[Env], Response, User], Awaitable[None]]) -> Any:
    async def inner(req: Request[Env], res: Response) -> None:
        user = await req.env.DB.prepare("SELECT id, name FROM users WHERE id = ?").bind(req.params["id"]).first(User)
        if user is None:
            raise CoreError(404, "none")
        await handler(req, res, user)
    return inner
app = create_app(Env)
@app.get("/users/:id")
@with_user
async def show(req: Request[Env], res: Response, user: User) -> None:
    res.json([user, req.params["id"]])

### decorated_methods
import functools
def timed(method: Any) -> Any:
    @functools.wraps(method)
    async def inner(self: Any, req: Request[Env], res: Response) -> None:
        await method(self, req, res)
    return inner
class Users:
    @timed
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.get("/users/:id", Users().show)

### typed_decorator
import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec
P = ParamSpec("P")
def counted(handler: Callable[Concatenate[Request[Env], P], Awaitable[None]]) -> Callable[Concatenate[Request[Env], P], Awaitable[None]]:
    @functools.wraps(handler)
    async def inner(req: Request[Env], /, *args: P.args, **kwargs: P.kwargs) -> None:
        await handler(req, *args, **kwargs)
    return inner
app = create_app(Env)
@app.get("/users/:id")
@counted
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### routers_in_a_dict
routers: dict[str, Router[Env]] = {"users": Router(), "posts": Router()}
@routers["users"].get("/:id")
async def user(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
@routers["posts"].get("/:post")
async def post(req: Request[Env], res: Response) -> None:
    res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])
app = create_app(Env)
for name, router in routers.items():
    app.use(f"/{name}", router)

### routers_in_a_dataclass
from dataclasses import dataclass, field
@dataclass
class Api:
    users: Router[Env] = field(default_factory=Router)
    posts: Router[Env] = field(default_factory=Router)
api = Api()
@api.users.get("/:id")
async def user(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
@api.posts.get("/:post")
async def post(req: Request[Env], res: Response) -> None:
    res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])
app = create_app(Env)
app.use("/users", api.users)
app.use("/posts", api.posts)

### router_as_a_class_attribute
class Users:
    router: Router[Env] = Router()
    @staticmethod
    async def show(req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    router.get("/:id", show)
app = create_app(Env)
app.use("/users", Users.router)

### routers_nested
app = create_app(Env)
api: Router[Env] = Router()
orgs: Router[Env] = Router()
users: Router[Env] = Router()
@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["org"], req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
orgs.use("/:org/users", users)
api.use("/orgs", orgs)
app.use("/api/v1", api)

### routers_of_the_app
app = create_app(Env)
v1, v2 = app.Router(), app.Router()
@v1.get("/users/:id")
@v2.get("/people/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app.use("/v1", v1)
app.use("/v2", v2)

### router_mounted_later
users: Router[Env] = Router()
app = create_app(Env)
app.use("/users", users)
@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### routers_of_protocols
class HasDB(Protocol):
    @property
    def DB(self) -> D1Database: ...
users: Router[HasDB] = Router()
@users.get("/:id")
async def show(req: Request[HasDB], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.use("/users", users)

### handlers_behind_a_protocol
class Shows(Protocol):
    async def show(self, req: Request[Env], res: Response) -> None: ...
class Users:
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
def mount(app: App[Env], path: str, shows: Shows) -> None:
    app.get(path, shows.show)
app = create_app(Env)
mount(app, "/users/:id", Users())

### authenticated_views
@attrs.frozen
class User:
    id: int
    name: str
async def who(req: Request[Env]) -> User:
    user = await req.env.DB.prepare("SELECT id, name FROM users WHERE id = ?").bind(req.header("x")).first(User)
    if user is None:
        raise CoreError(401, "who")
    return user
app = create_app(Env)
mine = app.authenticated(who)
@mine.get("/mine/:id")
async def show(req: Request[Env, User], res: Response) -> None:
    res.json([req.user.name, req.params["id"]])

### authenticated_by_an_object
@attrs.frozen
class User:
    id: int
class Sessions:
    async def __call__(self, req: Request[Env]) -> User:
        id = await req.env.SESSIONS.get(req.header("x") or "")
        if id is None:
            raise CoreError(401, "who")
        return User(int(id))
app = create_app(Env)
users: Router[Env] = Router()
mine = users.authenticated(Sessions())
async def show(req: Request[Env, User], res: Response) -> None:
    res.json([req.user.id, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
mine.get("/:id", show)
app.use("/users", users)

### users_of_middleware
@attrs.frozen
class User:
    id: int
app = create_app(Env)
async def load(req: Request[Env], res: Response, next: Next) -> None:
    req.state["user"] = User(int(req.params["id"]))
    await next()
@app.get("/users/:id", load)
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.state["user"], await req.env.DB.prepare("SELECT id FROM users").all()])

### middleware_objects
@attrs.frozen
class Cached:
    seconds: int
    async def __call__(self, req: Request[Env], res: Response, next: Next) -> None:
        res.header("Cache-Control", f"max-age={self.seconds}")
        await next()
app = create_app(Env)
app.use("/users", Cached(60))
@app.get("/users/:id", Cached(10))
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### middleware_with_sql
app = create_app(Env)
async def counted(req: Request[Env], res: Response, next: Next) -> None:
    await next()
    await req.env.DB.prepare("UPDATE users SET score = score + 1 WHERE id = ?").bind(req.params["id"]).run()
@app.get("/users/:id", counted)
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])

### stack_of_middleware
app = create_app(Env)
STACK = (request_id(), logger(), secure_hdrs())
app.use(*STACK)
async def guard(req: Request[Env], res: Response, next: Next) -> None:
    await next()
GUARDS = [guard, rate_limit(kv_binding="SESSIONS", limit=1, window=60)]
@app.get("/users/:id", *GUARDS)
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### error_handlers
class Gone(Exception): ...
app = create_app(Env)
@app.on_error(Gone)
async def gone(err: Gone, req: Request[Env], res: Response, next: Next) -> None:
    res.status(410).json({"left": await req.env.DB.prepare("SELECT count(*) AS n FROM users").first("n")})
@app.not_found
async def nothing(req: Request[Env], res: Response) -> None:
    res.status(404).json({"error": "nothing"})
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    raise Gone(req.params["id"])

### lifespans
from collections.abc import AsyncIterator
app = create_app(Env)
@app.lifespan
async def life(env: Env) -> AsyncIterator[None]:
    await env.DB.prepare("DELETE FROM users WHERE id = ?").bind(0).run()
    yield

### consumers
app = create_app(Env)
@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.DB.prepare("DELETE FROM users WHERE id = ?").bind(message.body.id).run()
        message.ack()

### consumers_through_their_module
from . import jobs, names
app = create_app(Env)
app.queue(names.JOBS)(jobs.work)
#### names.py
JOBS = "jobs"
#### jobs.py
from core import ExecutionContext, MessageBatch
from env import Env, Job
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.DB.prepare("DELETE FROM users WHERE id = ?").bind(message.body.id).run()

### consumers_as_methods
class Jobs:
    async def __call__(self, batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
        for message in batch.messages:
            await self.one(env.DB, message.body)
    async def one(self, db: D1Database, job: Job) -> None:
        await db.prepare("DELETE FROM users WHERE id = ?").bind(job.id).run()
app = create_app(Env)
app.queue("jobs")(Jobs())

### modules
from .users import users
from . import posts
app = create_app(Env)
app.use("/users", users)
app.use("/posts", posts.router)
#### users.py
from core import Request, Response, Router
from env import Env
users: Router[Env] = Router()
@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
#### posts.py
from core import Request, Response, Router
from env import Env
router = Router[Env]()
@router.get("/:post")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])

### packages
from .api import api
app = create_app(Env)
app.use("/api", api)
#### api/__init__.py
from core import Router
from env import Env
from . import users
from .posts.routes import posts
api: Router[Env] = Router()
api.use("/users", users.router)
api.use("/posts", posts)
__all__ = ["api"]
#### api/users.py
from core import Request, Response, Router
from env import Env
from ..data.users import one
router: Router[Env] = Router()
@router.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await one(req.env.DB, req.params["id"]))
#### api/posts/__init__.py
#### api/posts/routes.py
from core import Request, Response, Router
from env import Env
from ...data import queries
posts: Router[Env] = Router()
@posts.get("/:post")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare(queries.POST).bind(req.params["post"]).first())
#### data/__init__.py
#### data/queries.py
POST = "SELECT id, title FROM posts WHERE id = ?"
#### data/users.py
from core import D1Database
async def one(db: D1Database, id: str) -> object:
    return await db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()

### handlers_apart_from_routes
from . import handlers
from .handlers import listed as everyone
app = create_app(Env)
app.get("/users/:id", handlers.show)
app.get("/users", everyone)
#### handlers.py
from core import Request, Response
from env import Env
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
async def listed(req: Request[Env], res: Response) -> None:
    res.json((await req.env.DB.prepare("SELECT id FROM users").all()).results)

### modules_by_computed_names
from importlib import import_module
app = create_app(Env)
for name in ("users", "posts"):
    app.use(f"/{name}", import_module(f".{name}", __package__).router)
#### users.py
from core import Request, Response, Router
from env import Env
router: Router[Env] = Router()
@router.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
#### posts.py
from core import Request, Response, Router
from env import Env
router: Router[Env] = Router()
@router.get("/:post")
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["post"])

### app_in_its_own_module
from .application import app
from . import users
__all__ = ["app", "users"]
#### application.py
from core import create_app
from env import Env
app = create_app(Env)
#### users.py
from core import Request, Response
from env import Env
from .application import app
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### imports_for_types_alone
from .users import users
app = create_app(Env)
app.use("/users", users)
#### users.py
from __future__ import annotations
from typing import TYPE_CHECKING
from core import Router
if TYPE_CHECKING:
    from core import Request, Response
    from env import Env
users: Router[Env] = Router()
@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### imports_inside_functions
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    from .data import one
    res.json(await one(req.env, req.params["id"]))
#### data.py
from env import Env
async def one(env: Env, id: str) -> object:
    return await env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()

### star_imports
from .handlers import *
app = create_app(Env)
app.get("/users/:id", show)
#### handlers.py
from core import Request, Response
from env import Env
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### conditional_registration
import os
app = create_app(Env)
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
if os.environ.get("NEVER_SET"):
    app.get("/debug/:other", show)
else:
    app.get("/users/:id", show)

### conditional_handlers
import sys
app = create_app(Env)
if sys.version_info >= (3, 11):
    async def show(req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
else:
    async def show(req: Request[Env], res: Response) -> None:
        res.json(None)
app.get("/users/:id", show)

### optional_package
try:
    import nothing_of_that_name as jsons  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    import json as jsons
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.text(jsons.dumps([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").first("id")]))

### same_name_twice
app = create_app(Env)
@app.get("/users/:id")
async def handler(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
@app.get("/posts/:post")  # type: ignore[no-redef, unused-ignore]
async def handler(req: Request[Env], res: Response) -> None:  # type: ignore[no-redef, unused-ignore]  # noqa
    res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])

### closures_in_a_dict
app = create_app(Env)
async def show(req: Request[Env], res: Response, kind: str) -> None:
    res.json([kind, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
def of(kind: str) -> Any:
    async def handler(req: Request[Env], res: Response) -> None:
        await show(req, res, kind)
    return handler
handlers = {kind: of(kind) for kind in ("a", "b")}
for kind, handler in handlers.items():
    app.get(f"/{kind}/:id", handler)

### generic_env
from typing import TypeVar
class HasDB(Protocol):
    @property
    def DB(self) -> D1Database: ...
E = TypeVar("E", bound=HasDB)
def listed(router: Router[E]) -> Router[E]:
    async def show(req: Request[HasDB], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
    router.get("/:id", show)
    return router
app = create_app(Env)
users: Router[Env] = Router()
app.use("/users", listed(users))

### env_inherited
@attrs.frozen
class More(Env):
    async def users(self) -> object:
        return await self.DB.prepare("SELECT id FROM users").all()
app = create_app(More)
@app.get("/users/:id")
async def show(req: Request[More], res: Response) -> None:
    res.json([req.params["id"], await req.env.users()])

### alias_of_request
from typing import TypeAlias
Req: TypeAlias = Request[Env]
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Req, res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### without_annotations
app = create_app(Env)
@app.get("/users/:id")
async def show(req, res):  # type: ignore[no-untyped-def]
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### text_annotations
app = create_app(Env)
@app.get("/users/:id")
async def show(req: "Request[Env]", res: "Response") -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### other_names_of_imports
import core
import core as framework
from core import Request as R, create_app as make
app = make(Env)
@app.get("/users/:id")
async def show(req: R[Env], res: core.Response) -> None:
    res.text(req.params["id"])
@app.get("/lists")
async def listed(request: framework.Request[Env], response: framework.Response) -> None:
    response.json((await request.env.DB.prepare("SELECT id FROM users").all()).results)

### apps_mounted
from core import http
app = create_app(Env)
inner = create_app(Env)
@inner.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app.mount("/users", inner.fetch)
async def legacy(scope: Any, receive: Any, send: Any) -> None: ...
app.mount("/legacy", legacy)

### sockets
app = create_app(Env)
@app.websocket("/rooms/:id")
async def chat(req: Request[Env], socket: Any) -> None:
    await req.env.DB.prepare("UPDATE users SET score = 1 WHERE id = ?").bind(req.params["id"]).run()

### sql_in_constants
FIND: Final = "SELECT id, name FROM users WHERE id = ?"
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare(FIND).bind(req.params["id"]).first())

### sql_in_class_attributes
class Queries:
    FIND = "SELECT id, name FROM users WHERE id = ?"
    ALL: Final = "SELECT id FROM users"
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare(Queries.FIND).bind(req.params["id"]).first())
    await req.env.DB.prepare(Queries.ALL).all()

### sql_in_another_module
from . import sql
from .sql import ALL as EVERYONE
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare(EVERYONE).all()
    res.json(await req.env.DB.prepare(sql.FIND).bind(req.params["id"]).first())
#### sql.py
COLUMNS = "id, name"
FIND = f"SELECT {COLUMNS} FROM users WHERE id = ?"
ALL = "SELECT " + COLUMNS + " FROM users"

### sql_over_lines
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    found = await req.env.DB.prepare(
        """
        SELECT u.id,
               u.name
        FROM users u
        WHERE u.id = ?
        """
    ).bind(req.params["id"]).first()
    other = await (
        req.env.DB
        .prepare("SELECT id "
                 "FROM users "
                 "WHERE id = ?")
        .bind(req.params["id"])
        .all()
    )
    res.json([found, other.results])

### sql_of_parts
COLUMNS = "id, name"
TABLE = "users"
ORDERS = {"name": "name ASC", "new": "created_at DESC"}
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    order = ORDERS.get(req.query.get("order") or "", "id")
    rows = await req.env.DB.prepare(f"SELECT {COLUMNS} FROM {TABLE} WHERE id > ? ORDER BY {order}").bind(req.params["id"]).all()
    res.json(rows.results)

### sql_in_enums
from enum import StrEnum
class Sql(StrEnum):
    FIND = "SELECT id FROM users WHERE id = ?"
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare(Sql.FIND).bind(req.params["id"]).first())

### sql_in_dicts
QUERIES: Final = {"find": "SELECT id FROM users WHERE id = ?", "all": "SELECT id FROM users"}
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await req.env.DB.prepare(QUERIES["find"]).bind(req.params["id"]).first())

### repositories
@attrs.frozen
class User:
    id: int
    name: str
@attrs.frozen
class Users:
    db: D1Database
    async def one(self, id: str) -> User | None:
        return await self.db.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first(User)
    async def all(self) -> Sequence[User]:
        return (await self.db.prepare("SELECT id, name FROM users").all(User)).results
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    users = Users(req.env.DB)
    res.json([await users.one(req.params["id"]), await users.all()])

### repositories_by_init
class Repository:
    def __init__(self, db: D1Database) -> None:
        self._db = db
class Users(Repository):
    async def one(self, id: str) -> object:
        return await self._db.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await Users(req.env.DB).one(req.params["id"]))

### repositories_of_an_env
class Users:
    def __init__(self, env: Env) -> None:
        self.env = env
        self.db = env.DB
    async def one(self, id: str) -> object:
        return await self.env.DB.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first()
    async def all(self) -> object:
        return await self.db.prepare("SELECT id FROM users").all()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    users = Users(req.env)
    res.json([await users.one(req.params["id"]), await users.all()])

### repositories_behind_a_protocol
class UsersOf(Protocol):
    async def one(self, id: str) -> object: ...
@attrs.frozen
class D1Users:
    db: D1Database
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
def users_of(env: Env) -> UsersOf:
    return D1Users(env.DB)
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await users_of(req.env).one(req.params["id"]))

### generic_repositories
from typing import ClassVar, Generic, TypeVar
T = TypeVar("T")
@attrs.frozen
class User:
    id: int
    name: str
@attrs.frozen
class Repository(Generic[T]):
    db: D1Database
class Users(Repository[User]):
    async def one(self, id: str) -> User | None:
        return await self.db.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first(User)
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await Users(req.env.DB).one(req.params["id"]))

### queries_as_functions
async def one(db: D1Database, id: str) -> object:
    return await db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
async def all_of(env: Env) -> object:
    db = env.DB
    return (await db.prepare("SELECT id FROM users").all()).results
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    db, id = req.env.DB, req.params["id"]
    res.json([await one(db, id), await all_of(req.env), await db.prepare("SELECT id FROM users").all()])

### helpers_that_take_the_request
async def load(req: Request[Env]) -> object:
    return await req.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(req.params["id"]).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await load(req))

### batches
app = create_app(Env)
@app.post("/users/:id")
async def save(req: Request[Env], res: Response) -> None:
    db = req.env.DB
    insert = db.prepare("INSERT INTO posts (user_id, title) VALUES (?, ?)")
    id = req.params["id"]
    await db.batch([insert.bind(id, "a"), db.prepare("DELETE FROM posts WHERE user_id = ?").bind(id)])
    res.send()

### sessions
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    session = req.env.DB.with_session("first-unconstrained")
    res.json(await session.prepare("SELECT id FROM users WHERE id = ?").bind(req.params["id"]).first())

### unpacked_env
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    env, params = req.env, req.params
    found = await env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(params["id"]).first()
    if (id := req.params["id"]) and found:
        res.json([id, found])

### conditional_database
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    db = req.env.DB if req.params["id"] else req.env.DB
    res.json(await db.prepare("SELECT id FROM users").all())

### durable_objects
from core import DurableObject, http
class Room(DurableObject[Env]):
    async def fetch(self, request: http.Request) -> http.Response:
        await self.env.DB.prepare("UPDATE users SET score = 1 WHERE id = ?").bind(1).run()
        return http.Response("ok")
app = create_app(Env)

### cached_services
from functools import cached_property
@attrs.define(slots=False)
class Services:
    env: Env
    @cached_property
    def db(self) -> D1Database:
        return self.env.DB
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await Services(req.env).one(req.params["id"]))

### handlers_of_a_service_container
class Api:
    def __init__(self, title: str) -> None:
        self.title = title
        self.app = create_app(Env)
        self.routes()
    def routes(self) -> None:
        app = self.app
        @app.get("/users/:id")
        async def show(req: Request[Env], res: Response) -> None:
            res.json([self.title, req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
        self.app.get("/again/:id")(self.again)
    async def again(self, req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])
app = Api("a").app

### enum_of_paths
from enum import Enum
class Path(str, Enum):
    USER = "/users/:id"
class Paths:
    POST = "/posts/:post"
app = create_app(Env)
@app.get(Path.USER.value)
async def user(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
@app.get(Paths.POST)
async def post(req: Request[Env], res: Response) -> None:
    res.json([req.params["post"], await req.env.DB.prepare("SELECT id FROM posts").all()])

### links
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.url_for(show, id=req.params["id"]), await req.env.DB.prepare("SELECT id FROM users").all()])
class Posts:
    async def show(self, req: Request[Env], res: Response) -> None:
        res.text(req.url_for(self.show, post=req.params["post"]))
posts = Posts()
app.get("/posts/:post", posts.show)

### response_models
from typing import Generic, TypeVar
T = TypeVar("T")
@attrs.frozen
class Page(Generic[T]):
    items: Sequence[T]
@attrs.frozen
class User:
    id: int
    name: str
async def page(db: D1Database) -> Page[User]:
    return Page((await db.prepare("SELECT id, name FROM users").all(User)).results)
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([await page(req.env.DB), req.params["id"]])

### returned_responses
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> Response:
    match await req.env.DB.prepare("SELECT name FROM users WHERE id = ?").bind(req.params["id"]).first("name"):
        case None:
            return res.status(404).json(None)
        case name:
            return res.json(name)

### two_apps
app = create_app(Env)
admin = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
@admin.get("/admin/:name")
async def manage(req: Request[Env], res: Response) -> None:
    res.text(req.params["name"])

### lambdas
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    rows = (await req.env.DB.prepare("SELECT id FROM users").all()).results
    res.json(sorted(rows, key=lambda row: (row["id"], req.params["id"])))

### parsed_params
@attrs.frozen
class Wanted:
    id: int
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    wanted = req.params.parse(Wanted)
    res.json([wanted, await req.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(wanted.id).first()])

### application_of_another_name
api = create_app(Env)
@api.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
#### wrangler.toml
[core]
app = "application_of_another_name.app:api"

### main_in_a_folder
from .src import main
#### wrangler.toml
main = "src/main.py"
#### src/__init__.py
#### src/main.py
from core import create_app
from env import Env
from .users import users
app = create_app(Env)
app.use("/users", users)
#### src/users.py
from core import Request, Response, Router
from env import Env
users: Router[Env] = Router()
@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### helpers_of_other_modules
from . import guards, loaders
from .loaders import Loader
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    guards.allowed(req)
    res.json([await loaders.load(req.env, req), await Loader(req.env).one(req), Loader.name(req)])
#### guards.py
from core import CoreError, Request
from env import Env
def allowed(req: Request[Env]) -> None:
    if req.params["id"] == "0":
        raise CoreError(403, "no")
#### loaders.py
from core import Request
from env import Env
async def load(env: Env, request: Request[Env]) -> object:
    return await env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(request.params["id"]).first()
class Loader:
    def __init__(self, env: Env) -> None:
        self.env = env
    async def one(self, request: Request[Env]) -> object:
        return await self.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(request.params["id"]).first()
    @staticmethod
    def name(request: Request[Env]) -> str:
        return request.params["id"]

### helpers_as_methods
class Users:
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json(await self._load(req))
    async def _load(self, req: Request[Env]) -> object:
        return await req.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(self._id(req)).first()
    def _id(self, req: Request[Env]) -> str:
        return req.params["id"]
app = create_app(Env)
app.get("/users/:id", Users().show)

### wrapped_with_any_arguments
import functools
def logged(function: Any) -> Any:
    @functools.wraps(function)
    async def inner(*args: Any, **options: Any) -> None:
        await function(*args, **options)
    return inner
app = create_app(Env)
class Users:
    @logged
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app.get("/users/:id", Users().show)
@app.get("/posts/:post")
@logged
async def post(req: Request[Env], res: Response) -> None:
    res.text(req.params["post"])

### methods_decorated_without_wraps
def logged(method: Any) -> Any:
    async def inner(self: Any, req: Request[Env], res: Response) -> None:
        await method(self, req, res)
    return inner
class Users:
    @logged
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
app.get("/users/:id", Users().show)

### decorators_as_methods
import functools
class Limits:
    def __init__(self, most: int) -> None:
        self.most = most
    def limited(self, handler: Any) -> Any:
        @functools.wraps(handler)
        async def inner(req: Request[Env], res: Response) -> None:
            res.header("X-Most", str(self.most))
            await handler(req, res)
        return inner
limits = Limits(5)
app = create_app(Env)
@app.get("/users/:id")
@limits.limited
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])

### handlers_in_a_namespace
from types import SimpleNamespace
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
handlers = SimpleNamespace(show=show)
app = create_app(Env)
app.get("/users/:id", handlers.show)

### metaclass_registry
class Resource:
    every: "list[type[Resource]]" = []
    path = ""
    def __init_subclass__(cls) -> None:
        Resource.every.append(cls)
    async def show(self, req: Request[Env], res: Response) -> None:
        raise NotImplementedError
class Users(Resource):
    path = "/users/:id"
    async def show(self, req: Request[Env], res: Response) -> None:
        res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
app = create_app(Env)
for resource in Resource.every:
    app.get(resource.path, resource().show)

### service_with_two_databases
@attrs.frozen
class Service:
    users: D1Database
    lines: D1Database
    async def audit(self, id: str) -> None:
        await self.lines.prepare("INSERT INTO lines (id, at, text) SELECT 'a', 1, 'b' WHERE 1 = ?").bind(1).run()
    async def one(self, id: str) -> object:
        return await self.users.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    service = Service(req.env.DB, lines=req.env.LOG)
    await service.audit(req.params["id"])
    res.json(await service.one(req.params["id"]))

### unit_of_work
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
@attrs.frozen
class Work:
    db: D1Database
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
@asynccontextmanager
async def work(env: Env) -> AsyncIterator[Work]:
    yield Work(env.DB)
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    async with work(req.env) as unit:
        res.json([await unit.one(req.params["id"]), await unit.db.prepare("SELECT id FROM users").all()])

### dependencies_in_state
@attrs.frozen
class Services:
    db: D1Database
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
async def provide(req: Request[Env], res: Response, next: Next) -> None:
    req.state["services"] = Services(req.env.DB)
    await next()
app.use(provide)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    services: Services = req.state["services"]
    res.json([await services.one(req.params["id"]), await services.db.prepare("SELECT id FROM users").all()])

### objects_as_parameters
@attrs.frozen
class Services:
    db: D1Database
async def one(services: Services, id: str) -> object:
    return await services.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
class Users:
    def __init__(self, services: Services) -> None:
        self.services = services
    async def all(self) -> object:
        return await self.services.db.prepare("SELECT id FROM users").all()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    services = Services(req.env.DB)
    res.json([await one(services, req.params["id"]), await Users(services).all()])

### optional_databases
async def one(db: D1Database | None, id: str) -> object:
    if db is None:
        return None
    return await db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await one(req.env.DB, req.params["id"]))

### databases_of_methods
class Users:
    def __init__(self, env: Env) -> None:
        self._env = env
    def _db(self) -> D1Database:
        return self._env.DB
    async def one(self, id: str) -> object:
        return await self._db().prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
def database(req: Request[Env]) -> D1Database:
    return req.env.DB
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    found = await database(req).prepare("SELECT id FROM users").all()
    res.json([await Users(req.env).one(req.params["id"]), found.results])

### statements_of_methods
class Users:
    def __init__(self, db: D1Database) -> None:
        self.db = db
    def by_id(self, id: str) -> D1PreparedStatement:
        return self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id)
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await Users(req.env.DB).by_id(req.params["id"]).first())

### inherited_repositories
from abc import ABC, abstractmethod
class Repository(ABC):
    @property
    @abstractmethod
    def table(self) -> str: ...
    def __init__(self, env: Env) -> None:
        super().__init__()
        self.env, self.db = env, env.DB
class Users(Repository):
    @property
    def table(self) -> str:
        return "users"
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await Users(req.env).one(req.params["id"]))

### decorated_queries
import functools
def retried(function: Any) -> Any:
    @functools.wraps(function)
    async def inner(*args: Any) -> Any:
        return await function(*args)
    return inner
class Users:
    def __init__(self, env: Env) -> None:
        self.db = env.DB
    @retried
    async def one(self, id: str) -> object:
        return await self.db.prepare("SELECT id FROM users WHERE id = ?").bind(id).first()
@retried
async def every(db: D1Database) -> object:
    return await db.prepare("SELECT id FROM users").all()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([await Users(req.env).one(req.params["id"]), await every(req.env.DB)])

### gathered
import asyncio
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    db = req.env.DB
    user, posts = await asyncio.gather(
        db.prepare("SELECT id FROM users WHERE id = ?").bind(req.params["id"]).first(),
        db.prepare("SELECT id FROM posts").all(),
    )
    res.json([user, posts])

### nested_functions
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    async def load() -> object:
        return await req.env.DB.prepare("SELECT id FROM users WHERE id = ?").bind(req.params["id"]).first()
    res.json(await load())

### crons
app = create_app(Env)
@app.scheduled()
async def nightly(event: Any, env: Env, ctx: ExecutionContext) -> None:
    await env.DB.prepare("DELETE FROM users WHERE id = ?").bind(1).run()

### paths_of_more_than_names
app = create_app(Env)
@app.get("/users/:id{[0-9]+}")
async def user(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"])
@app.get("/files/:kind/*")
async def files(req: Request[Env], res: Response) -> None:
    res.json([req.params["kind"], req.params["*"]])
@app.get("/pages/:page?")
async def pages(req: Request[Env], res: Response) -> None:
    res.json([req.params.get("page"), await req.env.DB.prepare("SELECT id FROM users").all()])

### every_method
app = create_app(Env)
async def handle(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT id FROM users").all()])
for register in (app.get, app.post, app.put, app.patch, app.delete):
    register("/users/:id", handle)
app.on("OPTIONS", "/users/:id", handle)
app.all("/all/:id", handle)

### streams_and_events
from collections.abc import AsyncIterator
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    async def rows() -> AsyncIterator[bytes]:
        found = await req.env.DB.prepare("SELECT name FROM users WHERE id = ?").bind(req.params["id"]).all()
        for row in found.results:
            yield str(row).encode()
    res.stream(rows())

### values_of_dataclasses
from dataclasses import dataclass
@dataclass(frozen=True)
class User:
    id: int
    name: str
    @classmethod
    async def load(cls, db: D1Database, id: str) -> "User | None":
        return await db.prepare("SELECT id, name FROM users WHERE id = ?").bind(id).first(cls)
    async def save(self, db: D1Database) -> None:
        await db.prepare("UPDATE users SET name = ? WHERE id = ?").bind(self.name, self.id).run()
app = create_app(Env)
@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(await User.load(req.env.DB, req.params["id"]))
'''
)

_WORKER = """\
import attrs
from core import Bindings, D1Database, Request, Response, create_app
from shared.users import users

@attrs.frozen
class Env(Bindings):
    DB: D1Database

app = create_app(Env)
app.use("{prefix}", users)

@app.get("/health")
async def health(req: Request[Env], res: Response) -> None:
    res.text("{name}")
"""

MONOREPO = {
    "mypy.ini": "[mypy]\nplugins = core.mypy_plugin\n",
    "apps/__init__.py": "",
    "apps/users/main.py": _WORKER.format(name="users", prefix="/users"),
    "apps/admin/main.py": _WORKER.format(name="admin", prefix="/teams/:team"),
    "shared/__init__.py": "",
    "shared/users.py": """\
from typing import Protocol
from core import D1Database, Request, Response, Router

class HasDB(Protocol):
    @property
    def DB(self) -> D1Database: ...

users: Router[HasDB] = Router()

@users.get("/:id")
async def show(req: Request[HasDB], res: Response) -> None:
    res.json([req.params["id"], await req.env.DB.prepare("SELECT name FROM users").all()])
""",
}
"""Two workers and the package that both of them import."""
