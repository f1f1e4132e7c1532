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


def test_a_name_is_followed_through_final_and_variables(project: Project) -> None:
    project.usual().write(
        "limits.py",
        HEAD
        + """
NAME: Final = "SESIONS"
LONG: Final = "SES" + "SIONS"
shared = rate_limit(kv_binding=NAME, limit=1, window=60)
good = rate_limit(kv_binding=LONG, limit=1, window=60)
final: Final = rate_limit(kv_binding="NOPE", limit=1, window=60)
""",
    )
    project.write(
        "app.py",
        HEAD
        + """
import limits
from limits import NAME, good, shared

app = create_app(Env)
app.use(good)
app.use(shared)
#^ core-binding: rate_limit(kv_binding="SESIONS"): Env has no attribute SESIONS. Did you mean SESSIONS?
app.use(limits.final)
#^ core-binding: rate_limit(kv_binding="NOPE"): Env has no attribute NOPE. Write NOPE: KVNamespace on Env
app.use(rate_limit(kv_binding=NAME, limit=1, window=60))
#^ core-binding: rate_limit(kv_binding="SESIONS"): Env has no attribute SESIONS. Did you mean SESSIONS?
here = rate_limit(kv_binding="HERE", limit=1, window=60)

@app.post("/x", here)
#^ core-binding: rate_limit(kv_binding="HERE"): Env has no attribute HERE. Write HERE: KVNamespace on Env
async def x(req: Request[Env], res: Response) -> None:
    res.json({})
""",
    )
    project.check()
    project.check()  # from the cache, where only the type carries the name


def test_a_router_s_own_env_decides(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...

limit = rate_limit(kv_binding="SESSIONS", limit=1, window=60)
other = rate_limit(kv_binding="DB", limit=1, window=60)
some: Router[HasSessions] = Router()
some.use(limit)
some.use(other)
#^ core-binding: rate_limit(kv_binding="DB"): HasSessions has no attribute DB. Write DB: KVNamespace on HasSessions
anything: Router[Any] = Router()
anything.use(other)
untyped = create_app()
untyped.use(other)

@attrs.frozen
class Fake:
    SESSIONS: KVNamespace

fake = App(Fake)
fake.use(limit)
fake.use(other)
#^ core-binding: rate_limit(kv_binding="DB"): Fake has no attribute DB. Write DB: KVNamespace on Fake
""",
    )
    project.check()


def test_several_limiters_in_one_variable_or_list_are_no_error(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
limit = rate_limit(kv_binding="SESSIONS", limit=1, window=60)
limit = rate_limit(kv_binding="OTHER", limit=1, window=60)
limits = [rate_limit(kv_binding="SESSIONS", limit=1, window=60)]
limits.append(rate_limit(kv_binding="OTHER", limit=1, window=60))
app = create_app(Env)
app.use(limit, *limits)
app.use(rate_limit(kv_binding=lambda req: req.env.SESSIONS, limit=1, window=60))
""",
    )
    project.check()


def test_a_limiter_that_is_told_its_env_carries_its_name_to_other_modules(project: Project) -> None:
    project.usual().write("limits.py", HEAD + 'limit = rate_limit(Env, kv_binding="NOPE", limit=1, window=60)\n')
    project.write(
        "app.py",
        HEAD
        + """
from limits import limit

create_app(Env).use(limit)
""",
    )
    assert project.mypy() == [
        (
            'app.py:9: error: rate_limit(kv_binding="NOPE"): Env has no attribute NOPE. Write NOPE: KVNamespace on Env  '
            "[core-binding]"
        )
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

            async def increment(self, by: int = 1) -> int:
                self.reset()
                self._total = self.total
                return await self._add(by)

            async def _add(self, by: int) -> int:
                return by

            def reset(self) -> None: ...

            def incremented(self) -> int:
                return self.total

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
            req.env.OTHERS.get_by_name("a").reset()
            Counter.incremented(Counter(stub.ctx, req.env))
            #^ core-binding: Counter.ctx cannot be called on a stub: it is the object's own. Write an async method for the task
        """,
    )
    project.check()
