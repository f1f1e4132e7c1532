"""Lists and guesses of names for messages: "Did you mean email?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name nearest to `name`, or nothing."""
    by_lower = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return f" Did you mean {by_lower[near[0]]}?" if near else ""


def left_out(column: str, allowed: Sequence[str], text: str) -> str:
    """Return the message about a text that a column is compared with, or given, and that its CHECK does not allow."""
    fix = did_you_mean(text, allowed) or " Correct it, or the CHECK"
    return f"{column} is never {in_quotes([text])}: its CHECK allows {in_quotes(allowed)}.{fix}"


def in_quotes(texts: Sequence[str]) -> str:
    """Return texts as a list, each as SQL writes it."""
    return listed(["'" + text.replace("'", "''") + "'" for text in texts])


def listed(names: Sequence[str]) -> str:
    """Return at most twelve names and the number of the others."""
    shown = list(names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(shown) + more
