"""Mistakes put into a program one at a time, each found by its code, file and line: some of `benchmarks.mutations`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.mutations import FACES, MUTATIONS, Mutation, run

WITHOUT_MODULES = [mutation for mutation in MUTATIONS if mutation.file != "shop/m7.py"]


def test_core_check_finds_every_mutation_at_its_line(tmp_path: Path) -> None:
    result = run(tmp_path.resolve(), 1, WITHOUT_MODULES, {"core check": FACES["core check"]})
    assert (result.clean, result.missed) == ([], [])
    assert result.tried["core check"] > 110


def test_mypy_finds_some_of_them_at_the_same_lines(tmp_path: Path) -> None:
    result = run(tmp_path.resolve(), 1, WITHOUT_MODULES[::24], {"mypy": FACES["mypy"]})
    assert (result.clean, result.missed) == ([], [])
    assert result.tried["mypy"] >= 4


def test_a_mistake_that_is_found_elsewhere_counts_as_missed(tmp_path: Path) -> None:
    wrong = Mutation("shop/orders.py", "SELECT id,", "SELECT idd,", "core-sql", "insert = req.env.DB.prepare(")
    result = run(tmp_path.resolve(), 1, [wrong], {"core check": FACES["core check"]})
    assert len(result.missed) == 1
