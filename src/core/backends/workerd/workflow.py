"""The platform's workflows, from the side that starts and watches their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from core.backends.workerd.conversion import binding_error, call_js, from_js, js_fields, js_value
from core.backends.workerd.engine import JsEngine
from core.bindings.workflow import (
    Workflow,
    WorkflowError,
    WorkflowInstance,
    WorkflowInstanceCreateOptions,
    WorkflowStatus,
)


class WorkerdWorkflow(JsEngine, Workflow[Any]):
    async def _create(self, **options: Any) -> WorkerdWorkflowInstance:
        given = _options(WorkflowInstanceCreateOptions(**options))
        return WorkerdWorkflowInstance(await call_js(binding_error, self._js.create, js_value(given)), self._hook)

    async def _create_batch(self, batch: Sequence[WorkflowInstanceCreateOptions[Any]]) -> list[WorkflowInstance]:
        outgoing = js_value([_options(options) for options in batch])
        runs = await call_js(binding_error, self._js.createBatch, outgoing)
        return [WorkerdWorkflowInstance(run, self._hook) for run in runs]

    async def _get(self, id: str) -> WorkerdWorkflowInstance:
        return WorkerdWorkflowInstance(await call_js(binding_error, self._js.get, id), self._hook)


class WorkerdWorkflowInstance(JsEngine, WorkflowInstance):
    def _call_target(self) -> tuple[object, ...]:
        return (self.id,)

    @property
    def id(self) -> str:
        return str(self._js.id)

    async def _pause(self) -> None:
        await call_js(binding_error, self._js.pause)

    async def _resume(self) -> None:
        await call_js(binding_error, self._js.resume)

    async def _terminate(self) -> None:
        await call_js(binding_error, self._js.terminate)

    async def _restart(self) -> None:
        await call_js(binding_error, self._js.restart)

    async def _status(self) -> WorkflowStatus:
        found = from_js(await call_js(binding_error, self._js.status))
        error = found.get("error")
        if isinstance(error, str):
            error = {"name": "Error", "message": error}
        return WorkflowStatus(
            found["status"],
            None if error is None else WorkflowError(error.get("name", "Error"), error.get("message", "")),
            found.get("output"),
        )

    async def _send_event(self, *, type: str, payload: object) -> None:
        await call_js(binding_error, self._js.sendEvent, type=type, payload=js_value(payload))


def _options(options: WorkflowInstanceCreateOptions[Any]) -> dict[str, object]:
    # The parameters are the application's own: their fields keep their names.
    given = js_fields(attrs.evolve(options, params=None))
    return given if options.params is None else {**given, "params": options.params}
