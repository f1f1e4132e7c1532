"""Dates as HTTP headers have them (RFC 9110, section 5.6.7): all three forms are read, and the current one is written.

Every date in a header of a request or a response is read by `read_date`. It takes time linear in the header.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_CHARACTERS = 33  # "Wednesday, 09-Nov-94 08:49:37 GMT"

_DAY, _MONTH, _TIME = f"(?:{'|'.join(_DAYS)})", f"(?P<month>{'|'.join(_MONTHS)})", r"(?P<time>\d\d:\d\d:\d\d)"
# Compiled when the first date comes: most workers meet none.
_FORMS = (
    rf"{_DAY}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
    rf"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
    rf"{_DAY} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
)


def read_date(header: str | None, now: float) -> int | None:
    """A date in any form of HTTP, as seconds since 1970; None where it is absent or no date.

    `now`, in seconds since 1970, decides the century of a year of two digits: one that seems to be more than 50 years
    ahead is the last such year that was.
    """
    if header is None or len(header) > _MOST_CHARACTERS:
        return None
    for form in _FORMS:
        match = re.fullmatch(form, header, re.ASCII)
        if match is not None:
            break
    else:
        return None
    year, month, day = int(match["year"]), _MONTHS.index(match["month"]) + 1, int(match["day"])
    hour, minute, second = map(int, match["time"].split(":"))
    if len(match["year"]) == 2:
        present = _EPOCH + timedelta(seconds=now)
        latest = (present.year + 50, present.month, present.day, present.hour, present.minute, present.second)
        year += latest[0] // 100 * 100
        if (year, month, day, hour, minute, second) > latest:
            year -= 100
    try:
        # A leap second counts as the one before it.
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return int((moment - _EPOCH).total_seconds())


def http_date(seconds: float) -> str:
    """Seconds since 1970 as an HTTP date in its current form."""
    # By hand, since strftime speaks the language of the machine.
    moment = _EPOCH + timedelta(seconds=seconds // 1)
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02d} {_MONTHS[moment.month - 1]} {moment.year:04d} "
        f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d} GMT"
    )
