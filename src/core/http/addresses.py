"""IP addresses: of hosts of a URL, normalised as the WHATWG URL standard writes them, and of a client.

A file of its own, loaded when the first address comes: the hosts of most requests have names.
https://url.spec.whatwg.org/#host-parsing
"""

from __future__ import annotations

import re


def one_address(text: str | None) -> str | None:
    """The address of a client, where the proxy in front says exactly one."""
    from ipaddress import ip_address

    try:
        return None if text is None else str(ip_address(text.strip()))
    except ValueError:
        return None


def normalise_ipv4(host: str) -> str:
    """A host that ends in a number as four decimal ones. Raises ValueError for one that is not an address."""
    parts = host.removesuffix(".").split(".")
    if len(parts) > 4:
        raise ValueError(host)
    numbers = [_ipv4_number(part) for part in parts]
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise ValueError(host)
    address = numbers[-1] + sum(number << 8 * (3 - place) for place, number in enumerate(numbers[:-1]))
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))


def _ipv4_number(text: str) -> int:
    if not text:
        raise ValueError(text)
    if text[:2] in ("0x", "0X"):
        digits, base = text[2:], 16
    elif len(text) > 1 and text[0] == "0":
        digits, base = text[1:], 8
    else:
        digits, base = text, 10
    if not digits:
        return 0
    digits = digits.lstrip("0") or "0"
    # int() takes signs, blanks and underscores, and refuses very long texts.
    if not re.fullmatch(r"[0-9A-Fa-f]{1,12}", digits):
        raise ValueError(text)
    return int(digits, base)


def normalise_ipv6(text: str) -> str:
    """An address without its brackets, in its shortest form. Raises ValueError for anything else."""
    from ipaddress import IPv6Address

    if "%" in text:  # a zone, which no URL has
        raise ValueError(text)
    packed = IPv6Address(text).packed
    pieces = ":".join(f"{int.from_bytes(packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2))
    # The first of the longest runs of zeros, if it is longer than one, becomes `::`.
    zeros = max(re.finditer(r"\b0(?::0)+\b", pieces), key=lambda run: len(run[0]), default=None)
    if zeros is None:
        return pieces
    return f"{pieces[: zeros.start()].removesuffix(':')}::{pieces[zeros.end() :].removeprefix(':')}"
