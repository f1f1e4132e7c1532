"""The trial of a bundle: before a new build takes over, and before `core build` says that one is made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from core.errors import DeveloperError
from core.runtime.bundle import Bundle
from core.runtime.node import Node, ask_health, open_node, post_json, start_node
from core.runtime.process import WorkerdError
from core.runtime.toolchain import Toolchain


async def try_bundle(
    toolchain: Toolchain,
    bundle: Bundle,
    *,
    state: Path,
    env: Mapping[str, str],
    lock: int | None = None,
    bindings: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Have a bundle start, apply its migrations to a `state` of its own, and answer its health; the folder is removed.

    No request reaches the application, and no lifespan of it begins. Raises DeveloperError where it cannot answer.
    """
    try:
        node = await start_node(
            toolchain,
            bundle,
            bundle.plan,
            state=state,
            env=env,
            lock=lock,
            closed=True,
            bindings=bindings,
        )
        try:
            await make_ready(node, bundle, migrate=True, opened=False)
        finally:
            await node.workerd.kill()
    finally:
        shutil.rmtree(state, ignore_errors=True)


async def make_ready(node: Node, bundle: Bundle, *, migrate: bool, opened: bool = True) -> list[str]:
    """Have a node that was started `closed` load the application, apply migrations where asked to, and open it.

    One that is not to be `opened` answers nothing but its health. Returns the steps done, in lines. Raises WorkerdError
    where it cannot answer, DeveloperError for a wrong migration.
    """
    problem = await ask_health(node.health_port)
    if problem is not None:
        raise WorkerdError(f"the application cannot answer:\n{problem}")
    done = await apply_migrations(node, bundle) if migrate else []
    if opened:
        await open_node(node)
    return done


async def apply_migrations(node: Node, bundle: Bundle) -> list[str]:
    """Apply the bundle's pending SQL migrations; the steps done, in lines. Raises DeveloperError."""
    done: list[str] = []
    for binding, migrations in bundle.migrations.items():
        answer = await post_json(node.health_port, "/migrate", {"binding": binding, **attrs.asdict(migrations)})
        if "error" in answer:
            raise DeveloperError(f"{binding}: {answer['error']}. Put the migration right and start again")
        done += [f"{binding}: applied {name}" for name in answer["applied"]]
        done += [
            f"{binding}: {name} was changed since it was applied. Write the change as a migration of its own"
            for name in answer["changed"]
        ]
    return done
