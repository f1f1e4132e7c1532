"""workerd's output, for people."""

from __future__ import annotations

from pathlib import Path

import pytest

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
after
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "main.py").write_text("")
    return tmp_path


def read(root: Path, text: str, *, full: bool = False) -> list[str]:
    lines: list[str] = []
    reader = LogReader(lines.append, root, full=full)
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


def test_a_traceback_has_the_error_and_the_applications_frames_first(root: Path) -> None:
    assert read(root, TRACEBACK) == [
        "ERROR core: GET /x failed",
        "ValueError: boom",
        f'  File "{root}/shop/main.py", line 12, in show',
        "    helper()",
        "    ~~~~~~^^",
        "  … and 2 frames of the framework and its libraries",
        "after",
    ]


def test_with_full_no_frame_is_left_out(root: Path) -> None:
    assert sum(line.startswith("  File") for line in read(root, TRACEBACK, full=True)) == 3


def test_a_traceback_without_the_application_is_shown_whole(root: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "/core/core/app.py", line 1, in x\n    y\nKeyError: 1'
    assert read(root, text) == ["KeyError: 1", '  File "/core/core/app.py", line 1, in x', "    y"]


def test_other_lines_come_as_they_are(root: Path) -> None:
    assert read(root, "one\n  two") == ["one", "  two"]
