"""`core openapi`: the OpenAPI document of the application, written or compared with the one that is committed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from core.cli.project import add_project_options, find_configuration
from core.cli.style import say_refused, shown_path, write
from core.errors import DeveloperError, MissingExtraError, UsageError
from core.http.json import JsonObject

if TYPE_CHECKING:
    from core.config.model import Configuration
    from core.openapi.changes import Change
    from core.openapi.gather import Gathered
    from core.program.entry import Entry
    from core.program.start import Start

DESCRIPTION: Final = """\
Write the OpenAPI document of the application. Routes come from the application itself, answers and errors from the
types of its code: nothing is declared twice. A value whose type is not known is {} in the document and a finding
(core-openapi) at its line; [core.checks] in the configuration file makes these errors, or turns them off.

With --mcp: what its MCP servers list, tools, prompts and resources, and the changes for a model's client."""

EXIT_CODES: Final = """\
Exit codes: 0 the document was written, or is up to date; 1 --check found a difference, or the application cannot be
read; 2 the command or the configuration was wrong, 130 interrupted with Ctrl-C."""

_FILE: Final = Path("openapi.json")
_TOOLS: Final = Path("mcp.json")
_CODE: Final = "core-openapi"
_OF_A_SHELL: Final = frozenset(["_", "OLDPWD", "SHLVL", "COLUMNS", "LINES"])
"""Variables that change from one command to the next."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of standard output")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; list the changes for clients since FILE was written (default: openapi.json)",
    )
    parser.add_argument(
        "--mcp",
        action="store_true",
        help="the tools, prompts and resources of the MCP servers instead (file: mcp.json)",
    )
    parser.add_argument("--format", choices=("json", "yaml"), help="(default: by the file's name, else json)")
    parser.add_argument("--openapi", choices=("3.2", "3.1"), default="3.2", help="version (default: %(default)s)")
    parser.add_argument(
        "--examples",
        metavar="FILE",
        type=Path,
        help="add examples from tests: the file of `pytest --core-examples FILE`",
    )
    parser.add_argument(
        "--server", metavar="URL", action="append", default=[], help="a server of the API; may be given several times"
    )
    parser.add_argument(
        "--rename",
        action="store_true",
        help="name operations and schemas anew, in the place of the names that the committed FILE has",
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="write one static page for people to FILE too")
    add_project_options(parser)


class _Outcome(NamedTuple):
    """An application described, as it is kept: the document as JSON, problems and places as in `Described`."""

    text: str
    problems: Sequence[tuple[str, int, str]]
    places: Sequence[tuple[tuple[str, str], tuple[str, int]]]
    level: str
    """The severity that the project gives findings."""
    errors: int
    """The number of errors that mypy found."""

    @property
    def document(self) -> JsonObject:
        document: JsonObject = json.loads(self.text)
        return document


def run(args: argparse.Namespace) -> int:
    path = find_configuration(args.config)
    if args.mcp and (args.html is not None or args.examples is not None):
        raise UsageError("--html and --examples are for the description of the routes. Leave them out, or --mcp")
    outcome = _listed(path, args) if args.mcp else _outcome(path, args)
    if outcome is None:
        return 1
    if outcome.errors:
        sys.stderr.write(
            f"note: mypy finds {outcome.errors} error{'' if outcome.errors == 1 else 's'} in the program. The document's "
            "words on those lines may be wrong: run mypy, and fix them\n"
        )
    if args.examples is not None:
        from core.openapi.examples import Examples, add_examples
        from core.openapi.written import as_json

        document = outcome.document
        add_examples(document, Examples.read(args.examples))
        outcome = outcome._replace(text=as_json(document))
    file: Path | None = args.output
    if file is None and args.check:
        file = path.parent / (_TOOLS if args.mcp else _FILE)
    code = _written(args, file, outcome)
    if args.html is not None:
        from core.openapi.written import page

        write(args.html, page(outcome.document).encode())
        print(f"{shown_path(args.html)} written.", file=sys.stderr)
    for source, line, message in outcome.problems if outcome.level != "off" else ():
        from core.program.findings import Finding, is_ignored  # attrs, which a document without problems does not need

        if not is_ignored(Finding(_CODE, message, source, line)):
            sys.stderr.write(f"{shown_path(source)}:{line}: {outcome.level}: {message}  [{_CODE}]\n")
            code = 1 if outcome.level == "error" else code
    return code


def _written(args: argparse.Namespace, file: Path | None, outcome: _Outcome) -> int:
    """Write the document, or compare it with the one that is committed. Returns the exit code."""
    named = "yaml" if file is not None and file.suffix in (".yaml", ".yml") else "json"
    text = outcome.text
    if (args.format or named) == "yaml":
        from core.openapi.written import as_yaml

        text = as_yaml(outcome.document)
    if args.check:
        assert file is not None
        return _check(file, text, outcome, args.mcp)
    if file is not None:
        write(file, text.encode())
        print(f"{shown_path(file)} written.")
    else:
        sys.stdout.write(text)
    return 0


def _outcome(path: Path, args: argparse.Namespace) -> _Outcome | None:
    """The application described: from the last run, if all that decides it is as it was. None where it is refused."""
    from core.program.cache import Cache, python_of_now

    file: Path = args.output if args.output is not None else path.parent / _FILE
    committed = "" if args.rename or not file.is_file() else file.read_text("utf-8", "replace")
    environment = sorted(item for item in os.environ.items() if item[0] not in _OF_A_SHELL)
    key = [str(path), args.environment, args.openapi, args.server, committed, environment, python_of_now()]
    cache, since = Cache(path.parent), time.time_ns()
    if (known := cache.read("openapi", key)) is not None:
        return _Outcome(**known)
    described = _described(path, args, committed)
    if described is None:
        return None
    outcome, gathered = described
    if files := gathered.files():
        project = str(path.parent / "pyproject.toml")
        cache.write("openapi", key, outcome._asdict(), files=[*files, project], since=since)
    return outcome


def _started(path: Path, args: argparse.Namespace) -> tuple[Configuration, Entry, Start] | None:
    """The configuration of a project, its entry and its start. None where something is refused, which is said."""
    from core.config.load import load
    from core.program.ask import keep
    from core.program.entry import entry_of
    from core.program.start import Start

    configuration = load(path, environment=args.environment)
    entry = entry_of(configuration)
    since = time.time_ns()
    start = Start(entry, assume=False)
    if sys.path[0] == os.getcwd():  # by `python -m core`: a start of any other command does not import from there
        del sys.path[0]
    with contextlib.redirect_stdout(sys.stderr):  # a program may print
        table = start.table()
    if say_refused(table):
        return None
    # For the plugin, which would start the program once more.
    keep(table, entry, sys.executable, assume=False, since=since)
    return configuration, entry, start


def _listed(path: Path, args: argparse.Namespace) -> _Outcome | None:
    """What the MCP servers of a project list. None where something is refused, which is said."""
    from core.openapi.tools import listed
    from core.openapi.written import as_json

    started = _started(path, args)
    if started is None:
        return None
    lists = listed(started[2].app)
    if not lists["mcp"]:
        raise DeveloperError("core openapi --mcp: the application has no MCP server. Make one: MCP(app, …)")
    return _Outcome(as_json(lists), [], [], "off", 0)


def _described(path: Path, args: argparse.Namespace, committed: str) -> tuple[_Outcome, Gathered] | None:
    """The application of a project described anew, with the facts it was described from."""
    from core.openapi.routes import application_facts
    from core.openapi.written import as_json
    from core.program.findings import level_of

    try:
        from core.openapi.document import describe
        from core.openapi.gather import gather
    except ImportError:
        raise MissingExtraError("core openapi reads types with mypy: pip install 'core-edge[mypy]'") from None
    started = _started(path, args)
    if started is None:
        return None
    configuration, entry, start = started
    module = sys.modules[entry.module]
    main = entry.module
    facts = application_facts(
        start.app,
        title=configuration.worker.name or main,
        version=_version(path.parent),
        description=module.__doc__,
        module=main,
        servers=args.server,
    )
    gathered = gather(main, source=Path(entry.folder), root=path.parent, classes=facts.classes)
    names: Mapping[str, object] = {}
    with contextlib.suppress(DeveloperError):  # `--check` tells of a file that cannot be read
        names = _parsed(committed, "", "", "openapi") if committed else {}
    described = describe(facts, gathered.program, version=args.openapi, committed=names)
    problems = [(problem.path, problem.line, problem.message) for problem in described.problems]
    level = level_of(_CODE, [configuration])
    text = as_json(described.document)
    return _Outcome(text, problems, [*described.places.items()], level, len(gathered.errors)), gathered


def _version(root: Path) -> str:
    import tomllib

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8")).get("project", {})
    except (OSError, ValueError):
        return "0.1.0"
    return str(project.get("version", "0.1.0"))


# The lock -----------------------------------------------------------------------------------------------------------

_WHAT = {"openapi": "an OpenAPI document", "mcp": "a list of tools"}


def _check(file: Path, text: str, outcome: _Outcome, mcp: bool) -> int:
    """Compare with the committed document, and list the changes for a client."""
    name = shown_path(file)
    command = f"core openapi {'--mcp ' if mcp else ''}-o {name}"
    try:
        before = file.read_text("utf-8", "replace")
    except FileNotFoundError:
        raise DeveloperError(f"{name} does not exist. Write it, and commit it: {command}") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}. Name a file: {command}") from None
    from core.openapi.written import meaning

    kind = "mcp" if mcp else "openapi"
    if before == text or meaning(parsed := _parsed(before, name, command, kind)) == meaning(outcome.document):
        print(f"{name} is up to date.")
        return 0
    from core.openapi.changes import compare

    documents = [parsed, outcome.document]
    try:
        if mcp:
            from core.openapi.tools import as_document

            documents = [*map(as_document, documents)]
        changes = compare(*documents)
    except (AttributeError, KeyError, TypeError) as error:
        problem = f"{name} is not {_WHAT[kind]} in all of its parts ({error}). Write it anew: {command}"
        raise DeveloperError(problem) from error
    places = {(operation, status): (source, line) for (operation, status), (source, line) in outcome.places}
    breaking = [change for change in changes if change.level == "breaking"]
    for change in changes:
        print(f"{change.level}: {change}{_place(change, places)}{f'. {change.advice}' if change.advice else ''}")
    if not changes:
        print("Nothing changed for a client: other words.")
    problem = f"{len(breaking)} of {len(changes)} changes break a client. " if breaking else ""
    print(f"{name} is not up to date. {problem}Write it anew: {command}")
    return 1


def _parsed(text: str, name: str, command: str, kind: str) -> Mapping[str, object]:
    from core.openapi.reading import load_document, objects_of
    from core.values import is_object

    document = load_document(text, name, command, _WHAT[kind])
    if kind not in document:
        raise DeveloperError(f"{name} is not {_WHAT[kind]}. Write it anew: {command}")
    for place, part in objects_of(document) if kind == "openapi" else ():
        if not is_object(part):
            raise DeveloperError(f"{name} is not {_WHAT[kind]}: {place} is not an object. Write it anew: {command}")
    return document


def _place(change: Change, places: Mapping[tuple[str, str], tuple[str, int]]) -> str:
    """Return the position of the change in the code: at the answer, or at the handler."""
    found = places.get((change.operation, change.status or "")) or places.get((change.operation, ""))
    return f", {shown_path(found[0])}:{found[1]}" if found is not None and found[0] else ""
