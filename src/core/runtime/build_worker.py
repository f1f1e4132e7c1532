"""A worker that runs for a build alone: what is prepared of pyodide, a look at the application, the snapshot."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import DeveloperError
from core.hosts.workers.isolate import PLACEHOLDERS_BINDING
from core.program.cache import write_cache
from core.runtime.bundle import HOST, write_bundle
from core.runtime.capnp import Raw
from core.runtime.collect import MARKERS, collect
from core.runtime.node import start_node
from core.runtime.plan import Plan
from core.runtime.process import exchange
from core.runtime.toolchain import KEY, Toolchain

_SECONDS = 120.0


def digest_of(parts: Iterable[bytes]) -> str:
    """The key of what depends on `parts`, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


async def prepare(toolchain: Toolchain) -> None:
    """Capture pyodide's call adapters, once for each installation, and keep them beside it.

    So is the standard library with the bytecode of what an application of the framework loads: an interpreter starts
    with it in a third of the time.
    """
    if toolchain.adapters:
        return
    with tempfile.TemporaryDirectory(prefix="core-prepare-") as none:
        files = collect(Path(none), project=Path(none)).files
    evaluating = {"name": "UNSAFE_EVAL", "unsafeEval": Raw("void")}
    made: Mapping[str, Any] = json.loads(await ask(toolchain, "/prepare", files, extra=[evaluating]))
    archive = io.BytesIO((toolchain.pyodide / "python_stdlib.zip").read_bytes())
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as library:
        for path, code in made["library"].items():
            library.writestr(path, base64.b64decode(code))
    write_cache(toolchain.compiled_library, archive.getvalue())
    write_cache(toolchain.root / f"adapters-{KEY}.json", json.dumps(made["adapters"]).encode())


def cached_bytecode(toolchain: Toolchain, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """What is kept beside the installation of these sources, by its path in a bundle: a worker need not compile it."""
    return {path: file.read_bytes() for path, file in _cache_files(toolchain, sources) if file.exists()}


def keep_bytecode(toolchain: Toolchain, sources: Mapping[str, bytes], bytecode: Mapping[str, bytes]) -> None:
    for path, file in _cache_files(toolchain, sources):
        if path in bytecode:
            write_cache(file, bytecode[path])


def _cache_files(toolchain: Toolchain, sources: Mapping[str, bytes]) -> Iterator[tuple[str, Path]]:
    """The path at which the worker's interpreter looks for the bytecode of each source (PEP 3147), and its file."""
    end = f".cpython-{MARKERS['python_version'].replace('.', '')}.pyc"
    for source, content in sources.items():
        folder, _, name = source.rpartition("/")
        if name.endswith(".py"):
            # Tracebacks name the path at which a source is imported, so bytecode is of that path alone.
            file = toolchain.root / f"bytecode-{KEY}" / f"{digest_of([source.encode(), content])}.pyc"
            yield f"{folder}/__pycache__/{name.removesuffix('.py')}{end}".lstrip("/"), file


def placeholders(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """The environment of a node that gets a placeholder for each secret, and the binding that says so."""
    environment = {**os.environ, **dict.fromkeys(plan.secrets, "placeholder")}
    return environment, {"name": PLACEHOLDERS_BINDING, "text": "yes" if plan.secrets else ""}


async def ask(
    toolchain: Toolchain,
    job: str,
    files: Mapping[str, bytes],
    main: str = "",
    plan: Plan = Plan(),  # noqa: B008  # frozen
    *,
    host: str = HOST,
    extra: Sequence[Mapping[str, object]] = (),
) -> bytes:
    """Start a build's worker with the Python `files`, have it do one job, and stop it. All that it has is thrown away.
    A secret is a placeholder there: its value is for the process that serves.

    Raises DeveloperError with the output of a job that failed.
    """
    said: list[str] = []
    env, binding = placeholders(plan)
    with tempfile.TemporaryDirectory(prefix="core-build-worker-") as folder:
        bundle = write_bundle(
            Path(folder) / "worker",
            toolchain,
            plan=plan,
            main=main,
            files=files,
            host=host,
            build_worker=True,
        )
        node = await start_node(
            toolchain,
            bundle,
            state=Path(folder) / "state",
            env=env,
            brief=True,
            bindings=[*extra, binding],
            on_line=said.append,
        )
        try:
            status, answer = await exchange(node.ports["http"], "GET", job, b"", _SECONDS)
            problem = None if status == 200 else answer.decode("utf-8", "replace") or "it ended without an answer"
        except TimeoutError:
            answer, problem = b"", f"it did not answer within {_SECONDS:g} s"
        except OSError as error:
            answer, problem = b"", str(error)
        finally:
            await node.kill()
    if problem is not None:
        lines = "\n".join(f"  {line}" for line in (*problem.splitlines(), *said[-20:]))
        raise DeveloperError(f"workerd could not do {job} for this application:\n{lines}")
    return answer
