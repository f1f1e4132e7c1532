"""International host names in the form that goes on the wire: UTS #46, non-transitional, without the length checks.

Loaded when the first such name is met. The mapping is made of the data of `unicodedata` (case folding, NFKC and
categories) instead of the standard's own table, which agrees for the letters that registries allow.
https://www.unicode.org/reports/tr46/
"""

from __future__ import annotations

import re
import unicodedata

# Punycode takes quadratic time, and DNS knows no name longer than 253.
_LONGEST = 1024

_ignored = re.compile("[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")
_disallowed = re.compile("[\u2ff0-\u2fff\ufffc\ufffd]")
# Casing would change their meaning; UTS #46 has kept them since the end of its transition.
_DEVIATIONS = {"ß": "ß", "ẞ": "ß", "ς": "ς", "\u200c": "\u200c", "\u200d": "\u200d", "。": "."}
_JOINERS = "\u200c\u200d"
_VIRAMA = 9


def to_ascii(host: str) -> str:
    """`host` with every label in ASCII. Raises ValueError for a label that no name can have."""
    if len(host) > _LONGEST:
        raise ValueError(host)
    labels = [_to_unicode(label) for label in _map(host).split(".")]
    if any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for label in labels for char in label):
        for label in labels:
            _check_direction(label)
    return ".".join([label if label.isascii() else "xn--" + label.encode("punycode").decode() for label in labels])


def _map(text: str) -> str:
    mapped = [_DEVIATIONS.get(char) or _fold(char) for char in _ignored.sub("", text)]
    return unicodedata.normalize("NFC", "".join(mapped))


def _fold(char: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())


def _to_unicode(label: str) -> str:
    if label.startswith("xn--"):
        try:
            decoded = label[4:].encode("ascii").decode("punycode")
        except (ValueError, OverflowError):
            raise ValueError(label) from None
        # Written otherwise than it would be written from the name itself: two spellings of one host.
        if (
            not decoded
            or decoded.isascii()
            or _map(decoded) != decoded
            or decoded.encode("punycode").decode() != label[4:]
        ):
            raise ValueError(label)
        label = decoded
    if label.isascii():
        return label
    if unicodedata.category(label[0])[0] == "M" or _disallowed.search(label):
        raise ValueError(label)
    for place, char in enumerate(label):
        if char in _JOINERS:
            # After a virama only. The other context of RFC 5892 needs tables that Python does not have.
            if place == 0 or unicodedata.combining(label[place - 1]) != _VIRAMA:
                raise ValueError(label)
        elif not char.isascii() and unicodedata.category(char)[0] in "CZ":
            raise ValueError(label)
    return label


def _check_direction(label: str) -> None:
    """The rule of RFC 5893, which keeps names with right-to-left letters readable in one way."""
    if not label:
        return
    kinds = [unicodedata.bidirectional(char) for char in label]
    ends = list(kinds)
    while ends and ends[-1] == "NSM":
        ends.pop()
    if kinds[0] in ("R", "AL"):
        allowed = {"R", "AL", "AN", "EN", "ES", "CS", "ET", "ON", "BN", "NSM"}
        fits = ends[-1] in ("R", "AL", "EN", "AN") and not ("EN" in kinds and "AN" in kinds)
    elif kinds[0] == "L":
        allowed = {"L", "EN", "ES", "CS", "ET", "ON", "BN", "NSM"}
        fits = ends[-1] in ("L", "EN")
    else:
        raise ValueError(label)
    if not fits or not allowed.issuperset(kinds):
        raise ValueError(label)
