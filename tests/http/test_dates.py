"""Dates in headers: RFC 9110, section 5.6.7, with the examples that stand there."""

from __future__ import annotations

from calendar import timegm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.http.dates import http_date, read_date

NOW = float(timegm((2027, 6, 15, 12, 0, 0)))


@pytest.mark.parametrize(
    "text",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
)
def test_all_three_forms_are_read(text: str) -> None:
    assert read_date(text, NOW) == 784111777


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Tuesday, 15-Jun-77 12:00:00 GMT", 2077),
        ("Tuesday, 15-Jun-77 12:00:01 GMT", 1977),
        ("Tuesday, 14-Jun-77 12:00:01 GMT", 2077),
        ("Friday, 01-Jan-78 00:00:00 GMT", 1978),
        ("Friday, 31-Dec-76 00:00:00 GMT", 2076),
        ("Friday, 01-Jan-00 00:00:00 GMT", 2000),
        ("Friday, 29-Feb-28 00:00:00 GMT", 2028),
    ],
)
def test_two_digits_that_seem_more_than_fifty_years_ahead_are_of_the_last_century(text: str, year: int) -> None:
    read = read_date(text, NOW)
    assert read is not None
    assert http_date(read).split()[3] == str(year)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "yesterday",
        "784111777",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 29-Feb-27 00:00:00 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT",
        "x" * 100_000,
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert read_date(text, NOW) is None


def test_a_leap_second_is_the_one_before_it() -> None:
    assert read_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW) == read_date("Sat, 31 Dec 2016 23:59:59 GMT", NOW)


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_what_is_written_is_read(seconds: int) -> None:
    assert read_date(http_date(seconds), NOW) == seconds


@given(st.floats(0, 4e9))
def test_parts_of_a_second_are_cut(seconds: float) -> None:
    assert read_date(http_date(seconds), NOW) == int(seconds)
