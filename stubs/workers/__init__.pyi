"""The hosted platform's SDK (`workers-runtime-sdk`), as far as the framework touches it."""

from typing import Any

class WorkerEntrypoint:
    ctx: Any
    env: Any
    def __init__(self, ctx: Any, env: Any) -> None: ...

class DurableObject:
    ctx: Any
    env: Any
    def __init__(self, ctx: Any, env: Any) -> None: ...

class WorkflowEntrypoint:
    ctx: Any
    env: Any
    def __init__(self, ctx: Any, env: Any) -> None: ...

def python_from_rpc(obj: Any) -> Any: ...
def python_to_rpc(value: Any) -> Any: ...
