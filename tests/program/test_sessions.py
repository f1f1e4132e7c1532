"""`core-order`: a session that is opened where no `sessions()` stands before."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.load import load_all
from core.program.proof import check_program

HEAD = """
from core import App, Next, Request, Response, Router
from core.middleware.sessions import session_of, sessions

app: App[None] = App()
made = sessions(kv_binding=lambda req: None, secret=lambda req: "x" * 40)

async def cart(req: Request, res: Response) -> None:
    session = await session_of(req)
    res.json(dict(session))

async def name_of(req: Request) -> str:
    return str((await session_of(req)).get("name"))

async def named(req: Request, res: Response) -> None:
    res.text(await name_of(req))

async def plain(req: Request, res: Response) -> None:
    res.text("x")

async def early(req: Request, res: Response, next: Next) -> None:
    await session_of(req)
    await next()

async def around(req: Request, res: Response, next: Next) -> None:
    await made(req, res, next)
"""


def found(place: Path, text: str) -> list[tuple[str, str]]:
    (place / "wrangler.toml").write_text('name = "x"\nmain = "main.py"\n')
    (place / "main.py").write_text(HEAD + text)
    lines = (HEAD + text).splitlines()
    found = check_program(load_all(place / "wrangler.toml"))
    return [(lines[each.line - 1].strip(), each.message) for each in found if each.code == "core-order"]


@pytest.mark.parametrize(
    ("text", "line", "opens"),
    [
        ('app.get("/", cart)', "session = await session_of(req)", 'cart opens the session, and get("/")'),
        (
            'app.get("/", named)',
            'return str((await session_of(req)).get("name"))',
            'named opens the session, and get("/")',
        ),
        (
            'app.get("/", cart)\napp.use(made)',
            "session = await session_of(req)",
            'cart opens the session, and get("/")',
        ),
        ('app.use(early, made)\napp.get("/", cart)', "await session_of(req)", 'early opens the session, and get("/")'),
        (
            'app.use("/a", made)\nshop: Router[None] = Router()\nshop.post("/", cart)\napp.use("/b", shop)',
            "session = await session_of(req)",
            'cart opens the session, and post("/b")',
        ),
    ],
)
def test_a_session_without_its_middleware_is_told_at_the_call(tmp_path: Path, text: str, line: str, opens: str) -> None:
    assert found(tmp_path, text) == [
        (line, f"{opens} has no sessions() before it. Register it first: app.use(sessions(…))")
    ]


@pytest.mark.parametrize(
    "text",
    [
        'app.use(made)\napp.get("/", cart)\napp.get("/named", named)',
        'app.use(made, early)\napp.get("/", cart)',
        'app.get("/", made, cart)',
        'app.use(around)\napp.get("/", cart)',
        'app.get("/", plain)',
    ],
)
def test_a_session_behind_its_middleware_is_right(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []
