"""The record of a failure and its error page: what is told, in which order, and what is left out."""

from __future__ import annotations

import logging
import textwrap
from io import StringIO
from pathlib import Path
from types import CodeType

import attrs
import pytest

from core.dev.application import LogHandler, printable
from core.dev.error_page import to_html
from core.dev.exchange import Exchange, Message
from core.dev.record import Recorder
from core.dev.terminal import Style
from core.errors import ConfigurationError, D1Error, EnvError, MissingExtraError, NothingSentError
from core.explain.failure import failure_of
from core.sql.migrations import MigrationError


def raised(tmp_path: Path, text: str) -> BaseException:
    """The exception that the code raises, as a file of the application."""
    file = tmp_path / "src" / "own.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(textwrap.dedent(text))
    try:
        code: CodeType = compile(file.read_text(), str(file), "exec")
        exec(code, {"__name__": "own"})  # an application's file, written by this test
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_last_step_comes_first_and_libraries_come_after(tmp_path: Path) -> None:
    error = raised(
        tmp_path,
        """\
        import json
        def outer():
            inner()
        def inner():
            json.loads("{")
        outer()
        """,
    )

    found = failure_of(error, tmp_path)

    own = [(frame.file, frame.line, frame.function) for frame in found.own][:3]
    assert own == [("src/own.py", 5, "inner"), ("src/own.py", 3, "outer"), ("src/own.py", 6, "<module>")]
    assert found.kind == "JSONDecodeError"
    html = to_html(found)
    assert html.index("src/own.py:5") < html.index("more steps, inside libraries")
    assert "json.loads(&quot;{&quot;)" in html


def test_one_step_inside_a_library_is_one(tmp_path: Path) -> None:
    error = raised(tmp_path, "import json\njson.dumps(object(), default=lambda value: 1 / 0)\n")
    steps = [frame for frame in failure_of(error, tmp_path).frames if not frame.own]
    html = to_html(attrs.evolve(failure_of(error, tmp_path), frames=tuple(steps[:1])))
    assert "1 more step, inside libraries" in html


def asked(*headers: tuple[str, str]) -> Exchange:
    return Exchange("1", "request", "GET", "/", 0, 0, request=Message([*headers]))


def test_nothing_of_an_error_is_markup(tmp_path: Path) -> None:
    html = to_html(failure_of(ValueError("<script>alert(1)</script>"), tmp_path), asked(("<b>", "<i>")))
    assert "<script>" not in html
    assert "<b>&" not in html
    assert "<i>" not in html


def test_secrets_of_a_request_are_left_out() -> None:
    exchange = asked(("authorization", "Bearer x"), ("cookie", "a=1"), ("accept", "*/*"))
    html = to_html(failure_of(ValueError()), exchange)
    assert "authorization<td>(left out)<" in html
    assert "cookie<td>(left out)<" in html
    assert "accept<td>*/*<" in html


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (MissingExtraError("pip install 'core-edge[jwt]'"), "pip install 'core-edge[jwt]'"),
        (D1Error("D1_ERROR: no such table: users: SQLITE_ERROR"), "core migrate apply"),
        (
            MigrationError(Path("0003_t.sql"), 1, "table t already exists: SQLITE_ERROR"),
            "Correct 0003_t.sql: `core dev` applies it when it is saved, and `core migrate apply` elsewhere.",
        ),
        (ModuleNotFoundError("No module named 'x.y'", name="x.y"), "module `x`"),
        (NothingSentError("the chain ended. Send with res.json(…)"), "Send with res.json(…)"),
        (KeyError("the path has no parameter 'idd'. It has \"id\""), "names that the route's path has"),
    ],
)
def test_the_way_out_is_told(tmp_path: Path, error: Exception, fix: str) -> None:
    found = failure_of(error, tmp_path)
    assert found.fix is not None
    assert fix in found.fix
    assert "How to fix" in to_html(found)


def test_a_name_that_env_lacks_is_told_with_those_it_has(tmp_path: Path) -> None:
    error = raised(
        tmp_path,
        "import attrs\nfrom core import Bindings\n@attrs.frozen\nclass Env(Bindings):\n    DB: str\nEnv('').SESSIONS\n",
    )
    assert isinstance(error, AttributeError)
    found = failure_of(error, tmp_path)
    assert found.fix is not None
    assert "add the attribute SESSIONS to the Env class" in found.fix
    assert "DB" in found.fix


@pytest.mark.parametrize("kind", [ConfigurationError, EnvError])
def test_every_mistake_is_a_line_of_its_own(tmp_path: Path, kind: type[ConfigurationError | EnvError]) -> None:
    found = failure_of(kind(["first mistake", "second mistake"]), tmp_path)
    assert found.problems == ("first mistake", "second mistake")
    assert found.message.startswith("2 mistakes")
    assert "1. first mistake" in found.as_text()
    assert found.as_json()["problems"] == ["first mistake", "second mistake"]
    assert "<li>second mistake</li>" in to_html(found)


def test_a_syntax_error_is_shown_where_it_is(tmp_path: Path) -> None:
    found = failure_of(raised(tmp_path, "x = 1\ny = (\n"), tmp_path)
    assert [(frame.file, frame.line) for frame in found.frames] == [("src/own.py", 2)]
    assert "was never closed" in found.message


def test_causes_are_told_and_a_circle_of_them_ends(tmp_path: Path) -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert failure_of(first, tmp_path).causes == ("ValueError: second",)
    group = ExceptionGroup("several", [KeyError("one"), ValueError("two")])
    assert failure_of(group, tmp_path).causes == ("KeyError: 'one'", "ValueError: two")


def test_a_line_of_the_log_stays_one_line() -> None:
    assert printable("GET /\r\n\x1b[31mfake") == "GET /\\x0d\\x0a\\x1b[31mfake"


def test_the_line_end_of_a_servers_message_is_not_shown(tmp_path: Path) -> None:
    lines: list[str] = []
    handler = LogHandler(tmp_path, Recorder(), write=lines.append, style=Style(StringIO()))
    handler.emit(logging.makeLogRecord({"msg": "Exception in ASGI application\n", "levelno": 40, "levelname": "ERROR"}))
    assert lines == ["error Exception in ASGI application"]
