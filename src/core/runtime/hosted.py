"""The packages of a deploy to the hosted platform: the folder `python_modules`, which its tool uploads as it is.

They are those of a bundle, with the platform's SDK, which its runtime has not contained since 2026-04-21.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from core.runtime.build_worker import glue_of
from core.runtime.bundle import BundleError, PackageSize
from core.runtime.capnp import Plan
from core.runtime.collect import collect, main_module
from core.runtime.make import check_compiled, inspect
from core.runtime.toolchain import Toolchain

__all__ = ["fill_python_modules"]

_SDK = "workers-runtime-sdk"


async def fill_python_modules(
    main: Path,
    *,
    project: Path,
    plan: Plan,
    toolchain: Toolchain,
    attribute: str | None = None,
    extra: Iterable[str] = (),
    left_out: Iterable[str] = (),
    progress: Callable[[str], None] = lambda line: None,
) -> Sequence[PackageSize]:
    """Write the packages of an application into `python_modules` in its project, and return the size of each.

    The application is looked at in a worker first, as for a bundle. What the folder had is replaced, where this or the
    platform's tool wrote it. Raises BundleError for everything that would not run, or if somebody else wrote it.
    """
    out = project / "python_modules"
    if out.exists() and any(out.iterdir()) and not (out / "pyvenv.cfg").is_file():
        raise BundleError(
            f"{out} was filled by something else. Remove it first, so that its files are not lost by this"
        )
    progress("collecting the application and its dependencies")
    collected = collect(main, project=project, extra=extra, left_out=left_out)
    glue = await glue_of(toolchain)
    if collected.compiled:
        await check_compiled(collected, toolchain, glue, progress)
    progress("importing it in a worker")
    root, module = main_module(main)
    name = module if attribute is None else f"{module}:{attribute}"
    await inspect(collected, root, name, plan=plan, toolchain=toolchain, glue=glue)
    uploaded = collect(main, project=project, extra=[*extra, _SDK], left_out=left_out)
    files = {path: content for path, content in uploaded.files.items() if path not in uploaded.own}
    # By them the SDK loads itself where an interpreter starts.
    installed = importlib.metadata.distribution(_SDK)
    files |= {
        file.name: file.read_binary() for file in installed.files or () if file.suffix == ".pth" and not file.parts[1:]
    }
    shutil.rmtree(out, ignore_errors=True)
    for path, content in files.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (out / "pyvenv.cfg").touch()  # the mark of the platform's tool, too
    return uploaded.packages[1:]
