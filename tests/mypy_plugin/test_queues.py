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

app.scheduled("1,2 1,2 1,2 1,2 1,2")(run)
#^ core-env: scheduled("1,2 1,2 1,2 1,2 1,2"): wrangler.toml has no such cron, so it never runs. Write [triggers] crons = ["1,2 1,2 1,2 1,2 1,2"]

app.scheduled("@hourly")(run)
#^ core-route: scheduled(…): cron expression "@hourly" has 1 fields. It needs five: minute, hour, day of month, month, day of week. Write @app.scheduled("0 * * * *") for every hour
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
