"""Secrets from the environment and from files: each place, each mistake in a line, and no value in any of them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import PATIENCE, Command, Recorded, ask

from core.errors import DeveloperError
from core.runtime.secrets import read_secrets

VALUE = "correct horse battery"


def write(path: Path, data: bytes = VALUE.encode() + b"\n", mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_a_secret_comes_from_the_environment_or_a_file_of_either_kind(tmp_path: Path) -> None:
    named = write(tmp_path / "anything")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    write(credentials / "KEY", b"two lines\nof it\r\n")
    given = tmp_path / "given"
    given.mkdir()
    write(given / "KEY", b"ours")
    environment = {"DIRECT": " as it is\n", "TOKEN_FILE": str(named), "CREDENTIALS_DIRECTORY": str(credentials)}
    asked = ["DIRECT", "TOKEN", "KEY"]
    assert read_secrets(asked, environment, optional=["ABSENT"]) == {
        "DIRECT": " as it is\n",
        "TOKEN": VALUE,
        "KEY": "two lines\nof it",
    }
    assert read_secrets(["KEY"], environment, str(given)) == {"KEY": "ours"}
    # The same in two places is what it was.
    assert read_secrets(["TOKEN"], {**environment, "TOKEN": VALUE}) == {"TOKEN": VALUE}


def test_an_empty_value_is_refused_wherever_it_is() -> None:
    with pytest.raises(DeveloperError, match=r"TOKEN is empty in the environment\. Set it to the"):
        read_secrets(["TOKEN"], {"TOKEN": ""})
    with pytest.raises(DeveloperError, match="OLD is empty in the environment"):
        read_secrets([], {"OLD": ""}, optional=["OLD"])


def wrong(make: Callable[[Path], object], said: str) -> object:
    return pytest.param(make, said, id=said)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        wrong(lambda path: None, "cannot be read: No such file or directory. Let the user"),
        wrong(lambda path: path.mkdir(), "is not a file. Name one that has"),
        wrong(lambda path: write(path, b"\n"), "is empty. Write the secret's value into it"),
        wrong(lambda path: write(path, b"\xff\xfe" + VALUE.encode()), "is not UTF-8. Encode a secret that is bytes"),
        wrong(lambda path: write(path, VALUE.encode() + b"\0"), "has a zero byte. Write"),
        wrong(lambda path: write(path, VALUE.encode() * 10_000), "is longer than 100,000 bytes. A secret is one key"),
        wrong(lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_a_line_without_its_value(
    make: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "TOKEN"
    make(path)
    with pytest.raises(DeveloperError) as caught:
        read_secrets(["TOKEN"], {"TOKEN_FILE": str(path)})
    assert f"TOKEN: {path} {said}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert VALUE not in str(caught.value)


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    other = write(tmp_path / "TOKEN")
    environment = {"TOKEN": "another value", "KEY_FILE": str(tmp_path / "none")}
    with pytest.raises(DeveloperError) as caught:
        read_secrets(["TOKEN", "KEY", "SALT", "PEPPER"], environment, str(tmp_path))
    different, unread, missing = str(caught.value).splitlines()
    assert different == f"TOKEN is another in the environment than in {other}. Leave all but one out"
    assert unread.startswith(f"KEY: {tmp_path}/none cannot be read")
    assert missing.startswith("the environment lacks SALT, PEPPER, which")
    assert missing.endswith("have a file for each: SALT_FILE=PATH, or SALT in --secrets-dir")
    with pytest.raises(DeveloperError, match=r"--secrets-dir .*none is not a folder"):
        read_secrets([], {}, str(tmp_path / "none"))


def test_a_file_that_everybody_may_read_is_used_with_a_warning(tmp_path: Path) -> None:
    said: list[str] = []
    path = write(tmp_path / "TOKEN", mode=0o644)
    assert read_secrets(["TOKEN"], {}, str(tmp_path), warn=said.append) == {"TOKEN": VALUE}
    assert said == [f"TOKEN: every user of this machine may read {path}, or change it. Leave that to one (chmod 400)"]
    said.clear()
    path.chmod(0o440)
    read_secrets(["TOKEN"], {}, str(tmp_path), warn=said.append)
    assert said == []


MAIN = """
import attrs
from core import Bindings, Request, Response, Secret, create_app

@attrs.frozen
class Env(Bindings):
    TOKEN: Secret

app = create_app(Env)

@app.get("/")
async def length(req: Request[Env], res: Response) -> None:
    res.json(len(req.env.TOKEN.reveal()))
"""


ROTATING = """
import attrs
from core import Bindings, Request, Response, Secret, create_app

@attrs.frozen
class Env(Bindings):
    JWT_SECRET: Secret
    GREETING: str
    OLD_JWT_SECRET: Secret | None = None
    NOTE: str | None = None

app = create_app(Env)

@app.get("/")
async def lengths(req: Request[Env], res: Response) -> None:
    env = req.env
    old = None if env.OLD_JWT_SECRET is None else len(env.OLD_JWT_SECRET.reveal())
    res.json([len(env.JWT_SECRET.reveal()), old, env.NOTE, env.GREETING])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
@pytest.mark.parametrize("place", ["python", pytest.param("workerd", marks=pytest.mark.runtime)])
def test_the_fields_of_env_say_which_secrets_are_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "main.py").write_text(ROTATING)
    (tmp_path / "wrangler.toml").write_text(
        'name = "one"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n[vars]\nGREETING = "hello"\n'
    )
    # This machine's own, which is nothing of where a bundle runs.
    (tmp_path / ".dev.vars").write_text("GREETING=local\nUNKNOWN=1\n")
    options = ["--port", "0", "--health", "127.0.0.1:0"]
    if place == "workerd":
        built = Recorded("build", folder=tmp_path)
        assert built.process.wait(PATIENCE) == 0, built.lines
        built.close()
        start = ["serve", *options]
    else:
        start = ["serve", "--python", "--workers", "1", *options]
    given: dict[str, str | None] = {"JWT_SECRET": "new", "OLD_JWT_SECRET": None, "NOTE": None, "GREETING": "no"}

    def serve(**more: str | None) -> Command:
        return Command(*start, folder=tmp_path, env={**given, **more})

    for more, answer in (
        ({"OLD_JWT_SECRET": "older", "NOTE": "noted"}, [3, 5, "noted", "hello"]),
        ({}, [3, None, None, "hello"]),
    ):
        served = serve(**more)
        try:
            port, _ = served.ports()
            assert ask(port).json() == answer
        finally:
            served.finish()
    for wrong, said in (
        ({"JWT_SECRET": None}, "the environment lacks JWT_SECRET"),
        ({"JWT_SECRET": ""}, "JWT_SECRET is empty in the environment"),
        ({"OLD_JWT_SECRET": ""}, "OLD_JWT_SECRET is empty in the environment"),
    ):
        served = serve(**wrong)
        assert served.finish(by_itself=True) == 1
        assert said in "\n".join(served.lines)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
def test_a_file_is_read_again_when_the_processes_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "wrangler.toml").write_text(
        'name = "one"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n[secrets]\nrequired = ["TOKEN"]\n'
    )
    folder = tmp_path / "secrets"
    folder.mkdir()
    file = write(folder / "TOKEN")
    options = ["--port", "0", "--health", "127.0.0.1:0", "--workers", "1", "--secrets-dir", str(folder)]
    served = Command("serve", "--python", *options, folder=tmp_path, env={"TOKEN": None})
    try:
        port, _ = served.ports()
        assert ask(port).json() == len(VALUE)
        write(file, b"the next\n")
        served.process.send_signal(signal.SIGHUP)
        served.until("^replaced the processes")
        assert ask(port).json() == len("the next")
        write(file, b"")
        served.process.send_signal(signal.SIGHUP)
        served.until(f"the new version does not serve; the old one goes on: TOKEN: {file} is empty")
        assert ask(port).json() == len("the next")
        assert not [line for line in served.lines if VALUE in line or "the next" in line]
    finally:
        served.finish()
