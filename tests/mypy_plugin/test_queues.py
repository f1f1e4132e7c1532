"""`core-queue`: consumers against what is sent and what is declared."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

QUEUES = """
[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"
"""


def test_a_consumer_takes_what_is_sent(project: Project) -> None:
    project.usual()
    project.write("wrangler.toml", project.root.joinpath("wrangler.toml").read_text() + QUEUES)
    project.write(
        "env.py",
        """
        import attrs
        from core import Bindings, D1Database, KVNamespace, Queue

        @attrs.frozen
        class Job:
            id: int

        @attrs.frozen
        class Env(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            ORIGIN: str
            JOBS: Queue[Job]
        """,
    )
    project.write(
        "app.py",
        """
        from typing import Any
        import attrs
        from core import ExecutionContext, MessageBatch, create_app
        from env import Env, Job

        @attrs.frozen
        class Other:
            id: int

        app = create_app(Env)

        @app.queue("jobs")
        async def good(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...

        @app.queue("jobs")
        #^ core-queue: queue("jobs"): the consumer takes MessageBatch[Other], but Env.JOBS (wrangler.toml:18 [[queues.producers]]) is a Queue[Job]. Write the same type in both
        async def bad(batch: MessageBatch[Other], env: Env, ctx: ExecutionContext) -> None: ...

        @app.queue("job")
        #^ core-queue: queue("job"): wrangler.toml has no consumer of that queue. Did you mean jobs?
        async def near(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...

        @app.queue("mail")
        #^ core-queue: queue("mail"): wrangler.toml has no consumer of that queue. Write [[queues.consumers]] queue = "mail"
        async def far(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None: ...

        @app.queue("jobs")
        async def any_message(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None: ...

        @app.queue("jobs")
        async def no_message(batch: MessageBatch, env: Env, ctx: ExecutionContext) -> None: ...  # type: ignore[type-arg, unused-ignore]
        """,
    )
    project.check()
