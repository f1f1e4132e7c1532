"""The platform's workflows, from the side that starts and watches their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from core.backends.workerd.conversion import from_js, js_fields
from core.backends.workerd.engine import JsEngine, JsMethod, js_attribute, js_call
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
        return WorkerdWorkflowInstance(await self._call("create", given), self._hook)

    async def _create_batch(self, batch: Sequence[WorkflowInstanceCreateOptions[Any]]) -> list[WorkflowInstance]:
        runs = await self._call("createBatch", [_options(options) for options in batch])
        return [WorkerdWorkflowInstance(run, self._hook) for run in runs]

    async def _get(self, id: str) -> WorkerdWorkflowInstance:
        return WorkerdWorkflowInstance(await self._call("get", id), self._hook)


def _status(answer: object) -> WorkflowStatus:
    found = from_js(answer)
    error = found.get("error")
    if isinstance(error, str):
        error = {"name": "Error", "message": error}
    return WorkflowStatus(
        found["status"],
        None if error is None else WorkflowError(error.get("name", "Error"), error.get("message", "")),
        found.get("output"),
    )


class WorkerdWorkflowInstance(JsEngine, WorkflowInstance):
    id: JsMethod = js_attribute("id", str)
    _pause = js_call(WorkflowInstance.pause)
    _resume = js_call(WorkflowInstance.resume)
    _terminate = js_call(WorkflowInstance.terminate)
    _restart = js_call(WorkflowInstance.restart)
    _status = js_call(WorkflowInstance.status, _status)

    def _call_target(self) -> tuple[object, ...]:
        return (self.id,)

    async def _send_event(self, *, type: str, payload: object) -> None:
        await self._call("sendEvent", {"type": type, "payload": payload})


def _options(options: WorkflowInstanceCreateOptions[Any]) -> dict[str, object]:
    # The parameters are the application's own: their fields keep their names.
    given = js_fields(attrs.evolve(options, params=None))
    return given if options.params is None else {**given, "params": options.params}
