"""A worker that runs for a build alone: pyodide's adapters, a look at the application, the snapshot."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.hosts.workers.isolate import PLACEHOLDERS_BINDING
from core.program.cache import write_cache
from core.runtime.bundle import Bundle, BundleError, worker_file, write_bundle
from core.runtime.capnp import Plan, Raw, Socket, storage_folders, worker_config
from core.runtime.process import Workerd
from core.runtime.toolchain import Toolchain

_SECONDS = 120.0


def digest_of(parts: Iterable[bytes]) -> str:
    """The key of what depends on `parts`, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


async def glue_of(toolchain: Toolchain) -> Sequence[str]:
    """Pyodide's call adapters, in hexadecimal: captured once for each installation and kept beside it."""
    kept = toolchain.root / f"glue-{toolchain.key}.json"
    try:
        glue: list[str] = json.loads(kept.read_bytes())
        return glue
    except (OSError, ValueError):
        pass
    with tempfile.TemporaryDirectory(prefix="core-glue-") as folder:
        bundle = write_bundle(
            Path(folder) / "bundle", toolchain, name="app", main="", files={}, glue=(), classes={}, build_worker=True
        )
        glue = json.loads(
            await ask(
                toolchain, bundle, "/adapters", Plan(), extra=[{"name": "UNSAFE_EVAL", "unsafeEval": Raw("void")}]
            )
        )
    write_cache(kept, json.dumps(glue).encode())
    return glue


async def base_of(toolchain: Toolchain, glue: Sequence[str]) -> bytes:
    """The memory snapshot of CPython before it has an application, kept beside the installation.

    CPython starts from it with a fifth of the work. It is for the workers of a build and of `core dev`: a bundle's own
    snapshot is taken after a start without it, so that each bundle has a hash seed of its own.
    """
    file = toolchain.root / f"base-{toolchain.key}.bin"
    key = digest_of([worker_file("boot.mjs"), worker_file("shim.mjs"), *map(str.encode, glue)]).encode()
    try:
        found = file.read_bytes()
    except OSError:
        found = b""
    if found.startswith(key):
        return found.removeprefix(key)
    with tempfile.TemporaryDirectory(prefix="core-base-") as folder:
        bundle = write_bundle(
            Path(folder) / "bundle", toolchain, name="app", main="", files={}, glue=glue, classes={}, build_worker=True
        )
        base = await ask(toolchain, bundle, "/snapshot", Plan())
    write_cache(file, key + base)
    return base


async def ask(
    toolchain: Toolchain,
    bundle: Bundle,
    job: str,
    plan: Plan,
    *,
    extra: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """Start the bundle's build worker, have it do one job, and stop it. Its state lives in a folder that is thrown
    away. A secret is a placeholder there: its value is for the process that serves.

    Raises BundleError with the output of a job that failed.
    """
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="core-build-worker-") as state:
        for name in storage_folders(plan):
            (Path(state) / name).mkdir(parents=True)
        config = worker_config(
            plan,
            bundle.modules,
            storage=state,
            sockets={"http": Socket("127.0.0.1:0")},
            extra_bindings=[*extra, {"name": PLACEHOLDERS_BINDING, "text": "yes" if plan.secrets else ""}],
        )
        file = bundle.folder / "build-worker.capnp"
        file.write_text(config, "utf-8")
        workerd = await Workerd.start(
            toolchain.workerd,
            file,
            cwd=bundle.folder,
            env={**os.environ, **dict.fromkeys(plan.secrets, "placeholder")},
            on_line=lambda stream, line: said.append(line),
        )
        try:
            return await asyncio.to_thread(_get, f"http://127.0.0.1:{workerd.ports['http']}{job}")
        except _Failed as failure:
            lines = "\n".join(f"  {line}" for line in (*str(failure).splitlines(), *said[-20:]))
            raise BundleError(f"workerd could not do {job} for this application:\n{lines}") from None
        finally:
            await workerd.kill()


class _Failed(Exception):
    """The job answered with an error, or the process went away."""


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        raise _Failed(error.read().decode("utf-8", "replace")) from error
    except OSError as error:
        raise _Failed(str(error)) from error
