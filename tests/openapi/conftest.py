"""Small applications, described."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401
import pytest
from tests.support.libraries import with_libraries

from core.openapi.document import Described, describe
from core.openapi.gather import gather
from core.openapi.routes import application_facts


@pytest.fixture(scope="module")
def describing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Described]]:
    made: list[tuple[str, Path]] = []

    def of(name: str, source: str, version: str = "3.2") -> Described:
        root = with_libraries(tmp_path_factory.mktemp(name))
        (root / f"{name}.py").write_text(textwrap.dedent(source))
        sys.path.insert(0, str(root))
        made.append((name, root))
        app = importlib.import_module(name).app
        facts = application_facts(app, title="Shop", module=name)
        gathered = gather(name, source=root, root=root, classes=facts.classes)
        return describe(facts, gathered.program, version=version)

    yield of
    for name, root in made:
        sys.path.remove(str(root))
        sys.modules.pop(name, None)
