"""Routes that no request reaches, and mounts of nothing (`core-route`)."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project


def test_a_route_behind_one_that_answers_is_never_reached(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        from core import Next, Request, Response, Router, create_app
        from env import Env

        app = create_app(Env)
        users: Router[Env] = app.Router()
        app.use("/users", users)
        ADMIN = "/admin"

        async def who(req: Request[Env]) -> str:
            return "me"

        signed_in = users.authenticated(who)

        async def check(req: Request[Env], res: Response, next: Next) -> None:
            await next()

        async def plain(req: Request[Env], res: Response) -> None: ...

        @users.get("/:id")
        async def show(req: Request[Env], res: Response) -> None: ...

        @users.get("/me")
        #^ core-route: get("/me") is never reached: get("/:id") is registered before it, and answers. Register get("/me") first
        async def me(req: Request[Env], res: Response) -> None: ...

        @users.post("/me")
        async def change(req: Request[Env], res: Response) -> None: ...

        @signed_in.get("/:name/")
        #^ core-route: get("/:name/") is never reached: get("/:id") is registered before it, and answers. Register get("/:name/") first
        async def named(req: Request[Env, str], res: Response) -> None: ...

        @users.head("/:id")
        #^ core-route: head("/:id") is never reached: get("/:id") is registered before it, and answers. Register head("/:id") first
        async def head(req: Request[Env], res: Response) -> None: ...

        app.get(ADMIN, check, plain)
        app.get("/admin", plain)
        #^ core-route: get("/admin") is registered twice, and the first one answers: this one is never reached. Leave one of them out

        app.all("/files/*", plain)
        app.get("/files/a/b", plain)
        #^ core-route: get("/files/a/b") is never reached: all("/files/*") is registered before it, and answers. Register get("/files/a/b") first
        app.get("/files", plain)
        app.on("PURGE", "/files/x", plain)
        #^ core-route: purge("/files/x") is never reached: all("/files/*") is registered before it, and answers. Register purge("/files/x") first

        app.get("/orders/:order{[0-9]+}", plain)
        app.get("/orders/:order{[0-9]+}", plain)
        #^ core-route: get("/orders/:order{[0-9]+}") is registered twice, and the first one answers: this one is never reached. Leave one of them out
        app.get("/orders/:order{[a-z]+}", plain)

        app.use("/nothing", Router())
        #^ core-route: use("/nothing", Router()) mounts nothing: the router has neither routes nor middleware. Register them on it, or leave it out
        """,
    )
    project.check()


def test_routes_that_may_be_reached_are_silent(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        import sys

        from core import App, Next, Request, Response, Router, create_app
        from env import Env

        app = create_app(Env)

        async def maybe(req: Request[Env], res: Response, next: Next) -> None:
            await next()

        async def plain(req: Request[Env], res: Response) -> None: ...

        app.get("/:id", maybe)          # goes on
        app.get("/me", plain)
        app.get("/a/:id", plain)
        app.get("/a", plain)
        app.get("/a/b/c", plain)
        app.get("/b/*", maybe)
        app.get("/b/x", plain)

        if sys.argv:
            app.get("/debug", plain)
        else:
            app.get("/debug", plain)
        app.get("/debug", plain)

        def register(router: Router[Env], path: str) -> None:
            router.get(path, plain)
            router.get("/x", plain)

        def register_more(router: Router[Env]) -> None:
            router.get("/x", plain)

        one: Router[Env] = Router()
        register(one, "/x")
        router: Router[Env] = Router()
        router.get("/x", plain)
        app.use("/one", one)
        app.use("/router", router)
        router = Router()
        router.get("/x", plain)
        app.use("/other", router)

        def make() -> App[Env]:
            made = create_app(Env)
            made.get("/me", plain)
            return made
        """,
    )
    project.check()


def test_a_route_behind_a_method_that_answers_is_never_reached(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        from core import Next, Request, Response, create_app
        from env import Env

        app = create_app(Env)

        class Pages:
            async def show(self, req: Request[Env], res: Response) -> None: ...

            async def timed(self, req: Request[Env], res: Response, next: Next) -> None: ...

        pages = Pages()
        app.get("/notes/:id", pages.show)
        app.get("/notes/new", pages.show)
        #^ core-route: get("/notes/new") is never reached: get("/notes/:id") is registered before it, and answers. Register get("/notes/new") first
        """,
    )
    project.check()
