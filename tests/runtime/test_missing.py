"""The worker's own Python, asked for what it lacks: the tables of `core-worker` are neither too long nor too short."""

from __future__ import annotations

import http.client
from pathlib import Path
from textwrap import dedent
from urllib.parse import quote

from tests.runtime.conftest import Background, Make, start_running

from core.program.worker import MISSING_MODULES, MISSING_NAMES
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

MAIN = dedent("""
    import asyncio
    import importlib
    import sys

    from core import Request, Response, create_app

    app = create_app()
    NO_USE = {"antigravity", "this", "idlelib", "turtledemo", "nt", "pydoc_data"}

    @app.get("/modules")
    async def modules(req: Request, res: Response) -> None:
        missing = []
        for name in sorted(sys.stdlib_module_names):
            if not name.startswith("_") and name not in NO_USE:
                try:
                    importlib.import_module(name)
                except ImportError:
                    missing.append(name)
        res.json(missing)

    LOCK = asyncio.Lock()

    @app.get("/locked")
    async def locked(req: Request, res: Response) -> None:
        res.json(LOCK.locked())

    @app.post("/lock")
    async def lock(req: Request, res: Response) -> None:
        async with LOCK:
            res.text(await req.text())

    @app.get("/try")
    async def attempt(req: Request, res: Response) -> None:
        code = req.query["code"]
        for module in ("asyncio", "concurrent.futures", "hashlib", "multiprocessing", "os", "subprocess", "threading"):
            importlib.import_module(module)
        try:
            result = eval(code, {name: sys.modules[name] for name in list(sys.modules) if "." not in name})
            if hasattr(result, "__await__"):
                await result
        except Exception as error:
            res.text(f"{type(error).__name__}: {error}")
        else:
            res.text("works")
""")

USES = {
    "asyncio.create_subprocess_exec": "asyncio.create_subprocess_exec('ls')",
    "asyncio.create_subprocess_shell": "asyncio.create_subprocess_shell('ls')",
    "asyncio.open_connection": "asyncio.open_connection('127.0.0.1', 1)",
    "asyncio.start_server": "asyncio.start_server(print, '127.0.0.1', 0)",
    "concurrent.futures.ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor()",
    "concurrent.futures.ThreadPoolExecutor": "concurrent.futures.ThreadPoolExecutor().submit(len, 'a')",
    "hashlib.pbkdf2_hmac": "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 1)",
    "hashlib.scrypt": "hashlib.scrypt(b'a', salt=b'b', n=2, r=8, p=1)",
    "multiprocessing.Pool": "multiprocessing.Pool(1)",
    "multiprocessing.Process": "multiprocessing.Process(target=len).start()",
    "multiprocessing.Queue": "multiprocessing.Queue()",
    "os.fork": "os.fork()",
    "os.popen": "os.popen('ls').read()",
    "subprocess.Popen": "subprocess.Popen(['ls'])",
    "subprocess.call": "subprocess.call(['ls'])",
    "subprocess.check_call": "subprocess.check_call(['ls'])",
    "subprocess.check_output": "subprocess.check_output(['ls'])",
    "subprocess.run": "subprocess.run(['ls'])",
    "threading.Thread": "threading.Thread(target=len).start()",
    "threading.Timer": "threading.Timer(0, len).start()",
}


def test_the_tables_say_what_a_worker_has_not(
    tools: Toolchain, make: Make, background: Background, tmp_path: Path
) -> None:
    assert USES.keys() == MISSING_NAMES.keys()
    running = start_running(tools, make(MAIN, Plan(), snapshot=False), background, tmp_path, plan=Plan())
    try:
        assert running.get("/modules").json() == sorted(MISSING_MODULES)
        assert running.get(f"/try?code={quote('hashlib.sha256()')}").text == "works"
        works = {name for name, code in USES.items() if running.get(f"/try?code={quote(code)}").text == "works"}
        assert works == set()
        # Who finds a lock of the module taken fails.
        first = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        first.putrequest("POST", "/lock")
        first.putheader("Content-Length", "5")
        first.endheaders()
        running.until("/locked", bool)
        assert running.request("POST", "/lock", b"second").status == 500
        first.send(b"first")
        assert first.getresponse().read() == b"first"
        first.close()
    finally:
        running.stop()
