"""A real workerd for tests: each bundle is made once for all processes, and a node runs on a thread of its own.

Where npm is missing the tests are skipped with that reason; with CI=true they are not, and fail instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs
import pytest
from tests.support.commands import Answer
from tests.support.moto import s3_service
from tests.support.once import made_once

from core.program.entry import Entry, module_of
from core.runtime import make as making
from core.runtime.bundle import Bundle
from core.runtime.make import Build, make_bundle
from core.runtime.node import Node, start_node
from core.runtime.plan import Cluster, Plan, Socket
from core.runtime.project import Project
from core.runtime.toolchain import Toolchain, missing_reason, toolchain

T = TypeVar("T")

TOOLS = Path(__file__).parent / "tools"
"""Tests of what makes and starts workers, which need no worker themselves."""

APPLICATION = Path(__file__).parent / "application" / "main.py"
PLAN = Plan(
    name="everything",
    vars={"GREETING": 'she said "hi"\n', "LIMITS": {"a": 1}},
    secrets=["TOKEN"],
    kv={"KV": "kv"},
    d1={"DB": "db"},
    r2={"FILES": "files"},
    queues={"JOBS": "jobs"},
    consumers={"jobs": {"maxBatchTimeout": 0, "maxBatchSize": 5, "maxRetries": 2}},
    durable_objects={"COUNTER": "Counter"},
    crons=["*/5 * * * *"],
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing_reason()
    for item in items:
        if str(item.path).startswith(f"{TOOLS.parent}/") and not str(item.path).startswith(f"{TOOLS}/"):
            item.add_marker(pytest.mark.runtime)
            if reason is not None and os.environ.get("CI") != "true":
                item.add_marker(pytest.mark.skip(reason=reason))


class Background:
    """An event loop on a thread, for processes that outlive one test."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 600) -> T:
        """Run a coroutine there and give its result here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def close(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class Running:
    """A node and a client for it."""

    def __init__(self, node: Node, state: Path, lines: list[str], background: Background) -> None:
        self.node = node
        self.state = state
        self.lines = lines
        self._background = background

    @property
    def port(self) -> int:
        return self.node.ports["http"]

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, seconds: float = 120
    ) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        except OSError as error:
            error.add_note(f"workerd said {self.lines[-20:]}")
            raise
        finally:
            connection.close()

    def get(self, path: str, **given: Any) -> Answer:
        return self.request("GET", path, **given)

    def until(self, path: str, accept: Callable[[Any], bool], seconds: float = 60) -> Any:
        """Ask until the JSON answer is accepted, and give it."""
        end = time.monotonic() + seconds
        while True:
            value = self.get(path).json()
            if accept(value):
                return value
            assert time.monotonic() < end, (
                f"{path} is still {value!r} after {seconds} s; workerd said {self.lines[-20:]}"
            )
            time.sleep(0.05)

    def said(self, text: str, seconds: float = 60) -> None:
        """Wait until workerd has written a line with `text` in it."""
        end = time.monotonic() + seconds
        while not any(text in line for line in self.lines):
            assert time.monotonic() < end, f"workerd never said {text!r}, but {self.lines[-20:]}"
            time.sleep(0.02)

    def stop(self) -> int:
        return self._background.run(self.node.stop())


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    """The loop that the processes belong to."""
    background = Background()
    yield background
    background.close()


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """workerd and pyodide."""
    return toolchain()


@pytest.fixture(scope="session")
def bundle(tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The bundle of the application, with its snapshot."""

    def make(place: Path) -> None:
        out = place / "dist"
        background.run(make_bundle(Build(entry_at(APPLICATION), APPLICATION.parent, PLAN, tools), out))

    return Bundle.read(made_once(tmp_path_factory, "bundle", make) / "dist")


def entry_at(file: Path) -> Entry:
    """The application of a main file without a configuration."""
    folder, module = module_of(file)
    return Entry(str(folder), module, "app", "")


class Make(Protocol):
    """Makes the bundle of an application."""

    def __call__(self, main: Entry | Path | str, plan: Plan, /, **options: Any) -> Bundle:
        """Give the bundle of an application, of a main file, or of one of this text, with options of `make_bundle`."""
        ...


@pytest.fixture(scope="session")
def make(tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes the bundle of an application without trying it by a start: for tests that are not of builds.

    All processes of a run share the bundle of the same application with the same plan. A snapshot takes as much of the
    processor as four starts without one take longer: what is started once or twice is made with `snapshot=False`.
    """

    async def quick(entry: Entry, plan: Plan, out: Path, **options: Any) -> None:
        async def untried(*given: Any) -> None: ...

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(making, "_start_once", untried)
            project, files = options.pop("project", Path(entry.folder)), options.pop("files", {})
            await make_bundle(Build(entry, project, plan, tools, files=files), out, **options)

    def make(main: Entry | Path | str, plan: Plan, /, **options: Any) -> Bundle:
        def fill(place: Path) -> None:
            if isinstance(main, str):
                (place / "main.py").write_text(main)
            entry = main if isinstance(main, Entry) else entry_at(main if isinstance(main, Path) else place / "main.py")
            background.run(quick(entry, plan, place / "dist", **options))

        digest = hashlib.sha256(repr((main, plan, options)).encode()).hexdigest()[:16]
        return Bundle.read(made_once(tmp_path_factory, f"bundle-{digest}", fill) / "dist")

    return make


STATELESS = """
import asyncio

from core import Request, Response, create_app

app = create_app()

@app.get("/")
async def hello(req: Request, res: Response) -> None:
    print("was asked")
    await asyncio.sleep(0.2)
    res.text("hello")

@app.get("/a")
async def where(req: Request, res: Response) -> None:
    res.text(req.url)

@app.get("/hang")
async def hang(req: Request, res: Response) -> None:
    print("hang began")
    while True:
        pass

@app.get("/events")
async def events(req: Request, res: Response) -> None:
    async def forever():
        try:
            while True:
                yield "tick"
                await asyncio.sleep(0.05)
        finally:
            print("events ended")

    res.sse(forever())
"""


@pytest.fixture(scope="session")
def stateless(make: Make) -> Bundle:
    """An application that keeps nothing."""
    return make(STATELESS, Plan())


def make_of(make: Make, project: Project) -> Bundle:
    """The bundle of a project, as its configuration has it."""
    return make(project.entry, project.plan, project=project.folder, migrations=project.migrations)


@pytest.fixture
def start(tools: Toolchain, bundle: Bundle, background: Background, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start a node of the application, as often as one likes; all are stopped at the end of the test."""
    started: list[Running] = []

    def start(**given: Any) -> Running:
        before: Running | None = given.pop("state_of", None)
        state = tmp_path / f"state{len(started)}" if before is None else before.state
        running = start_running(tools, bundle, background, state, **given)
        started.append(running)
        return running

    yield start
    for running in started:
        running.stop()


@pytest.fixture(scope="session")
def worker(
    tools: Toolchain, bundle: Bundle, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """One node that the tests share."""
    running = start_running(
        tools,
        bundle,
        background,
        tmp_path_factory.mktemp("state"),
        adjust=with_test_clock,
        sockets={"cron": Socket("127.0.0.1:0", service="core-cron")},
    )
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 service with the bucket `cluster` in it."""
    with s3_service(tmp_path_factory.mktemp("moto")) as service:
        yield service.url


def member_of(bucket: str, prefix: str) -> Cluster:
    """The settings of one more node of the cluster that has `prefix` in a bucket."""
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    options = ["aws_region=us-east-1", "aws_access_key_id=a", "aws_secret_access_key=bbbbbbbbbbbbbbbbbbbb"]
    return Cluster(
        bucket=f"s3://cluster/{prefix}",
        key="0123456789abcdef0123456789abcdef",
        address="127.0.0.1:0",
        options=[f"aws_endpoint={bucket}", *options],
        stop_timeout_ms=4000,
    )


def with_test_clock(services: Sequence[Mapping[str, Any]], fronts: Mapping[str, str] | None = None) -> None:
    """Give workerd's services a clock that a test can move (POST /clock?advance=<milliseconds> to the service).

    `fronts` has by a service's name the script that comes before its own module, and exports what it does.
    """
    for service in services:
        if "worker" in service:
            service["worker"]["bindings"].append({"name": "TEST_CLOCK", "json": "true"})
        if service["name"] in (fronts or {}):
            front = {"name": "front.mjs", "esModule": (fronts or {})[service["name"]]}
            service["worker"]["modules"].insert(0, front)


def start_running(tools: Toolchain, bundle: Bundle, background: Background, state: Path, **given: Any) -> Running:
    lines: list[str] = []
    manifest = {**bundle.manifest, "plan": attrs.asdict(given.pop("plan", PLAN))}
    env = given.pop("env", {**os.environ, "TOKEN": "secret"})
    node = background.run(
        start_node(
            tools,
            attrs.evolve(bundle, manifest=manifest),
            state=state,
            env=env,
            brief=True,
            on_line=lines.append,
            **given,
        )
    )
    return Running(node, state, lines, background)


def advance(worker: Running, milliseconds: float) -> dict[str, Any]:
    """Move the clock of a worker with a test clock; its queues and alarms that come due have run."""
    connection = http.client.HTTPConnection("127.0.0.1", worker.node.ports["cron"], timeout=120)
    try:
        connection.request("POST", f"/clock?advance={int(milliseconds)}")
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    finally:
        connection.close()
