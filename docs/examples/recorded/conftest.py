"""The application of the tests in this folder is that of examples/users."""

from pathlib import Path

import pytest


@pytest.fixture
def core_config() -> Path:
    return Path(__file__).parents[3] / "examples" / "users" / "wrangler.toml"
