"""The one name of granian's that is not public and that we need, held to the version that has it."""

from __future__ import annotations

import os
import socket
from importlib.metadata import version
from typing import Any


def test_granian_takes_a_socket_that_is_open_already() -> None:
    """It has no public way to be given a descriptor; when this fails,
    look how `Server` makes its own `SocketHolder`.
    """
    from granian._granian import SocketHolder
    from granian.server.embed import Server

    about = f"granian {version('granian')} has changed what core.runtime.cpython.servers needs"
    assert hasattr(Server, "_init_shared_socket"), about
    holder: Any = SocketHolder
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            holder(os.dup(listener.fileno()), False, 2048)
        except TypeError as error:
            raise AssertionError(about) from error
