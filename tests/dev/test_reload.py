"""The files whose change `core dev` serves."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from core.dev.reload import Packages, changes_in, wanted

ROOT = Path("/srv/shop")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "wrangler.toml",
            "wrangler.json",
            "wrangler.jsonc",
            ".dev.vars",
            ".dev.vars.staging",
            ".env",
            "main.py",
            "src/shop/routes/carts.py",
        ),
        *("migrations/0001_carts.sql", "src/shop/templates/cart.html", "src/shop/prices.json", "src/shop/tests.py"),
    ],
)
def test_what_an_application_is_made_of_is_loaded_anew(path: str) -> None:
    assert wanted(ROOT, ROOT / path)


@pytest.mark.parametrize("path", ["prices.json", "shop/prices.txt", "shop/deep/prices.yaml"])
def test_data_is_loaded_anew_where_it_is_a_package_s_and_may_be_the_program_s_own_elsewhere(
    tmp_path: Path, path: str
) -> None:
    assert not wanted(tmp_path, tmp_path / path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    assert wanted(tmp_path, tmp_path / path) == path.startswith("shop/")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "data/visits.json",
            "visits.json",
            "openapi.json",
            "log.txt",
            "state/shop.sqlite",
            "shop.db",
            "shop.sqlite-wal",
        ),
        *("tests/test_carts.py", "src/shop/test/data.json", "node_modules/left-pad/index.json", ".venv/lib/attr.py"),
        *(".git/hooks/hook.py", "htmlcov/status.json", "dist/manifest.json", "src/shop/__pycache__/carts.py"),
        *("README.md", "src/shop/carts.pyc", "/srv/other/main.py"),
        # What editors keep beside a file that is being written.
        *(".env.swp", ".dev.vars.swp", ".env~", "src/shop/.carts.py.swp", "src/shop/.#carts.py", "src/shop/#carts.py#"),
    ],
)
def test_what_it_never_loads_changes_nothing(path: str) -> None:
    assert not wanted(ROOT, ROOT / path)


def test_a_package_that_is_installed_from_its_source_is_followed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, shared, installed = (tmp_path / name for name in ("shop", "shared ü", "installed"))
    for folder in (shop, shared / "src" / "prices", shared / "tests", installed / "prices-1.0.dist-info"):
        folder.mkdir(parents=True)
    (installed / "prices-1.0.dist-info" / "METADATA").write_text("Name: prices\nVersion: 1.0\n")
    origin = {"url": shared.as_uri(), "dir_info": {"editable": True}}
    (installed / "prices-1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(installed)
    stop = threading.Event()
    changes = changes_in(shop, stop, shop / "wrangler.toml")

    assert next(changes) == ()  # it watches by now
    (shared / "tests" / "test_prices.py").write_text("")
    (shared / "src" / "prices" / "__init__.py").write_text("")
    seen = next(names for names in changes if names)
    stop.set()

    assert seen == (str(shared / "src" / "prices" / "__init__.py"),)


def test_the_configuration_is_followed_whatever_it_is_called(tmp_path: Path) -> None:
    stop = threading.Event()
    changes = changes_in(tmp_path, stop, tmp_path / "worker.json")

    assert next(changes) == ()
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "worker.json").write_text("{}")
    seen = next(names for names in changes if names)
    stop.set()

    assert seen == ("worker.json",)


def test_packages_that_are_installed_together_are_one_change(tmp_path: Path) -> None:
    (tmp_path / "old-1.0.dist-info").mkdir()
    packages = Packages(tmp_path)

    def install(name: str, at: int) -> None:
        (tmp_path / f"{name}.dist-info").mkdir()
        os.utime(tmp_path, (at, at))

    assert packages.new(10.0) == ()
    install("PyJWT-2.10.1", 1)
    assert packages.new(10.2) == ()
    install("cryptography-46.0.1", 2)
    assert packages.new(11.0) == ()
    assert packages.new(11.9) == ()
    assert packages.new(12.1) == ("PyJWT 2.10.1", "cryptography 46.0.1")
    assert packages.new(14.0) == ()
