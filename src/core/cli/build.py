"""`core build`: a bundle that workerd runs by itself, with everything that would go wrong in it said beforehand."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from core.cli.project import add_configuration, find_configuration

_DESCRIPTION = """\
Make a folder that workerd runs by itself: the application, its pure-Python dependencies, CPython, and a memory
snapshot with all of it imported. The application is inspected in a real worker first: the errors it raises at import,
which bindings it lacks, and whether it draws randomness, opens files or connections while it is imported.

workerd and pyodide are fetched from npm the first time."""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser("build", help="make a bundle for workerd", description=_DESCRIPTION)
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
    """Run the command."""
    import asyncio

    from core.program.proof import check_worker
    from core.runtime.bundle import BundleError, size_report, start_report, table_of, upload_problem
    from core.runtime.make import make_bundle
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
        raise BundleError("\n".join([*errors, "# core: ignore[core-worker] on a line lets it pass"]))
    given: dict[str, Any] = {
        "project": project.folder,
        "plan": project.plan,
        "toolchain": toolchain(),
        "extra": args.extra,
        "left_out": args.left_out,
        "progress": _progress,
    }
    if args.hosted:
        from core.runtime.make import fill_python_modules

        packages = asyncio.run(fill_python_modules(project.entry, **given))
        print(table_of(packages))
        if (problem := upload_problem(packages)) is not None:
            print(f"warning: {problem}.", file=sys.stderr)
        print("\nThe packages are in python_modules. Deploy with: npx wrangler deploy")
        return 0
    out = (args.out or project.folder / "dist").resolve()
    making = make_bundle(project.entry, out=out, snapshot=args.snapshot, migrations=project.migrations, **given)
    bundle = asyncio.run(making)
    print(size_report(bundle))
    if (problem := upload_problem(bundle.packages)) is not None:
        print(f"warning: {problem}.", file=sys.stderr)
    print(f"\n{start_report(bundle)}")
    print(f"The bundle is in {out}. Run it with: core serve {args.out or 'dist'}")
    return 0


def _progress(line: str) -> None:
    print(f"{line} …", file=sys.stderr)
