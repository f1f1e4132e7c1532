"""In every project there is, the table is what requests meet, and what the import refuses is a finding."""

from __future__ import annotations

import json
import re
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.support.starting import ROOT, in_fork

from core.app import App
from core.config.load import load_all
from core.handlers import info_of, name_of
from core.hosts.application import find_app
from core.mypy_plugin.hooks import Findings
from core.program.ask import ask
from core.program.entry import Entry, entry_of, import_main, module_of
from core.program.proof import Options, prove
from core.routing.pattern import Pattern

PLACES = [ROOT / "docs" / "examples", ROOT / "examples", ROOT / "tests"]
PROJECTS = sorted(
    path
    for place in PLACES
    for path in place.rglob("wrangler.toml")
    if "node_modules" not in path.parts and "\nmain = " in path.read_text()
)
FILES = sorted(
    path
    for place in PLACES
    for path in place.rglob("*.py")
    if "\napp = create_app(" in path.read_text()
    and not path.name.startswith(("test_", "conftest", "forms"))
    and not {"jwks", "refusing", "support", "tutorial", "typing"}
    & {*path.parts}  # which cannot be imported as they are
    and not any(path.is_relative_to(project.parent) for project in PROJECTS)
)


def entry_in(path: Path, state: Path) -> Entry:
    """The program of a configuration, or of a file without one. What is kept of it goes into another folder."""
    if path.suffix == ".toml":
        return entry_of(load_all(path)[0])._replace(config=str(state / "wrangler.toml"))
    folder, module = module_of(path)
    return Entry(str(folder), module, "app", str(state / "wrangler.toml"), str(path))


def shown(path: Path) -> str:
    return str((path.parent if path.suffix == ".toml" else path).relative_to(ROOT))


def started(entry: Entry) -> App[Any]:
    """A program as a host starts it."""
    app = find_app(import_main(entry), entry.attribute, entry.config)
    app.check()
    return app


def path_of(pattern: Pattern) -> str:
    """A path that a pattern matches."""
    words = ("1", "ada", "theme", "SKU-1", "2026-11-25")
    checks = dict(pattern.checks)
    parts = [
        part if part is not None else next(word for word in words if re.fullmatch(checks.get(index, ".*"), word))
        for index, part in enumerate(pattern.parts)
    ]
    return "/" + "/".join([*parts, *(["x", "y"] if pattern.rest else [])])


def met(entry: Entry) -> str:
    """What a request for each route meets, as the Finder has it: the handler, and all that runs before."""
    app = started(entry)
    finder = app.dispatcher.finder
    finder.find("GET", "/")
    found: list[object] = []
    for order, route in enumerate(app.entries()):
        if route.method is None:
            continue
        answers, before = finder.route_of(route.method.replace("*", "PUT"), path_of(route.pattern))
        assert answers is not None
        assert answers.order == order, f"{route.label} is answered by {answers.label}"
        infos = [(name_of(step), info_of(step)) for step in before]
        found.append(
            [
                route.method,
                route.pattern.text,
                None if answers.handler is None else name_of(answers.handler),
                [name for name, info in infos if info is None or not info.public],
                any(info is not None and info.authenticates for _, info in infos),
                any(info is not None and info.public for _, info in infos),
            ]
        )
    return json.dumps(found)


@pytest.mark.parametrize("path", [*PROJECTS, *FILES], ids=shown)
def test_the_table_of_a_program_is_what_requests_meet(path: Path, tmp_path: Path) -> None:
    entry = entry_in(path, tmp_path)
    table = ask(entry)
    assert (table.finished, table.refusals, table.unread) == (True, (), ())
    assert table.app is not None
    names = [step.name for step in table.callbacks]
    found = [
        [
            route.method,
            route.path,
            None if route.handler is None else names[route.handler],
            [names[step] for step in route.middleware],
            route.authenticated,
            route.public,
        ]
        for route in table.app.routes
    ]
    assert found == json.loads(in_fork(lambda: met(entry)))
    assert all(table.callbacks[route.handler].whole for route in table.app.routes if route.handler is not None)


MISSING = "import no_such_module"
"""Of which a type checker tells by itself."""
MISTAKES = (
    "APP.get('bad')(None)",
    "APP.get('/mistaken')(lambda req, res: None)",
    "APP.use(lambda: None)",
    "APP.use('/mistaken')",
    "APP.use(APP)",
    "APP.on('no method', '/mistaken')",
    "APP.queue('')",
    "APP.authenticated(lambda: None)",
    "APP.mount('/mistaken', 3)",
    "APP.on_error(ValueError)(lambda: None)",
    "APP.lifespan(lambda: None)",
    "APP.not_found(lambda: None)",
    "APP.websocket('/mistaken')(lambda: None)",
    "APP.route('/mistaken')",
    "from core import Requset",
    MISSING,
    "{}['key']",
)


def refused(entry: Entry, mistakes: str, first: int) -> str:
    """The lines that the import of a program refuses, or `app.check()` behind it, of those that are put at its end."""
    module = import_main(entry)
    lines: list[int] = []
    for line, mistake in enumerate(mistakes.splitlines(), first):
        try:
            exec(compile("\n" * (line - 1) + mistake, entry.file, "exec"), vars(module))
            find_app(module, entry.attribute, entry.config).check()
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines += [frame.lineno or 0 for frame in frames if frame.filename == entry.file][-1:]
    return json.dumps(lines)


@pytest.mark.parametrize("path", PROJECTS, ids=shown)
def test_what_an_import_refuses_is_a_finding_of_both_commands_at_the_same_line(path: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(path.parent, root, ignore=shutil.ignore_patterns(".*", "tests", "node_modules", "__pycache__"))
    entry = entry_of(load_all(root / path.name)[0])
    main = Path(entry.file)
    text, mistakes = main.read_text(), "\n".join(MISTAKES).replace("APP", entry.attribute)
    first = text.count("\n") + 1
    expected = {*json.loads(in_fork(lambda: refused(entry, mistakes, first)))}
    assert len(expected) >= len(MISTAKES) - 3
    main.write_text(text + mistakes)
    (root / "mypy.ini").write_text("[mypy]\nplugins = core.mypy_plugin\n")
    found = prove(load_all(root / path.name), Options(paths=[root])).findings
    told = Findings(str(root / "mypy.ini"), root, sys.executable).by_file[str(main)]
    assert {one.line for one in found if one.file == str(main) and one.line >= first} == expected
    assert {one.line for one in told if one.line >= first} == expected - {first + MISTAKES.index(MISSING)}
