"""Workflows: runs of many steps that survive failures, as a handler starts and watches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar

from core.bindings import binding_call
from core.values import frozen

__all__ = [
    "Workflow",
    "WorkflowError",
    "WorkflowInstance",
    "WorkflowInstanceCreateOptions",
    "WorkflowInstanceStatus",
    "WorkflowRetention",
    "WorkflowStatus",
]

P_co = TypeVar("P_co", covariant=True, default=Any)
P_contra = TypeVar("P_contra", contravariant=True, default=Any)

WorkflowInstanceStatus: TypeAlias = Literal[
    "queued",
    "running",
    "paused",
    "errored",
    "terminated",
    "complete",
    "waiting",
    "waitingForPause",
    "rollingBack",
    "unknown",
]
"""The state of a run."""


@frozen
class WorkflowError:
    """The reason why a run failed."""

    name: str
    message: str


@frozen
class WorkflowStatus:
    """The state of a run, its result when complete, and its error when it failed."""

    status: WorkflowInstanceStatus
    error: WorkflowError | None = None
    output: Any = None


@frozen
class WorkflowRetention:
    """The time that an ended run is kept, such as `"3 days"`."""

    success_retention: str | int | None = None
    error_retention: str | int | None = None


@frozen
class WorkflowInstanceCreateOptions(Generic[P_co]):
    """A run to start: its id (at most 100 characters, made up when None), and its parameters."""

    id: str | None = None
    params: P_co | None = None
    retention: WorkflowRetention | None = None


@runtime_checkable
class WorkflowInstance(Protocol):
    """A run."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @binding_call
    async def pause(self) -> None:
        """Stop after the step that is running."""
        raise AssertionError

    @binding_call
    async def resume(self) -> None:
        """Go on after a pause."""
        raise AssertionError

    @binding_call
    async def terminate(self) -> None:
        """End it. Raises BindingError when it has ended already."""
        raise AssertionError

    @binding_call
    async def restart(self) -> None:
        """Begin from the start; its work so far is forgotten."""
        raise AssertionError

    @binding_call
    async def status(self) -> WorkflowStatus:
        """Return the state of the run."""
        raise AssertionError

    @binding_call
    async def send_event(self, *, type: str, payload: Any) -> None:
        """Hand an event to a step that waits for its `type`, or will."""
        raise AssertionError


@runtime_checkable
class Workflow(Protocol[P_contra]):
    """A workflow whose runs get a `P`."""

    @binding_call
    async def create(
        self, *, id: str | None = None, params: P_contra | None = None, retention: WorkflowRetention | None = None
    ) -> WorkflowInstance:
        """Start a run. Raises BindingError when there is one of that id."""
        raise AssertionError

    @binding_call
    async def create_batch(self, batch: Sequence[WorkflowInstanceCreateOptions[P_contra]]) -> list[WorkflowInstance]:
        """Start at most 100 runs. Those whose id exists are passed over."""
        raise AssertionError

    @binding_call
    async def get(self, id: str) -> WorkflowInstance:
        """A run by its id. Raises BindingError when there is none."""
        raise AssertionError
