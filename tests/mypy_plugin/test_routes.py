"""Routes that no request reaches, and mounts of nothing (`core-route`)."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project


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
