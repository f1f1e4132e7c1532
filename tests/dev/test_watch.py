"""A call that blocks the event loop is reported with its line: the clock is moved by hand,
and the thread's look is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from core.dev.watch import LoopWatch
from core.testing import FakeClock

PROGRAM = """\
def show(block):
    block(2.0)
"""


def program(folder: Path) -> Callable[[Callable[[float], None]], None]:
    """A handler of the application in `folder`, which calls what it is given."""
    file = folder / "main.py"
    file.write_text(PROGRAM)
    names: dict[str, Any] = {}
    code: CodeType = compile(PROGRAM, str(file), "exec")
    exec(code, names)  # an application's file, written by this test
    show: Callable[[Callable[[float], None]], None] = names["show"]
    return show


def test_a_call_that_blocks_the_loop_is_reported_with_its_line_and_time(tmp_path: Path) -> None:
    said: list[str] = []
    clock = FakeClock()
    watch = LoopWatch(tmp_path, write=said.append, clock=clock)

    def block(seconds: float) -> None:
        clock.advance(seconds / 2)
        watch.look()
        clock.advance(seconds / 2)

    program(tmp_path)(block)
    watch.look()
    watch.beat()

    [told] = said
    assert told == (
        "the loop stood still for 2.0 s in main.py:2 (show): block(2.0). No other request was answered meanwhile. Await an "
        "async call there, or run it with `await asyncio.to_thread(…)`; a worker has no threads"
    )
    watch.beat()
    assert len(said) == 1


def test_a_loop_that_beats_is_not_reported(tmp_path: Path) -> None:
    said: list[str] = []
    clock = FakeClock()
    watch = LoopWatch(tmp_path, write=said.append, clock=clock)
    for _ in range(100):
        clock.advance(0.3)
        program(tmp_path)(lambda seconds: watch.look())
        watch.beat()
    assert said == []


def test_the_time_in_which_other_programs_had_the_processor_is_not_the_codes(tmp_path: Path) -> None:
    said: list[str] = []
    clock, others = FakeClock(), FakeClock()
    watch = LoopWatch(tmp_path, write=said.append, clock=clock, waited=others.monotonic)

    def block(seconds: float) -> None:
        clock.advance(seconds)
        others.advance(1.75)
        watch.look()

    program(tmp_path)(block)
    watch.beat()
    assert said == []
    program(tmp_path)(lambda seconds: block(seconds + 1))
    watch.beat()
    [told] = said
    assert told.startswith("the loop stood still for 1.2 s in main.py:2 (show)")


def test_what_blocks_outside_of_the_application_is_not_reported(tmp_path: Path) -> None:
    said: list[str] = []
    clock = FakeClock()
    watch = LoopWatch(tmp_path, write=said.append, clock=clock)
    clock.advance(5)
    watch.look()
    watch.beat()
    assert said == []
