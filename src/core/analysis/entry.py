"""The files of a program: the one that it starts with, and the folders that its imports start from."""

from __future__ import annotations

from pathlib import Path

from core.analysis.findings import Finding
from core.config.model import Configuration

__all__ = ["entry_file", "import_roots", "python_files"]


def entry_file(configuration: Configuration) -> tuple[Path | None, Finding | None]:
    """The Python file that `main` names, or the mistake in that name."""
    main = configuration.worker.main
    path = configuration.directory.resolve() / main if main is not None else None
    if path is None or path.suffix != ".py":
        return None, None
    if path.is_file():
        return path, None
    message = f"main: there is no file {main}. Write it, or correct main"
    return None, Finding("core-env", message, str(configuration.path), configuration.line_of("main"))


def import_roots(directory: Path, entry: Path | None) -> list[Path]:
    """The folders that imports start from: the one above the entry's package, `src`, the project, the entry's own."""
    roots: list[Path] = []
    if entry is not None:
        folder = entry.parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            folder = folder.parent
        roots += [folder, entry.parent]
    roots += [directory / "src", directory]
    return list(dict.fromkeys(root.resolve() for root in roots if root.is_dir()))


def python_files(directory: Path) -> list[Path]:
    """The Python files of a project, without its tests, environments and hidden folders."""
    left_out = {"node_modules", "__pycache__", "tests", "test", "build", "dist", "venv", "site-packages"}
    return sorted(
        path
        for path in directory.rglob("*.py")
        if not any(part in left_out or part.startswith(".") for part in path.relative_to(directory).parts)
    )
