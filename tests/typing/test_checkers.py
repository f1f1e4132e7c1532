"""Code that type checkers must accept and refuse, in five of them.

`accept/` has no error in any; in `refuse/` each line that ends in `# E` has one in each, and no other
line has any. A checker reads a whole folder in one run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.checkers import CHECKERS, marked

HERE = Path(__file__).parent


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_must_be_accepted_has_no_error(checker: str) -> None:
    assert CHECKERS[checker](HERE / "accept") == set()


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_must_be_refused_is_refused_on_its_line_and_nothing_else_is(checker: str) -> None:
    wanted = marked(HERE / "refuse")
    assert len(wanted) >= 10
    found = CHECKERS[checker](HERE / "refuse")
    assert found == wanted, f"missed {sorted(wanted - found)}, alarmed {sorted(found - wanted)}"
