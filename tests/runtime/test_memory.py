"""workerd's own services give back the memory of calls that they have answered."""

from __future__ import annotations

import http.client
from pathlib import Path
from textwrap import dedent

from tests.runtime.conftest import Background

from core.runtime.capnp import make_folders, worker_config
from core.runtime.plan import Module, Plan, Socket
from core.runtime.process import Workerd, memory_of
from core.runtime.toolchain import Toolchain

# There is no Python in it: the calls are the service's own memory.
MAIN = dedent("""
    export default {
      async fetch(request, env) {
        await Promise.all(Array.from({ length: 50 }, () => env.KV.get('none')));
        return new Response();
      },
    };
""")
PLAN = Plan(kv={"KV": "kv"})


def test_ten_thousand_calls_of_a_service_leave_little_behind(
    tools: Toolchain, background: Background, tmp_path: Path
) -> None:
    (tmp_path / "main.mjs").write_text(MAIN)
    make_folders(tmp_path, PLAN)
    modules = [Module("main.mjs", "esModule", str(tmp_path / "main.mjs"))]
    sockets = {"http": Socket("127.0.0.1:0")}
    text = worker_config(PLAN, modules, storage=tmp_path, sockets=sockets)
    config = tmp_path / "workerd.capnp"
    workerd = background.run(Workerd.start(tools.workerd, config, text))
    try:
        connection = http.client.HTTPConnection("127.0.0.1", workerd.ports["http"], timeout=60)

        def megabytes_after(requests: int) -> int:
            for _ in range(requests):
                connection.request("GET", "/")
                connection.getresponse().read()
            return memory_of(workerd.pid) >> 20

        before = megabytes_after(100)
        grown = megabytes_after(200) - before
        connection.close()
    finally:
        background.run(workerd.stop())
    # It was 132 when V8 waited until a heap had grown a lot, and 14 since.
    assert grown < 64
