"""`core types`: an Env class from the configuration, that keeps what people wrote."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from core.bindings.kinds import KINDS
from core.config.load import load_all
from core.program.generate import new_env, update_env
from core.program.proof import check_program, find_env

WRANGLER = """\
main = "main.py"

[[kv_namespaces]]
binding = "SESSIONS"

[[d1_databases]]
binding = "DB"

[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[vars]
ORIGIN = "x"
LIMIT = 1

[secrets]
required = ["KEY"]
"""

NEW = '''\
"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs

from core import Bindings, D1Database, KVNamespace, Queue, Secret


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    JOBS: Queue[object]
    ORIGIN: str
    LIMIT: int
    KEY: Secret
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def written(root: Path, toml: str) -> str:
    (root / "wrangler.toml").write_text(toml)
    return new_env(load_all(root / "wrangler.toml"))


def updated(root: Path, toml: str, env: str) -> str:
    (root / "wrangler.toml").write_text(toml)
    (root / "main.py").write_text(env + "\nfrom core import create_app\napp = create_app(Env)\n")
    configurations = load_all(root / "wrangler.toml")
    (shape,) = find_env(configurations, "Env")
    new = update_env(env, shape, configurations)
    (root / "main.py").write_text(new + "\nfrom core import create_app\napp = create_app(Env)\n")
    # What was written is up to date.
    (shape,) = find_env(configurations, "Env")
    assert update_env(new, shape, configurations) == new
    return new


def test_a_new_file_has_every_binding(root: Path) -> None:
    assert written(root, WRANGLER) == NEW
    (root / "main.py").write_text(NEW + "\nfrom core import create_app\napp = create_app(Env)\n")
    assert check_program(load_all(root / "wrangler.toml")) == []


def test_types_of_their_own_rooms_are_imported_from_there(root: Path) -> None:
    toml = '[assets]\nbinding = "FILES"\ndirectory = "p"\n[[services]]\nbinding = "AUTH"\nservice = "auth"\n'
    text = written(root, toml)
    assert (
        "from core import Bindings\nfrom core.bindings.assets import Assets\nfrom core.bindings.fetcher import Fetcher\n"
        in text
    )
    assert "    AUTH: Fetcher\n    FILES: Assets\n" in text


def test_every_type_that_is_written_can_be_imported(root: Path) -> None:
    for kind in KINDS.values():
        if kind.protocol is None or kind.name == "secret":
            continue
        name = "Assets" if kind.name == "assets" else kind.protocol
        entry = {
            "queue": 'queue = "q"',
            "durable_object": 'class_name = "C"',
            "service": 'service = "s"',
            "rate_limit": 'namespace_id = "1"\nsimple = { limit = 1, period = 10 }',
            "vectorize": 'index_name = "i"',
            "hyperdrive": 'id = "1"',
            "workflow": 'name = "w"\nclass_name = "W"',
            "mtls_certificate": 'certificate_id = "1"',
            "secrets_store": 'store_id = "1"\nsecret_name = "s"',
        }.get(kind.name, "")
        key = f'{kind.key} = "X"\n' if kind.name != "workflow" else 'binding = "X"\n'
        text = written(root, f"{kind.table()}\n{key}{entry}\n")
        module = next(line.split()[1] for line in text.splitlines() if line.startswith("from core") and name in line)
        assert hasattr(import_module(module), name)
        assert f"    X: {name}" in text


def test_variables_get_the_types_of_their_values(root: Path) -> None:
    toml = "[vars]\nA = true\nB = 1.5\nC = ['a']\nD = [1, 2]\nE = [1, 'a']\nF = []\nG = { a = 1 }\n"
    lines = [line.strip() for line in written(root, toml).splitlines() if line.startswith("    ")]
    assert lines == [
        "A: bool",
        "B: float",
        "C: list[str]",
        "D: list[int]",
        "E: list[object]",
        "F: list[object]",
        "G: dict[str, object]",
    ]


def test_what_an_environment_lacks_is_optional_and_stands_last(root: Path) -> None:
    toml = "[vars]\nA = ''\nB = 1\n[env.staging.vars]\nB = 'x'\nC = ''\n"
    lines = [line.strip() for line in written(root, toml).splitlines() if line.startswith("    ")]
    assert lines == ["B: int | str", "A: str | None = None", "C: str | None = None"]


def test_a_configuration_without_bindings_is_a_class_without_attributes(root: Path) -> None:
    assert written(root, "").endswith('class Env(Bindings):\n    """wrangler.toml declares no binding yet."""\n')


HAND_WRITTEN = '''\
"""My own words."""

from __future__ import annotations

import attrs
from core import Bindings, Queue, Secret  # what it needs
from jobs import Job


@attrs.frozen
class Env(Bindings):
    """What the shop is given."""

    # Payloads are versioned.
    JOBS: Queue[Job]  # typed by hand
    ORIGIN: str
    EXTRA: Secret
    tuned: int = 3  # mine

    @property
    def origins(self) -> list[str]:
        return self.ORIGIN.split(",")


def after() -> None: ...
'''


def test_what_people_wrote_stays_and_only_what_is_missing_comes(root: Path) -> None:
    text = updated(root, WRANGLER, HAND_WRITTEN)
    assert text == (
        HAND_WRITTEN.replace(
            "from jobs import Job\n", "from jobs import Job\nfrom core import D1Database, KVNamespace\n"
        ).replace(
            "    EXTRA: Secret\n",
            "    EXTRA: Secret\n    SESSIONS: KVNamespace\n    DB: D1Database\n    LIMIT: int\n    KEY: Secret\n",
        )
    )


def test_an_import_that_is_there_is_extended(root: Path) -> None:
    text = updated(root, WRANGLER, HAND_WRITTEN.replace("  # what it needs", ""))
    assert "from core import Bindings, D1Database, KVNamespace, Queue, Secret\nfrom jobs" in text


def test_the_wrong_kind_is_corrected_in_place_with_its_comment(root: Path) -> None:
    text = updated(
        root,
        WRANGLER,
        NEW.replace("SESSIONS: KVNamespace", "SESSIONS: D1Database  # sessions").replace("LIMIT: int", 'LIMIT: "str"'),
    )
    assert text == NEW.replace("SESSIONS: KVNamespace", "SESSIONS: KVNamespace  # sessions")


def test_a_binding_that_is_gone_goes_and_what_may_be_a_secret_stays(root: Path) -> None:
    toml = "[vars]\nORIGIN = ''\n"
    text = updated(root, toml, NEW)
    assert [line for line in text.splitlines() if line.startswith("    ")] == [
        "    ORIGIN: str",
        "    LIMIT: int",
        "    KEY: Secret",
    ]


def test_the_last_attribute_may_go(root: Path) -> None:
    env = "import attrs\nfrom core import Bindings, KVNamespace\n\n@attrs.frozen\nclass Env(Bindings):\n    A: KVNamespace\n"
    text = updated(root, "", env)
    assert text.endswith('class Env(Bindings):\n    """No binding is declared yet."""\n')


def test_what_an_environment_now_lacks_becomes_optional(root: Path) -> None:
    toml = WRANGLER + '[env.staging.vars]\nORIGIN = "x"\nLIMIT = 2\n[env.staging.secrets]\nrequired = ["KEY"]\n'
    env = NEW.replace("Queue[object]", "Queue[dict[str, int]]")
    text = updated(root, toml, env)
    assert [line.strip() for line in text.splitlines() if line.startswith("    ")] == [
        "ORIGIN: str",
        "LIMIT: int",
        "KEY: Secret",
        "SESSIONS: KVNamespace | None = None",
        "DB: D1Database | None = None",
        "JOBS: Queue[dict[str, int]] | None = None",
    ]
    assert check_program(load_all(root / "wrangler.toml")) == []


REMARKS = '''\
import attrs

from core import Bindings, D1Database, KVNamespace


@attrs.frozen
class Env(Bindings):
    # Who is signed in.
    # Entries live for an hour.
    SESSIONS: KVNamespace  # one for all regions
    """By the id of the session.

        not shared
    """

    # These two are the shop's.
    DB: D1Database
    ORIGIN: str

    # Asked for by the gateway.
    LIMIT: int
    """Requests in a minute."""
'''


def test_new_attributes_without_a_default_stand_above_those_with_one(root: Path) -> None:
    env = "import attrs\nfrom core import Bindings, KVNamespace\n\n@attrs.frozen\nclass Env(Bindings):\n    A: KVNamespace\n"
    toml = (
        '[[kv_namespaces]]\nbinding = "A"\n[[d1_databases]]\nbinding = "DB"\n[[r2_buckets]]\nbinding = "B"\n'
        '[[env.x.kv_namespaces]]\nbinding = "A"\n[[env.x.d1_databases]]\nbinding = "DB"\n'
    )
    text = updated(root, toml, env)
    assert text.endswith("    A: KVNamespace\n    DB: D1Database\n    B: R2Bucket | None = None\n")


@pytest.mark.parametrize(
    ("body", "new"),
    [
        (" ...", "\n    A: KVNamespace\n"),
        ("\n    pass", "\n    A: KVNamespace\n"),
        (" B: str", "\n    B: str\n    A: KVNamespace\n"),
        ('\n    """Mine."""', '\n    """Mine."""\n\n    A: KVNamespace\n'),
        ("\n    def f(self): ...", "\n    A: KVNamespace\n\n    def f(self): ...\n"),
    ],
)
def test_a_class_without_attributes_and_one_of_one_line_get_them(body: str, new: str, root: Path) -> None:
    head = "import attrs\nfrom core import Bindings, KVNamespace\n\n@attrs.frozen\nclass Env(Bindings):"
    variables = '[vars]\nB = ""\n' if "B" in body else ""
    assert updated(root, f'[[kv_namespaces]]\nbinding = "A"\n{variables}', f"{head}{body}\n") == head + new


def test_what_is_said_about_an_attribute_goes_with_it(root: Path) -> None:
    toml = """\
main = "main.py"

[vars]
ORIGIN = "x"

[env.staging]
kv_namespaces = [{ binding = "SESSIONS" }]
d1_databases = [{ binding = "DB" }]
vars = { ORIGIN = "x", LIMIT = 1 }
"""
    text = updated(root, toml, REMARKS)
    assert (
        text[text.index("class Env") :]
        == '''\
class Env(Bindings):

    # These two are the shop's.
    ORIGIN: str

    # Who is signed in.
    # Entries live for an hour.
    SESSIONS: KVNamespace | None = None  # one for all regions
    """By the id of the session.

        not shared
    """
    DB: D1Database | None = None
    # Asked for by the gateway.
    LIMIT: int | None = None
    """Requests in a minute."""
'''
    )


def test_inherited_attributes_are_left_to_their_class(root: Path) -> None:
    env = (
        "import attrs\nfrom core import Bindings, KVNamespace\n\n@attrs.frozen\nclass HasSessions(Bindings):\n"
        "    SESSIONS: KVNamespace\n\n@attrs.frozen\nclass Env(HasSessions):\n    ORIGIN: str\n"
    )
    text = updated(root, "[[kv_namespaces]]\nbinding = 'SESSIONS'\n[vars]\nORIGIN = ''\nLIMIT = 1\n", env)
    assert text == env + "    LIMIT: int\n"
