"""The socket of a service while no process answers behind it."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import DeveloperError
from core.runtime.listening import open_listener, turn_away, turn_away_while_down


async def test_who_would_wait_for_a_process_that_cannot_start_is_turned_away_until_one_is_up() -> None:
    up = False
    with open_listener("127.0.0.1", 0) as listener:
        turning = asyncio.create_task(turn_away_while_down(listener, lambda: up, seconds=0.02))

        async def ask() -> bytes:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try:
                async with asyncio.timeout(5 if not up else 0.2):
                    return await reader.readline()
            finally:
                writer.close()

        assert b" 503 " in await ask()

        async def ask_while_turned_away() -> None:
            while True:
                assert b" 503 " in await ask()

        up = True
        # Whoever comes now waits for the process, as soon as it is seen.
        with pytest.raises(TimeoutError):
            await ask_while_turned_away()
        turning.cancel()
        await asyncio.wait((turning,))


def test_an_address_of_ipv6_is_told_as_a_browser_takes_it() -> None:
    with pytest.raises(DeveloperError, match=r"cannot listen on \[2001:db8::1\]:1: "):
        open_listener("2001:db8::1", 1)


def test_who_has_not_asked_yet_at_the_end_makes_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    async def end_with_a_silent_client() -> None:
        server = await turn_away(open_listener("127.0.0.1", 0))
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while len(asyncio.all_tasks()) == 1:  # noqa: ASYNC110 - until it is accepted, and read
            await asyncio.sleep(0)
        server.close()
        writer.close()

    asyncio.run(end_with_a_silent_client())
    assert not caplog.records
