"""From exchanges that `core dev` keeps to the files of their tests."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import logging
import re
import sqlite3
import sys
from itertools import count
from pathlib import Path
from typing import Any, Final

import attrs

from core.app import App
from core.assembly.embedded import name_in_store
from core.backends.embedded.migrations import HASHES
from core.backends.embedded.store import Store
from core.bindings.secret import Secret
from core.config.load import load
from core.config.model import Configuration
from core.config.secrets import read_local_secrets
from core.dev.journal import Journal
from core.dev.options import Options
from core.env import fields_of
from core.errors import DeveloperError, UsageError
from core.explain.failure import failure_of
from core.hosts.application import find_app
from core.http.headers import is_secret
from core.http.json import JsonObject
from core.program.entry import entry_of, import_main
from core.testing.recorded.replay import play
from core.testing.recorded.shrink import fewest, lasting, likely
from core.testing.recorded.stand_ins import StandIns
from core.testing.recorded.state import parsed, place_of_object, records_of
from core.testing.recorded.values import Answer, Sent, State
from core.testing.recorded.writing import written
from core.testing.simulation.log import shown

_REPLAYED: Final = frozenset({"kv", "d1", "r2", "queue", "durable_object", "rate_limit"})
_LARGEST: Final = 64 * 1024
"""Characters of a test: a larger one is read by nobody."""
_NEEDED: Final = frozenset({"content-type"})
_NOT_SENT: Final = frozenset({"host", "content-length", "connection", "transfer-encoding", "cookie", "accept-encoding"})


def record(options: Options, keys: list[str], last: int, folder: Path) -> int:
    """Write the tests of the exchanges `keys`, or of the `last` ones, into `folder`. Returns the exit code."""
    file = options.state_folder / "explorer.sqlite"
    if not file.is_file():
        raise UsageError(f"`core dev` has seen no request yet: there is no {file}. Start it, and send one")
    journal = Journal(file, fresh=False)
    if not keys:
        seen = [each for each in journal.page(None, 1 << 20)[0] if each["kind"] == "request" and each["method"] != "WS"]
        keys = [each["key"] for each in reversed(seen[:last])]
        if not keys:
            raise UsageError("`core dev` has seen no request since it was started. Send one")
    configuration = load(options.config, environment=options.environment)
    entry = entry_of(configuration)
    try:
        app = find_app(import_main(entry), entry.attribute, entry.config)
    except DeveloperError:
        raise
    except (Exception, SystemExit) as error:  # the application's own modules may raise anything
        reason = failure_of(error, options.root).as_text()
        raise DeveloperError(f"the application cannot be loaded:\n{reason}") from error
    logging.disable()
    sys.addaudithook(_stay_here)
    code = 0
    for key in keys:
        found = journal.detail(key)
        if found is None:
            raise UsageError(f"there is no request {key}: the latest 5,000 since the start of `core dev` are kept")
        path = _path(folder, found)
        try:
            # The application may log to the output, once for each replay.
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                text, summary = asyncio.run(_Recording(journal, options, configuration, app, found).text(path.stem))
        except (DeveloperError, sqlite3.Error, TimeoutError) as error:
            print(f"{found['method']} {found['path']}: no test of it: {error}", file=sys.stderr)
            code = 1
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        print(f"{shown}: {summary}")
    return code


def _check_length(characters: int) -> None:
    if characters > _LARGEST:
        raise DeveloperError(f"it would have {characters:,} characters, or more. Record one with less data")


def _path(folder: Path, found: JsonObject) -> Path:
    """The file of a test: one that is not there yet."""
    words = re.sub(r"[^a-z0-9]+", "_", f"{found['method']}_{found['path'].partition('?')[0]}".lower()).strip("_")
    name = f"test_{words[:60]}_{found['status']}"
    paths = (folder / f"{name}{'' if number == 1 else f'_{number}'}.py" for number in count(1))
    return next(path for path in paths if not path.exists())


def _stay_here(event: str, arguments: tuple[object, ...]) -> None:
    """Let no replay reach another machine: a request that is sent twenty times may cost money there."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        raise ConnectionRefusedError("a replay of `core record` reaches no other machine")


@attrs.define
class _Recording:
    """One exchange on its way to a test."""

    _journal: Journal
    _options: Options
    _configuration: Configuration
    _app: App[Any]
    _found: JsonObject
    _replays: int = 0
    _seen: set[object] = attrs.field(init=False, factory=set[object])

    @property
    def _time(self) -> int:
        return int(self._found["time"])

    async def text(self, name: str) -> tuple[str, str]:
        """The text of the test, and what is said of it."""
        found = self._found
        if found["method"] == "WS":
            raise DeveloperError("a WebSocket has no answer that a test could expect. Write its test by hand")
        others = sorted({call["binding"] for call in found["calls"] if call["kind"] not in _REPLAYED})
        if others:
            raise DeveloperError(f"it called {', '.join(others)}, of which no state is kept. Write its test by hand")
        local = read_local_secrets(self._configuration.directory, self._configuration.environment)
        fields = () if self._app.env_class is None else fields_of(self._app.env_class)
        declared = frozenset(field.name for field in fields if field.kind is Secret)
        stand_ins = StandIns({name: secret.value.reveal() for name, secret in local.items()}, declared, found["time"])
        state = self._state()
        sent = stand_ins.request(self._sent(), texts_too=False)
        seed = state | await self._used_up(sent, state)
        expected = await self._expected(sent, seed)
        self._look_into_memory(expected)
        # Passwords are hashed slowly, so secret texts are replaced where few are left.
        least = await self._least(sent, seed, expected)
        values = [value for rows in least[1].values() for row in rows for value in row.values()]
        _check_length(sum(len(value) for value in values if isinstance(value, str | bytes)))
        sent = stand_ins.request(least[0], texts_too=True)
        seed = await stand_ins.records(least[1])
        if (sent, seed) != least:
            expected = await self._expected(sent, seed)
        text = written(name, sent, seed, self._time, expected)
        stand_ins.refuse_secrets(text)
        _check_length(len(text))
        was, left = (sum(map(len, records.values())) for records in (state, seed))
        return text, f"{was} rows, keys and objects became {left} in {self._replays} replays"

    def _state(self) -> State:
        """The records of the bindings when the exchange began. What had expired by then is left out, and so are Durable
        Objects behind bindings that were not called: one that makes tables outside of its constructor cannot be filled.
        """
        number: int | None = self._found["state"]
        store, state = Store(self._options.state_folder), State()
        called = {call["binding"] for call in self._found["calls"]}
        states = self._journal.states
        for name, binding in self._configuration.bindings.items():
            stored_as, files = name_in_store(binding), [f"{binding.kind}/{name_in_store(binding)}"]
            if binding.kind == "durable_object":
                stored_as = binding.entry.class_name
                seen = name in called or self._found["leftOut"]
                files = states.files(number, f"durable_object/{stored_as}/") if seen and number is not None else []
            if stored_as is None:
                continue
            for file in files:
                connection = None if number is None else states.read(number, file)
                if connection is None:
                    raise DeveloperError(
                        f"the data that {name} had then is not kept: the latest 1,000 states are, of up to 1,000 databases "
                        "of up to 32 MiB each"
                    )
                table = getattr(binding.entry, "migrations_table", "")
                leave_out = (table, f"{table}{HASHES}")
                with contextlib.closing(connection):
                    place, beside = name, None
                    if binding.kind == "durable_object":
                        place = place_of_object(name, stored_as, file.rpartition("/")[2], connection)
                    else:
                        beside = store.files(binding.kind, stored_as)
                    state |= records_of(binding.kind, place, connection, beside, leave_out)
        for place, rows in state.items():
            state[place] = [row for row in rows if "." in place or row.get("expiration", self._time + 1) > self._time]
        return state

    def _sent(self) -> Sent:
        found = self._found
        message = found["request"]
        if message["cut"]:
            raise DeveloperError("the body of the request was too long to be kept")
        headers = {name.lower(): value for name, value in message["headers"] if name.lower() not in _NOT_SENT}
        given = ";".join(value for name, value in message["headers"] if name.lower() == "cookie")
        pairs = (each.partition("=") for each in given.split(";"))
        cookies = {name.strip(): value.strip() for name, equals, value in pairs if equals}
        text = message["text"]
        body: str | bytes = base64.b64decode(message["base64"]) if text is None else text
        value = parsed(body) if "json" in headers.get("content-type", "") else body
        if value is body:
            return Sent(found["method"], found["path"], headers, cookies, body=body or None)
        if headers["content-type"].partition(";")[0] == "application/json":
            del headers["content-type"]
        return Sent(found["method"], found["path"], headers, cookies, value)

    async def _play(self, sent: Sent, seed: State, time: float) -> Answer:
        self._replays += 1
        return await play(self._app, self._configuration, sent, seed, time, self._seen)

    async def _expected(self, sent: Sent, seed: State) -> Answer:
        found = await lasting(lambda time: self._play(sent, seed, time), self._time)
        if found.status != self._found["status"]:
            raise DeveloperError(
                f"`core dev` answered {self._found['status']}, and a replay over the fakes {found.status}. The answer "
                "depends on something that the fakes do not have: a secret that cannot be replaced, another machine, a "
                "value in memory"
            )
        return found

    async def _used_up(self, sent: Sent, seed: State) -> State:
        """The counts of rate limits, which nothing keeps: none, or where the answer was another one, that of the last
        call used up: a handler goes no further than the limit that refuses.
        """
        calls = [call for call in self._found["calls"] if call["kind"] == "rate_limit"]
        answer = await self._play(sent, seed, self._time) if calls else None
        if answer is None or answer.status == self._found["status"]:
            return {}
        name, detail = calls[-1]["binding"], calls[-1]["detail"]
        table: Any = self._configuration.bindings[name].entry
        counted = [each for each in answer.added.get(name, ()) if detail == f"key={each['key']!r}"]
        return {name: [{**each, "count": table.simple.limit} for each in counted]}

    def _look_into_memory(self, expected: Answer) -> None:
        """Refuse an answer that `core dev` gave otherwise, where objects were called: one may have it in memory."""
        message = self._found["response"]
        if self._found["status"] >= 500 or not any(call["kind"] == "durable_object" for call in self._found["calls"]):
            return
        with contextlib.suppress(ValueError, TypeError):  # no JSON
            if json.loads(message["text"]) != expected.body:
                raise DeveloperError(
                    f"a replay answers {shown(expected.body)}, and `core dev` did not. What a Durable Object holds in "
                    "memory is not kept: let the answer depend on its storage, or write its test by hand"
                )

    async def _least(self, sent: Sent, seed: State, expected: Answer) -> tuple[Sent, State]:
        """The parts of a request and the rows that cannot be left out."""
        asked = [("a header", each) for each in sent.headers.items()]
        asked += [("a cookie", each) for each in sent.cookies.items()]
        rows = [(place, row) for place, rows in seed.items() for row in rows]
        first = {at for at, (_, (name, _)) in enumerate(asked) if name in _NEEDED or is_secret(name.lower())}
        first |= {len(asked) + number for number in likely(rows, self._seen, expected.added)}
        parts = [*asked, *rows]

        def made(numbers: list[int]) -> tuple[Sent, State]:
            left: dict[str, list[Any]] = {"a header": [], "a cookie": []}
            for number in sorted(numbers):
                place, part = parts[number]
                left.setdefault(place, []).append(part)
            return attrs.evolve(sent, headers=dict(left.pop("a header")), cookies=dict(left.pop("a cookie"))), left

        refused = False

        async def same(numbers: list[int]) -> bool:
            nonlocal refused
            try:
                return await self._play(*made(numbers), self._time) == expected
            except sqlite3.IntegrityError:  # a row without the one that it refers to
                refused = True
                return False

        order = sorted(range(len(parts)), key=lambda number: number not in first)
        fewer = await fewest(order, same, len(first))
        # A row may have been kept for one that refers to it, and that was then left out.
        return made(await fewest(fewer, same) if refused else fewer)
