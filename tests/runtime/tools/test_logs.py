"""workerd's output, for people."""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path

import pytest

from core.explain.diagnosis import with_note
from core.explain.failure import failure_of
from core.runtime.logs import LogReader

TRACEBACK = """\
ERROR core: GET /x failed
Traceback (most recent call last):
  File "/core/core/dispatch.py", line 107, in respond
    await run(req, res)
  File "/core/shop/main.py", line 12, in show
    helper()
    ~~~~~~^^
  File "/lib/python314.zip/json/__init__.py", line 3, in loads
    return 1
ValueError: boom
How to fix: Give it something else.
Page: reference/json/
after
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "main.py").write_text("")
    return tmp_path


def read(root: Path, text: str) -> list[str]:
    lines: list[str] = []
    reader = LogReader(lines.append, root)
    for line in text.splitlines():
        reader.line(line)
    return lines


def test_a_request_that_waits_for_another_one_has_the_fix_beside_it(root: Path) -> None:
    # As workerd 1.20261117.1 says it of `await ready.wait()`, whose asyncio.Event another request sets.
    said = (
        "workerd/server/server/listen/mod.rs:372: error: Uncaught exception: workerd/io/io-context.c++:2052: failed: "
        "remote.jsg.Error: The Workers runtime canceled this request because it detected that your Worker's code had hung "
        "and would never generate a response."
    )
    first, fix = read(root, said)
    assert first == said
    assert fix.startswith("How to fix: a request awaits an object of another request (an asyncio.Event")


def test_a_connect_that_workerd_refuses_by_itself_leaves_no_line(root: Path) -> None:
    # As workerd 1.20261117.1 says it of one request.
    said = (
        "Received a connect event but we lack a handler. Did you remember to export a connect() function?\n"
        "workerd/server/server/listen/mod.rs:372: error: Uncaught exception: workerd/api/global-scope.c++:302: failed: "
        "remote.jsg.Error: Handler does not export a connect() function.\nafter"
    )
    assert read(root, said) == ["after"]


def test_a_traceback_is_the_record_of_a_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert read(root, TRACEBACK) == [
        "ERROR core: GET /x failed",
        "ValueError: boom",
        "  shop/main.py:12 show",
        "    helper()",
        "  How to fix: Give it something else.",
        "  Page: reference/json/",
        "after",
    ]


def test_the_text_is_that_of_the_record_made_from_the_error_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "shop" / "main.py").write_text("def show(found):\n    return found.missing\n")
    spec = importlib.util.spec_from_file_location("shop_main", root / "shop" / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(AttributeError) as raised:
        module.show(None)
    with_note(raised.value)
    raw, told = "".join(traceback.format_exception(raised.value)), failure_of(raised.value, root).as_text()
    assert "  shop/main.py:2 show\n    return found.missing\n" in told
    in_workerd = raw.replace(str(root), "/core").replace(__file__, "/core/core/app.py")
    assert read(root, in_workerd) == told.splitlines()


def test_where_the_sources_are_not_beside_it_the_frameworks_frames_are_left_out(root: Path) -> None:
    assert read(root / "gone", TRACEBACK)[1:4] == ["ValueError: boom", "  shop/main.py:12 show", "    helper()"]


def test_a_traceback_without_the_application_is_shown_whole(root: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "/core/core/app.py", line 1, in x\n    y\nKeyError'
    assert read(root, text) == ["KeyError: KeyError", "  core/app.py:1 x"]


def test_other_lines_come_as_they_are(root: Path) -> None:
    assert read(root, "one\n  two") == ["one", "  two"]
