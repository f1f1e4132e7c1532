"""The platform's workflows, from the side that starts and watches their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.backends.workerd.crossing import ask, bare, from_js, js_value
from core.bindings.workflow import (
    WorkflowError,
    WorkflowInstanceCreateOptions,
    WorkflowRetention,
    WorkflowStatus,
)
from core.errors import BindingError, BindingTypeError

__all__ = ["WorkerdWorkflow", "WorkerdWorkflowInstance"]


class WorkerdWorkflow:
    """`Workflow` over the runtime's."""

    __slots__ = ("_workflow",)

    def __init__(self, workflow: Any) -> None:
        self._workflow = bare(workflow)

    async def create(
        self, *, id: str | None = None, params: Any = None, retention: WorkflowRetention | None = None
    ) -> WorkerdWorkflowInstance:
        """Start a run. See `Workflow.create`."""
        given = _options(WorkflowInstanceCreateOptions(id, params, retention))
        return WorkerdWorkflowInstance(await ask(_error, self._workflow.create, js_value(given)))

    async def create_batch(self, batch: Sequence[WorkflowInstanceCreateOptions[Any]]) -> list[WorkerdWorkflowInstance]:
        """Start several runs. See `Workflow.create_batch`."""
        outgoing = js_value([_options(options) for options in batch])
        return [WorkerdWorkflowInstance(run) for run in await ask(_error, self._workflow.createBatch, outgoing)]

    async def get(self, id: str) -> WorkerdWorkflowInstance:
        """A run by its id. See `Workflow.get`."""
        return WorkerdWorkflowInstance(await ask(_error, self._workflow.get, id))


class WorkerdWorkflowInstance:
    """`WorkflowInstance` over the runtime's."""

    __slots__ = ("_run",)

    def __init__(self, run: Any) -> None:
        self._run = bare(run)

    @property
    def id(self) -> str:
        """Its id."""
        return str(self._run.id)

    async def pause(self) -> None:
        """Stop after the step that is running."""
        await ask(_error, self._run.pause)

    async def resume(self) -> None:
        """Go on after a pause."""
        await ask(_error, self._run.resume)

    async def terminate(self) -> None:
        """End it."""
        await ask(_error, self._run.terminate)

    async def restart(self) -> None:
        """Begin from the start."""
        await ask(_error, self._run.restart)

    async def status(self) -> WorkflowStatus:
        """Where it is."""
        found = from_js(await ask(_error, self._run.status))
        error = found.get("error")
        if isinstance(error, str):
            error = {"name": "Error", "message": error}
        return WorkflowStatus(
            found["status"],
            None if error is None else WorkflowError(error.get("name", "Error"), error.get("message", "")),
            found.get("output"),
        )

    async def send_event(self, *, type: str, payload: Any) -> None:
        """Hand an event to a step that waits for it."""
        await ask(_error, self._run.sendEvent, type=type, payload=js_value(payload))


def _options(options: WorkflowInstanceCreateOptions[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if options.id is not None:
        given["id"] = options.id
    if options.params is not None:
        given["params"] = options.params
    if options.retention is not None:
        named = {
            "successRetention": options.retention.success_retention,
            "errorRetention": options.retention.error_retention,
        }
        given["retention"] = {name: value for name, value in named.items() if value is not None}
    return given


def _error(name: str, message: str) -> BindingError:
    return BindingTypeError(message) if name == "TypeError" else BindingError(message)
