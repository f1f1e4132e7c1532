"""Regular expressions in paths: what is accepted is linear whatever a client sends, and means what `re` says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from core import App, Request, Response
from core.errors import PathError
from core.routing.expressions import objection

ACCEPTED = [
    "[0-9]+", ".*", ".+", "[0-9]{4}-[0-9]{2}", r"\d{4}(-\d{2}(-\d{2})?)?", "[a-z0-9]+(-[a-z0-9]+)*", "(png|pdf|jpe?g)",
    "en|en-GB|de", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"[^.]+\.(png|jpg)", "[a-z]{2}[a-z0-9]*", "@?[a-z]+",
    r"v?[0-9]+(\.[0-9]+){0,2}", "(ab|ac)+", "(a{2}){1,3}b", "[A-Z][a-z]+?", "(?:a|b|)c", r"\w+\.\d", "(a(b(c|d)|e)|af)*g",
]  # fmt: skip
AMBIGUOUS = [
    "(a+)+", "(a*)*", "(a|aa)+", "(a|a)*b", "(.*)*x", ".*.*.*x", "(a?){30}", "a*a*a*b", "[a-z]*[a-m]*x", "(a{1,2}){9}",
    "(ab?|a)+c", r"(\w|é)+x", "(a|ab)(c|bcd)*", "(|a|a?)b", r"([^0]\D)*[a1]+", "(?:x+x+)+y",
]  # fmt: skip


@pytest.mark.parametrize("source", ACCEPTED)
def test_an_expression_of_which_the_next_character_decides_is_accepted(source: str) -> None:
    assert objection(source) is None


@pytest.mark.parametrize("source", AMBIGUOUS)
def test_an_expression_that_can_read_a_text_in_two_ways_is_refused_at_registration(source: str) -> None:
    app: App[Any] = App()

    async def show(req: Request[Any], res: Response) -> None:
        res.json({})

    with pytest.raises(PathError, match=r"Write pieces of which the next character decides, such as .* in the handler"):
        app.get(f"/a/:id{{{source}}}", show)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("^[0-9]+$", r"has an anchor, and is held against the whole segment anyhow. Leave ^, $ and \b out"),
        (r"\bx", r"has an anchor, and is held against the whole segment anyhow. Leave ^, $ and \b out"),
        ("(?i)a", "sets flags. Leave them out, and write both cases where they are meant: [A-Za-z]"),
        ("(?i:a)", "sets flags. Leave them out, and write both cases where they are meant: [A-Za-z]"),
        ("[^\\x00-\\U0010ffff]", "has a class that no character is in, so it never matches. Fix it"),
        ("[0-9", "is not a regular expression: unterminated character set at position 0. Fix it"),
        (
            "[0-9]{0,4",
            r"has a brace that is no count. Close the count, as in [0-9]{1,4}, or write \{ for the character",
        ),
        ("a}b", r"has a brace that is no count. Close the count, as in [0-9]{1,4}, or write \{ for the character"),
        ("a{99999999999999999999}", "is not a regular expression: the repetition number is too large. Fix it"),
    ],
)
def test_what_is_refused_for_another_reason_says_which(source: str, said: str) -> None:
    assert objection(source) == said


@pytest.mark.parametrize("source", [r"\{a\}", "[{}]{2}", "[]{]", r"[\]}]{1,}", "a{,3}"])
def test_a_brace_that_is_escaped_in_a_class_or_a_count_is_taken(source: str) -> None:
    assert objection(source) is None


@pytest.mark.parametrize("source", ["(?=a)a", "(?<!b)a", r"(a)\1", "a*+", "(?>a)", "(a)(?(1)b|c)"])
def test_what_looks_around_or_back_is_refused(source: str) -> None:
    assert (objection(source) or "").startswith("has more than classes, alternatives and counts")


# -- the property: steps are counted by a matcher that goes back as `re` does


class Steps:
    """A backtracking matcher over what `re` reads, one step for each item that it tries."""

    def __init__(self, source: str) -> None:
        self.items: Any = import_module("re._parser").parse(source)
        self.count = 0
        self._classes: dict[str, dict[str, bool]] = {}

    def fullmatch(self, text: str) -> bool:
        self.text = text
        self.count = 0
        return self._sequence(self.items, 0, 0, lambda at: at == len(text))

    def _sequence(self, items: Sequence[Any], index: int, at: int, then: Callable[[int], bool]) -> bool:
        self.count += 1
        if index == len(items):
            return then(at)
        return self._item(items[index], at, lambda end: self._sequence(items, index + 1, end, then))

    def _item(self, item: Any, at: int, then: Callable[[int], bool]) -> bool:
        kind, value = str(item[0]), item[1]
        if kind == "SUBPATTERN":
            return self._sequence(value[3], 0, at, then)
        if kind == "BRANCH":
            return any(self._sequence(items, 0, at, then) for items in value[1])
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, items = int(value[0]), int(value[1]), value[2]
            return self._repeat(items, least, most, kind == "MAX_REPEAT", 0, at, then)
        return at < len(self.text) and self._is_in(kind, value, self.text[at]) and then(at + 1)

    def _repeat(
        self, items: Any, least: int, most: int, greedy: bool, done: int, at: int, then: Callable[[int], bool]
    ) -> bool:
        self.count += 1

        def once_more() -> bool:
            return done < most and self._sequence(
                items,
                0,
                at,
                lambda end: (
                    (end > at or done < least) and self._repeat(items, least, most, greedy, done + 1, end, then)
                ),
            )

        if done < least:
            return once_more()
        return once_more() or then(at) if greedy else then(at) or once_more()

    def _is_in(self, kind: str, value: Any, character: str) -> bool:
        code = ord(character)
        if kind == "IN":
            negated = str(value[0][0]) == "NEGATE"
            return any(self._is_in(str(op), inner, character) for op, inner in value[negated:]) is not negated
        if kind == "RANGE":
            return bool(value[0] <= code <= value[1])
        if kind == "CATEGORY":
            escape = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rpartition("_")[2]]
            return re.match(f"\\{escape.upper() if '_NOT_' in str(value) else escape}", character) is not None
        return character != "\n" if kind == "ANY" else (code == value) is (kind == "LITERAL")


CHARACTERS = st.sampled_from(["a", "b", "c", "d", "-", r"\.", "[ab]", "[cd]", "[^a]", "[^b-]", r"\d", r"\w", "é", "0"])
COUNTS = st.sampled_from(["?", "*", "+", "{2}", "{1,3}", "{2,}", "*?", "{0,2}"])
SOURCES = st.recursive(
    CHARACTERS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({'|'.join(each)})"),
        st.tuples(inner, COUNTS).map(lambda each: f"(?:{each[0]}){each[1]}"),
    ),
    max_leaves=8,
)
TEXTS = st.text("abcd-.0é\n", max_size=6)


@given(SOURCES, TEXTS, st.text("abcd-.0é", min_size=1, max_size=4), TEXTS)
@example("[a-z0-9]+(-[a-z0-9]+)*", "", "a-", "-")
@example("(ab|ac)*", "", "ab", "a")
@example("a*b*c*d*", "", "a", ".")
def test_an_accepted_expression_takes_steps_in_proportion_to_the_text(
    source: str, before: str, pump: str, after: str
) -> None:
    assume(objection(source) is None)
    matcher = Steps(source)
    # What comes back to a place tries each item of the expression there at most once.
    most = (len(source) + 1) ** 2
    for times in (1, 4, 24):
        text = before + pump * times + after
        assert matcher.fullmatch(text) is (re.fullmatch(source, text) is not None)
        assert matcher.count <= most * (len(text) + 1)


@pytest.mark.parametrize("source", ["(a+)+", "(a|aa)+", ".*.*.*x"])
def test_the_count_of_steps_tells_slow_expressions(source: str) -> None:
    matcher = Steps(source)
    counts: list[int] = []
    for length in (6, 12):
        matcher.fullmatch("a" * length + "!")
        counts.append(matcher.count)
    assert counts[1] > 3 * counts[0]
