"""A secret gives its text to `reveal()` and to nothing else."""

from __future__ import annotations

import copy
import json
import pickle

import attrs
import pytest

from core.bindings.secret import Secret

SECRET = Secret("hunter2")


def test_reveal_gives_the_text() -> None:
    assert SECRET.reveal() == "hunter2"


def test_str_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError) as caught:
        str(SECRET)
    assert str(caught.value) == (
        "A Secret has no str(), so that it cannot leak. Write secret.reveal() where the text itself is needed."
    )


def test_an_f_string_and_format_are_refused() -> None:
    with pytest.raises(TypeError, match="A Secret cannot be formatted"):
        f"Bearer {SECRET}"
    with pytest.raises(TypeError, match="A Secret cannot be formatted"):
        format(SECRET, ">10")
    with pytest.raises(TypeError, match="has no str"):
        _ = "%s" % SECRET  # noqa: UP031


def test_repr_shows_no_part_of_the_text_not_even_inside_an_env() -> None:
    @attrs.frozen
    class Env:
        KEY: Secret

    assert repr(SECRET) == "Secret(hidden)"
    assert repr(Secret("")) == "Secret(hidden)"
    assert "hunter2" not in repr(Env(SECRET))


def test_json_pickle_and_vars_have_nothing_of_it() -> None:
    with pytest.raises(TypeError):
        json.dumps({"key": SECRET})
    with pytest.raises(TypeError, match="A Secret cannot be pickled"):
        pickle.dumps(SECRET)
    with pytest.raises(TypeError):
        vars(SECRET)


def test_a_copy_is_the_same_secret() -> None:
    assert copy.copy(SECRET) is SECRET
    assert copy.deepcopy({"a": SECRET})["a"] is SECRET


def test_secrets_are_equal_by_their_text_and_hash_alike() -> None:
    assert Secret("hunter2") == SECRET
    assert Secret("hunter3") != SECRET
    assert Secret("grün") == Secret("grün")
    assert hash(SECRET) == hash(Secret("hunter2"))
    assert hash(SECRET) != hash("hunter2")


def test_a_secret_is_never_equal_to_its_text() -> None:
    text: object = "hunter2"
    assert text != SECRET


def test_an_empty_secret_is_false() -> None:
    assert SECRET
    assert not Secret("")


def test_a_secret_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        setattr(SECRET, "other", 1)  # noqa: B010  # a type checker would refuse the statement
    with pytest.raises(AttributeError):
        del SECRET.reveal
    assert SECRET.reveal() == "hunter2"


def test_only_a_string_can_be_a_secret() -> None:
    with pytest.raises(TypeError, match=r"^Secret\(\) takes a str, not bytes$"):
        Secret(b"x")  # type: ignore[arg-type]  # the promise is that it is refused
