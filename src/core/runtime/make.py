"""From an application to a bundle: collect, look at it while it is imported, take the snapshot, write.

Everything that would go wrong in the worker is told here, all at once, in the words of the application's own files. A
deploy to the hosted platform takes the same packages, as the folder `python_modules`, with the platform's SDK: its
runtime has not contained that since 2026-04-21.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from core.errors import DeveloperError
from core.explain.frames import shown
from core.program.cache import Cache
from core.program.entry import Entry
from core.runtime.build_worker import ask, cached_bytecode, digest_of, keep_bytecode, placeholders, prepare
from core.runtime.bundle import MARK, Bundle, Migrations, PackageSize, worker_file, write_bundle
from core.runtime.capnp import worker_config
from core.runtime.collect import Collected, collect
from core.runtime.node import try_bundle
from core.runtime.plan import Plan, Socket
from core.runtime.toolchain import KEY, Toolchain


@attrs.frozen
class Inspection:
    """The parts of the application that were found when it was imported in a worker."""

    classes: Mapping[str, Sequence[str]]
    bytecode: Mapping[str, bytes]
    """The bytecode of the modules that were loaded, by their paths."""
    secrets: Mapping[str, bool] | None
    """The secrets that the Env asks for, and True where it cannot do without; None where it takes any name."""


@attrs.frozen
class Build:
    """An application to build, and what to build it of.

    `plan` is the configuration's. `extra` names further distributions to take along, `left_out` those to leave behind;
    `files` are further Python files.
    """

    entry: Entry
    project: Path
    plan: Plan
    toolchain: Toolchain
    extra: Sequence[str] = ()
    left_out: Sequence[str] = ()
    files: Mapping[str, bytes] = attrs.field(factory=dict[str, bytes])
    progress: Callable[[str], None] = lambda line: None

    async def look(self) -> tuple[Collected, Inspection]:
        """Its files, and what was found when a worker imported it. Raises DeveloperError with all that is wrong.

        No secret's value is needed: a placeholder stands in its place.
        """
        self.progress("collecting the application and its dependencies")
        root = Path(self.entry.folder)
        collected = collect(root, project=self.project, extra=self.extra, left_out=self.left_out)
        collected = attrs.evolve(collected, files={**collected.files, **self.files})
        await prepare(self.toolchain)
        await check_compiled(collected, self.project, self.toolchain, self.progress)
        self.progress("importing it in a worker")
        return collected, await inspect(collected, self.entry, plan=self.plan, toolchain=self.toolchain)


async def make_bundle(
    build: Build, out: Path, *, snapshot: bool = True, migrations: Mapping[str, Migrations] | None = None
) -> Bundle:
    """Make the bundle of an application in `out`, which is emptied first.

    Raises DeveloperError with every reason why it would not run, or does not: what was made is started once.
    """
    _check_out(out)
    entry, toolchain = build.entry, build.toolchain
    collected, seen = await build.look()
    plan = with_secrets(build.plan, seen.secrets)
    compiled, image = {**collected.files, **seen.bytecode}, None
    if snapshot:
        build.progress("taking the memory snapshot")
        image = await ask(toolchain, "/snapshot", compiled, entry.main, Plan(name=plan.name))
    if (assets := plan.assets) is not None:
        plan = attrs.evolve(plan, assets=(assets[0], "assets", assets[2]))
    bundle = write_bundle(
        out,
        toolchain,
        plan=plan,
        main=entry.main,
        files=collected.files if snapshot else compiled,
        methods=seen.classes,
        packages=collected.packages,
        snapshot=image,
        migrations=migrations,
        root=entry.folder,
    )
    if assets is not None:
        shutil.copytree(assets[1], out / "assets")
    config = worker_config(plan, bundle.modules, storage="state", sockets={"http": Socket("127.0.0.1:8787")})
    (out / "config.capnp").write_text(config, "utf-8")
    build.progress("starting the bundle once")
    await _start_once(bundle, toolchain)
    return bundle


async def _start_once(bundle: Bundle, toolchain: Toolchain) -> None:
    """Have the bundle answer its health. Raises DeveloperError for one that cannot, and removes it."""
    env, binding = placeholders(bundle.plan)
    try:
        with tempfile.TemporaryDirectory(prefix="core-build-start-") as folder:
            await try_bundle(toolchain, bundle, state=Path(folder) / "state", env=env, bindings=[binding])
    except DeveloperError as error:
        shutil.rmtree(bundle.folder, ignore_errors=True)
        raise DeveloperError(
            f"the bundle was made, but does not start, and is removed again: {error}\nTry it with --no-snapshot; if that "
            "one starts, the application holds something at import that a memory snapshot cannot keep"
        ) from error


def with_secrets(plan: Plan, asked: Mapping[str, bool] | None) -> Plan:
    """The plan with the secrets that the Env asks for by its fields. Anything else of the name in it comes first."""
    names = {name: needed for name, needed in (asked or {}).items() if name not in plan.names}
    return attrs.evolve(
        plan,
        secrets=[*plan.secrets, *(name for name, needed in names.items() if needed)],
        optional_secrets=[*plan.optional_secrets, *(name for name, needed in names.items() if not needed)],
    )


async def check_compiled(
    collected: Collected,
    project: Path,
    toolchain: Toolchain,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Import the packages that have compiled modules in a worker, where they are without. Raises DeveloperError for
    those that need them. For a project a worker is asked once for the same packages, whatever its own files have in
    them.
    """
    if not collected.compiled:
        return
    compiled = collected.compiled
    asked = json.dumps(
        {name: {"compiled": [*found.files], "modules": found.modules} for name, found in compiled.items()}
    )
    parts = [KEY.encode(), worker_file("compiled.py"), asked.encode()]
    for path, content in sorted(collected.files.items()):
        parts += (path.encode(), b"" if path in collected.own else content)
    cache, key = Cache(project), digest_of(parts)
    examined = cache.read("compiled", key)
    if examined is None:
        progress(f"trying {', '.join(found.package for found in compiled.values())} without compiled modules")
        binding = {"name": "CORE_COMPILED", "text": asked}
        examined = json.loads(await ask(toolchain, "/examine-compiled", collected.files, extra=[binding]))
        cache.write("compiled", key, examined)
    problems: list[str] = []
    for name, (module, by) in examined.items():
        found = compiled[name]
        needed = f" (needed by {' <- '.join(reversed(found.chain))})" if found.chain else ""
        asks = "nothing takes its place" if by is None else f"{by} needs it"
        problems.append(
            f"{found.package}{needed} is not pure Python: its module {module} is compiled "
            f"({found.files[module].rpartition('/')[2]}), and {asks}. A worker loads pure Python only. Use another package, "
            f"a version of it with a py3-none-any wheel, or leave it out where it is optional: core build --without {name}"
        )
    if problems:
        raise DeveloperError("\n".join(problems))


async def inspect(collected: Collected, entry: Entry, *, plan: Plan, toolchain: Toolchain) -> Inspection:
    """Import an application in a worker that has its bindings, and list its contents.

    The bytecode of packages is kept for the next time. Raises DeveloperError with everything that is wrong.
    """
    cached = cached_bytecode(toolchain, collected.packaged)
    files = {**collected.files, **cached}
    # Without the crons and queues that would call the worker meanwhile.
    quiet = attrs.evolve(plan, consumers={}, crons=(), assets=None)
    report = json.loads(await ask(toolchain, "/inspect", files, entry.main, quiet))
    problems = [*_problems(report, Path(entry.folder), plan)]
    if problems:
        raise DeveloperError("\n\n".join(problems))
    added = {path: base64.b64decode(code) for path, code in report["bytecode"].items() if code is not None}
    keep_bytecode(toolchain, collected.packaged, added)
    return Inspection(
        classes=report["classes"],
        bytecode={path: added[path] if path in added else cached[path] for path in report["bytecode"]},
        secrets=report["secrets"],
    )


def _check_out(out: Path) -> None:
    """Refuse to empty a folder that is not a bundle: it would be somebody's work."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not (out / MARK).exists():
        raise DeveloperError(
            f"{out} has files of its own and is not a bundle. Empty it, or give another folder with --out."
        )


# Mistakes, in words ---------------------------------------------------------------------------------------------------


def _problems(report: Mapping[str, Any], root: Path, plan: Plan) -> list[str]:
    problems: list[str] = []
    error = report["error"]
    if error is not None:
        problems.append(_import_error(error, root))
    problems += _findings(report["findings"], root)
    if report["problems"]:
        problems.append(report["problems"])
    if error is None:
        problems += [
            f"the configuration binds the Durable Object class {cls}, which the main module has not. "
            f"Write class {cls}(DurableObject[Env]) there, or import it there"
            for cls in plan.classes
            if cls not in report["classes"]
        ]
    return problems


_MISSING_EXTRA = re.compile(r"^core\.errors\.MissingExtraError:.*core-edge\[([a-z]+)\]", re.MULTILINE)


def _import_error(error: Mapping[str, Any], root: Path) -> str:
    frames = [frame for frame in error["frames"] if (root / frame[0]).exists()] or error["frames"]
    lines = [f"  {_path(path, root)}, line {line}: {source}" for path, line, _, source in frames]
    missing = error["missing"]
    if missing:
        where = f"{_path(frames[-1][0], root)}, line {frames[-1][1]}" if frames else "the application"
        return f"{where} imports {missing}. {_way_out(missing)}"
    if (extra := _MISSING_EXTRA.search(error["text"])) is not None and lines:
        return (
            f'{lines[-1].strip()} needs the extra {extra[1]}, which the bundle has not. Write "core-edge[{extra[1]}]" among '
            f"the dependencies in pyproject.toml, and install it: pip install 'core-edge[{extra[1]}]'"
        )
    first = "the application raises while it is imported:"
    fix = "A worker imports it before the first request. Fix the line that raises, or move it into the function that needs it."
    return "\n".join([first, *lines, error["text"], fix])


def _way_out(missing: str) -> str:
    top = missing.split(".")[0]
    if top == "core":
        return f"{missing} is for development: a bundle has none of it. Import it in tests and tools only"
    if top in sys.stdlib_module_names:
        return f"The standard library of a worker has no {top}. Do without it there"
    return f"It is not among the dependencies of the project, or not installed here. Install it: pip install {top}"


_REASONS = {
    "entropy": "draws randomness while it is imported: {thing}. Every isolate that starts from the snapshot would draw the "
    "same, and the hosted platform refuses it before the first request. Draw it in the function that needs it",
    "files": "opens a file while it is imported: {thing}. A worker has no files but those of its bundle. Read it in a build "
    "step, or keep it beside the module as a package's data",
    "sockets": "opens a connection while it is imported: {thing}. A worker has no sockets. Use fetch inside a handler",
    "processes": "starts a process while it is imported: {thing}. A worker has none",
    "threads": "starts a thread while it is imported. A worker has none. Use asyncio inside a handler",
    "js": "keeps a JavaScript object from import time: {thing}. It would belong to no request. Make it inside a handler",
}


def _findings(findings: Iterable[Mapping[str, Any]], root: Path) -> list[str]:
    texts: list[str] = []
    for finding in findings:
        imports = [frame for frame in finding["chain"] if frame[2] == "<module>"] or finding["chain"]
        # The import chain of modules, and after it the call that did it, where that is inside a function.
        rest: list[Any] = finding["chain"][finding["chain"].index(imports[-1]) + 1 :] if imports else []
        culprit = _path(imports[-1][0], root) if imports else "the application"
        lines = [f"{culprit} {_REASONS[finding['kind']].format(thing=finding['thing'])}."]
        lines += [
            f"  {_path(path, root)}, line {line}" if line else f"  {_path(path, root)}" for path, line, _ in imports
        ]
        lines += [f"    {_path(path, root)}, line {line}, in {name}" for path, line, name in rest]
        texts.append("\n".join(lines))
    return texts


def _path(path: str, root: Path) -> str:
    """A path in the bundle as the developer knows it."""
    own = root / path
    return shown(str(own), None) if own.exists() else path


_SDK = "workers-runtime-sdk"


async def fill_python_modules(build: Build) -> Sequence[PackageSize]:
    """Write the packages of an application into `python_modules` in its project, and return the size of each.

    The application is looked at in a worker first, as for a bundle. What the folder had is replaced, where this or the
    platform's tool wrote it. Raises DeveloperError for everything that would not run, or if somebody else wrote it.
    """
    out = build.project / "python_modules"
    if out.exists() and any(out.iterdir()) and not (out / "pyvenv.cfg").is_file():
        raise DeveloperError(
            f"{out} was filled by something else. Remove it first, so that its files are not lost by this"
        )
    await build.look()
    extra = [*build.extra, _SDK]
    uploaded = collect(Path(build.entry.folder), project=build.project, extra=extra, left_out=build.left_out)
    files = uploaded.packaged
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
