"""Code that type checkers must accept and refuse, in five of them.

`accept/` has no error in any; in `refuse/` each line that ends in `# E` has one in each, and no other line has any. A
checker reads both folders in one run. Lines that end in `# E, but for ty` give an option that does not exist, where the
options are an unpacked TypedDict: ty checks the types of those that do, and takes any other.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.checkers import CHECKERS, marked

HERE = Path(__file__).parent


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_must_be_accepted_is_and_what_must_be_refused_is_refused_on_its_line(checker: str) -> None:
    wanted = marked(HERE / "refuse", checker)
    assert len(wanted) >= 10
    found = CHECKERS[checker](HERE / "accept", HERE / "refuse")
    assert found == wanted, f"missed {sorted(wanted - found)}, alarmed {sorted(found - wanted)}"
