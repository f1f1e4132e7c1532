"""The place at which a process of `core serve --python` is, told to its supervisor while its event loop is blocked.

A thread answers, which needs the interpreter now and then, and knows the requests in flight. Where something keeps the
interpreter for itself, the handler of SIGUSR1 answers, which is written in C and knows the stacks alone.
"""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import socket
import threading
from typing import Final

__all__ = ["ASKED", "answer_where"]

ASKED: Final = b"?"


def answer_where(descriptor: int) -> None:
    """From now on answer at a socket, each time that it is asked. Called on the loop that answers requests."""
    asked = socket.socket(fileno=descriptor)
    faulthandler.register(signal.SIGUSR1, file=asked.fileno(), all_threads=True)
    loop, answering = asyncio.get_running_loop(), threading.get_ident()
    threading.Thread(target=_answer, args=(asked, loop, answering), name="core stacks", daemon=True).start()


def _answer(asked: socket.socket, loop: asyncio.AbstractEventLoop, answering: int) -> None:
    while asked.recv(1):
        try:
            told = _where(loop, answering)
        except Exception as error:  # what it reads changes meanwhile
            told = f"the requests in flight cannot be read: {error!r}"
        asked.sendall(f"{told}\0".encode("utf-8", "replace"))


def _where(loop: asyncio.AbstractEventLoop, answering: int) -> str:
    from core.hosts.in_flight import calls_of, frames_of, requests_in_flight

    running = frames_of(answering)
    parts = [requests_in_flight(loop, running)]
    for thread in threading.enumerate():
        if thread.ident is not None and thread is not threading.current_thread():
            frames = running if thread.ident == answering else frames_of(thread.ident)
            parts.append(f"thread {thread.name}\n{calls_of(frames)}")
    return "\n".join(parts)
