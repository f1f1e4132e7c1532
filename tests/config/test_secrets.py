"""Files of secrets are read as the platform reads them, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bindings.secret import Secret
from core.config.secrets import parse_dotenv, read_local_secrets
from core.errors import ConfigurationError


def values(text: str) -> dict[str, str]:
    entries, problems = parse_dotenv(text, Path(".dev.vars"))
    assert problems == []
    return {entry.name: entry.value.reveal() for entry in entries}


def test_the_dialect_of_dotenv() -> None:
    text = r"""
# a comment
PLAIN=value
  SPACED  =  two words  # a comment
export EXPORTED=yes
DOUBLE="a # b\nc \"quoted\" \t" # after
SINGLE='a "b" \n'
BACK=`it's "both"`
EMPTY=
EMPTY_QUOTES=""
MULTI="first
second"
COLON: value
URL=https://example.com/?a=b=c
LAST=end"""
    assert values(text) == {
        "PLAIN": "value",
        "SPACED": "two words",
        "EXPORTED": "yes",
        "DOUBLE": 'a # b\nc \\"quoted\\" \\t',  # npm's dotenv 16 takes the backslashes for part of the value
        "SINGLE": 'a "b" \\n',
        "BACK": 'it\'s "both"',
        "EMPTY": "",
        "EMPTY_QUOTES": "",
        "MULTI": "first\nsecond",
        "COLON": "value",
        "URL": "https://example.com/?a=b=c",
        "LAST": "end",
    }


def test_lines_are_counted_over_values_of_several_lines() -> None:
    entries, problems = parse_dotenv('A="1\n2\n3"\r\n\r\nB=2\nnonsense\nC=3', Path(".env"))
    assert [(entry.name, entry.line) for entry in entries] == [("A", 1), ("B", 5), ("C", 7)]
    assert problems == [".env:6: this is not KEY=value. Write an equals sign, or # before a comment"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("TOKEN", "this is not KEY=value. Write an equals sign, or # before a comment"),
        ('A="open', 'the text after " does not end, or something follows its end. Close it with "'),
        ("A='a' b", "the text after ' does not end, or something follows its end. Close it with '"),
        ("1A=b", '"1A" is not the name of a secret. Use letters, digits and _, for example JWT_SECRET=…'),
        ("=b", '"" is not the name of a secret. Use letters, digits and _, for example JWT_SECRET=…'),
        ("A B=c", '"A" is not the name of a secret. Use letters, digits and _, for example JWT_SECRET=…'),
    ],
)
def test_what_dotenv_leaves_out_in_silence_is_a_mistake_with_its_line(line: str, told: str) -> None:
    assert parse_dotenv(f"X=1\n{line}\nY=2", Path(".dev.vars"))[1] == [f".dev.vars:2: {told}"]


def test_a_mistake_never_shows_a_value() -> None:
    assert "hunter2" not in "".join(parse_dotenv('A="hunter2\nB hunter2\nhunter2', Path(".env"))[1])


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True), st.text(alphabet="ab #=\"'`\n\\$", max_size=8)
    )
)
def test_values_in_quotes_that_they_do_not_have_come_back(expected: dict[str, str]) -> None:
    lines: list[str] = []
    kept: dict[str, str] = {}
    for name, value in expected.items():
        quote = next((q for q in "'`" if q not in value), None)
        if quote is not None:
            lines.append(f"{name}={quote}{value}{quote}")
            kept[name] = value
    assert values("\n".join(lines)) == kept


@given(st.text(alphabet="AB=\"'`# \n\r\t:\\export", max_size=40))
def test_any_text_is_read_to_its_end_with_lines_in_it(text: str) -> None:
    entries, problems = parse_dotenv(text, Path("f"))
    assert all(1 <= entry.line <= text.count("\n") + 1 for entry in entries)
    assert all(problem.startswith("f:") for problem in problems)


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / f".{name.replace('__', '.')}").write_text(text)


def revealed(directory: Path, environment: str | None = None) -> dict[str, str]:
    return {name: secret.value.reveal() for name, secret in read_local_secrets(directory, environment).items()}


def test_dev_vars_win_over_env_and_are_not_mixed_with_it(tmp_path: Path) -> None:
    write(tmp_path, env="A=env\nB=env", dev__vars="A=dev")
    assert revealed(tmp_path) == {"A": "dev"}


def test_the_file_of_an_environment_stands_alone(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="A=dev\nB=dev", dev__vars__staging="A=staging")
    assert revealed(tmp_path, "staging") == {"A": "staging"}
    assert revealed(tmp_path, "production") == {"A": "dev", "B": "dev"}
    assert revealed(tmp_path) == {"A": "dev", "B": "dev"}


def test_env_files_are_mixed_the_nearer_one_winning(tmp_path: Path) -> None:
    write(
        tmp_path,
        env="A=1\nB=1\nC=1\nD=1",
        env__staging="B=2\nC=2\nD=2",
        env__local="C=3\nD=3",
        env__staging__local="D=4",
    )
    assert revealed(tmp_path, "staging") == {"A": "1", "B": "2", "C": "3", "D": "4"}
    assert revealed(tmp_path) == {"A": "1", "B": "1", "C": "3", "D": "3"}
    assert read_local_secrets(tmp_path, "staging")["D"].file.name == ".env.staging.local"


def test_no_file_is_no_secret(tmp_path: Path) -> None:
    assert read_local_secrets(tmp_path) == {}


def test_an_environment_that_no_file_can_be_named_after_has_no_files(tmp_path: Path) -> None:
    write(tmp_path, env="A=1\n")
    assert revealed(tmp_path, "x" * 300) == {"A": "1"}


def test_values_are_secrets(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="A=hunter2")
    found = read_local_secrets(tmp_path)
    assert found["A"].value == Secret("hunter2")
    assert "hunter2" not in repr(found)


def test_a_file_that_is_not_utf_8_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".dev.vars").write_bytes(b"A=\xff")
    with pytest.raises(ConfigurationError, match=r"^\.dev\.vars: this is not UTF-8\. Save the file as UTF-8$"):
        read_local_secrets(tmp_path)
