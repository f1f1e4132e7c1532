"""`core client`: a typed client in Python, written from an OpenAPI document or compared with the one that is there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from core.cli.style import put
from core.errors import UsageError

DESCRIPTION: Final = """\
Write a typed client of an API from its OpenAPI document (3.0, 3.1 or 3.2; JSON, or YAML with the extra `openapi`).
Every operation is a method of `Client` and of `AsyncClient`, in a namespace for each tag: it returns the body of the
answer, and raises errors, each status as a class of its own. The file needs the standard library alone. The same
document gives the same file."""

EXIT_CODES: Final = """\
Exit codes: 0 the client was written, or is up to date; 1 --check found a difference, or the document cannot be used;
2 the command was wrong, 130 interrupted with Ctrl-C."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", metavar="DOCUMENT", type=Path, help="the OpenAPI document")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of standard output")
    parser.add_argument("--check", action="store_true", help="write nothing; show how FILE would change")


def run(args: argparse.Namespace) -> int:
    from core.openapi.client import write_client
    from core.openapi.reading import load_document

    document: Path = args.document
    file: Path | None = args.output
    if args.check and file is None:
        raise UsageError("--check compares with a file. Name it: core client openapi.json -o client.py --check")
    try:
        text = document.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"{document} cannot be read: {reason}. Write it: core openapi -o {document}") from None
    new = write_client(load_document(text, str(document), f"core openapi -o {document}"))
    if file is None:
        sys.stdout.write(new)
        return 0
    old = file.read_text("utf-8", "replace") if file.is_file() else ""
    if not put(file, old, new, check=args.check):
        print(f"{file} is up to date.")
    elif args.check:
        print(f"{file} is not up to date. Run `core client {document} -o {file}`.")
        return 1
    return 0
