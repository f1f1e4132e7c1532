"""Examples of an API, from its tests: one body for each answer of each operation, and one for each request.

Of several tests that got the same answer, the first in the order of their ids counts, so that the same tests give the
same examples in any number of processes. A value under a name like `password` or `token` is never kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from core.errors import DeveloperError
from core.http.json import JsonObject
from core.openapi.reading import operations, plain_media
from core.values import is_array, is_object

REQUEST: Final = "request"
_LONGEST: Final = 4000
"""Characters of JSON: a longer body shows nothing more."""
_SECRET: Final = re.compile(r"pass(word|phrase)|secret|token|api.?key|authorization|cookie", re.IGNORECASE).search
_HIDDEN: Final = "…"

Found: TypeAlias = dict[str, dict[str, dict[str, JsonObject]]]
"""By operation, then by status or "request", then by media type: `{"test": …, "value": …}`."""


@attrs.define
class Examples:
    """A request of a test and its answer. `test` is the id of the one that runs."""

    found: Found = attrs.Factory(dict[str, dict[str, dict[str, JsonObject]]])
    test: str = ""

    @classmethod
    def read(cls, path: Path) -> Examples:
        """The examples of a file. Raises DeveloperError for one that is missing, or is not a file of examples."""
        fix = f"Let the tests write it: pytest --core-examples {path}"
        examples = cls()
        try:
            examples.take(json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            raise DeveloperError(f"{path} does not exist. {fix}") from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise DeveloperError(f"{path} has no examples. {fix}") from None
        return examples

    def write(self, path: Path) -> None:
        """Write them to a file, which `read` reads."""
        path.write_text(json.dumps(self.found, indent=2, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")

    def note(self, operation: str, place: str, media: str, body: bytes | None) -> None:
        """Keep a body of JSON: of the answer with the status `place`, or of a request."""
        try:
            value = json.loads(body or b"")
        except ValueError:
            return
        value = _without_secrets(value)
        if len(json.dumps(value, ensure_ascii=False)) <= _LONGEST:
            self._add(operation, place, media, {"test": self.test, "value": value})

    def take(self, found: Found) -> None:
        """Add those of another process, or of a file."""
        for operation, places in found.items():
            for place, medias in places.items():
                for media, example in medias.items():
                    self._add(operation, place, media, {"test": str(example["test"]), "value": example["value"]})

    def _add(self, operation: str, place: str, media: str, example: JsonObject) -> None:
        medias = self.found.setdefault(operation, {}).setdefault(place, {})
        if media not in medias or example["test"] < medias[media]["test"]:
            medias[media] = example


def add_examples(document: Mapping[str, object], examples: Examples) -> None:
    """Put examples into the operations that they are of.

    Those of operations that the document does not have are left out.
    """
    for each in operations(document):
        bodies = {REQUEST: each.operation.get("requestBody"), **each.operation.get("responses", {})}
        for place, medias in examples.found.get(each.name, {}).items():
            body: Any = bodies.get(place)
            stated: JsonObject = body.get("content", {}) if is_object(body) else {}
            content = {plain_media(media): described for media, described in stated.items()}
            for media, example in medias.items():
                described = content.get(media)
                if described is not None:
                    name = _name(example["test"])
                    words = name.replace("_", " ").capitalize()
                    described["examples"] = {name: {"summary": words, "value": example["value"]}}


def _name(test: str) -> str:
    """`tests/test_users.py::test_a_user_is_found[1]` as `a_user_is_found`."""
    return test.rpartition("::")[2].partition("[")[0].removeprefix("test_") or "example"


def _without_secrets(value: object) -> object:
    if is_object(value):
        return {
            name: _HIDDEN if isinstance(inner, str) and _SECRET(name) else _without_secrets(inner)
            for name, inner in value.items()
        }
    return [_without_secrets(inner) for inner in value] if is_array(value) else value
