"""A new build under load: no request fails, and none is answered by the old one once the change is reported."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.runtime.conftest import Make
from tests.support.commands import Command, ask, until
from tests.support.load import SteadyLoad

from core.runtime.plan import Plan

MAIN = dedent("""
    import attrs
    from core import Bindings, KVNamespace, Request, Response, create_app

    VERSION = "first"

    @attrs.frozen
    class Env(Bindings):
        KV: KVNamespace | None

    app = create_app(Env)

    @app.get("/")
    async def version(req: Request[Env], res: Response) -> None:
        res.text(VERSION)

    @app.put("/kept")
    async def keep(req: Request[Env], res: Response) -> None:
        assert req.env.KV is not None
        await req.env.KV.put("kept", VERSION)
        res.send()

    @app.get("/kept")
    async def kept(req: Request[Env], res: Response) -> None:
        assert req.env.KV is not None
        res.text(await req.env.KV.get("kept") or "")

    @app.put("/busy")
    async def busy(req: Request[Env], res: Response) -> None:
        sum(range(400_000))  # no other request is read meanwhile
        res.text(VERSION)
""")


@pytest.fixture(scope="module")
def made(make: Make) -> list[Path]:
    """Two builds of an application that keeps state."""
    plan = Plan(name="versions", kv={"KV": "kv"})
    return [make(MAIN.replace('"first"', f'"{version}"'), plan).folder for version in ("first", "second")]


@pytest.fixture(scope="module", params=["with state", "without state"])
def builds(
    request: pytest.FixtureRequest, made: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, bool]:
    """Two builds of an application, and whether it keeps state: without, the binding is not configured."""
    if request.param == "with state":
        return made[0], made[1], True
    stateless = [Path(shutil.copytree(build, tmp_path_factory.mktemp("stateless") / "dist")) for build in made]
    for build in stateless:
        manifest = json.loads((build / "manifest.json").read_bytes())
        manifest["plan"]["kv"] = {}
        (build / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return stateless[0], stateless[1], False


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start `core serve` of `dist` on free ports; it is stopped at the end of the test."""
    started: list[Command] = []

    def run(*options: str) -> Command:
        started.append(Command("serve", "dist", "--port", "0", "--health", "127.0.0.1:0", *options, folder=tmp_path))
        return started[-1]

    yield run
    for command in started:
        if command.process.poll() is None:
            command.finish()


def put(build: Path, place: Path) -> None:
    """Put a build where another one was, file by file, as a copy over it does."""
    shutil.copytree(build, place, dirs_exist_ok=True)


def test_no_write_on_a_kept_connection_is_lost_to_a_new_build(
    run: Callable[..., Command], builds: tuple[Path, Path, bool], tmp_path: Path
) -> None:
    """One that got no answer may have been done or not: no client sends it again."""
    put(builds[0], tmp_path / "dist")
    served = run()
    port, _ = served.ports()
    with SteadyLoad(port, connections=8, request="PUT /busy") as load:
        until(lambda: len(load.answers), lambda count: count > 40)
        served.process.send_signal(signal.SIGHUP)
        served.until("replaced the processes")
        since = len(load.answers)
        until(lambda: len(load.answers), lambda count: count > since + 40)
    print(
        f"{len(load.answers)} answers, {load.announced} connections ended with one, the longest took {load.longest:.2f} s"
    )
    assert load.failed == []
    assert load.announced > 0


def test_a_build_is_replaced_when_it_is_asked_for_and_under_load(
    run: Callable[..., Command], builds: tuple[Path, Path, bool], tmp_path: Path
) -> None:
    first, second, has_state = builds
    dist = tmp_path / "dist"
    put(first, dist)
    served = run("--metrics")
    port, health = served.ports()
    if has_state:
        assert ask(port, "/kept", "PUT").status == 200
    with SteadyLoad(port) as load:
        until(lambda: len(load.answers), lambda count: count > 200)
        put(second, dist)
        since = len(load.answers)
        until(lambda: len(load.answers), lambda count: count > since + 200)
        asked = time.monotonic()
        served.process.send_signal(signal.SIGHUP)
        served.until("replaced the processes")
        changed = time.monotonic()
        since = len(load.answers)
        until(lambda: len(load.answers), lambda count: count > since + 200)
    print(
        f"{len(load.answers)} answers, {load.sent_again} sent again on a new connection, the longest took "
        f"{load.longest:.2f} s; the change took {changed - asked:.1f} s"
    )
    assert load.failed == []
    assert {body for _, came, body in load.answers if came < asked} == {b"first"}
    assert {body for sent, _, body in load.answers if sent > changed} == {b"second"}
    assert 'core_reloads_total{outcome="replaced"} 1' in ask(health, "/metrics").text
    if has_state:
        assert ask(port, "/kept").text == "first"
    assert len(served.children()) == 1

    # One that cannot be served does not take over, and the old one goes on, also after a process has ended.
    (dist / "modules" / "site.bin").write_bytes(b"")
    since = len(served.lines)
    served.process.send_signal(signal.SIGHUP)
    served.until("the new version does not serve; the old one goes on", since=since)
    (dist / "manifest.json").unlink()
    (child,) = served.children()
    os.kill(child, signal.SIGKILL)
    served.until("process 0 ended with status -9", since=since)
    assert ask(port).text == "second"
    served.process.send_signal(signal.SIGHUP)
    served.until("is not a bundle", since=since)
    assert ask(port).text == "second"
