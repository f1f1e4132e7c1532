"""A command of `core` in a process of its own: what it loads is freed with it, and the server goes on meanwhile."""

from __future__ import annotations

import asyncio
import sys
from typing import NamedTuple

from core.dev.options import Options


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it wrote."""

    code: int | None
    out: str
    errors: str


async def run_command(options: Options, *arguments: str) -> Ended:
    """Run `core` with `arguments`, for the configuration and the environment of `options`."""
    command = [sys.executable, "-m", "core.cli", *arguments, "--config", str(options.config)]
    if options.environment is not None:
        command += ["--env", options.environment]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=options.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await process.communicate()
    finally:
        if process.returncode is None:  # the server stops
            process.kill()
    return Ended(process.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))
