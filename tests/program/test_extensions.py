"""The middleware of a package is checked by what the package declares of it, as the framework's own is."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.config.load import load_all
from core.program.extensions import declared
from core.program.proof import check_program

ACME = {
    "acme_core/__init__.py": "from acme_core.quota import quota as quota",
    "acme_core/quota.py": """
        def quota(store, *, files=""):
            async def step(req, res, next): await next()
            return step
        def answers():
            async def step(req, res, next): res.send()
            return step
        def traced():
            async def step(req, res, next): await next()
            return step
        def audit():
            async def step(req, res, next): await next()
            return step
        """,
    "acme_core/declared.py": """
        from core.extensions import DeclaredMiddleware, Extension

        EXTENSION = Extension(
            middleware=[
                DeclaredMiddleware(
                    "acme_core.quota.quota",
                    exported_as=["acme_core.quota"],
                    bindings={"store": "KVNamespace", "files": "R2Bucket"},
                    first="store",
                ),
                DeclaredMiddleware("acme_core.quota.answers", answers=True),
                DeclaredMiddleware("acme_core.quota.traced", provides=["req.trace"]),
                DeclaredMiddleware("acme_core.quota.audit", reads=["req.trace"]),
            ],
        )
        """,
    "acme_core-1.0.dist-info/entry_points.txt": "[core.extensions]\nacme = acme_core.declared:EXTENSION\n",
}


@pytest.fixture(autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that is installed, with an entry point."""
    place = tmp_path_factory.mktemp("installed") / "site-packages"
    for name, text in ACME.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(textwrap.dedent(text))
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    declared.cache_clear()
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_core"]:
        del sys.modules[name]
    declared.cache_clear()


def test_its_middleware_is_checked(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(
        'name = "x"\nmain = "app.py"\n[[kv_namespaces]]\nbinding = "SESSIONS"\n[vars]\nORIGIN = "x"\n'
    )
    (tmp_path / "app.py").write_text(
        textwrap.dedent("""\
        import attrs
        from acme_core.quota import answers, audit, quota, traced
        from core import Bindings, KVNamespace, Request, Response, create_app

        @attrs.frozen
        class Env(Bindings):
            SESSIONS: KVNamespace
            ORIGIN: str

        app = create_app(Env)
        async def show(req: Request[Env], res: Response) -> None: ...
        app.use(quota("SESSIONS"))
        app.use(quota("SESSION"))
        app.use(quota("SESSIONS", files="ORIGIN"))
        app.get("/a", answers(), show)
        app.use("/b", audit())
        app.use("/b", traced())
        """)
    )
    found = check_program(load_all(tmp_path / "wrangler.toml"))
    assert [(one.line, one.code, one.message.partition(". ")[0]) for one in found] == [
        (13, "core-binding", 'quota("SESSION"): Env has no attribute SESSION'),
        (14, "core-binding", 'quota(files="ORIGIN"): Env.ORIGIN is a str, not an R2Bucket'),
        (15, "core-params", 'answers() answers every request, so everything after it in get("/a") never runs'),
        (
            17,
            "core-order",
            "audit() is registered before traced() on /b but reads req.trace, which traced() provides",
        ),
    ]
