"""Every `exact` program of the recordings gives what the real binding gave."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from tests.traces.__main__ import main, replay_one
from tests.traces.harness import DATA, Program, load

PROGRAMS = {program["id"]: program for program in load(DATA)}
EXACT = [name for name, program in PROGRAMS.items() if program["portability"] == "exact"]


@cache
def problems(name: str, on_disk: bool) -> tuple[str, ...]:
    """The differences of a program, replayed once."""
    program: Program = PROGRAMS[name]
    return tuple(replay_one(program, on_disk=on_disk))


@pytest.mark.parametrize("name", EXACT)
def test_a_program_in_memory_gives_what_was_recorded(name: str) -> None:
    assert problems(name, False) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXACT if PROGRAMS[name]["group"] in ("kv", "d1")])
def test_a_program_on_disk_gives_what_was_recorded(name: str) -> None:
    assert problems(name, True) == ()


def test_the_count_of_replayed_traces_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    good = sum(not problems(name, False) for name in EXACT)
    with capsys.disabled():
        print(f"\ntraces replayed: {good} of {len(EXACT)}")
    assert good == len(EXACT)
    assert len(EXACT) > 150


def test_the_command_counts_misses_and_fails_on_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "format": 1,
        "group": "kv",
        "programs": [
            {
                "id": "good",
                "portability": "exact",
                "steps": [{"binding": "KV", "op": "get", "args": ["k"], "expect": {"value": None}}],
            },
            {
                "id": "bad",
                "portability": "exact",
                "steps": [{"binding": "KV", "op": "get", "args": ["k"], "expect": {"value": "v"}}],
            },
            {
                "id": "other",
                "portability": "js-types",
                "steps": [{"binding": "KV", "op": "get", "args": [None], "expect": {"value": "v"}}],
            },
        ],
    }
    (tmp_path / "kv.json").write_text(json.dumps(document))
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == 'bad[0] get: value: want "v", got None'
    assert printed[-1] == "traces replayed: 1 of 2"


def test_the_command_names_what_it_cannot_run_and_counts_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(name: str, *steps: object) -> object:
        return {"id": name, "portability": "exact", "steps": steps}

    good = {"op": "new Response", "args": ["x"], "expect": {"value": {"$object": "Response"}}}
    programs = [
        program("unknown class", {"op": "new WebAssembly", "args": [], "expect": {"value": None}}),
        program("unknown tag", {**good, "args": [{"$blob": "x"}]}),
        program("unknown outcome", {**good, "expect": {"value": {"$blob": "x"}}}),
        program("no outcome", {**good, "expect": {}}),
        program("good", good),
    ]
    (tmp_path / "fetch.json").write_text(json.dumps({"format": 1, "group": "fetch", "programs": programs}))
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:2] for line in printed[:4]] == [
        ["not run", "unknown class"],
        ["not run", "unknown tag"],
        ["not run", "unknown outcome"],
        ["not run", "no outcome"],
    ]
    assert printed[-1] == "traces replayed: 1 of 1"
