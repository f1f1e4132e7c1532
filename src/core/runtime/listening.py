"""The socket that a service listens at: open from its start to its end, while processes behind it come and go."""

from __future__ import annotations

import socket

from core.errors import DeveloperError

__all__ = ["open_listener"]


def open_listener(host: str, port: int, *, options: str = "--host and --port") -> socket.socket:
    """Listen. Raises DeveloperError, which names `options`, where the address is taken or not one of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(2048)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise DeveloperError(
            f"cannot listen on {host}:{port}: {error.strerror}. Choose another address with {options}"
        ) from error
    return opened
