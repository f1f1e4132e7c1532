"""The application in a module that was imported, or why there is none; and the secrets that its Env asks for."""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import Any, cast

from core.app import App
from core.bindings.secret import Secret
from core.env import fields_of, with_article
from core.errors import DeveloperError


def find_app(module: ModuleType, attribute: str = "app", config: str = "") -> App[Any]:
    """The application `attribute` of a module. Raises DeveloperError where it is missing or something else.

    `config` is the file of the configuration, which messages name.
    """
    app = getattr(module, attribute, None)
    if isinstance(app, App):
        return cast("App[object]", app)
    path, root = module.__file__ or module.__name__, os.path.realpath(os.path.dirname(config))
    file = os.path.relpath(path, root) if path.startswith(f"{root}{os.sep}") else os.path.basename(path)
    others = [key for key, value in vars(module).items() if isinstance(value, App)]
    made = attribute
    if app is not None:
        cls, wanted = type(app).__name__, "an App"
        if cls == "App":
            cls, wanted = f"{type(app).__module__}.App", "an App of core"
        problem = f"`{attribute}` is {with_article(cls)}, not {wanted}. Write `{attribute} = create_app(Env)`"
    elif others:
        made = others[0]
        problem = f"there is no `{attribute}`, but an App named {made}. Write [core] app = "
        problem += f'"{module.__name__}:{made}" in {os.path.basename(config) or "the configuration"}'
    else:
        problem = f"there is no `{attribute}`. Write `{attribute} = create_app(Env)`"
    error = DeveloperError(f"{file}: {problem}")
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as source:
            begun = (number for number, line in enumerate(source, 1) if re.match(rf"{made}\s*[:=]", line))
            error.location = path, next(begun, 1)
    raise error


def secrets_asked(env_class: type, /) -> dict[str, bool]:
    """The names under which an Env takes a secret, if the configuration has nothing else there, and True where it
    cannot do without. Raises EnvError as `fields_of` does.
    """
    return {
        field.name: not field.optional
        for field in fields_of(env_class)
        if field.kind is Secret or (field.optional and (field.kind is str or field.converted))
    }
