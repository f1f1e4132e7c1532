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


EVENTS = """
main = "app.py"
name = "shop"

[[queues.consumers]]
queue = "jobs"

[[queues.consumers]]
queue = "pulled"
type = "http_pull"

[triggers]
crons = ["0 3 * * *", "*/5 * * * *"]
"""

HANDLERS = """
from typing import Any
from core import App, ExecutionContext, MessageBatch, ScheduledEvent, create_app

async def work(batch: MessageBatch[Any], env: object, ctx: ExecutionContext) -> None: ...
async def run(event: ScheduledEvent, env: object, ctx: ExecutionContext) -> None: ...
"""


def test_a_handler_of_a_cron_that_is_not_configured_never_runs(project: Project) -> None:
    project.write("wrangler.toml", EVENTS)
    project.write(
        "app.py",
        HANDLERS
        + """
app = create_app()
NIGHTLY = "0 3 * * *"

app.queue("jobs")(work)
app.scheduled(NIGHTLY)(run)
app.scheduled("*/5 * * * *")(run)
app.scheduled()(run)

@app.scheduled("0 4 * * *")
#^ core-env: scheduled("0 4 * * *"): wrangler.toml has no such cron, so it never runs. Did you mean "0 3 * * *"?
async def near(event: ScheduledEvent, env: object, ctx: ExecutionContext) -> None: ...

app.scheduled("@hourly")(run)
#^ core-env: scheduled("@hourly"): wrangler.toml has no such cron, so it never runs. Write [triggers] crons = ["@hourly"]
""",
    )
    project.check()


def test_an_event_that_nothing_handles_is_told_where_the_application_is_made(project: Project) -> None:
    project.write("wrangler.toml", EVENTS)
    project.write(
        "app.py",
        HANDLERS
        + """
from made import app as app

@app.scheduled("0 3 * * *")
async def nightly(event: ScheduledEvent, env: object, ctx: ExecutionContext) -> None: ...
""",
    )
    project.write(
        "made.py",
        """
        from core import create_app

        other = create_app()
        app = create_app()
        #^ core-env: wrangler.toml:12 [triggers] crons has the cron "*/5 * * * *", which nothing handles. Write @app.scheduled("*/5 * * * *")
        #^ core-queue: wrangler.toml:4 [[queues.consumers]] has the queue "jobs", which nothing handles. Write @app.queue("jobs")
        """,
    )
    project.check()
    # made.py itself stays as it is, and mypy has findings of it in its cache.
    project.edit("app.py", "async def nightly", "@app.scheduled()\nasync def nightly")
    (jobs,) = project.mypy()
    assert jobs.endswith('Write @app.queue("jobs")  [core-queue]')


def test_where_a_handler_may_take_any_event_none_is_said_to_be_unhandled(project: Project) -> None:
    project.write("wrangler.toml", EVENTS)
    for handlers in (
        'app.scheduled()(run)\nfor name in ("jobs", "mail"):\n    app.queue(name)(work)\n',
        'app.scheduled("*/5 * * * *")(run)\napp.scheduled(f"0 {3} * * *")(run)\nJOBS = "jobs"\napp.queue(JOBS)(work)\n',
        "app.scheduled()(run)\nclass Default:\n    async def queue(self) -> None: ...\n",
    ):
        project.write("app.py", f"{HANDLERS}\napp = create_app()\n{handlers}")
        project.check()


def test_a_new_name_of_an_event_is_one_finding(project: Project) -> None:
    project.write("wrangler.toml", EVENTS)
    project.write(
        "app.py",
        HANDLERS
        + """
app = create_app()
app.scheduled()(run)
app.queue("job")(work)
#^ core-queue: queue("job"): wrangler.toml has no consumer of that queue. Did you mean jobs?
""",
    )
    project.check()
