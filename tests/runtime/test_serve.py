"""`core serve` and `core dev --runtime workerd` as their users run them: processes of their own, asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.runtime.conftest import Background, Make, Running, member_of, start_running
from tests.support.commands import PATIENCE, Answer, Command, ask, until
from tests.support.disk import full
from tests.support.load import SteadyLoad
from tests.support.moto import s3_service

from core.backends.s3.objects import SharedObjects
from core.backends.s3.r2 import PIECE
from core.runtime.bundle import Bundle, Migrations
from core.runtime.node import make_ready
from core.runtime.plan import Plan
from core.runtime.state_folder import empty_databases
from core.runtime.toolchain import Toolchain


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start a `core` command; it is stopped at the end of the test."""
    started: list[Command] = []

    def run(*arguments: str, **given: Any) -> Command:
        given.setdefault("folder", tmp_path)
        started.append(Command(*arguments, **given))
        return started[-1]

    yield run
    for command in started:
        if command.process.poll() is None:
            command.finish()


@pytest.fixture
def serve(run: Callable[..., Command], bundle: Bundle) -> Callable[..., Command]:
    """Start `core serve` on free ports."""

    def serve(*options: str, of: Bundle = bundle, **given: Any) -> Command:
        return run("serve", str(of.folder), "--port", "0", "--health", "127.0.0.1:0", *options, **given)

    return serve


def test_a_bundle_is_served_and_health_says_how_it_is(serve: Callable[..., Command]) -> None:
    port, health = serve().ports()

    assert ask(port).text == "hello"
    assert ask(health).status == 200
    assert ask(health).json() == {"status": "ok", "processes": {"0": "ok"}}


def test_a_process_that_is_killed_is_started_again_with_its_state_and_requests_wait(
    serve: Callable[..., Command],
) -> None:
    served = serve()
    port, health = served.ports()
    assert ask(port, "/kv/kept", "PUT", "yes").status == 204
    (killed,) = served.children()

    os.kill(killed, signal.SIGKILL)
    served.until("process 0 ended with status -9; starting it again in 0.2 s")

    assert ask(port, "/kv/kept").json() == "yes"  # its connection was open before the process was
    (child,) = served.children()
    assert child != killed
    assert ask(health).json()["status"] == "ok"


def ask_in_vain(port: int, path: str, method: str = "GET", body: str | None = None) -> None:
    """A request that its process does not survive."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        ask(port, path, method, body)


def test_a_process_whose_isolate_is_dead_or_hangs_is_replaced_with_its_state(
    serve: Callable[..., Command],
) -> None:
    served = serve("--hang-timeout", "5")
    port, health = served.ports()
    assert ask(port, "/kv/kept", "PUT", "yes").status == 204
    (first,) = served.children()

    ask_in_vain(port, "/die", "POST", "[" * 50_000)
    served.until("Python died")
    served.until("process 0 ended with status [^;]*; starting it again")
    assert ask(port, "/kv/kept").json() == "yes"
    (second,) = served.children()
    assert second != first

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask_in_vain, port, "/hang")
        served.until("process 0 is not well: it did not answer within 5 s; starting it again")
        assert ask(port, "/kv/kept").json() == "yes"
    (third,) = served.children()
    assert third not in (first, second)
    assert ask(health).json() == {"status": "ok", "processes": {"0": "ok"}}


def test_stopping_finishes_what_is_in_flight_says_so_and_leaves_nothing(serve: Callable[..., Command]) -> None:
    served = serve()
    port, health = served.ports()
    (child,) = served.children()
    streaming = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    streaming.request("GET", "/ticks/20")  # one in 0.05 s
    answer = streaming.getresponse()
    assert answer.read(2) == b"0;"
    served.process.send_signal(signal.SIGTERM)
    served.until("stopping")
    told = ask(health)
    assert (told.status, told.json()) == (503, {"status": "stopping"})
    assert answer.read().decode() == "".join(f"{number};" for number in range(1, 20))
    streaming.close()

    assert served.finish() == 0
    assert not Path(f"/proc/{child}").exists()
    with pytest.raises(ConnectionRefusedError):
        ask(port)


def test_several_processes_share_one_port_and_each_is_kept(serve: Callable[..., Command], stateless: Bundle) -> None:
    served = serve("--processes", "2", of=stateless)
    port, health = served.ports()
    assert ask(health).json() == {"status": "ok", "processes": {"0": "ok", "1": "ok"}}

    # A pause of one leaves the next connection to the other.
    with ThreadPoolExecutor(16) as pool:
        assert {answer.text for answer in pool.map(ask, [port] * 64)} == {"hello"}
    served.until(r"\[0\] was asked")
    served.until(r"\[1\] was asked")

    first, second = served.children()
    os.kill(first, signal.SIGKILL)
    assert ask(port).text == "hello"
    until(lambda: ask(health).json()["processes"], lambda told: told == {"0": "ok", "1": "ok"})
    assert second in served.children()
    assert len(served.children()) == 2


def test_workerd_ends_with_its_supervisor_and_two_never_share_a_state_folder(serve: Callable[..., Command]) -> None:
    first = serve()
    port, _ = first.ports()
    assert ask(port, "/kv/kept", "PUT", "yes").status == 204
    second = serve()
    second.until(f"in use by process {first.process.pid}. Two would damage the state there")
    assert second.finish(by_itself=True) == 1

    children = first.children()
    first.process.kill()
    assert first.finish(by_itself=True) == -signal.SIGKILL
    until(lambda: [child for child in children if Path(f"/proc/{child}").exists()], lambda left: not left)
    port, _ = serve().ports()
    assert ask(port, "/kv/kept").json() == "yes"


def test_a_process_that_takes_too_much_memory_is_replaced_and_no_request_is_lost(
    serve: Callable[..., Command], stateless: Bundle
) -> None:
    served = serve("--memory", "50M", of=stateless)  # less than any pyodide takes
    port, _ = served.ports()
    with SteadyLoad(port, rate=20.0, connections=5) as load:
        served.until(r"process 0 takes \d+ MiB, more than --memory allows; starting it again")
        since = len(load.answers)
        until(lambda: len(load.answers), lambda count: count > since + 20)
    assert load.failed == []


def test_a_proxy_is_believed_as_far_as_it_was_named(serve: Callable[..., Command], stateless: Bundle) -> None:
    def asked(port: int, proto: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/a?b", headers={"Host": "shop.example", "X-Forwarded-Proto": proto})
        response = connection.getresponse()
        answer = Answer(response.status, [], response.read())
        connection.close()
        return answer

    unnamed = serve(of=stateless)
    assert asked(unnamed.ports()[0], "https").text == "http://shop.example/a?b"
    unnamed.finish()
    named = serve("--forwarded-proto-header", "X-Forwarded-Proto", of=stateless)
    port, _ = named.ports()
    assert asked(port, "https").text == "https://shop.example/a?b"
    for wrong in ("ftp", "https, http", "x", "HTTPS", "javascript"):
        answer = asked(port, wrong)
        assert (answer.status, answer.text) in [(200, "http://shop.example/a?b"), (400, answer.text)], wrong
    named.finish()
    public = serve("--public-url", "https://example.com", of=stateless)
    assert asked(public.ports()[0], "ftp").text == "https://example.com/a?b"


def test_several_processes_with_state_of_their_own_each_are_refused(serve: Callable[..., Command]) -> None:
    served = serve("--processes", "2")
    served.until("2 processes side by side would each have a state of their own")
    assert served.finish(by_itself=True) == 1


def test_a_secret_that_is_missing_is_told_before_anything_starts(bundle: Bundle, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "TOKEN"}
    done = subprocess.run(
        [sys.executable, "-m", "core", "serve", str(bundle.folder), "--port", "0", "--health", "127.0.0.1:0"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert "the environment lacks TOKEN" in done.stderr
    assert not (tmp_path / ".core").exists()


def test_a_disk_that_is_full_at_the_start_is_told_in_a_line(bundle: Bundle, tmp_path: Path) -> None:
    for left in (0, 2000):
        with full(left):
            command = Command("serve", str(bundle.folder), "--port", "0", "--state", str(tmp_path), folder=tmp_path)
        assert command.finish(by_itself=True) == 1
        assert len(command.lines) == 1, command.lines
        assert command.lines[0].startswith(f"error: {tmp_path}")


def test_a_secret_may_be_a_file(serve: Callable[..., Command], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a longer one\n")
    file.chmod(0o600)
    served = serve(env={"TOKEN": None, "TOKEN_FILE": str(file)})
    port, _ = served.ports()
    assert ask(port, "/env").json()["token"] == len("a longer one")
    assert not [line for line in served.lines if "longer" in line]


CLUSTER = {
    "CORE_CLUSTER_KEY": "0123456789abcdef0123456789abcdef",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "bbbbbbbbbbbbbbbbbbbb",
}


def test_two_of_a_cluster_share_what_they_keep(serve: Callable[..., Command], bucket: str, tmp_path: Path) -> None:
    options = ["--cluster", f"s3://cluster/{tmp_path.name}", "--cluster-endpoint", bucket]
    options += ["--cluster-region", "us-east-1", "--cluster-address", "127.0.0.1:0"]
    nodes = [serve(*options, "--state", str(tmp_path / f"state{index}"), env=CLUSTER) for index in range(2)]
    (first, health), (second, _) = (node.ports() for node in nodes)

    assert ask(first, "/kv/shared", "PUT", "by the first").status == 204
    assert until(lambda: ask(second, "/kv/shared").json(), lambda value: value is not None) == "by the first"
    counts = [ask(port, "/counters/shared", "POST").json()["count"] for port in (first, second, first, second)]
    assert counts == [2, 4, 6, 8]
    assert ask(health).json()["status"] == "ok"
    written = (tmp_path / "state0" / "workerd.capnp").read_text()
    assert all(part in written for part in (f"s3://cluster/{tmp_path.name}", f"aws_endpoint={bucket}", "us-east-1"))
    assert (tmp_path / "state0" / "workerd.capnp").stat().st_mode & 0o077 == 0  # a key is in it

    # The first hands over when it stops: what it had is with the second.
    assert nodes[0].finish() == 0
    assert until(lambda: ask(second, "/counters/shared", "POST"), lambda answer: answer.status == 200).json() == {
        "count": 10,
        "note": "kept",
        "name": "shared",
    }
    assert nodes[1].finish() == 0


def test_a_node_killed_in_the_middle_of_a_put_shows_no_half_object(
    serve: Callable[..., Command], bucket: str, tmp_path: Path
) -> None:
    options = ["--cluster", f"s3://cluster/{tmp_path.name}", "--cluster-endpoint", bucket]
    options += ["--cluster-region", "us-east-1", "--cluster-address", "127.0.0.1:0"]
    nodes = [serve(*options, "--state", str(tmp_path / f"state{index}"), env=CLUSTER) for index in range(2)]
    first, second = (node.ports()[0] for node in nodes)
    data = "x" * 20_000
    for name in ("kept", "large"):
        assert ask(first, f"/files/{name}", "PUT", data).status == 200

    shared = SharedObjects(f"s3://cluster/{tmp_path.name}", member_of(bucket, "").options)
    connection = http.client.HTTPConnection("127.0.0.1", first, timeout=PATIENCE)
    connection.putrequest("PUT", "/files/large")
    connection.putheader("Content-Length", str(4 * PIECE))
    connection.endheaders()
    connection.send(bytes(2 * PIECE + 1))
    # Two pieces of it are in the bucket, beside the two objects' own.
    until(lambda: len(asyncio.run(shared.names("core-r2/files/bodies"))), lambda count: count == 4)
    nodes[0].process.kill()
    nodes[0].finish(by_itself=True)
    connection.close()

    for name in ("kept", "large"):
        assert ask(second, f"/files/{name}").text == data
    assert ask(second, "/files/large", "PUT", "new").status == 200
    assert ask(second, "/files/large").text == "new"
    assert nodes[1].finish() == 0


def test_a_bucket_that_goes_away_is_an_answer_of_503_and_a_line(serve: Callable[..., Command], tmp_path: Path) -> None:
    with s3_service(tmp_path) as s3:
        options = ["--cluster", "s3://cluster/away", "--cluster-endpoint", s3.url]
        served = serve(*options, "--cluster-region", "us-east-1", "--cluster-address", "127.0.0.1:0", env=CLUSTER)
        port, _ = served.ports()
        assert ask(port, "/files/kept", "PUT", "text").status == 200
        s3.process.kill()
        answer = ask(port, "/files/kept")
        assert (answer.status, dict(answer.headers)["Retry-After"]) == (503, "1")
        served.until("R2: Generic S3 error: Error performing GET")
        served.process.kill()
        served.finish(by_itself=True)


def test_a_node_with_another_key_is_refused_before_it_joins(
    serve: Callable[..., Command], bucket: str, tmp_path: Path
) -> None:
    options = ["--cluster", f"s3://cluster/{tmp_path.name}", "--cluster-endpoint", bucket]
    options += ["--cluster-region", "us-east-1", "--cluster-address", "127.0.0.1:0"]
    other = {**CLUSTER, "CORE_CLUSTER_KEY": "another key of thirty-two letters"}

    first = serve(*options, "--state", str(tmp_path / "first"), env=CLUSTER)
    first.until(f"CORE_CLUSTER_KEY is the key of s3://cluster/{tmp_path.name} from now on")
    port, _ = first.ports()
    refused = serve(*options, "--state", str(tmp_path / "second"), env=other)
    refused.until(f"error: CORE_CLUSTER_KEY is not the key of the cluster in s3://cluster/{tmp_path.name}: a node with")
    assert refused.finish(by_itself=True) == 1
    assert len(refused.lines) == 1
    assert not (tmp_path / "second" / "workerd.capnp").exists()
    assert ask(port, "/counters/own", "POST").json()["count"] == 2
    assert first.finish() == 0

    # Changed on purpose, when all are stopped; what the cluster has stays.
    changed = serve(*options, "--new-cluster-key", "--state", str(tmp_path / "second"), env=other)
    port, _ = changed.ports()
    assert until(lambda: ask(port, "/counters/own", "POST"), lambda answer: answer.status == 200).json()["count"] == 4
    assert changed.finish() == 0
    old = serve(*options, "--state", str(tmp_path / "first"), env=CLUSTER)
    old.until("CORE_CLUSTER_KEY is not the key of the cluster")
    assert old.finish(by_itself=True) == 1


def test_a_bucket_that_cannot_be_reached_is_one_line(serve: Callable[..., Command], bucket: str) -> None:
    options = ["--cluster-endpoint", bucket, "--cluster-region", "us-east-1"]
    served = serve("--cluster", "s3://not-there/x", *options, env=CLUSTER)
    served.until(r"error: the bucket s3://not-there/x cannot be used\. Check its name, --cluster-endpoint")
    assert served.finish(by_itself=True) == 1
    assert len(served.lines) == 1


@pytest.mark.parametrize(
    ("options", "lacking", "message", "code"),
    [
        (["--new-cluster-key"], "", "--new-cluster-key changes the key of a cluster. Name it with --cluster", 2),
        (["--cluster", "https://x"], "", "--cluster https://x is not a bucket. Write s3://bucket/prefix", 2),
        (["--cluster", "s3://b/p"], "CORE_CLUSTER_KEY", "a cluster needs a secret that its nodes share", 1),
        (["--cluster", "s3://b/p"], "AWS_ACCESS_KEY_ID", "s3://b/p needs credentials", 1),
        (["--cluster", "s3://b/p", "--cluster-address", "here"], "", "--cluster-address here is not HOST:PORT", 2),
        (
            ["--cluster", "s3://b/p", "--cluster-address", "h:70000"],
            "",
            "--cluster-address h:70000 is not HOST:PORT",
            2,
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_told(
    serve: Callable[..., Command], options: list[str], lacking: str, message: str, code: int
) -> None:
    served = serve(*options, env={**CLUSTER, **({lacking: ""} if lacking else {})})
    served.until(re.escape(message))
    assert served.finish(by_itself=True) == code


# Migrations ----------------------------------------------------------------------------------------------------------

MIGRATED = dedent("""
    import json
    import attrs
    from core import Bindings, D1Database, Request, Response, create_app

    @attrs.frozen
    class Env(Bindings):
        DB: D1Database

    app = create_app(Env)

    @app.get("/")
    async def count(req: Request[Env], res: Response) -> None:
        res.text(f"{await req.env.DB.prepare('SELECT count(*) AS n FROM notes').first('n')} notes")

    @app.post("/die")
    async def die(req: Request[Env], res: Response) -> None:
        res.json(json.loads(await req.text()))
""")
FIRST = "CREATE TABLE notes (text TEXT)"


@pytest.fixture(scope="module")
def migrated(make: Make) -> Bundle:
    """An application that cannot answer before its migration is applied."""
    migrations = {"DB": Migrations("d1_migrations", [("0001_notes.sql", [FIRST])], {"0001_notes.sql": "1"})}
    # Without a snapshot it takes longer to load, and so more requests come too early.
    return make(MIGRATED, Plan(d1={"DB": "db"}), snapshot=False, migrations=migrations)


def test_requests_wait_at_a_node_that_is_closed_until_it_is_opened(
    tools: Toolchain, background: Background, migrated: Bundle, tmp_path: Path
) -> None:
    node: Running = start_running(tools, migrated, background, tmp_path, plan=migrated.plan, closed=True)
    try:
        with ThreadPoolExecutor(5) as pool:
            early = [pool.submit(node.get, "/") for _ in range(5)]
            time.sleep(1.0)
            assert not any(answer.done() for answer in early)
            said: list[str] = []
            background.run(make_ready(node.node, migrated, migrate=True, opened=False, say=said.append))
            assert said == ["DB: applied 0001_notes.sql"]
            assert not any(answer.done() for answer in early)
            background.run(node.node.post("/open", {}))
            assert [answer.result().text for answer in early] == ["0 notes"] * 5
        assert node.get("/").text == "0 notes"
        # Edited since: it is not applied again, and said to be changed.
        job = {"binding": "DB", "table": "d1_migrations", "files": [("0001_notes.sql", [FIRST])]}
        for digest, changed in (("1", []), ("2", ["0001_notes.sql"])):
            asked = node.node.post("/migrate", {**job, "hashes": {"0001_notes.sql": digest}})
            assert background.run(asked) == {"applied": [], "changed": changed}
    finally:
        node.stop()
    # Where `core migrate reset` looks for it.
    assert empty_databases(tmp_path, ["db", "another"]) == ["db"]


def test_the_first_request_of_core_serve_finds_the_migrations_applied(
    run: Callable[..., Command], migrated: Bundle, free_port: int
) -> None:
    served = run("serve", str(migrated.folder), "--port", str(free_port), "--health", "127.0.0.1:0")
    # Asked before anything listens, again and again, so that the first to be accepted is among them.
    assert first_answer(free_port).text == "0 notes"
    served.until("DB: applied 0001_notes.sql")
    served.ports()


def first_answer(port: int) -> Answer:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask(port)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.005)


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# core dev ------------------------------------------------------------------------------------------------------------

CONFIGURATION = {
    "name": "notes",
    "main": "main.py",
    "compatibility_date": "2026-04-01",
    "d1_databases": [{"binding": "DB", "database_name": "notes", "database_id": "notes"}],
}


def test_core_dev_in_workerd_loads_every_change_and_waits_out_a_mistake(
    run: Callable[..., Command], tmp_path: Path, free_port: int
) -> None:
    project = tmp_path / "notes"
    (project / "migrations").mkdir(parents=True)
    main, migrations = project / "main.py", project / "migrations"
    (project / "wrangler.json").write_text(json.dumps(CONFIGURATION))
    (migrations / "0001_notes.sql").write_text(f"{FIRST};")
    main.write_text(MIGRATED)
    dev = run("dev", "--runtime", "workerd", "--port", str(free_port), folder=project)
    assert first_answer(free_port).text == "0 notes"
    dev.until(f"workerd is ready on http://127.0.0.1:{free_port}")

    # Another text, over the same state.
    main.write_text(MIGRATED.replace("} notes", "} notes, still"))
    until(lambda: ask(free_port).text, lambda text: text == "0 notes, still")

    # A mistake is told with its line, and the next change mends it. No request is refused meanwhile.
    since = len(dev.lines)
    main.write_text(MIGRATED + "\n1 / 0\n")
    dev.until("error: .*", since=since)
    dev.until("ZeroDivisionError", since=since)
    dev.until("waiting for a change", since=since)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, free_port)
        # So does a migration of the change that mends it: it is applied before the request is answered.
        (migrations / "0002_one.sql").write_text("INSERT INTO notes VALUES ('one');")
        main.write_text(MIGRATED)
        assert waiting.result().text == "1 notes"

    # A process that dies of a request is replaced without a change.
    since = len(dev.lines)
    ask_in_vain(free_port, "/die", "POST", "[" * 50_000)
    dev.until("workerd ended with status [^;]*; starting it again", since=since)
    assert ask(free_port).text == "1 notes"
    assert (project / ".core" / "workerd").is_dir()
    assert dev.finish() == 0


def test_core_dev_in_workerd_writes_every_line_as_json(
    run: Callable[..., Command], tmp_path: Path, free_port: int
) -> None:
    project = tmp_path / "failing"
    project.mkdir()
    (project / "wrangler.json").write_text(json.dumps({"name": "failing", "main": "main.py"}))
    (project / "main.py").write_text(FAILING)
    dev = run("dev", "--runtime", "workerd", "--log-format", "json", "--port", str(free_port), folder=project)
    assert first_answer(free_port).status == 500
    dev.until("ZeroDivisionError")
    assert dev.finish() == 0
    records = [json.loads(line) for line in dev.lines]
    assert all({"time", "level", "logger", "message"} <= set(record) for record in records)
    (failed,) = [record for record in records if "ZeroDivisionError" in str(record)]
    assert (failed["level"], failed["logger"]) == ("ERROR", "core")
    assert "main.py" in failed["exception"]
    assert [record["level"] for record in records if record["message"] == "careful"] == ["WARNING"]


FAILING = dedent("""
    import logging
    from core import Request, Response, create_app

    app = create_app()

    @app.get("/")
    async def fail(req: Request, res: Response) -> None:
        logging.getLogger("own").warning("careful")
        res.text(str(1 / 0))
""")
