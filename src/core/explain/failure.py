"""One record of a failure: what happened, the line of the program, the frames with their source, how to fix it, and the
page of the documentation.

Terminal, log, error page, explorer and pytest show this one value, each in its own form. It is made after a failure
only, and nothing of it reaches a client, except the developer that `core dev` answers.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, cast

import attrs

from core.errors import ConfigurationError, CoreError, DeveloperError, EnvError
from core.explain.diagnosis import explain, is_note, words_of
from core.explain.frames import Frame, frames_of
from core.explain.pages import page_of

_MOST: Final = 6
"""Lines of the program that are shown in texts."""


def is_failure(error: Exception) -> bool:
    """Return True if an error is a fault of the program, and no answer that it chose."""
    if isinstance(error, CoreError):
        return error.status >= 500 and error.__cause__ is not None
    status = getattr(error, "status", None)
    return not (type(status) is int and 400 <= status <= 499)


def _plain(text: str, *names: str) -> str:
    return text


@attrs.frozen
class Failure:
    """An error, explained. `problems` has one entry for each mistake, `fix` the way to correct it, if it is known, and
    `page` the address of the documentation's page about it.
    """

    kind: str
    message: str
    frames: tuple[Frame, ...]
    """The last step first."""
    problems: tuple[str, ...] = ()
    fix: str | None = None
    page: str | None = None
    causes: tuple[str, ...] = ()

    @property
    def own(self) -> tuple[Frame, ...]:
        """The steps in the program's own code."""
        return tuple(frame for frame in self.frames if frame.own)

    @property
    def line(self) -> Frame | None:
        """The line of the program that is to blame."""
        return next(iter(self.own), None)

    def as_json(self) -> dict[str, object]:
        """For a log, an API client of `core dev`, and the explorer."""
        return {
            "type": self.kind,
            "message": self.message,
            "line": None if self.line is None else self.line.as_json(),
            "fix": self.fix,
            "page": self.page,
            "problems": list(self.problems),
            "causes": list(self.causes),
            "frames": [frame.as_json() for frame in self.own],
        }

    def as_text(self, paint: Callable[..., str] = _plain) -> str:
        """For a terminal, a log of lines, and pytest. `paint(text, "bold", "red")` gives colours."""
        lines = [f"{paint(self.kind, 'bold', 'red')}: {self.message}"]
        lines += [f"  {number}. {problem}" for number, problem in enumerate(self.problems, 1)]
        for frame in self.own[:_MOST]:
            lines.append(f"  {paint(f'{frame.file}:{frame.line}', 'cyan')} {paint(frame.function, 'dim')}".rstrip())
            lines += [f"    {frame.text}"] if frame.text else []
        if not self.own and not self.problems and self.fix is None:
            lines += [f"  {frame.file}:{frame.line} {frame.function}" for frame in self.frames[:_MOST]]
        lines += [f"  caused by {cause}" for cause in self.causes]
        if self.fix and not any(self.fix.rstrip(".") in text for text in (self.message, *self.problems)):
            lines.append(f"  {paint('How to fix:', 'bold')} {self.fix}")
        if self.page:
            lines.append(f"  {paint('Page:', 'bold')} {self.page}")
        return "\n".join(lines)


def failure_of(error: BaseException, root: Path | None = None) -> Failure:
    """Describe an error. `root` is the folder of the program: its files are the program's own, and shown from there.
    Without one, all that no package has is its own, and shown from the current folder.

    It raises nothing: of an error whose own methods raise, there is its class and its text.
    """
    try:
        lines = (
            "".join(traceback.TracebackException.from_exception(error).format_exception_only()).rstrip().splitlines()
        )
        # Beside our own advice would stand what Python 3.12 and newer guess of a name.
        is_said = isinstance(error, DeveloperError | AttributeError | NameError | ImportError)
        message = words_of(error) if is_said else _message(lines, error)
        problems: tuple[str, ...] = ()
        if isinstance(error, (ConfigurationError, EnvError)):
            problems = tuple(error.problems)
            where = "in the configuration" if isinstance(error, ConfigurationError) else "between Env and configuration"
            message = f"{len(problems)} mistake{'' if len(problems) == 1 else 's'} {where}"
        fix = "Each line ends with its fix." if len(problems) > 1 else explain(error)
        return Failure(
            kind=type(error).__name__,
            message=message,
            frames=tuple(frames_of(error, root)),
            problems=problems,
            fix=fix,
            page=page_of(error, fix),
            causes=tuple(_causes(error)),
        )
    except Exception:
        return Failure(type(error).__name__, words_of(error), ())


def _message(lines: list[str], error: BaseException) -> str:
    # Python's own words, suggestions ("Did you mean") and the caret under a syntax error included.
    text = "\n".join(line for line in lines if not is_note(line))
    prefix = f"{type(error).__name__}: "
    last = text.rpartition(f"\n{prefix}")[2] if f"\n{prefix}" in text else text.removeprefix(prefix)
    last = last.removeprefix(f"{type(error).__module__}.{prefix}")
    return last.strip() or type(error).__name__


def _causes(error: BaseException) -> Iterable[str]:
    seen, said = {id(error)}, words_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if words_of(cause) not in said:  # what is said already is not said again
            yield f"{type(cause).__name__}: {words_of(cause)}"
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield f"{type(inner).__name__}: {words_of(inner)}"
