"""Notes of one start of a program: what is refused, and at which line of the program everything is made."""

from __future__ import annotations

import sys
import traceback
from types import FrameType

from core.explain.frames import is_own
from core.program.behind import real
from core.program.table import Place, Refusal


def caller() -> Place:
    """The line of the program that is running, of the innermost of its functions."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            return Place(real(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return Place()


def file_of(module: object) -> str:
    """The file of a module; "" for one that has none."""
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""


class Notes:
    """The notes, in the order in which they are made."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.kept: list[object] = []
        """The objects of `places`, so that nothing else gets their ids."""
        self.refusals: dict[Refusal, None] = {}
        self.unread: dict[Place, None] = {}
        """Registrations of something that is only assumed to be there."""
        self.stopped: set[str] = set()
        """The files of modules that stopped half way."""

    def note(self, kind: str, message: str, place: Place, fix: str = "") -> None:
        """Note something that is refused. A refusal of one router that is mounted twice is told once."""
        self.refusals.setdefault(Refusal(kind, message, place, fix))

    def refuse(self, error: BaseException, place: Place) -> None:
        """Note an error of the program, at its innermost line of the program, else at a place."""
        if isinstance(error, SyntaxError) and error.filename and is_own(error.filename):
            self.note("SyntaxError", error.msg, Place(real(error.filename), error.lineno or 1))
            return
        frames = [one for one in traceback.extract_tb(error.__traceback__) if is_own(one.filename)]
        if frames:
            place = Place(real(frames[-1].filename), frames[-1].lineno or 1)
        from core.explain.diagnosis import explain

        self.note(type(error).__name__, str(error) or type(error).__name__, place, explain(error) or "")

    def place(self, one: object, place: Place | None = None) -> None:
        """Note where something is made or registered."""
        self.kept.append(one)
        self.places[id(one)] = place or caller()
