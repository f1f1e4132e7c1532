"""SQLite's functions and operators: the storage class of their results, and when these are NULL.

Only facts that hold for every call are here (https://www.sqlite.org/lang_corefunc.html, lang_aggfunc.html,
windowfunctions.html, lang_datefunc.html, lang_mathfunc.html, json1.html); `tests/sql/test_values.py` holds the table
against SQLite itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from core.sql.statement import ANY, Storage
from core.statements.tokens import words

Nulls: TypeAlias = Literal["never", "any", "some", "first", "unknown"]
"""The cases in which a result is NULL: never; exactly if any argument is; if any argument is, and perhaps otherwise;
exactly if the first argument is; not known.
"""


class Rule(NamedTuple):
    """`storage` is that of the result: letters as in `storages`, `1` for that of the first argument, `#` likewise where
    that is a number, `*` for arithmetic.
    """

    storage: str
    nulls: Nulls


_LETTERS: Final[Mapping[str, Storage]] = {"i": "integer", "r": "real", "t": "text", "b": "blob"}


@cache  # of the few that the tables below have
def storages(letters: str) -> frozenset[Storage]:
    """The storage classes that letters stand for; all for `?`, which is not known."""
    return ANY if letters == "?" else frozenset(_LETTERS[letter] for letter in letters)


def _rules(text: str) -> Mapping[str, Rule]:
    rules: dict[str, Rule] = {}
    for line in text.strip().splitlines():
        storage, nulls, *names = line.split()
        rules |= dict.fromkeys(names, Rule(storage, nulls))  # type: ignore[arg-type]  # written below as they are
    return rules


FUNCTIONS: Final = _rules(
    """
    i  never    changes last_insert_rowid total_changes random
    t  never    char concat hex quote typeof json_array json_object json_quote
    b  never    randomblob zeroblob jsonb_array jsonb_object
    r  never    pi
    t  first    concat_ws format printf
    i  any      glob instr length like octet_length
    i  unknown  json_valid
    t  any      lower upper ltrim rtrim trim replace json
    1  any      likely unlikely likelihood
    *  any      abs
    ?  any      max min
    r  any      round
    b  any      jsonb
    ?  any      substr substring
    i  some     sign unicode json_array_length
    ir some     unixepoch
    b  some     unhex
    t  some     date time datetime strftime timediff highlight snippet
    r  some     julianday
    r  some     acos acosh asin asinh atan atan2 atanh cos cosh degrees exp ln log log2 mod pow radians sin sinh sqrt tan tanh
    #  some     ceil floor trunc
    t  some     json_type json_patch
    t  first    json_insert json_replace json_set
    b  first    jsonb_insert jsonb_replace jsonb_set
    ?  unknown  json_extract jsonb_extract json_remove jsonb_remove jsonb_patch
    """
)
"""Functions of one row. coalesce, ifnull, iif and nullif are not here: their result depends on their arguments.

`min` and `max` with one argument are aggregates.
"""

AGGREGATES: Final = _rules(
    """
    i  never  count
    r  never  total
    t  never  json_group_array json_group_object
    b  never  jsonb_group_array jsonb_group_object
    r  any    avg
    t  any    group_concat string_agg
    1  any    max min
    *  any    sum
    """
)
"""Functions of many rows. `any`: NULL where no value is, among them where there are no rows."""

WINDOWS: Final = _rules(
    """
    i  never    row_number rank dense_rank ntile
    r  never    percent_rank cume_dist
    1  any      first_value last_value
    1  some     lag lead nth_value
    """
)
"""Functions that only OVER makes."""

_COMPARISONS: Final = words("= < <= > >= LIKE GLOB")

OPERATORS: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_COMPARISONS, Rule("i", "any")),
    **dict.fromkeys(("MATCH", "REGEXP", "AND", "OR"), Rule("i", "unknown")),
    **dict.fromkeys(("IS", "ISNULL"), Rule("i", "never")),
    **dict.fromkeys(("&", "|", "<<", ">>", "~", "NOT"), Rule("i", "any")),
    **dict.fromkeys(("+", "-", "*"), Rule("*", "any")),
    **dict.fromkeys(("/", "%"), Rule("*", "some")),
    "||": Rule("t", "any"),
    "->": Rule("t", "unknown"),
    **dict.fromkeys(("->>", "ROW"), Rule("?", "unknown")),
}
"""Operators by their name in capitals; those that are not, or turned around, under the name of the plain one."""
