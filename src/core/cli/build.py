"""`core build`: a bundle that workerd runs by itself, with everything that would go wrong in it said beforehand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.cli.project import add_configuration, find_configuration
from core.dev.terminal import table

if TYPE_CHECKING:
    from core.runtime.bundle import Bundle, PackageSize

DESCRIPTION: Final = """\
Make a folder that workerd runs by itself: the application, its pure-Python dependencies, CPython, and a memory
snapshot with all of it imported. The application is inspected in a real worker first: the errors it raises at import,
which bindings it lacks, and whether it draws randomness, opens files or connections while it is imported.

workerd and pyodide are fetched from npm the first time."""


def add(parser: argparse.ArgumentParser) -> None:
    add_configuration(parser.add_argument_group("project"))
    group = parser.add_argument_group("bundle")
    group.add_argument("--out", metavar="FOLDER", type=Path, help="where to write it (default: dist beside the file)")
    group.add_argument(
        "--no-snapshot", dest="snapshot", action="store_false", help="no memory snapshot: smaller, slower to start"
    )
    group.add_argument(
        "--hosted",
        action="store_true",
        help="write the packages into python_modules instead, for `npx wrangler deploy` to the hosted platform",
    )
    group.add_argument(
        "--with", metavar="PACKAGE", dest="extra", action="append", default=[], help="take an installed package along"
    )
    group.add_argument(
        "--without", metavar="PACKAGE", dest="left_out", action="append", default=[], help="leave a dependency out"
    )


def run(args: argparse.Namespace) -> int:
    import asyncio

    from core.errors import DeveloperError
    from core.program.proof import check_worker
    from core.runtime.make import Build, make_bundle
    from core.runtime.project import open_project
    from core.runtime.toolchain import toolchain

    project = open_project(find_configuration(args.config), environment=args.environment)
    for sentence in project.without:
        print(f"note: {sentence}.", file=sys.stderr)
    missing = check_worker([project.configuration])
    for finding in missing:
        if finding.severity == "warning":
            print(finding.text, file=sys.stderr)
    if errors := [finding.text for finding in missing if finding.severity == "error"]:
        raise DeveloperError("\n".join([*errors, "# core: ignore[core-worker] on a line lets it pass"]))

    def progress(line: str) -> None:
        print(f"{line} …", file=sys.stderr)

    extra, left_out = args.extra, args.left_out
    build = Build(project.entry, project.folder, project.plan, toolchain(), extra, left_out, progress=progress)
    if args.hosted:
        from core.runtime.make import fill_python_modules

        packages = asyncio.run(fill_python_modules(build))
        sizes, message = _table_of(packages), "The packages are in python_modules. Deploy with: npx wrangler deploy"
    else:
        out = (args.out or project.folder / "dist").resolve()
        bundle = asyncio.run(make_bundle(build, out, snapshot=args.snapshot, migrations=project.migrations))
        packages, sizes = bundle.packages, size_report(bundle)
        message = f"{start_report(bundle)}\nThe bundle is in {out}. Run it with: core serve {args.out or 'dist'}"
    print(sizes)
    if (problem := upload_problem(packages)) is not None:
        print(f"warning: {problem}.", file=sys.stderr)
    print(f"\n{message}")
    return 0


# What is told of it --------------------------------------------------------------------------------------------------


def start_report(bundle: Bundle) -> str:
    """Return what a build tried of its bundle, and what it did not."""
    names = ", ".join(sorted(bundle.plan.secrets))
    placeholders = f" A placeholder stood for {names}: no value of a secret was tried." if names else ""
    return (
        "It was started once: it loads the application, its migrations apply to empty databases, and it has every binding."
        f"{placeholders} No request was sent, and no lifespan begun."
    )


def _table_of(packages: Iterable[PackageSize]) -> str:
    """The sizes of packages: as stored, and compressed."""
    rows: list[tuple[str, ...]] = [("package", "version", "files", "size", "compressed")]
    rows += [(one.name, one.version, str(one.files), *map(_kilobytes, (one.size, one.compressed))) for one in packages]
    return "\n".join(table(rows, indent="", numbers=(2, 3, 4)))


def size_report(bundle: Bundle) -> str:
    """Return the sizes of a bundle's parts: as stored, and compressed."""
    from core.runtime.bundle import LIBRARY, PYODIDE, PackageSize, compressed_size

    def part(name: str, version: str, *files: str) -> PackageSize:
        contents = [(bundle.folder / "modules" / file).read_bytes() for file in files]
        return PackageSize(name, version, len(files), sum(map(len, contents)), sum(map(compressed_size, contents)))

    parts = [part("CPython (pyodide)", bundle.manifest["pyodide"], *(file for file, _ in PYODIDE), LIBRARY)]
    if bundle.manifest["snapshot"]:
        parts.append(part("memory snapshot", "", "snapshot.bin"))
    return _table_of([*bundle.packages, *parts])


# The hosted platform's limit for the modules of a worker, in bytes and on every plan: it brings CPython itself. Until
# 2026-09-04 it was 3 MB compressed on the free plan and 10 MB on the others. Looked up in November 2026.
# https://developers.cloudflare.com/workers/platform/limits/#worker-size
_MOST = 64 * 1024 * 1024


def upload_problem(packages: Iterable[PackageSize]) -> str | None:
    """Return why the hosted platform would refuse Python files of this size, and the way out; None if it would not."""
    largest = sorted(packages, key=lambda package: package.size, reverse=True)
    size = sum(package.size for package in largest)
    if size <= _MOST:
        return None
    names = ", ".join(f"{package.name} ({_kilobytes(package.size)})" for package in largest[:3])
    return (
        f"{_kilobytes(size)} of Python files, more than the 64 MiB ({_kilobytes(_MOST)}) that the hosted platform takes. "
        f"The largest are {names}. Leave out what is optional with --without NAME, depend on less, or run "
        "the bundle with `core serve`, which takes any size"
    )


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"
