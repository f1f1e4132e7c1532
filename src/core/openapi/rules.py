"""The kinds of change between two documents: their words, and whether each breaks a client, in a request and an answer.

The levels are those of oasdiff (https://www.oasdiff.com) except where a request that was right is refused without a
rule of it; `tests/openapi/edits.json` has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["breaking", "warning", "change"]
LEVELS: Final[Mapping[str, Level]] = {"B": "breaking", "W": "warning", "C": "change"}


class Rule(NamedTuple):
    """A kind of change: its level in a request and in an answer, its words, and what it breaks with the fix."""

    levels: str
    words: str
    advice: str = ""


# {0} is the subject. Where an answer has other words than a request, they are behind " | ".
RULES: Final[Mapping[str, Rule]] = {
    "operation gone": Rule("BB", "is gone ({0})", "Clients that call it get an error. Keep it, and deprecate it first"),
    "operation new": Rule("CC", "is new ({0})"),
    "operationId": Rule("CC", "was called `{0}` before"),
    "tags": Rule("CC", "has other tags"),
    "deprecated": Rule("CC", "is deprecated, or is no longer"),
    "way gone": Rule("BB", "no longer lets {0} in", "Clients that ask so get 401. Let them in for a while longer"),
    "way new": Rule("CC", "also lets {0} in"),
    "parameter gone": Rule("WW", "no longer reads {0}", "What clients send there does nothing now. Keep reading it"),
    "parameter new": Rule("CC", "also takes {0}"),
    "parameter demanded": Rule("BB", "now demands {0}", "Clients do not send it yet. Let it be left out"),
    "default": Rule("CC", "has {1} as the default of {0}"),
    "default of a parameter": Rule(
        "BB", "has {1} as the default of {0}", "Clients that leave it out get something else. Keep the default"
    ),
    "body gone": Rule("BB", "no longer reads a body", "What clients send does nothing now. Keep reading it"),
    "body new": Rule("CC", "now reads a body"),
    "body demanded": Rule("BB", "now demands a body", "Clients do not send one yet. Let it be left out"),
    "body optional": Rule("CC", "no longer demands a body"),
    "media gone": Rule(
        "BB", "no longer takes {0} | no longer answers {1} as {0}", "Clients use it. Keep it beside the others"
    ),
    "media new": Rule("CC", "also takes {0} | also answers {1} as {0}"),
    "success gone": Rule("BB", "no longer answers {0}", "Clients wait for it. Keep the status"),
    "error gone": Rule("CC", "no longer answers {0}"),
    "status new": Rule("CC", "also answers {0}"),
    "header gone": Rule("WW", "no longer sends {0}", "Clients may read it. Keep sending it"),
    "required header gone": Rule("BB", "no longer sends {0}", "Clients read it. Keep sending it"),
    "header new": Rule("CC", "also sends {0}"),
    "field gone": Rule("WW", "no longer reads {0} | no longer answers {0}", "Clients know it. Keep it"),
    "required field gone": Rule("WB", "no longer reads {0} | no longer answers {0}", "Clients rely on it. Keep it"),
    "field refused": Rule("BB", "no longer takes {0}", "Clients send what is refused now. Go on taking it"),
    "field new": Rule("CC", "also takes {0} | also answers {0}"),
    "field demanded": Rule(
        "BC", "now demands {0} | also answers {0}", "Clients do not send it yet. Let it be left out"
    ),
    "required": Rule(
        "BC", "now demands {0}, which could be left out | always answers {0}", "Clients leave it out. Keep a default"
    ),
    "optional": Rule("CB", "no longer demands {0} | may leave out {0}", "Clients rely on it. Always send it"),
    "more": Rule("CB", "also takes {1} as {0} | also answers {1} as {0}", "Clients do not expect it. Use a new field"),
    "one more": Rule("CW", "also takes {1} as {0} | also answers {1} as {0}", "Clients may not expect it. Tell them"),
    "less": Rule("BC", "no longer takes {1} as {0} | no longer answers {1} as {0}", "Clients send it. Go on taking it"),
    "closed": Rule(
        "BC", "takes no other fields in {0} now | answers no other fields in {0} now", "Ignore them instead"
    ),
    "bound new": Rule("WC", "now has {1} for {0}", "Clients may send what is refused now. Take what was taken"),
    "tighter": Rule("BC", "now has {1} for {0}", "Clients send what is refused now. Take what was taken"),
    "looser": Rule("CB", "now has {1} for {0}", "Clients do not expect such values. Keep the bound"),
    "requirement": Rule("WC", "has another {1} of {0}", "Clients may send what is refused now. Take what was taken"),
    "requirement new": Rule("BC", "has a {1} of {0} now", "Clients send what is refused now. Take what was taken"),
    "requirement gone": Rule("CC", "has no {1} of {0} now"),
    "format": Rule("BB", "has {1} as the format of {0}", "Clients read and write the one before. Use a new field"),
    "format new": Rule("BC", "has {1} as the format of {0}", "Clients send what is refused now. Take what was taken"),
    "format gone": Rule("CB", "has no format of {0} now", "Clients read what has one. Keep the format"),
}
