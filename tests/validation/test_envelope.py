"""A body in its envelope: `req.json(T, key="order")` reads, and refuses, as a class with that one field does."""

from __future__ import annotations

import json
from typing import Annotated, Any

import attrs
import pytest
from attrs.validators import min_len
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fetch import answer

from core import Request, Response, ValidationError, create_app, http


@attrs.frozen
class Item:
    sku: str = attrs.field(validator=min_len(1))
    quantity: int = 1


@attrs.frozen
class Order:
    items: list[Item]
    note: str | None = None


@attrs.frozen
class Body:
    order: Order


async def read(body: object, type_: Any, **options: Any) -> Any:
    message = http.Request("https://example.test/", method="POST", json=body)
    try:
        return await Request(message, None, None).json(type_, **options)  # type: ignore[arg-type]  # no context is touched
    except ValidationError as error:
        return error.body


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["order", "items", "sku", "quantity", "note", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)
WRONG_ORDERS = st.fixed_dictionaries({"order": st.fixed_dictionaries({"items": st.lists(VALUES, max_size=120)})})


@given(VALUES | WRONG_ORDERS)
async def test_it_reads_and_refuses_what_a_class_of_that_field_does(body: object) -> None:
    whole = await read(body, Body)
    assert await read(body, Order, key="order") == (whole.order if isinstance(whole, Body) else whole)


@pytest.mark.parametrize("body", [{"order": 1}, {"order": "1"}, {"order": [1, "2"]}, {"order": None}, {}])
async def test_every_type_may_be_in_an_envelope(body: object) -> None:
    types: list[Any] = [int, list[int], int | None, Annotated[list[int], "of"], dict[str, int]]
    for type_ in types:
        made: Any = attrs.make_class("Made", {"order": attrs.field(type=type_)})
        whole = await read(body, made)
        assert await read(body, type_, key="order") == (whole.order if isinstance(whole, made) else whole)


async def test_any_name_may_be_a_key_and_other_members_are_ignored() -> None:
    assert await read({"the order-s": 1, "x": 2}, int, key="the order-s") == 1
    assert await read({"order": {"a": 1}}, Any, key="order") == {"a": 1}


async def test_a_client_is_told_the_paths_from_the_key_on() -> None:
    app = create_app()

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        order = await req.json(Order, key="order")
        res.json(len(order.items))

    async def posted(body: object) -> tuple[int, Any]:
        return await answer(app, method="POST", body=json.dumps(body))

    failed = "Validation failed"
    assert await posted({"order": {"items": [{"sku": "a"}]}}) == (200, 1)
    cases: list[tuple[object, dict[str, str]]] = [
        ([], {"path": "", "message": "must be an object"}),
        ({}, {"path": "order", "message": "is required"}),
        ({"order": 1}, {"path": "order", "message": "must be an object"}),
        ({"order": {}}, {"path": "order.items", "message": "is required"}),
        ({"order": {"items": [{"sku": 1}]}}, {"path": "order.items[0].sku", "message": "must be a string"}),
    ]
    for body, issue in cases:
        assert await posted(body) == (422, {"error": failed, "issues": [issue]})
