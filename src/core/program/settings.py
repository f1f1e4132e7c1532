"""The options of the checks, which the mypy plugin and `core check` share.

`[core-mypy]` in mypy.ini or setup.cfg, `[tool.core-mypy]` in pyproject.toml:

    config        one or more wrangler files, relative to this file; by default the nearest one above each module
    env           full names of the Env classes, or patterns (`*.env.Env`); by default every class over `Bindings`
    environments  names of environments to check, `top-level` among them; by default all

mypy reports their mistakes at the Env, since a plugin has no other place for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from core.config.model import Configuration

TOP_LEVEL: Final = "top-level"
_KEYS: Final = ("config", "env", "environments")


# A tuple and not an attrs class: mypy reads it in every run, and importing attrs would be most of the plugin's cost.
class Settings(NamedTuple):
    """The options as they were read. `env` is None where none were named; `problems` are their mistakes."""

    root: Path
    where: str = "[core-mypy]"
    config: tuple[Path, ...] = ()
    env: tuple[str, ...] | None = None
    environments: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def chosen(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        """Those of the environments that are named, or all of them where none is."""
        named = [c for c in configurations if (c.environment or TOP_LEVEL) in self.environments]
        return named or list(configurations)


def find_settings(folder: Path) -> Settings | None:
    """The options of the nearest file above that has any. Raises DeveloperError where something is wrong with them."""
    from core.errors import DeveloperError

    for directory in (folder, *folder.parents):
        for name, section in (
            ("mypy.ini", "[core-mypy]"),
            ("pyproject.toml", "[tool.core-mypy]"),
            ("setup.cfg", "[core-mypy]"),
        ):
            file = directory / name
            if file.is_file() and section in file.read_text("utf-8", "replace"):
                settings = read_settings(str(file))
                if settings.problems:
                    raise DeveloperError("; ".join(settings.problems))
                return settings
        if (directory / ".git").exists():
            break
    return None


def read_settings(config_file: str) -> Settings:
    """Read the options beside mypy's own. Raises nothing."""
    path = Path(config_file).absolute()
    root = path.parent
    try:
        table = _toml(path) if path.suffix == ".toml" else _ini(path)
    except Exception as error:  # mypy has read the same file, and reported the mistakes of its own part
        return Settings(
            root, path.name, problems=(f"{path.name}: the options of core.mypy_plugin cannot be read: {error}",)
        )
    problems: list[str] = []
    where = f"{path.name} [{'tool.' if path.suffix == '.toml' else ''}core-mypy]"
    values: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key not in _KEYS:
            problems.append(f"{where}: there is no option {key}. The options are {', '.join(_KEYS)}")
            continue
        listed = _listed(value)
        if listed is None:
            problems.append(f"{where}: {key} must be a string or a list of strings")
        else:
            values[key] = listed
    return Settings(
        root,
        where,
        tuple(root / name for name in values.get("config", ())),
        values.get("env"),
        values.get("environments", ()),
        tuple(problems),
    )


def _toml(path: Path) -> Mapping[str, object]:
    import tomllib

    table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("core-mypy", {})
    if not isinstance(table, dict):
        raise ValueError("[tool.core-mypy] must be a table")
    return cast("dict[str, object]", table)


def _ini(path: Path) -> Mapping[str, object]:
    import configparser

    parser = configparser.RawConfigParser()
    parser.read_string(path.read_text("utf-8"), str(path))
    return dict(parser.items("core-mypy")) if parser.has_section("core-mypy") else {}


def _listed(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.replace("\n", ",").split(",") if part.strip())
    if isinstance(value, list):
        items = cast("list[object]", value)
        texts = tuple(item for item in items if isinstance(item, str))
        return texts if len(texts) == len(items) else None
    return None
