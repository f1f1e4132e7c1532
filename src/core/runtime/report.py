"""The words of a build that went well: the sizes of a bundle's parts, and how far it was tried."""

from __future__ import annotations

from collections.abc import Iterable

from core.runtime.bundle import Bundle, PackageSize, compressed_size

__all__ = ["framework_size", "size_report", "start_report", "table_of", "upload_problem"]


def start_report(bundle: Bundle) -> str:
    """Return what a build tried of its bundle, and what it did not."""
    names = ", ".join(sorted(bundle.plan.secrets))
    placeholders = f" A placeholder stood for {names}: no value of a secret was tried." if names else ""
    return (
        "It was started once: it loads the application, its migrations apply to empty databases, and it has every binding."
        f"{placeholders} No request was sent, and no lifespan begun."
    )


def table_of(packages: Iterable[PackageSize], *further: tuple[str, ...]) -> str:
    """Return the sizes of packages: as stored, and compressed."""
    rows: list[tuple[str, ...]] = [("package", "version", "files", "size", "compressed")]
    rows += [
        (package.name, package.version, str(package.files), _kilobytes(package.size), _kilobytes(package.compressed))
        for package in packages
    ]
    rows += further
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def size_report(bundle: Bundle) -> str:
    """Return the sizes of a bundle's parts: as stored, and compressed."""
    rows: list[tuple[str, ...]] = []
    parts: dict[str, tuple[str, ...]] = {
        "CPython (pyodide)": ("pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide.mjs", "python_stdlib.zip")
    }
    if bundle.manifest["snapshot"]:
        parts["memory snapshot"] = ("snapshot.bin",)
    for name, files in parts.items():
        contents = [(bundle.folder / "modules" / file).read_bytes() for file in files]
        rows.append(
            (
                name,
                bundle.manifest["pyodide"] if name.startswith("CPython") else "",
                str(len(files)),
                _kilobytes(sum(map(len, contents))),
                _kilobytes(sum(map(compressed_size, contents))),
            )
        )
    return table_of(bundle.packages, *rows)


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


def framework_size(packages: Iterable[PackageSize]) -> int:
    """Return the size of the framework and its dependencies among a bundle's compressed Python files, in bytes."""
    ours = {"core-edge", "attrs", "cattrs", "typing_extensions", "typing-extensions"}
    return sum(package.compressed for package in packages if package.name in ours)


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"
