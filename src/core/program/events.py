"""The crons and queues of a configuration against the handlers of its program (`core-env`, `core-queue`).

A handler that the configuration has no event for is told where it is registered. An event that nothing handles is told
where the application is made, and only where all handlers are known: a name that is computed may be that of any event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches

from core.config.checks import Code
from core.config.model import Configuration
from core.program.envs import deployed


def cron_problem(cron: str, configurations: Sequence[Configuration]) -> str | None:
    """A handler `@app.scheduled("0 * * * *")` of a cron that no environment has (`core-env`)."""
    crons = sorted({other for configuration in configurations for other in configuration.worker.triggers.crons})
    if not configurations or cron in crons:
        return None
    near = get_close_matches(cron, crons, n=1)
    table = f'"triggers": {{ "crons": ["{cron}"] }}' if configurations[0].is_json else f'[triggers] crons = ["{cron}"]'
    hint = f'Did you mean "{near[0]}"?' if near else f"Write {table}"
    return f'scheduled("{cron}"): {configurations[0].path.name} has no such cron, so it never runs. {hint}'


def unhandled(
    configurations: Sequence[Configuration], names_of: Callable[[str], Collection[str]]
) -> Iterator[tuple[Code, str]]:
    """Every cron and every queue of a configuration that nothing handles.

    `names_of("queue")` are the names that handlers are registered with, "" for one that may be any. Where one of them
    is not in the configuration it may be the one that is meant, and there it is told.
    """
    crons: dict[str, str] = {}
    queues: dict[str, str] = {}
    for configuration in deployed(configurations):
        worker, file = configuration.worker, configuration.path.name
        for at, cron in enumerate(worker.triggers.crons):
            line = configuration.line_of(f"triggers.crons[{at}]")
            crons.setdefault(cron, f"{file}:{line} {'triggers.crons' if configuration.is_json else '[triggers] crons'}")
        for at, consumer in enumerate(worker.queues.consumers):
            line = configuration.line_of(f"queues.consumers[{at}]")
            if consumer.type == "worker":
                table = "queues.consumers" if configuration.is_json else "[[queues.consumers]]"
                queues.setdefault(consumer.queue, f"{file}:{line} {table}")
    wanted: tuple[tuple[Code, str, dict[str, str], str], ...] = (
        ("core-env", "scheduled", crons, "the cron"),
        ("core-queue", "queue", queues, "the queue"),
    )
    for code, method, declared, noun in wanted:
        handled = names_of(method) if declared else ()
        if declared.keys() >= set(handled):
            for name in sorted(declared.keys() - set(handled)):
                yield (
                    code,
                    f'{declared[name]} has {noun} "{name}", which nothing handles. Write @app.{method}("{name}")',
                )
