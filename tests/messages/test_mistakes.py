"""The mistakes of beginners (`README.md` lists them), each with the whole text that answers it: the problem, the line,
the fix and the page.

A file of `mistakes/` is one mistake: a program, the request that meets it (`http`), and what `core dev` writes to the
terminal, or what `core check` finds before anything runs. `CORE_MESSAGES=write pytest tests/messages` writes the texts
anew, to be read before they are committed.
"""

from __future__ import annotations

import asyncio
import gc
import html
import importlib.util
import json
import logging
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from tests.support.asgi import scope_of
from tests.support.starting import quick_starts as quick_starts

from core.assembly.project import Loaded, load
from core.cli import main as core
from core.dev.application import DevApplication, LogHandler
from core.dev.error_page import to_html
from core.dev.exchange import Exchange, for_explorer
from core.dev.journal import Journal
from core.dev.options import Options
from core.dev.record import Recorder
from core.dev.terminal import Style
from core.dev.watch import Unawaited
from core.explain.failure import Failure, failure_of
from core.hosts.process import BackgroundContext
from core.telemetry.logs import JsonFormatter
from core.testing import Client, client

FILES = sorted(Path(__file__).parent.joinpath("mistakes").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WRANGLER = 'name = "notes"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n'
WHERE = re.compile(r"(?:main\.py|test\.py|wrangler\.toml|migrations/\w+\.sql):")
HOW = re.compile(
    r"How to fix: |must be |pip install |Every [\w ]+ needs |\w has \w+, |[.?:!] (?:Did you mean|In core this is|(?:In a worker, )?(?:Add|Await|Bind|Call|Choose|Correct|Declare|Delete|Fix|Give|Keep|Make|Mount|Name|"
    r"Put|Raise|Read|Register|Remove|Rename|Return|Run|Send|Set|Start|Take|Use|Write)\b)"
)


pytestmark = pytest.mark.usefixtures("frozen_heap")


@attrs.frozen
class Mistake:
    """One file of `mistakes/`: the files of the program, those that are added when it ran once (`later NAME`), the
    request, and the texts by the name of their tool.
    """

    files: dict[str, str]
    later: dict[str, str]
    request: str
    expected: dict[str, str]

    @classmethod
    def read(cls, text: str) -> Mistake:
        """Read the blocks of a file."""
        files, expected, request = dict[str, str](), dict[str, str](), "GET /"
        later: dict[str, str] = {}
        for kind, name, body in BLOCK.findall(text):
            if kind == "text":
                expected[name] = body
            elif kind == "http":
                request = body
            elif name.startswith("later "):
                later[name.removeprefix("later ")] = body
            else:
                files[name] = body
        if not any(name.endswith("wrangler.toml") for name in files):
            files["wrangler.toml"] = WRANGLER
        return cls(files, later, request, expected)


def write(files: dict[str, str], folder: Path) -> None:
    """Write the files of a program."""
    for name, body in files.items():
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(body, "utf-8")


@contextmanager
def project(mistake: Mistake, folder: Path) -> Generator[Path]:
    """The program in a folder, which is the current one meanwhile; its modules are forgotten afterwards."""
    write(mistake.files, folder)
    path, modules, before = [*sys.path], dict(sys.modules), Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in [name for name, module in cast("dict[str, Any]", sys.modules).items() if module is None]:
            if name in modules:  # what a program hid
                sys.modules[name] = modules[name]
            else:
                del sys.modules[name]
        for name in {*sys.modules} - {*modules}:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


async def ask(application: DevApplication, request: str) -> bytes:
    """The body of the answer to a request such as `POST /notes`, with a body below it."""
    head, _, body = request.partition("\n\n")
    method, _, target = head.strip().partition(" ")
    path, _, query = target.partition("?")
    scope = scope_of(path, method=method, query_string=query.encode())
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body.strip().encode(), "more_body": False}

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    await application(scope, receive, send)
    return b"".join(parts)


class FailureRecorder(Recorder):
    """A recorder that knows the last failure, and its exchange."""

    failure: Failure | None = None
    failed: str = ""

    def end(self, exchange: Exchange) -> None:
        super().end(exchange)
        if exchange.failure is not None:
            self.failure, self.failed = exchange.failure, exchange.key


class JsonLog(logging.Handler):
    """The failures of the log, as its lines of JSON have them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.failures: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.failures.append(json.loads(self.format(record))["failure"])


def is_told(found: Failure, told: str) -> None:
    """Hold a text to the five parts of a failure: what happened, the line, its source, how to fix it, the page."""
    assert found.line is not None
    assert found.fix is not None
    assert found.page is not None
    place = f"{found.line.file}:{found.line.line}"
    for part in (found.kind, found.message, *found.problems, place, found.line.text, found.page):
        assert part in told, (part, told)
    assert found.fix.rstrip(".").lower() in told.lower(), (found.fix, told)


def is_in_json(found: Failure, told: dict[str, Any]) -> None:
    """Hold JSON to the same."""
    assert found.line is not None
    assert told["type"] == found.kind
    assert told["message"] == found.message
    assert told["line"] == found.line.as_json()
    assert told["fix"] == found.fix
    assert told["page"] == found.page
    assert told["problems"] == [*found.problems]


async def in_pytest(app: Any, env: object, request: str) -> str:
    """What pytest shows of a request of a test that fails."""
    client.failures.clear()
    app.dispatcher.failures.on_failure = None
    head, _, body = request.partition("\n\n")
    method, _, target = head.strip().partition(" ")
    await Client(app, env, BackgroundContext()).request(method, target, body=body.strip() or None)
    return client.failures[-1][1].as_text()


async def core_dev(mistake: Mistake, folder: Path) -> str:
    """The text of the terminal, calls included that nobody awaited: Python adds nothing in words of its own."""
    lines: list[str] = []
    unawaited = Unawaited(folder, write=lambda line: lines.append(f"warning {line}"))
    unawaited.start()
    logging.getLogger("core").propagate = False  # to pytest, which keeps the records, their errors and their coroutines
    try:
        notices = await serve(mistake, folder, lines, unawaited)
        gc.collect()  # what is left of the request is thrown away, and Python's warnings with it
    finally:
        logging.getLogger("core").propagate = True
        unawaited.stop()
    return "\n".join([*notices, *lines]) + "\n"


async def serve(mistake: Mistake, folder: Path, lines: list[str], unawaited: Unawaited) -> Sequence[str]:
    """Load the program and answer its request, with the same message in JSON and on the page. Returns its notices."""
    plain = Style(StringIO())
    recorder, context = FailureRecorder(journal=Journal(None)), BackgroundContext()
    handler, records = LogHandler(folder, recorder, write=lines.append, style=plain), JsonLog()
    logger = logging.getLogger("core")
    logger.addHandler(handler)
    logger.addHandler(records)
    options = Options(folder / "wrangler.toml")
    loaded: Loaded | None = None
    failed: Exception | None = None
    if mistake.later:
        await (await load(options.config, options.state_folder)).close()
        write(mistake.later, folder)
    try:
        try:
            loaded = await load(options.config, options.state_folder, hook=recorder.hook)
        except Exception as error:
            failed = error
        application = DevApplication(
            loaded.app if loaded is not None else failed or ValueError(),
            None if loaded is None else loaded.env,
            root=folder,
            recorder=recorder,
            context=context,
            write=lambda line: None,
            style=plain,
            unawaited=unawaited,
        )
        answer = b""
        for request in mistake.request.split("\n---\n"):
            answer = await ask(application, request)
        gc.collect()
        await context.drain()
        logger.removeHandler(handler)
        await compare(
            recorder, failed, answer, records, lines, loaded, mistake.request.rpartition("\n---\n")[2], folder
        )
    finally:
        logger.removeHandler(handler)
        logger.removeHandler(records)
        if loaded is not None:
            await loaded.close()
    return loaded.notices if loaded is not None else ()


async def compare(
    recorder: FailureRecorder,
    failed: Exception | None,
    answer: bytes,
    records: JsonLog,
    lines: list[str],
    loaded: Loaded | None,
    request: str,
    root: Path,
) -> None:
    """Hold terminal, JSON, page, explorer and pytest to the same five parts."""
    found = recorder.failure if failed is None else failure_of(failed, root)
    if found is None:
        return
    if failed is not None:
        lines.append(found.as_text())
    is_told(found, "\n".join(lines))
    is_in_json(found, json.loads(answer)["development"])
    is_told(found, html.unescape(re.sub(r"<[^>]+>", "", to_html(found))))
    if failed is not None or loaded is None:
        is_in_json(found, for_explorer(found))
        return
    is_in_json(found, records.failures[-1])
    kept = recorder.find(recorder.failed)
    assert kept is not None
    is_in_json(found, kept["failure"])
    written = [*lines]
    is_told(found, await in_pytest(loaded.app, loaded.env, request))
    gc.collect()
    lines[:] = written


async def pytest_run(folder: Path) -> str:
    """The text of an error in the user's own test, with the note that pytest shows below it."""
    spec = importlib.util.spec_from_file_location("mistaken_test", folder / "test.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    spec.loader.exec_module(module)
    test: Callable[[], Awaitable[None]] = module.test
    try:
        await test()
    except Exception as error:
        return failure_of(error, folder).as_text() + "\n"
    return "passed\n"


def command(line: str) -> str:
    """The output of a command such as `core check`. `PORT` in it is one that another program listens on."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out), socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with suppress(SystemExit):
            core([port if word == "PORT" else word for word in line.split()[1:]])
    return out.getvalue().replace(port, "PORT")


def texts(mistake: Mistake, folder: Path) -> dict[str, str]:
    """The message of each tool for which the file has a text."""
    said: dict[str, str] = {}
    for tool in mistake.expected:
        match tool:
            case "core dev":
                said[tool] = asyncio.run(core_dev(mistake, folder))
            case "pytest":
                said[tool] = asyncio.run(pytest_run(folder))
            case _:
                said[tool] = command(tool)
    source = str(Path(client.__file__).parent.parent)
    # The folder first: its name is drawn by chance, and may have an `0xff` of its own.
    said = {tool: text.replace(str(folder), "…").replace(source, "core") for tool, text in said.items()}
    return {tool: re.sub("0x[0-9a-f]+", "0x…", text) for tool, text in said.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_text_of_a_mistake(file: Path, tmp_path: Path) -> None:
    written = file.read_text("utf-8")
    mistake = Mistake.read(written)
    with project(mistake, tmp_path) as folder:
        said = texts(mistake, folder)
    gc.collect()
    if os.environ.get("CORE_MESSAGES") == "write":
        for tool, text in said.items():
            written = written.replace(f"```text {tool}\n{mistake.expected[tool]}```", f"```text {tool}\n{text}```")
        file.write_text(written, "utf-8")
        return
    assert said == mistake.expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_text_has_the_problem_the_line_and_the_fix(file: Path) -> None:
    mistake = Mistake.read(file.read_text("utf-8"))
    assert mistake.expected
    for tool, text in mistake.expected.items():
        assert max(map(len, text.splitlines())) > 30, (tool, text)
        if tool in ("core dev", "core check", "pytest"):  # and no other command
            assert WHERE.search(text), (tool, text)
        assert "Page: " in text or tool == "core check" or "Error: " not in text, (tool, text)
        assert HOW.search(text), (tool, text)


def test_eighty_mistakes_are_answered_each_by_a_file_of_its_own() -> None:
    """`README.md` says which, and each file stands there once."""
    rows = re.findall(
        r"^\| (\d+) \| .+ \| (.+) \| (.+) \|$", Path(__file__).with_name("README.md").read_text("utf-8"), re.MULTILINE
    )
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 80
    named = [name for _, _, files in rows for name in re.findall(r"\[(\w+)\]\(mistakes/\1\.md\)", files)]
    assert sorted(named) == [file.stem for file in FILES]
    for number, before, files in rows:
        told = ["```text core check" in file.read_text("utf-8") for file in FILES if f"/{file.name})" in files]
        assert before == ("`core check`" if all(told) else "`core check`, in part" if any(told) else "–"), number
