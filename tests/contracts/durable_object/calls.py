"""The promises of a Durable Object's ids and calls: who they reach, in which order, and the writes that an answer waits
for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.contracts.contract import refused
from tests.contracts.durable_object.subject import OutOfStock, Point, Subject, Subjects, case, contract

from core.errors import CoreError, DurableObjectError, DurableObjectTypeError
from core.explain.diagnosis import words_of
from core.http import Request

# ---------------------------------------------------------------------- ids


@contract.case()
async def a_name_has_one_id(subjects: Subjects) -> None:
    first, again, other = (subjects.id_from_name(name) for name in ("a", "a", "b"))
    assert str(first) == str(again)
    assert first == again
    assert first.equals(again)
    assert not first.equals(other)
    assert first.name == "a"
    assert len(str(first)) == 64
    assert int(str(first), 16) >= 0


@contract.case()
async def an_id_comes_back_from_its_text(subjects: Subjects) -> None:
    for made in (subjects.id_from_name("a"), subjects.new_unique_id()):
        back = subjects.id_from_string(str(made))
        assert str(back) == str(made)
        assert back.equals(made)
    assert str(subjects.new_unique_id()) != str(subjects.new_unique_id())


def raised(call: Callable[[], object]) -> BaseException | None:
    """Return the exception that a call raises."""
    try:
        call()
    except Exception as error:
        return error
    return None


@contract.case()
async def what_is_no_id_is_refused(subjects: Subjects) -> None:
    for text in ("", "abc", "z" * 64, "0" * 63):
        error = raised(lambda text=text: subjects.id_from_string(text))  # type: ignore[misc]  # the value of this round
        assert isinstance(error, TypeError)
        assert str(error) == "Invalid Durable Object ID: must be 64 hex digits"
    error = raised(lambda: subjects.id_from_string("0" * 64))
    assert isinstance(error, TypeError)
    assert str(error) == "Durable Object ID is not valid for this namespace."


@contract.case(paired=True)
async def an_id_of_another_namespace_is_refused(subjects: Subjects, other: Subjects) -> None:
    foreign = other.id_from_name("a")
    assert isinstance(raised(lambda: subjects.get(foreign)), TypeError)
    assert isinstance(raised(lambda: subjects.id_from_string(str(foreign))), TypeError)


@contract.case()
async def a_stub_knows_its_id_and_name(subjects: Subjects) -> None:
    stub = subjects.get_by_name("one")
    assert stub.name == "one"
    assert str(stub.id) == str(subjects.id_from_name("one"))
    unnamed = subjects.get(subjects.id_from_string(str(stub.id)))
    assert str(unnamed.id) == str(stub.id)


# ---------------------------------------------------------------------- calls


@contract.case()
async def all_stubs_of_an_id_reach_one_object(subjects: Subjects) -> None:
    await subjects.get_by_name("one").increment()
    await subjects.get(subjects.id_from_name("one")).increment(by=5)
    assert await subjects.get(subjects.id_from_string(str(subjects.id_from_name("one")))).increment() == 7
    assert await subjects.get_by_name("two").increment() == 1


@case()
async def nothing_comes_between_two_calls_of_storage(one: Subject) -> None:
    counts = await asyncio.gather(*(one.increment() for _ in range(25)))
    assert sorted(counts) == [*range(1, 26)]


@case()
async def a_critical_section_is_alone(one: Subject) -> None:
    assert max(await asyncio.gather(*(one.alone() for _ in range(5)))) == 1


@contract.case()
async def calls_wait_for_what_the_constructor_began(subjects: Subjects) -> None:
    fresh = subjects.get(subjects.new_unique_id())
    assert await fresh.get_loaded() == "nothing"


@case()
async def arguments_and_results_keep_their_types(one: Subject) -> None:
    assert await one.move(Point(1, ("a",)), by=2) == Point(3, ("a", "moved"))


@contract.case()
async def arguments_are_copies(subjects: Subjects) -> None:
    values = [1, 2]
    assert await subjects.get_by_name("one").keep(values) == 3
    assert values == [1, 2]


@case()
async def what_a_method_raises_reaches_the_caller_and_its_writes_stay(one: Subject) -> None:
    error = await refused(one.put_and_fail("k", "v"), LookupError)
    assert "after the put" in str(error)
    assert await one.get("k") == "v"


@case()
async def what_a_method_raises_keeps_its_class_and_attributes(one: Subject) -> None:
    answer = await refused(one.refuse(client=True), CoreError, "taken")
    assert (answer.status, answer.headers, answer.metadata) == (409, {"Retry-After": "1"}, {"by": ["me"]})
    error = await refused(one.refuse(client=False), OutOfStock, "2 of tea")
    assert (error.item, error.left) == ("tea", 2)
    unsaid = await refused(one.raise_key_error(), KeyError)
    assert unsaid.args == ("k",)


@contract.case()
async def only_public_async_methods_can_be_called(subjects: Subjects) -> None:
    one: Any = subjects.get_by_name("one")
    for name in ("nope", "local", "_private", "ctx", "env", "alarm"):
        assert isinstance(raised(lambda name=name: getattr(one, name)), AttributeError), name  # type: ignore[misc]  # as above


@contract.case()
async def what_cannot_be_copied_cannot_be_passed(subjects: Subjects) -> None:
    one: Any = subjects.get_by_name("one")
    await refused(one.keep([print]), DurableObjectTypeError)
    await refused(one.put("k", print), DurableObjectTypeError)


@contract.case()
async def fetch_hands_over_a_request(subjects: Subjects) -> None:
    request = Request("https://object.test/a?b=c", method="POST", body="hello")
    response = await subjects.get_by_name("one").fetch(request)
    assert response.status == 201
    assert await response.text() == "POST https://object.test/a?b=c hello"


@case()
async def an_aborted_object_starts_anew_from_what_was_kept(one: Subject) -> None:
    await one.put("loaded", "kept")
    assert await one.get_loaded() == "nothing"
    error = await refused(one.abort(), DurableObjectError)
    assert "because" in str(error)
    assert await one.get_loaded() == "kept"


@case()
async def what_aborted_objects_leave_can_be_collected(one: Subject) -> None:
    await refused(one.abort(), DurableObjectError)
    assert await one.collect() >= 0


@case()
async def an_error_without_a_text_reaches_the_caller(one: Subject) -> None:
    error = await refused(one.fail_without_words(), Exception)
    assert "Traceback" not in words_of(error)


@case()
async def an_abort_cannot_be_caught(one: Subject) -> None:
    error = await refused(one.abort_and_go_on(), DurableObjectError)
    assert "because" in str(error)
    assert await one.get("after") is None


@case()
async def a_critical_section_that_fails_resets_the_object(one: Subject) -> None:
    await one.alone()
    for call in (one.fail_in_section("k", caught=False), one.fail_in_section("k", caught=True)):
        error = await refused(call, DurableObjectError)
        assert str(error) == "in the section", error
        # Its writes are undone, and its memory is gone.
        assert await one.get("k") is None
        assert await one.get_most_running() == 0


@contract.case()
async def what_keeps_an_object_from_being_made_reaches_the_caller(subjects: Subjects) -> None:
    for place in ("constructor", "section"):
        one = subjects.get(subjects.new_unique_id())
        await one.put("fails", place)
        await refused(one.abort(), DurableObjectError)
        for _ in range(2):
            error = await refused(one.get_loaded(), DurableObjectError)
            assert str(error) == f"in the {place}", error


# ---------------------------------------------------------------------- the output gate


CHILDREN = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY);"
    "CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
)


@case()
async def an_answer_waits_for_its_writes(one: Subject) -> None:
    await one.sql(CHILDREN)
    for pause in (False, True):
        assert await one.alone() == 1
        error = await refused(one.violate("k", pause=pause), DurableObjectError)
        assert str(error) == (
            "Durable Object was reset and rolled back to its last known good state because the application left the "
            "database in a state where constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT "
            "(extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
        )
        # The next call works, and finds the values kept before.
        assert await one.get("k") is None
        assert await one.get_most_running() == 0
        assert await one.sql("SELECT * FROM child") == []
    await one.put("k", 2)
    assert await one.get("k") == 2


@case()
async def a_transaction_that_cannot_be_kept_fails_its_call(one: Subject) -> None:
    await one.sql(CHILDREN)
    await refused(one.violate_in_transaction("k"), DurableObjectError)
    assert await one.get("k") is None
    assert await one.sql("SELECT * FROM child") == []
    assert await one.transact("well") == "well"
