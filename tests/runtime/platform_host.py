"""The hosted platform's part around a Python worker, for a bundle of our own: its introspection module, in short.

The platform finds `Default` and the Durable Object classes in the main module, makes one for each event, and calls
their methods through `wrapper_func`, which converts what goes in and out with its SDK. That function is copied from
the runtime's own (`python-entrypoint-helper`, introspection.py), which only runs there.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from inspect import isawaitable
from typing import Any

from pyodide.code import relaxed_call
from workers import DurableObject, WorkerEntrypoint, python_from_rpc, python_to_rpc

main: Any = None


def start(name: str) -> None:
    global main
    main = import_module(name)
    assert issubclass(main.Default, WorkerEntrypoint)
    assert issubclass(main.PlatformCounter, DurableObject)
    assert main.Default.__name__ == "Default"
    assert main.PlatformCounter.__name__ == "Counter"


async def wrapper_func(relaxed: bool, inst: Any, prop: str, *args: Any) -> Any:
    method = getattr(inst, prop)
    py_args = [python_from_rpc(arg) for arg in args]
    result = relaxed_call(method, *py_args) if relaxed else method(*py_args)
    return python_to_rpc(await result if isawaitable(result) else result)


def fetch(given: Any, method: str, url: str) -> Any:
    return asyncio.ensure_future(wrapper_func(True, main.Default(given.ctx, given.env), "fetch", given.request))


def queue(batch: Any, env: Any, ctx: Any) -> Any:
    return asyncio.ensure_future(wrapper_func(False, main.Default(ctx, env), "queue", batch))


def scheduled(event: Any, env: Any, ctx: Any) -> Any:
    return asyncio.ensure_future(wrapper_func(False, main.Default(ctx, env), "scheduled", event))


def problems(env: Any) -> None:
    return None


def durable_object(name: str, ctx: Any, env: Any) -> Any:
    return main.PlatformCounter(ctx, env)


def durable_object_call(instance: Any, method: str, *args: Any) -> Any:
    if method == "alarm":
        return asyncio.ensure_future(instance.alarm(*args))
    return asyncio.ensure_future(wrapper_func(method == "fetch", instance, method, *args))
