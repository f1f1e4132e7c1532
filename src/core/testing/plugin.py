"""The pytest plugin, loaded by its entry point: fixtures, and the rule that no background work is left behind.

    [tool.pytest.ini_options]
    core_app = "users_api.main:app"
    core_config = "wrangler.toml"
    core_openapi = "openapi.json"

Nothing of the framework is imported before a fixture is asked for, so a project that only has the
package installed pays nothing. With `core_openapi` every response that a `Client` gets is compared with the
document, and the answers that no test reached are listed at the end, also of tests in several processes. With
`--core-examples FILE` too, one body of each answer is written to a file, which `core openapi --examples` reads.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from core.app import App
    from core.openapi.contract import Contract
    from core.testing.client import Client
    from core.testing.clock import FakeClock
    from core.testing.context import FakeExecutionContext
    from core.testing.recorded.replay import Recorded
    from core.testing.spans import SpanRecorder

_CONTRACT: pytest.StashKey[Contract] = pytest.StashKey()

__all__ = [
    "core_app",
    "core_client",
    "core_clock",
    "core_config",
    "core_ctx",
    "core_env",
    "core_recorded",
    "core_spans",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--core-app` and `--core-config`, and the settings of the same names."""
    group = parser.getgroup("core", "typed HTTP APIs on an edge worker runtime")
    group.addoption(
        "--core-app", metavar="MODULE:NAME", help="the application under test, for core_app and core_client"
    )
    group.addoption("--core-config", metavar="FILE", help="the worker's configuration file, for core_env")
    parser.addini("core_app", "the application under test, as module:name")
    parser.addini("core_config", "the worker's configuration file, relative to the root of the project")
    group.addoption("--core-openapi", metavar="FILE", help="the OpenAPI document that every response is compared with")
    parser.addini("core_openapi", "the OpenAPI document that every response is compared with, relative to the root")
    group.addoption(
        "--core-examples",
        metavar="FILE",
        help="write examples for `core openapi --examples FILE`: what tests sent and got",
    )
    group.addoption(
        "--core-simulate",
        metavar="N",
        type=int,
        default=0,
        help="run every async test N times, each with its calls of bindings in another order",
    )
    group.addoption(
        "--core-update", action="store_true", help="write what the tests of `core record` expect again, as it is now"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of `@simulate` that has fixtures, and with `--core-simulate=N` every async test, once for each run."""
    decorators = sys.modules.get("core.testing.simulation.decorators")
    runs = int(item.config.getoption("--core-simulate") or 0)
    if (not runs and decorators is None) or not isinstance(item, pytest.Function):
        return None
    from core.testing.simulation.items import simulate_item

    return simulate_item(item, nextitem, runs)


def pytest_configure(config: pytest.Config) -> None:
    """Read the document of `core_openapi`, and have every `Client` compare its responses with it."""
    named: str = config.getoption("--core-openapi") or config.getini("core_openapi")
    if not named:
        if config.getoption("--core-examples"):
            raise pytest.UsageError(
                "--core-examples needs the OpenAPI document: set core_openapi, or give --core-openapi"
            )
        return
    from core.errors import DeveloperError
    from core.openapi.contract import Contract
    from core.openapi.examples import Examples
    from core.testing import client

    try:
        contract = Contract.read(config.rootpath / named)
    except DeveloperError as error:
        raise pytest.UsageError(f"core_openapi: {error}") from None
    if config.getoption("--core-examples"):
        contract.examples = Examples()
    module, _, name = (config.getoption("--core-app") or config.getini("core_app")).partition(":")

    def contract_of(app: App[Any]) -> Contract | None:
        # The document is of one application. Another one that a test makes for itself is not held to it.
        described = getattr(sys.modules.get(module), name or "app", None) if module else app
        return contract if described is app else None

    config.stash[_CONTRACT] = contract
    client.contract_of = contract_of
    config.add_cleanup(partial(setattr, client, "contract_of", None))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the faults and answers that were reached to the process that started this one (pytest-xdist)."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    contract = session.config.stash.get(_CONTRACT, None)
    decorators = sys.modules.get("core.testing.simulation.decorators")
    if output is not None and decorators is not None:
        output["core_simulated"] = [[*decorators.asked], [*decorators.reached]]
    if output is not None and contract is not None:
        output["core_openapi"] = [[answer.operation, answer.status] for answer in contract.reached]
        output["core_examples"] = {} if contract.examples is None else contract.examples.found


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over the faults and answers that a process of pytest-xdist has reached."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if simulated := output.get("core_simulated"):
        from core.testing.simulation.decorators import asked, reached

        asked.update(map(tuple, simulated[0]))
        reached.update(map(tuple, simulated[1]))
    contract = node.config.stash.get(_CONTRACT, None)
    if contract is not None:
        from core.openapi.contract import Declared

        contract.reached.update(Declared(*answer) for answer in output.get("core_openapi", ()))
        if contract.examples is not None:
            contract.examples.take(output.get("core_examples", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the faults and the answers of the document that no test reached, and write examples of those that were."""
    if decorators := sys.modules.get("core.testing.simulation.decorators"):
        for test, never in groupby(sorted(decorators.asked - decorators.reached), itemgetter(0)):
            faults = ", ".join(fault for _, fault in never)
            terminalreporter.write_line(f"{test} asks for faults that none of its runs reached: {faults}")
    contract = config.stash.get(_CONTRACT, None)
    if contract is None or not contract.reached:
        return
    if contract.examples is not None:
        file = str(config.getoption("--core-examples"))
        contract.examples.write(config.rootpath / file)
        terminalreporter.write_line(f"{file} written: core openapi --examples {file} puts them into the document")
    unreached, declared = contract.unreached, contract.declared
    shown = config.getoption("--core-openapi") or config.getini("core_openapi")
    if not unreached:
        terminalreporter.write_line(f"all {len(declared)} answers of {shown} were tested")
        return
    terminalreporter.section("answers of the API", sep="-")
    terminalreporter.write_line(f"{len(unreached)} of {len(declared)} answers of {shown} were not tested:")
    for operation, missing in groupby(unreached, attrgetter("operation")):
        terminalreporter.write_line(f"  {operation}: {', '.join(answer.status for answer in missing)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the answers of tests before this one, and let examples be of this one."""
    contract = item.config.stash.get(_CONTRACT, None)
    if contract is not None and contract.examples is not None:
        contract.examples.test = item.nodeid
    if context := sys.modules.get("core.testing.context"):
        context.forget_contexts()
    if client := sys.modules.get("core.testing.client"):
        client.failures.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Tell the fix for an error where one is known. Fail a test that leaves work of `wait_until` undone or failed."""
    try:
        result = yield
    except Exception as error:
        if "core.app" in sys.modules:
            from core.explain.diagnosis import with_note

            with_note(error)
        raise
    if (context := sys.modules.get("core.testing.context")) and (left := context.left_behind()):
        pytest.fail("\n".join(left), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what failed in the requests of a test that failed: what happened, the line, how to fix it, the page."""
    report = yield
    if report.failed and report.when != "teardown" and (client := sys.modules.get("core.testing.client")):
        report.sections[:0] = [(f"{asked} failed", failure.as_text()) for asked, failure in client.failures]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Tell the record of what a conftest.py could not import, before pytest's own words on it."""
    try:
        return (yield)
    except Exception as error:
        if (cause := _cause_of(error)) is not error and (record := _record_of(cause, early_config)):
            sys.stderr.write(f"{record}\n\n")
        raise


def pytest_exception_interact(
    node: pytest.Item | pytest.Collector,
    call: pytest.CallInfo[object],
    report: pytest.CollectReport | pytest.TestReport,
) -> None:
    """Show the record of what failed while pytest collected, such as the import of the application."""
    if not isinstance(report, pytest.CollectReport) or call.excinfo is None:
        return
    if record := _record_of(_cause_of(call.excinfo.value), node.config):
        report.sections.append(("collection failed", record))


def _cause_of(error: BaseException) -> BaseException | None:
    """The error of an import, which pytest wraps in one of its own. None where pytest itself has something to say."""
    if type(error).__name__ == "ConftestImportFailure":
        return getattr(error, "cause", None)
    return error.__cause__ if isinstance(error, pytest.Collector.CollectError) else error


def _record_of(error: BaseException | None, config: pytest.Config) -> str | None:
    """The text of an error's record; None in a project that is no worker."""
    if error is None or ("core.app" not in sys.modules and _configuration_in(config.rootpath) is None):
        return None
    from core.explain.failure import failure_of

    return failure_of(error, config.rootpath).as_text()


def _configuration_in(root: Path) -> Path | None:
    from core.config.nearest import FILE_NAMES

    return next((root / name for name in FILE_NAMES if (root / name).is_file()), None)


@pytest.fixture
def core_clock() -> FakeClock:
    """A clock that the test moves: `core_clock.advance(60)`."""
    from core.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def core_ctx(core_clock: FakeClock) -> FakeExecutionContext:
    """An execution context on `core_clock`. Await `core_ctx.drain()` where a handler used `wait_until`."""
    from core.testing.context import FakeExecutionContext

    return FakeExecutionContext(clock=core_clock)


@pytest.fixture
def core_config(request: pytest.FixtureRequest) -> Path | None:
    """The configuration file named by `--core-config` or `core_config`, else the one beside the project's root."""
    named = request.config.getoption("--core-config") or request.config.getini("core_config")
    root: Path = request.config.rootpath
    if named:
        path: Path = root / named
        if not path.is_file():
            raise pytest.UsageError(f"core_config: there is no file {path}")
        return path
    return _configuration_in(root)


@pytest.fixture
def core_app(request: pytest.FixtureRequest) -> App[Any]:
    """The application named by `--core-app` or `core_app`, else that of the configuration file. A conftest.py may
    define its own instead.
    """
    from importlib import import_module

    named: str = request.config.getoption("--core-app") or request.config.getini("core_app")
    if not named and (config := request.getfixturevalue("core_config")) is not None:
        from core.config.load import load
        from core.hosts.application import find_app
        from core.program.entry import entry_of, import_main

        entry = entry_of(load(config))
        return find_app(import_main(entry), entry.attribute, entry.config)
    if not named:
        raise pytest.UsageError(
            "core_app: name the application under test in pyproject.toml: [tool.pytest.ini_options] "
            'core_app = "package.main:app", or define a fixture core_app in conftest.py'
        )
    module, _, name = named.partition(":")
    app: object = getattr(import_module(module), name or "app", None)
    from core.app import App

    if not isinstance(app, App):
        raise pytest.UsageError(f'core_app: "{named}" is not an App but {type(app).__name__}. Write "module:name"')
    return cast("App[object]", app)


@pytest.fixture
def core_env(core_app: App[Any], core_clock: FakeClock, core_config: Path | None) -> object:
    """An `Env` of fakes for `core_app`, on `core_clock`, with the configuration's variables and migrations.

    `await core_env.crash()` lets the isolate die: see `core.testing.env`.
    """
    from core.testing.environment import env

    if core_app.env_class is None:
        raise pytest.UsageError("core_env: the application was made without an Env class. Write create_app(Env)")
    return env(core_app.env_class, clock=core_clock, config=core_config)


@pytest.fixture
def core_client(core_app: App[Any], core_env: object, core_ctx: FakeExecutionContext) -> Client[Any]:
    """A client of `core_app` over `core_env` and `core_ctx`."""
    from core.testing.client import Client

    return Client(core_app, core_env, core_ctx)


@pytest.fixture
def core_recorded(request: pytest.FixtureRequest, core_app: App[Any], core_config: Path | None) -> Recorded:
    """Sends the request of a test that `core record` wrote."""
    from core.testing.recorded.replay import Recorded

    node: Any = request.node
    updates = bool(request.config.getoption("--core-update"))
    return Recorded(core_app, core_config, (node.path, node.originalname or node.name) if updates else None)


@pytest.fixture
def core_spans(core_clock: FakeClock) -> Generator[SpanRecorder, None, None]:
    """The spans of every `Client` in the test, on `core_clock`: `core_spans.at_most(2, "d1")`."""
    from core.testing import client
    from core.testing.spans import SpanRecorder

    recorder = SpanRecorder(clock=core_clock)
    for each in [*client.clients]:
        recorder.attach(each.app, each.env)
    client.recorder = recorder
    yield recorder
    client.recorder = None
    recorder.detach()
