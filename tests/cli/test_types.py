"""`core types`: where it writes, what `--check` shows, and its exit codes."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.support.command_line import run

from core.env import inject
from core.testing import FakeKVNamespace

WRANGLER = 'main = "src/app.py"\n[[kv_namespaces]]\nbinding = "SESSIONS"\n[vars]\nORIGIN = "x"\n'
ENV = '''\
"""The bindings of this worker: one attribute for each one in wrangler.toml."""

import attrs

from core import Bindings, KVNamespace


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    ORIGIN: str
'''


def project(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "src" / "app.py").write_text("")
    (root / "wrangler.toml").write_text(WRANGLER)
    return root


def written_class(root: Path) -> type[object]:
    """The Env of a project, imported."""
    found = runpy.run_path(str(root / "src" / "env.py"))["Env"]
    assert isinstance(found, type)
    return found


def test_a_new_class_is_written_beside_the_entry_file(tmp_path: Path) -> None:
    project(tmp_path)
    done = run("types", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "src/env.py written.\n")
    assert (tmp_path / "src" / "env.py").read_text() == ENV


def test_check_shows_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "app.py").write_text(
        "from core import create_app\nfrom env import Env\napp = create_app(Env)\n"
    )
    old = ENV.replace("    ORIGIN: str\n", "")
    (tmp_path / "src" / "env.py").write_text(old)
    done = run("types", "--check", folder=tmp_path)
    assert done.returncode == 1
    assert "+    ORIGIN: str\n" in done.stdout
    assert done.stdout.endswith("src/env.py is not up to date. Run `core types`.\n")
    assert (tmp_path / "src" / "env.py").read_text() == old
    assert run("types", folder=tmp_path).returncode == 0
    assert (tmp_path / "src" / "env.py").read_text() == ENV
    done = run("types", "--check", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "src/env.py is up to date.\n")


def test_the_file_and_the_class_can_be_named(tmp_path: Path) -> None:
    project(tmp_path)
    done = run("types", "--output", "lib/bindings.py", "--class", "Given", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "lib/bindings.py written.\n")
    assert "class Given(Bindings):" in (tmp_path / "lib" / "bindings.py").read_text()
    assert run("types", "--check", "--output", "lib/bindings.py", "--class", "Given", folder=tmp_path).returncode == 0


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "env.py").write_text("x = 1\n")
    done = run("types", folder=tmp_path)
    assert done.returncode == 2
    assert "has no class Env over Bindings. Name it with --class, or another file with --output" in done.stderr
    assert (tmp_path / "src" / "env.py").read_text() == "x = 1\n"


def test_several_classes_of_one_name_are_not_guessed_at(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "app.py").write_text("import env\nimport other\n")
    (tmp_path / "src" / "env.py").write_text(ENV)
    (tmp_path / "src" / "other.py").write_text(ENV)
    done = run("types", folder=tmp_path)
    assert done.returncode == 2
    assert "several classes are called Env" in done.stderr
    assert run("types", "--output", "src/other.py", folder=tmp_path).returncode == 0


def test_a_broken_configuration_is_exit_code_2(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "wrangler.toml").write_text("main = 1")
    done = run("types", folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        'error: wrangler.toml:1: main must be a string, not a whole number. Write "1".\n',
    )
    (tmp_path / "wrangler.toml").write_text(WRANGLER)
    assert run("types", "--class", "1x", folder=tmp_path).returncode == 2


def test_marks_at_the_start_and_ends_of_lines_stay_as_they_are(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "app.py").write_text(
        "from core import create_app\nfrom env import Env\napp = create_app(Env)\n"
    )
    old = ENV.replace("    ORIGIN: str\n", "").replace("\n", "\r\n")
    (tmp_path / "src" / "env.py").write_bytes(b"\xef\xbb\xbf" + old.encode())
    done = run("types", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "src/env.py written.\n")
    written = (tmp_path / "src" / "env.py").read_bytes()
    assert written == b"\xef\xbb\xbf" + ENV.replace("\n", "\r\n").encode()
    done = run("types", "--check", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "src/env.py is up to date.\n")


def test_a_file_in_another_encoding_stays_in_it(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "app.py").write_text(
        "from core import create_app\nfrom env import Env\napp = create_app(Env)\n"
    )
    new = "# -*- coding: latin-1 -*-\n# é\n" + ENV
    (tmp_path / "src" / "env.py").write_bytes(new.replace("    ORIGIN: str\n", "").encode("latin-1"))
    assert run("types", folder=tmp_path).returncode == 0
    assert (tmp_path / "src" / "env.py").read_bytes() == new.encode("latin-1")


def test_bindings_that_an_attribute_has_only_under_an_alias_are_written_once(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "src" / "app.py").write_text(
        "from core import create_app\nfrom env import Env\napp = create_app(Env)\n"
    )
    names = ("_ORIGIN", "__Z", "_class", "_self", "_", "_1")
    (tmp_path / "wrangler.toml").write_text(WRANGLER + "".join(f'{name} = "of {name}"\n' for name in names))
    assert run("types", folder=tmp_path).returncode == 0
    written = (tmp_path / "src" / "env.py").read_text()
    assert written.endswith(
        """    ORIGIN: str
    binding_ORIGIN: str = attrs.field(alias="_ORIGIN")
    binding__Z: str = attrs.field(alias="__Z")
    binding_class: str = attrs.field(alias="_class")
    binding_self: str = attrs.field(alias="_self")
    binding_: str = attrs.field(alias="_")
    binding_1: str = attrs.field(alias="_1")
"""
    )
    env = inject(
        written_class(tmp_path),
        {**{name: f"of {name}" for name in names}, "ORIGIN": "x", "SESSIONS": FakeKVNamespace()},
    )
    attributes = [f"binding{name}" for name in names]
    assert [getattr(env, name) for name in attributes] == [f"of {name}" for name in names]
    assert run("check", folder=tmp_path).returncode == 0
    for _ in range(2):
        done = run("types", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "src/env.py is up to date.\n")
    assert (tmp_path / "src" / "env.py").read_text() == written
    (tmp_path / "src" / "env.py").write_text(
        "from attrs import frozen\nfrom core import Bindings\n\n\n@frozen\nclass Env(Bindings):\n    ORIGIN: str\n"
    )
    assert run("types", folder=tmp_path).returncode == 0
    assert "import attrs\n" in (tmp_path / "src" / "env.py").read_text()
    assert run("types", "--check", folder=tmp_path).returncode == 0
    assert run("check", folder=tmp_path).returncode == 0


def test_what_only_this_machine_has_under_a_name_for_no_attribute_is_left_out(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / ".dev.vars").write_text("class=x\nself=x\na-b=x\na.b=x\n")
    (tmp_path / "src" / "app.py").write_text(
        "from core import create_app\nfrom env import Env\napp = create_app(Env)\n"
    )
    assert run("types", folder=tmp_path).returncode == 0
    assert (tmp_path / "src" / "env.py").read_text() == ENV
    assert run("check", folder=tmp_path).returncode == 0
