"""Routes that no request reaches, and mounts of nothing (`core-route`)."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Checked, Project


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


def test_a_function_that_is_no_tool_is_told_by_mypy_and_by_core_check(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        from core import Request, create_app
        from core.mcp import MCP
        from env import Env

        app = create_app(Env)
        mcp = MCP(app, "notes")

        @mcp.tool
        #^ core-route: tool no_type: id has no type. Annotate it: id: str
        async def no_type(req: Request[Env], id) -> str:  # type: ignore[no-untyped-def]
            \"""Words.\"""
            return ""

        @mcp.tool
        #^ core-route: tool no_return: it does not say what it returns. Annotate it: -> str
        async def no_return(req: Request[Env]):  # type: ignore[no-untyped-def]
            \"""Words.\"""

        @mcp.tool
        #^ core-route: tool no_words: no_words has no docstring, which is what a model chooses by. Write one
        async def no_words(req: Request[Env], id: int) -> str:
            return ""

        @mcp.tool(name="not a name")
        #^ core-route: tool not a name: a name has 1 to 128 letters, digits, `_`, `-` and `.` (SEP-986). Give name=…
        async def named(req: Request[Env]) -> str:
            \"""Words.\"""
            return ""

        @mcp.tool
        #^ core-route: tool holds: data is or has bytes, which JSON cannot hold. Use a str, a number, a list, a dict or an attrs class
        async def holds(req: Request[Env], data: dict[str, bytes]) -> str:
            \"""Words.\"""
            return ""
        """,
    )
    project.check()
    Checked(project.root, project.cache).check()
