"""The page of configuration keys has every key of the model, once, with whether it is inherited."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import attrs
import pytest

from core.config import model
from core.config.keys import INHERITED_KEYS

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.py"


@pytest.fixture(scope="module")
def keys() -> str:
    spec = importlib.util.spec_from_file_location("docs_hooks", HOOKS)
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    text: str = hooks.keys()
    return text


def test_every_key_of_every_table_is_on_the_page(keys: str) -> None:
    tables = [value for value in vars(model).values() if isinstance(value, type) and attrs.has(value)]
    result_of_loading = {"Binding", "Configuration", "Unchecked", "Worker"}
    assert len(tables) > 40
    for table in tables:
        if table.__name__ in result_of_loading:
            continue
        for field in attrs.fields(table):
            name = field.name.rstrip("_")
            assert f"| `{name}` |" in keys or f".{name}]" in keys, f"{table.__name__}.{name}"


@pytest.mark.parametrize(
    "row",
    [
        "| `main` | text | none | yes |",
        "| `vars` | table | none | no |",
        '| `migrations_dir` | text | `"migrations"` | no |',
        "| `max_batch_size` | number | `10` | no |",
        "| `binding` | text | required | no |",
    ],
)
def test_a_row_says_type_default_and_inheritance(row: str, keys: str) -> None:
    assert row in keys


def test_no_table_of_bindings_is_inherited(keys: str) -> None:
    sections: dict[str, Any] = {part.split("`", 2)[1]: part for part in keys.split("\n## ")[1:] if part.startswith("`")}
    for title, section in sections.items():
        top = title.strip("[]").split(".")[0]
        assert (" | yes | " in section) == (top in INHERITED_KEYS), title
