"""A bundle with a memory snapshot starts, however much memory the application took while it was imported."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from tests.runtime.conftest import Background, Make, start_running

from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain


# CPython's build declares 30 MiB. Memory grows by a fifth at a time, or by what one allocation needs. Every other
# bundle of these tests takes a few.
@pytest.mark.parametrize("megabytes", [20, 90])
def test_what_an_application_made_at_import_is_there_after_a_start_from_the_snapshot(
    tools: Toolchain, make: Make, background: Background, tmp_path: Path, megabytes: int
) -> None:
    main = dedent(f"""
        import sys
        from core import Request, Response, create_app

        # Written in pieces that are not zero: neither one block, nor pages that the bundle leaves out.
        TABLE = [bytes([at % 251 + 1]) * 4096 for at in range({megabytes} * 256)]
        app = create_app()

        @app.get("/")
        async def sizes(req: Request, res: Response) -> None:
            whole = all(piece == bytes([at % 251 + 1]) * 4096 for at, piece in enumerate(TABLE))
            res.json({{"pieces": len(TABLE), "whole": whole, "more": len(bytearray(20_000_000)),
                       "cattrs": "cattrs" in sys.modules}})
        """)
    running = start_running(tools, make(main, Plan()), background, tmp_path / "state", plan=Plan())
    try:
        answer = running.get("/").json()
    finally:
        running.stop()
    # The first value that is read as a type would else wait for it.
    assert answer == {"pieces": megabytes * 256, "whole": True, "more": 20_000_000, "cattrs": True}
