"""Limits of a server: connections, and the time that a client may take. No server is imported here."""

from __future__ import annotations

import contextlib

import attrs

# Files, sockets and databases of a process that are no client's connection.
_OWN_DESCRIPTORS = 512


@attrs.frozen
class Limits:
    """The load that one process takes on; times are in seconds, and 0 waits for as long as it takes.

    `connections` are open at once; who comes beyond is answered 503. `head_seconds` is the time for the whole head of a
    request, from its connection or its first byte. `body_seconds` may pass without a byte of a body, in either
    direction. `idle_seconds` is how long a connection is kept without a request.
    """

    connections: int = 4096
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0


def raise_descriptors(connections: int) -> int:
    """Let this process, and those that it starts, open the files that so many connections take.

    Returns how many connections there is room for: fewer where the hard limit (`ulimit -Hn`) is too low. A request may
    need a descriptor of its own beside its connection's.
    """
    import resource

    needed = 2 * connections + _OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a system may have a limit of its own below the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    return max(16, (soft - _OWN_DESCRIPTORS) // 2)
