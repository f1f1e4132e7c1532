"""The files whose change `core dev` serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.dev.reload import wanted

ROOT = Path("/srv/shop")


@pytest.mark.parametrize(
    "path",
    [
        *("wrangler.toml", ".dev.vars", ".dev.vars.staging", ".env", "main.py", "src/shop/routes/carts.py"),
        *("migrations/0001_carts.sql", "src/shop/templates/cart.html", "src/shop/prices.json", "src/shop/tests.py"),
    ],
)
def test_what_an_application_is_made_of_is_loaded_anew(path: str) -> None:
    assert wanted(ROOT, ROOT / path)


@pytest.mark.parametrize(
    "path",
    [
        *("tests/test_carts.py", "src/shop/test/data.json", "node_modules/left-pad/index.json", ".venv/lib/attr.py"),
        *(".git/hooks/hook.py", "htmlcov/status.json", "dist/manifest.json", "src/shop/__pycache__/carts.py"),
        *("README.md", "src/shop/carts.pyc", "/srv/other/main.py"),
    ],
)
def test_what_it_never_loads_changes_nothing(path: str) -> None:
    assert not wanted(ROOT, ROOT / path)
