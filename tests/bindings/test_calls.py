"""The one place that every call of a binding passes: hooks see it, in order, and may answer or fail it."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import pytest

from core.bindings import binding_call
from core.bindings.calls import BindingCall, CallHook, Hookable, Proceed, add_hook
from core.context import system_clock
from core.testing import FakeD1Database, FakeDurableObjectNamespace, FakeKVNamespace, FakeR2Bucket
from core.testing.calls import Call


class Shelf(Protocol):
    """A binding with every kind of parameter."""

    @binding_call
    async def take(self, key: str, kind: str = "text", *, limit: int | None = 10, after: str | None = None) -> str:
        """Take."""
        raise AssertionError

    @binding_call
    async def fail(self) -> None:
        """Fail."""
        raise AssertionError


class WoodenShelf(Hookable, Shelf):
    """The engine of a shelf."""

    async def _take(self, key: str, kind: str = "text", *, limit: int | None = 10, after: str | None = None) -> str:
        return f"{key} {kind} {limit} {after}"

    async def _fail(self) -> None:
        raise ValueError("no")


def seeing(seen: list[BindingCall]) -> CallHook:
    async def hook(call: BindingCall, proceed: Proceed, /) -> Any:
        seen.append(call)
        return await proceed()

    return hook


async def test_without_a_hook_the_method_runs_at_once() -> None:
    shelf = WoodenShelf()
    assert await shelf.take("a", after="b") == "a text 10 b"
    assert inspect.signature(shelf.take) == inspect.signature(WoodenShelf()._take)
    assert inspect.getdoc(shelf.take) == "Take."


@pytest.mark.parametrize(
    ("args", "options", "canonical"),
    [
        (("a",), {}, (("a", "text"), {"limit": 10})),
        ((), {"key": "a", "kind": "json"}, (("a", "json"), {"limit": 10})),
        (("a",), {"kind": "json", "limit": None, "after": "b"}, (("a", "json"), {"after": "b"})),
        (("a", "json"), {"after": "b", "limit": 2}, (("a", "json"), {"limit": 2, "after": "b"})),
    ],
)
async def test_a_hook_sees_the_call_as_written_and_in_one_form(
    args: tuple[Any, ...], options: dict[str, Any], canonical: object
) -> None:
    shelf = WoodenShelf()
    seen: list[BindingCall] = []
    add_hook(shelf, seeing(seen), name="SHELF", kind="shelf")
    assert await shelf.take(*args, **options) == await WoodenShelf().take(*args, **options)

    (call,) = seen
    assert (call.binding, call.kind, call.method, call.target) == ("SHELF", "shelf", "take", ())
    assert (call.args, call.options) == (args, options)
    assert call.canonical() == canonical


async def test_a_wrong_call_raises_what_it_raises_without_a_hook() -> None:
    shelf: Any = WoodenShelf()
    with pytest.raises(TypeError) as without:
        await shelf.take()
    seen: list[BindingCall] = []
    add_hook(shelf, seeing(seen), name="SHELF", kind="shelf")
    with pytest.raises(TypeError) as hooked:
        await shelf.take()
    assert str(hooked.value) == str(without.value)
    assert str(hooked.value).startswith("WoodenShelf.take() missing")
    assert seen[0].canonical() == (("text",), {"limit": 10})


async def test_a_later_hook_is_around_the_earlier_ones_each_with_its_own_name() -> None:
    shelf = WoodenShelf()
    order: list[str] = []

    def noting(own: str) -> CallHook:
        async def hook(call: BindingCall, proceed: Proceed, /) -> Any:
            order.append(f"{own} sees {call.binding}")
            try:
                return await proceed()
            finally:
                order.append(f"{own} done")

        return hook

    add_hook(shelf, noting("inner"), name="A", kind="shelf")
    add_hook(shelf, noting("outer"), name="B", kind="shelf")
    with pytest.raises(ValueError, match="no"):
        await shelf.fail()
    assert order == ["outer sees B", "inner sees A", "inner done", "outer done"]


async def test_a_hook_may_answer_in_place_of_the_binding() -> None:
    async def answer(call: BindingCall, proceed: Proceed, /) -> Any:
        return "kept"

    kv = FakeKVNamespace({"a": "1"})
    add_hook(kv, answer, name="KV", kind="kv")
    assert await kv.get("a") == "kept"
    assert kv.calls == []


async def test_what_a_binding_gives_has_its_hook_and_says_what_was_called() -> None:
    seen: list[BindingCall] = []
    db, files = FakeD1Database(), FakeR2Bucket()
    add_hook(db, seeing(seen), name="DB", kind="d1")
    add_hook(files, seeing(seen), name="FILES", kind="r2")
    statement = db.prepare("SELECT ? AS a").bind("x")
    await statement.first("a")
    await db.with_session().prepare("SELECT 1").all()
    await db.batch([statement])
    upload = await files.create_multipart_upload("k")
    await upload.abort()

    assert [(call.binding, call.method, call.target, call.args[:1]) for call in seen] == [
        ("DB", "first", ("SELECT ? AS a", "x"), ("a",)),
        ("DB", "all", ("SELECT 1",), ()),
        ("DB", "batch", (), ([statement],)),
        ("FILES", "create_multipart_upload", (), ("k",)),
        ("FILES", "abort", ("k", upload.upload_id), ()),
    ]
    assert [(s.sql, s.values) for s in seen[2].args[0]] == [("SELECT ? AS a", ("x",))]


async def test_a_stub_says_which_object_was_called() -> None:
    from core import DurableObject

    class Counter(DurableObject[Any]):
        async def add(self, by: int) -> int:
            return by

    seen: list[BindingCall] = []
    counters = FakeDurableObjectNamespace(Counter, clock=system_clock)
    add_hook(counters, seeing(seen), name="COUNTERS", kind="durable_object")
    assert await counters.get_by_name("a").add(by=2) == 2
    (call,) = seen
    assert (call.method, call.target, call.args, call.options) == ("add", ("a",), (), {"by": 2})
    assert counters.calls == [Call("add", ("a",), {"by": 2})]
    await counters.close()


def test_what_has_no_calls_is_left_as_it_is() -> None:
    add_hook("a variable", seeing([]), name="VAR", kind="var")


async def test_an_option_that_no_call_has_is_refused_though_the_engine_does_not_name_its_options() -> None:
    bucket: Any = FakeR2Bucket()
    with pytest.raises(TypeError, match=r"R2Bucket\.list\(\) got an unexpected keyword argument 'prefx'"):
        await bucket.list(prefx="a")
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'value'"):
        await bucket.put("a", md5="b" * 32)
