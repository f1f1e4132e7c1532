"""`core-binding`: names of bindings given as texts, against the Env of the router they land on."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

HEAD = """\
from typing import Any, Final, Protocol
import attrs
from core import App, Bindings, KVNamespace, Request, Response, Router, create_app
from core.middleware.rate_limit import rate_limit
from env import Env
"""


def test_a_literal_name_is_checked_inline(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
app = create_app(Env)
app.use(rate_limit(kv_binding="SESSIONS", limit=1, window=60))
app.use(rate_limit(kv_binding="SESIONS", limit=1, window=60))
#^ core-binding: rate_limit(kv_binding="SESIONS"): Env has no attribute SESIONS. Did you mean SESSIONS?
app.use("/x", rate_limit(kv_binding="DB", limit=1, window=60))
#^ core-binding: rate_limit(kv_binding="DB"): Env.DB is a D1Database, not a KVNamespace. Did you mean SESSIONS?
app.get(
    "/y",
    rate_limit(
        kv_binding="COUNTERS",
        limit=1,
        window=60,
    ),
)
""",
    )
    told = project.mypy()
    assert told == [
        (
            'app.py:9: error: rate_limit(kv_binding="SESIONS"): Env has no attribute SESIONS. Did you mean SESSIONS?  '
            "[core-binding]"
        ),
        (
            'app.py:11: error: rate_limit(kv_binding="DB"): Env.DB is a D1Database, not a KVNamespace. Did you mean '
            "SESSIONS?  [core-binding]"
        ),
        (
            'app.py:15: error: rate_limit(kv_binding="COUNTERS"): Env has no attribute COUNTERS. Write COUNTERS: '
            "KVNamespace on Env  [core-binding]"
        ),
    ]


def test_only_public_async_methods_are_called_on_a_stub(project: Project) -> None:
    project.write(
        "wrangler.toml",
        """
        name = "shop"
        main = "app.py"

        [[durable_objects.bindings]]
        name = "COUNTERS"
        class_name = "Counter"

        [[durable_objects.bindings]]
        name = "OTHERS"
        class_name = "Counter"

        [[migrations]]
        tag = "v1"
        new_sqlite_classes = ["Counter"]
        """,
    )
    project.write(
        "app.py",
        """
        from typing import Protocol

        import attrs

        from core import Bindings, DurableObject, DurableObjectNamespace, Request, Response, create_app

        class Counter(DurableObject["Env"]):
            total: int = 0

            MOST = 20

            async def increment(self, by: int = 1) -> int:
                self.reset()
                self._total = self.total
                return await self._add(by)

            async def _add(self, by: int) -> int:
                return by

            def reset(self) -> None: ...

            def incremented(self) -> int:
                return self.total

            @property
            def doubled(self) -> int:
                return self.total * 2

        class CounterApi(Protocol):
            async def increment(self) -> int: ...

            def reset(self) -> None: ...

        @attrs.frozen
        class Env(Bindings):
            COUNTERS: DurableObjectNamespace[Counter]
            OTHERS: DurableObjectNamespace[CounterApi]

        app = create_app(Env)

        @app.get("/")
        async def show(req: Request[Env], res: Response) -> None:
            counters = req.env.COUNTERS
            stub = counters.get(counters.id_from_name("a"))
            await stub.increment()
            stub.reset()
            #^ core-binding: Counter.reset cannot be called on a stub: it is not async. Write async def reset in Counter
            req.env.COUNTERS.get_by_name("a").incremented()
            #^ core-binding: Counter.incremented cannot be called on a stub: it is not async. Did you mean increment?
            await stub._add(1)
            #^ core-binding: Counter._add cannot be called on a stub: it is private. Give it a public name
            res.json({"total": stub.total, "id": str(stub.id), "name": stub.name})
            #^ core-binding: Counter.total cannot be called on a stub: it is not a method. Write an async method that returns total in Counter
            print(stub.MOST)
            #^ core-binding: Counter.MOST cannot be called on a stub: it is not a method. Write an async method that returns MOST in Counter
            print(stub.doubled, Counter.MOST)
            #^ core-binding: Counter.doubled cannot be called on a stub: it is not a method. Write an async method that returns doubled in Counter
            req.env.OTHERS.get_by_name("a").reset()
            Counter.incremented(Counter(stub.ctx, req.env))
            #^ core-binding: Counter.ctx cannot be called on a stub: it is the object's own. Write an async method for the task
        """,
    )
    project.check()
