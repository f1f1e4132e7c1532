"""The error handler that answers an error, and its answers: as `core.answers.find_error_handler` chooses, by facts.

Of the nearest router that has one it is the handler for the nearest class of the error's ancestry. One that is narrowed
to other classes, or that leaves an error to `next`, lets the following one answer, and behind the last the default
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from core.openapi.effects import Found, Program
from core.openapi.facts import Answer, Raise
from core.openapi.failures import CORE_ERROR, DEFAULT_ANSWER, DEFAULT_PROBLEM, UNEXPECTED

__all__ = ["Handled", "Levels", "is_general"]

Levels: TypeAlias = Sequence[Mapping[str, str]]
"""The error handlers of routers, the nearest first: functions by the classes that they are for, by full names."""


class Handled:
    """The answers to errors of one application, whose own handlers are the last of all levels."""

    def __init__(self, program: Program, own: Mapping[str, str], *, problem_details: bool) -> None:
        self._program = program
        self._own = own
        self.default: Answer = DEFAULT_PROBLEM if problem_details else DEFAULT_ANSWER

    def answers(self, raised: Raise, levels: Levels) -> Iterator[tuple[Found | None, Answer]]:
        """The answers to an error; the default one, which has no place, where no handler has any."""
        for _, found in self._handlers(raised, levels):
            chosen = _chosen(raised, [(each, each.effect) for each in found if isinstance(each.effect, Answer)])
            if chosen:
                yield from chosen
                return
        yield None, self.default

    def is_answered(self, raised: Raise, levels: Levels) -> bool:
        """True for an exception without a status that a handler was written for."""
        for cls, found in self._handlers(raised, levels):
            if cls not in UNEXPECTED.classes:
                return True
            if any(isinstance(each.effect, Answer) and _shares(raised, each.effect.errors) for each in found):
                return True
        return False

    def unexpected(self, levels: Levels) -> Iterator[Found]:
        """The effects of the handlers of an error that nobody foresaw."""
        for _, found in self._handlers(UNEXPECTED, levels):
            yield from found

    def _handlers(self, raised: Raise, levels: Levels) -> Iterator[tuple[str, list[Found]]]:
        for level in (*levels, self._own):
            for cls in raised.classes:
                if cls in level:
                    yield cls, self._program.effects(level[cls])


def is_general(answer: Answer) -> bool:
    """True for an answer that any error may get."""
    return not answer.errors or not set(answer.errors).isdisjoint(UNEXPECTED.classes)


def _chosen(raised: Raise, answers: Sequence[tuple[Found, Answer]]) -> Sequence[tuple[Found, Answer]]:
    # The first branch that is for an error of this class answers it, as in the code.
    first = next((answer.errors for _, answer in answers if _shares(raised, answer.errors)), ())
    chosen = [(found, answer) for found, answer in answers if answer.errors == first]
    if CORE_ERROR[0] in raised.classes and not first:
        return [(found, answer) for found, answer in chosen if answer.status is None] or chosen
    return chosen


def _shares(raised: Raise, kinds: Sequence[str]) -> bool:
    return not set(raised.classes).isdisjoint(kinds)
