"""Our own values travel beside those of the application, in queues and calls, and are never mistaken for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.workerd.queue import _taken_apart, _with_parent
from core.backends.workerd.rpc import KEYWORDS, _by_position
from core.backends.workerd.spans import PARENT
from core.errors import BindingTypeError

SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([PARENT, KEYWORDS, "body", "a"]), inner),
    max_leaves=8,
)


class Counter:
    async def add(self, key: str, amount: int = 1, **more: int) -> None: ...


@given(VALUES, st.sampled_from(["", SPAN]))
def test_a_body_arrives_as_it_was_sent_whatever_its_keys_are(body: Any, parent: str) -> None:
    assert _taken_apart(_with_parent(body, parent)) == (body, parent)


def test_a_body_is_sent_as_it_is_where_nothing_is_traced() -> None:
    assert _with_parent({"id": 1}, "") == {"id": 1}


@given(st.lists(VALUES, max_size=3))
def test_the_last_argument_of_the_application_is_never_taken_for_keywords(args: list[Any]) -> None:
    sent = _by_position(None, "add", tuple(args), {})
    ours = isinstance(sent[-1], dict) and KEYWORDS in sent[-1] if sent else False
    assert (sent[:-1] if ours else sent) == args
    assert not ours or sent[-1] == {KEYWORDS: {}, PARENT: ""}


def test_keywords_are_put_in_their_places_and_others_into_one_object() -> None:
    assert _by_position(Counter, "add", ("k",), {"amount": 2}) == ["k", 2]
    assert _by_position(Counter, "add", ("k", 2), {"b": 3}) == ["k", 2, {KEYWORDS: {"b": 3}, PARENT: ""}]
    assert _by_position(None, "add", ("k",), {"amount": 2}) == ["k", {KEYWORDS: {"amount": 2}, PARENT: ""}]
    with pytest.raises(BindingTypeError, match=r"Counter\.add\(\): missing a required argument: 'key'"):
        _by_position(Counter, "add", (), {"amount": 2})
