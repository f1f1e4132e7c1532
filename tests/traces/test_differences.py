"""The page of differences names every recorded program that does not hold for us, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.traces.__main__ import quiet, replay_one
from tests.traces.harness import DATA, NotRunError, load

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"


def test_every_program_that_does_not_fit_is_explained_on_the_page() -> None:
    named = set(re.findall(r"\b(?:kv|d1|r2|queues|fetch)-\d+\b", PAGE.read_text("utf-8")))
    others = [program for program in load(DATA) if program["portability"] != "exact"]
    misses: set[str] = set()
    with quiet():
        for program in others:
            try:
                if replay_one(program):
                    misses.add(program["id"])
            except NotRunError:
                misses.add(program["id"])  # what cannot be run is a difference too
    assert misses - named == set()
    # These two hang on the version of SQLite: a newer one has what an older one has not, and counts its plans
    # otherwise.
    assert named - misses <= {"d1-053", "d1-225"}
