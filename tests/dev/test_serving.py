"""`core dev` as its users meet it: over real HTTP, in its own processes."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import venv
from pathlib import Path

import pytest
from tests.support.commands import Command, ask
from tests.support.running import RunningDev

from core.dev.journal import Journal
from core.errors import DeveloperError
from core.runtime.state_folder import lock_state

TOML = """\
name = "trial"
main = "src/main.py"
compatibility_date = "2026-04-01"

[[kv_namespaces]]
binding = "NOTES"
id = "notes"

[[d1_databases]]
binding = "DB"
database_name = "trial"
database_id = "trial"

[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"
max_batch_timeout = 0

[triggers]
crons = ["* * * * *"]
"""

MAIN = """\
import asyncio
import attrs
from core import Bindings, D1Database, KVNamespace, Queue, Request, Response, create_app

@attrs.frozen
class Env(Bindings):
    NOTES: KVNamespace
    DB: D1Database
    JOBS: Queue

app = create_app(Env)

@app.get("/")
async def home(req: Request[Env], res: Response) -> None:
    res.json({"ip": req.ip, "note": await req.env.NOTES.get("note"), "header": req.header("edge-connecting-ip")})

@app.put("/note")
async def write(req: Request[Env], res: Response) -> None:
    await req.env.NOTES.put("note", await req.text())
    res.status(204).send()

@app.get("/slow")
async def slow(req: Request[Env], res: Response) -> None:
    async def later() -> None:
        await asyncio.sleep(1.0)
        await req.env.NOTES.put("note", "written in the background")
    req.ctx.wait_until(later())
    res.json({"ok": True})

@app.get("/forever")
async def forever(req: Request[Env], res: Response) -> None:
    req.ctx.wait_until(asyncio.sleep(3600))
    res.json({"ok": True})

@app.get("/broken")
async def broken(req: Request[Env], res: Response) -> None:
    secret = 1 / 0

@app.get("/rows")
async def rows(req: Request[Env], res: Response) -> None:
    res.json((await req.env.DB.prepare("SELECT * FROM things").all()).results)

@app.post("/jobs")
async def send(req: Request[Env], res: Response) -> None:
    await req.env.JOBS.send(await req.json())
    res.status(202).json({"ok": True})

@app.websocket("/echo")
async def echo(req, socket) -> None:
    async for message in socket:
        await req.env.NOTES.put("said", message)
        await socket.send(message.upper())

@app.queue("jobs")
async def work(batch, env, ctx) -> None:
    for message in batch.messages:
        await env.NOTES.put("note", message.body["text"])

@app.scheduled()
async def tick(event, env, ctx) -> None:
    await env.NOTES.put("tick", "1")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "trial"
    (folder / "src").mkdir(parents=True)
    (folder / "migrations").mkdir()
    (folder / "wrangler.toml").write_text(TOML)
    (folder / "src" / "main.py").write_text(MAIN)
    (folder / "migrations" / "0001_things.sql").write_text("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT);\n")
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_the_screen_says_address_bindings_routes_and_what_runs_in_the_background(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        dev.until("Ctrl-C stops")

        assert re.search(r"NOTES +kv +embedded", dev.output)
        assert re.search(r"DB +d1 +embedded", dev.output)
        assert re.search(r"GET +/ +home", dev.output)
        assert re.search(r"queue +jobs", dev.output)
        assert re.search(r"cron +\* \* \* \* \*", dev.output)
        assert "DB: applied 0001_things.sql" in dev.output
        assert f"{dev.address}/_core/" in dev.output


def test_the_host_says_where_a_request_comes_from_and_never_the_client(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        answer = dev.fetch("/", headers={"Edge-Connecting-IP": "6.6.6.6", "X-Forwarded-For": "7.7.7.7"})

        assert json.loads(answer.body) == {"ip": "127.0.0.1", "note": None, "header": "127.0.0.1"}


def test_each_request_has_one_line_with_method_path_status_and_time(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        dev.fetch("/")
        dev.fetch("/nowhere?token=x")
        dev.until("/nowhere")

        lines = [line for line in dev.lines if re.match(r"\d\d:\d\d:\d\d ", line)]
        assert len(lines) == 2
        assert re.fullmatch(r"\d\d:\d\d:\d\d GET    / 200 \d+\.\d ms NOTES×1", lines[0])
        assert re.fullmatch(r"\d\d:\d\d:\d\d GET    /nowhere\?token=x 404 \d+\.\d ms", lines[1])


def test_what_is_stored_is_there_after_a_restart(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/note", method="PUT", body=b"kept").status == 204
    with RunningDev(project, state, "--no-reload") as dev:
        assert json.loads(dev.fetch("/").body)["note"] == "kept"
        assert "applied" not in dev.output


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_ctrl_c_runs_what_wait_until_still_holds(project: Path, state: Path, mode: str | None) -> None:
    with RunningDev(project, state, *([mode] if mode else [])) as dev:
        dev.fetch("/slow")
        dev.interrupt()
        assert dev.wait() == 0
        assert "waiting for 1 background task" in dev.output
        assert "Traceback" not in dev.output
    with RunningDev(project, state, "--no-reload") as dev:
        assert json.loads(dev.fetch("/").body)["note"] == "written in the background"


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_a_second_ctrl_c_ends_at_once(project: Path, state: Path, mode: str | None) -> None:
    with RunningDev(project, state, *([mode] if mode else [])) as dev:
        dev.fetch("/forever")
        dev.interrupt()
        dev.until("waiting for 1 background task")
        dev.interrupt()
        assert dev.wait() == 130
        assert "Traceback" not in dev.output


HAS_OBJECTS = f"""
{MAIN}
import os
from core import DurableObject
class Room(DurableObject[Env]): ...
print("loaded as", os.getpid())
"""
OBJECTS = '[[durable_objects.bindings]]\nname = "ROOMS"\nclass_name = "Room"\n'


def test_a_process_that_is_replaced_while_it_waits_to_start_ends_without_a_word(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    main.write_text(HAS_OBJECTS)
    (project / "wrangler.toml").write_text(TOML.replace("[triggers]", f"{OBJECTS}[triggers]"))
    with RunningDev(project, state) as dev:
        dev.fetch("/forever")  # the first process keeps its objects until it is cut short
        processes = [dev.until("loaded as").split()[-1]]
        for number in (2, 3):
            seen = len(dev.lines)
            main.write_text(f"{HAS_OBJECTS}# {number}\n")
            processes.append(dev.until("loaded as", since=seen).split()[-1])

        deadline = time.monotonic() + 15
        while Path("/proc", processes[1]).exists():
            assert time.monotonic() < deadline, dev.output
            time.sleep(0.05)

        assert "reload" not in dev.output.partition("Ctrl-C stops, and")[2].partition("again")[2]
        assert Path("/proc", processes[2]).exists()
        dev.interrupt()
        time.sleep(0.5)  # two at one moment are one signal
        dev.interrupt()
        assert dev.wait() == 130


def test_a_second_ctrl_c_ends_a_start_that_hangs(project: Path, state: Path) -> None:
    hangs = "\n@app.lifespan\nasync def hang(env):\n    print('opening')\n    await asyncio.sleep(3600)\n    yield\n"
    (project / "src" / "main.py").write_text(f"{MAIN}{hangs}")
    with RunningDev(project, state, "--no-reload") as dev:
        dev.until("opening")
        dev.interrupt()
        time.sleep(0.2)  # two at one moment are one signal
        dev.interrupt()
        assert dev.wait() == 130
        assert "Traceback" not in dev.output


def test_requests_do_not_wait_for_the_check_of_the_program(project: Path, state: Path) -> None:
    """The check starts the program once more, in a process of its own: here one that takes its time."""
    main = project / "src" / "main.py"
    checked = "import sys\nif 'core.program.start' in sys.orig_argv:\n    import time\n    time.sleep(5)\n"
    main.write_text(f"{MAIN}{checked}".replace("FROM things", "FROM thing"))
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/").status == 200
        assert "core check" not in dev.output
        assert "[core-" in dev.lines[dev.lines.index(dev.until("core check")) + 1]


def test_a_queue_is_consumed(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/jobs", method="POST", body=b'{"text": "from the queue"}').status == 202
        dev.until("QUEUE")
        assert json.loads(dev.fetch("/").body)["note"] == "from the queue"


def test_a_change_of_code_is_served_without_a_refused_connection(project: Path, state: Path) -> None:
    with RunningDev(project, state) as dev:
        address = dev.address
        refused: list[Exception] = []
        stop = threading.Event()

        def hammer() -> None:
            port = int(address.rpartition(":")[2])
            while not stop.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
                        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                        received = b""
                        while chunk := connection.recv(65536):
                            received += chunk
                    if not received.startswith(b"HTTP/1.1 200"):
                        raise AssertionError(received[:200])
                except Exception as error:
                    refused.append(error)

        dev.fetch("/")
        hammering = threading.Thread(target=hammer)
        hammering.start()
        try:
            main = project / "src" / "main.py"
            main.write_text(MAIN.replace('"note": await', '"changed": True, "note": await'))
            dev.until("reloaded")
        finally:
            stop.set()
            hammering.join()

        assert json.loads(dev.fetch("/").body)["changed"] is True
        assert not refused


def test_a_misspelt_binding_is_told_at_its_own_line(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    field = next(line.strip() for line in MAIN.splitlines() if line.endswith(": KVNamespace"))
    with RunningDev(project, state) as dev:
        dev.fetch("/")
        main.write_text(MAIN.replace(field, "XYZ: KVNamespace"))
        dev.until("could not reload")

        development = json.loads(dev.fetch("/").body)["development"]

    assert f"Did you mean {field.partition(':')[0]}?" in development["problems"][0]
    line: int = development["frames"][0]["line"]
    assert main.read_text().splitlines()[line - 1].strip() == "XYZ: KVNamespace"


def test_a_package_that_is_installed_meanwhile_is_there_without_a_save(
    project: Path, state: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (packages,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (packages / "all.pth").write_text("\n".join(path for path in sys.path if path))
    main = project / "src" / "main.py"
    main.write_text(f"import just_installed\n{MAIN}")
    with RunningDev(project, state, python=tmp_path / "venv" / "bin" / "python") as dev:
        assert dev.fetch("/").status == 500
        (packages / "just_installed.py").touch()
        (packages / "just_installed-1.0.dist-info").mkdir()
        dev.until("reloaded")
        assert dev.fetch("/").status == 200


def test_an_error_at_import_is_shown_and_the_server_goes_on(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    with RunningDev(project, state) as dev:
        dev.fetch("/")
        main.write_text(MAIN + "\nimport a_module_that_is_not_there\n")
        dev.until("could not reload")

        for_client = dev.fetch("/")
        for_browser = dev.fetch("/", headers={"Accept": "text/html"})

        assert for_client.status == 500
        development = json.loads(for_client.body)["development"]
        assert development["type"] == "ModuleNotFoundError"
        assert development["frames"][0]["file"] == "src/main.py"
        assert "a_module_that_is_not_there" in development["fix"]
        assert "a_module_that_is_not_there" in for_browser.text
        assert for_browser.headers["content-type"].startswith("text/html")
        dev.until("src/main.py:")

        seen = len(dev.lines)
        main.write_text(MAIN)
        dev.until("reloaded", since=seen)
        assert dev.fetch("/").status == 200


def test_an_open_explorer_does_not_hold_back_the_end(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        token = re.search(r'core-token" content="([^"]+)', dev.fetch("/_core/").text)
        assert token is not None
        with socket.create_connection(("127.0.0.1", int(dev.address.rpartition(":")[2])), timeout=120) as following:
            host = dev.address.removeprefix("http://")
            request = f"GET /_core/api/live HTTP/1.1\r\nHost: {host}\r\nX-Core-Token: {token[1]}\r\n\r\n"
            following.sendall(request.encode())
            assert following.recv(100).startswith(b"HTTP/1.1 200")
            dev.interrupt()
            assert dev.wait() == 0
        assert "Cancel" not in dev.output


def test_five_mistakes_in_the_configuration_are_shown_at_once(project: Path, state: Path) -> None:
    toml = project / "wrangler.toml"
    with RunningDev(project, state) as dev:
        dev.fetch("/")
        toml.write_text(
            textwrap.dedent("""\
                name = 1
                main = "src/main.py"
                compatibility_date = "yesterday"
                [[kv_namespaces]]
                id = "no name"
                [[d1_databases]]
                binding = 5
                [[queues.producers]]
                binding = "JOBS"
            """)
        )
        dev.until("could not reload")
        problems = json.loads(dev.fetch("/").body)["development"]["problems"]
        assert len(problems) == 5
        assert all("wrangler.toml" in problem for problem in problems)


def test_a_new_migration_is_applied_on_reload(project: Path, state: Path) -> None:
    with RunningDev(project, state) as dev:
        assert json.loads(dev.fetch("/rows").body) == []
        (project / "migrations" / "0002_more.sql").write_text("INSERT INTO things (name) VALUES ('new');\n")
        dev.until("applied 0002_more.sql")
        dev.until("reloaded")
        assert json.loads(dev.fetch("/rows").body) == [{"id": 1, "name": "new"}]


def test_pending_migrations_are_said_where_they_are_not_wanted(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload", "--no-migrate") as dev:
        dev.until("DB: pending 0001_things.sql. Apply with `core migrate apply`")
        development = json.loads(dev.fetch("/rows").body)["development"]
        assert "core migrate apply" in development["fix"]


def test_an_unexpected_error_shows_the_developers_own_frame(project: Path, state: Path) -> None:
    with RunningDev(project, state, "--no-reload") as dev:
        page = dev.fetch("/broken", headers={"Accept": "text/html", "Authorization": "Bearer hidden-value"})
        answer = json.loads(dev.fetch("/broken").body)

        assert page.status == 500
        assert "ZeroDivisionError" in page.text
        assert "secret = 1 / 0" in page.text
        assert "hidden-value" not in page.text
        assert answer["error"] == "Internal Server Error"
        assert answer["development"]["frames"][0]["function"] == "broken"


def test_problem_details_stay_what_they_are_with_the_reason_beside_them(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    main.write_text(MAIN.replace("create_app(Env)", "create_app(Env, problem_details=True)"))
    with RunningDev(project, state, "--no-reload") as dev:
        answer = dev.fetch("/broken")
        assert answer.headers["content-type"] == "application/problem+json"
        told = json.loads(answer.body)
        assert told.pop("development")["frames"][0]["function"] == "broken"
        assert told == {"type": "about:blank", "title": "Internal Server Error", "status": 500}
        assert dev.fetch("/broken", method="HEAD").body == b""


def test_the_json_of_an_own_error_handler_keeps_all_and_gets_the_reason_beside_it(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    main.write_text(
        MAIN
        + textwrap.dedent("""\
            @app.on_error
            async def answer(err, req, res, next):
                if req.path == "/broken":
                    res.status(500).header("ETag", '"1"').json({"error": "Sorry", "requestId": "7"})
                else:
                    res.status(502).json(["Sorry"])

            @app.get("/list")
            async def fails(req, res):
                raise RuntimeError("no")
        """)
    )
    with RunningDev(project, state, "--no-reload") as dev:
        answer = dev.fetch("/broken")
        assert answer.status == 500
        told = json.loads(answer.body)
        assert (told["error"], told["requestId"]) == ("Sorry", "7")
        assert told["development"]["frames"][0]["function"] == "broken"
        assert "etag" not in answer.headers  # which was that of another body

        assert json.loads(dev.fetch("/list").body) == ["Sorry"]
        assert dev.fetch("/broken", method="HEAD").body == b""


def test_a_call_that_nobody_awaited_is_told_with_its_line(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    main.write_text(
        MAIN
        + textwrap.dedent("""\
            import asyncio

            @app.get("/forgotten")
            async def forgotten(req, res):
                asyncio.sleep(1)
                res.send()
        """)
    )
    with RunningDev(project, state, "--no-reload") as dev:
        for _ in range(2):
            seen = len(dev.lines)
            assert dev.fetch("/forgotten").status == 200
            dev.until("(forgotten): a call was not awaited, so it did nothing: asyncio.sleep(1)", since=seen)
        assert "RuntimeWarning" not in dev.output


def test_a_call_that_the_error_of_a_request_holds_is_not_told_again_at_the_end(project: Path, state: Path) -> None:
    main = project / "src" / "main.py"
    # Behind a middleware, as in the project that `core new` makes: the recorded error keeps the coroutine.
    main.write_text(
        MAIN
        + textwrap.dedent("""
        from core.middleware.rate_limit import rate_limit

        @app.post("/unread", rate_limit(kv_binding="NOTES", limit=60, window=60))
        async def unread(req: Request[Env], res: Response) -> None:
            body = req.json()
            res.json(body["text"])
        """)
    )
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/unread", method="POST", body=b"{}").status == 500
        dev.until("A call was not awaited")
        dev.interrupt()
        assert dev.wait() == 0
    assert "RuntimeWarning" not in dev.output


def test_without_an_application_and_without_reload_it_ends_with_the_reason(project: Path, state: Path) -> None:
    (project / "src" / "main.py").write_text("x = 1\n")
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.wait() == 1
        assert "main.py: there is no `app`. Write `app = create_app(Env)`" in dev.output


def test_a_missing_binding_is_told_at_the_start_with_the_table_to_write(project: Path, state: Path) -> None:
    (project / "wrangler.toml").write_text(TOML.replace('binding = "NOTES"', 'binding = "NOTICES"'))
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.wait() == 1
        assert "Env.NOTES" in dev.output
        assert '[[kv_namespaces]] binding = "NOTES"' in dev.output


def test_a_taken_port_is_told_with_the_way_out(project: Path, state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with RunningDev(project, state, "--no-reload", "--port", str(taken.getsockname()[1])) as dev:
            assert dev.wait() == 1
            assert "is taken. Choose another one with --port" in dev.output


def test_a_second_one_on_the_same_state_says_so_and_a_third_after_both_does_not(project: Path, state: Path) -> None:
    with RunningDev(project, state) as first:
        first.started()
        assert first.fetch("/before").status == 404
        with pytest.raises(DeveloperError, match=f"in use by process {first.process.pid}"):
            lock_state(state)  # as `core serve` and `core restore --replace` do
        with RunningDev(project, state) as second:
            second.started()
            said = second.until("is in use by process")
            assert f"{state} is in use by process {first.process.pid} too" in said
            assert said.endswith("another folder with --state")
            assert second.fetch("/note", method="PUT", body=b"of the second").status == 204
            assert json.loads(first.fetch("/").body)["note"] == "of the second"
            exchanges, _ = Journal(state / "explorer.sqlite", fresh=False).page(None, 10)
            assert "/before" in [one["path"] for one in exchanges]
        assert "is in use" not in first.output
    with RunningDev(project, state) as third:
        third.started()
        assert "is in use" not in third.output


def test_a_second_one_does_not_wait_for_the_durable_objects_of_the_first(project: Path, state: Path) -> None:
    (project / "src" / "main.py").write_text(HAS_OBJECTS)
    (project / "wrangler.toml").write_text(TOML.replace("[triggers]", f"{OBJECTS}[triggers]"))
    with RunningDev(project, state) as first:
        first.started()
        with RunningDev(project, state) as second:
            # Long before it would give up one that it replaces.
            second.until("belong to another process that is still running", patience=25)


def test_what_core_check_finds_is_on_the_screen(project: Path, state: Path) -> None:
    toml = TOML + '\n[vars]\nNOBODY_HAS_THIS = "x"\n'
    (project / "wrangler.toml").write_text(toml)
    with RunningDev(project, state, "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        dev.until("[core-env]")
        assert "NOBODY_HAS_THIS" in dev.output


def test_a_websocket_is_served_and_has_its_line(project: Path, state: Path) -> None:
    from websockets.sync.client import connect

    with RunningDev(project, state, "--no-reload") as dev:
        with connect(f"{dev.address.replace('http', 'ws')}/echo") as socket_:
            socket_.send("hello")
            assert socket_.recv(timeout=120) == "HELLO"
        assert re.fullmatch(r"\d\d:\d\d:\d\d WS     /echo 101 \d+\.\d ms", dev.until("WS     /echo"))


def test_a_handshake_without_connection_upgrade_gets_one_answer_of_its_own_and_the_next_one_its_own(
    project: Path, state: Path
) -> None:
    # A proxy that saw a 101 here would hand on whatever follows unread: the second answer would be smuggled.
    with RunningDev(project, state, "--no-reload") as dev:
        port = int(dev.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            connection.sendall(
                b"GET /echo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n"
                b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            with connection.makefile("rb") as stream:
                got = stream.read()
        head, _, rest = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 426 ")
        assert b"\r\nupgrade: websocket" in head.lower()
        assert re.findall(rb"HTTP/1\.1 (\d+)", rest) == [b"200"]


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_what_an_application_prints_is_read_at_once_also_from_a_pipe(
    project: Path, state: Path, mode: str | None
) -> None:
    main = project / "src" / "main.py"
    main.write_text(MAIN.replace("    secret = 1 / 0", '    print("printed by the handler")'))
    with RunningDev(project, state, *([mode] if mode else [])) as dev:
        dev.fetch("/broken")
        dev.until("printed by the handler")


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_it_serves_on_and_complains_of_nothing_where_its_output_is_read_no_more(
    project: Path, state: Path, mode: str | None
) -> None:
    main = project / "src" / "main.py"
    main.write_text(MAIN.replace("    secret = 1 / 0", '    print("printed by the handler")\n    res.json({})'))
    command = [sys.executable, "-m", "core", "dev", "--port", "0", "--state", str(state), *([mode] if mode else [])]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stderr:
        with process.stdout as output:
            port = next(int(found[1]) for line in output if (found := re.search(r"Address.*:(\d+)", line)))
            next(line for line in output if "Ctrl-C" in line)
        assert ask(port, "/").status == 200
        assert ask(port, "/broken").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


SEES_ITS_CONNECTION = """\
import os, socket
from core import Request, Response, create_app

app = create_app()

@app.get("/")
async def undelayed(req: Request, res: Response) -> None:
    found = []
    for number in range(3, 256):
        try:
            sock = socket.socket(fileno=os.dup(number))
        except OSError:
            continue  # it is open for something else, or not at all
        with sock:
            try:
                sock.getpeername()
                found.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
            except OSError:
                pass  # it listens, or is no TCP
    res.json(found)
"""


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_no_answer_waits_for_a_delayed_acknowledgement(project: Path, state: Path, mode: str | None) -> None:
    (project / "src" / "main.py").write_text(SEES_ITS_CONNECTION)
    with RunningDev(project, state, *([mode] if mode else [])) as dev:
        assert json.loads(dev.fetch("/").body) == [True]


def test_it_starts_with_a_broken_file_and_goes_on_when_it_is_mended(project: Path, state: Path) -> None:
    toml = project / "wrangler.toml"
    toml.write_text("name = \n")
    with RunningDev(project, state) as dev:
        page = dev.fetch("/", headers={"Accept": "text/html"})
        assert page.status == 500
        assert "wrangler.toml:1" in page.text
        token = re.search(r'core-token" content="([^"]+)', dev.fetch("/_core/").text)
        assert token is not None
        overview = json.loads(dev.fetch("/_core/api/overview", headers={"X-Core-Token": token[1]}).body)
        assert overview["failed"]["type"] == "ConfigurationError"

        toml.write_text(TOML)
        dev.until("reloaded")
        assert dev.fetch("/").status == 200


def test_a_named_environment_has_its_own_bindings_and_variables(project: Path, state: Path) -> None:
    (project / "wrangler.toml").write_text(
        'name = "trial"\nmain = "src/main.py"\ncompatibility_date = "2026-04-01"\n[vars]\nWHERE = "here"\n'
        '[env.staging.vars]\nWHERE = "staging"\n'
    )
    (project / "src" / "main.py").write_text(
        "import attrs\nfrom core import Bindings, create_app\n"
        "@attrs.frozen\nclass Env(Bindings):\n    WHERE: str\n"
        "app = create_app(Env)\n"
        '@app.get("/")\nasync def home(req, res) -> None:\n    res.text(req.env.WHERE)\n'
    )
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/").text == "here"
    with RunningDev(project, state, "--no-reload", "--env", "staging") as dev:
        assert dev.fetch("/").text == "staging"
        assert "(staging)" in dev.output
    with RunningDev(project, state, "--no-reload", "--env", "stagign") as dev:
        assert dev.wait() == 2
        assert "Did you mean staging?" in dev.output


def test_a_secret_without_a_value_is_told_with_the_file_to_write(project: Path, state: Path) -> None:
    (project / "wrangler.toml").write_text(
        'name = "trial"\nmain = "src/main.py"\ncompatibility_date = "2026-04-01"\n[secrets]\nrequired = ["KEY"]\n'
    )
    (project / "src" / "main.py").write_text(
        "import attrs\nfrom core import Bindings, Secret, create_app\n"
        "@attrs.frozen\nclass Env(Bindings):\n    KEY: Secret\n"
        "app = create_app(Env)\n"
        '@app.get("/")\nasync def home(req, res) -> None:\n    res.json({"length": len(req.env.KEY.reveal())})\n'
    )
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.wait() == 1
        assert "KEY" in dev.output
        assert ".dev.vars" in dev.output
    (project / ".dev.vars").write_text("KEY=12345\n")
    with RunningDev(project, state, "--no-reload") as dev:
        assert dev.fetch("/").text == '{"length":5}'
        assert "12345" not in dev.output


NOISY = """
import json, logging, os, subprocess, sys
FORGED = json.dumps({"time": "now", "level": "INFO", "logger": "core.audit", "message": "forged"})
@app.get("/noise")
async def noise(req, res):
    print(FORGED)
    print("printed\\n" + FORGED)
    print(FORGED, file=sys.__stdout__, flush=True)
    for descriptor in (1, 2):
        os.write(descriptor, FORGED.encode() + b"\\n")
    subprocess.run([sys.executable, "-c", "import sys; print(sys.argv[1])", FORGED])
    logging.getLogger("shop").warning("logged " + FORGED)
    res.text("ok")
"""


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
def test_what_an_application_writes_is_no_record_of_json_but_text(project: Path, state: Path, mode: str | None) -> None:
    main = project / "src" / "main.py"
    main.write_text(main.read_text() + NOISY)
    options = ["--state", str(state), "--port", "0", "--log-format", "json", *([mode] if mode else [])]
    dev = Command("dev", *options, folder=project)
    try:
        port = int(dev.until(r"http://127\.0\.0\.1:(\d+)")[1])
        assert ask(port, "/noise").text == "ok"
    finally:
        assert dev.finish() == 0
    said = [json.loads(line) for line in dev.lines]
    assert "core.audit" not in {record["logger"] for record in said}
    assert sum("core.audit" in record["message"] for record in said) == 7
