"""What an engineer says of a function for the API's description, where the code alone does not say it.

The tools read it (`core openapi`); a request never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict, TypeVar, Unpack

    from typing_extensions import TypeForm

    F = TypeVar("F", bound=Callable[..., Any])

    class _Said(TypedDict, total=False):
        deprecated: bool
        hidden: bool
        answers: Mapping[int, TypeForm[Any] | None] | None
        operation_id: str | None
        tags: Sequence[str] | None
        holds: Mapping[str, Any] | None


__all__ = ["Description", "describe", "description_of"]


class Description(NamedTuple):
    """What was said of one function. See `describe`."""

    deprecated: bool
    hidden: bool
    answers: Mapping[int, Any] | None
    operation_id: str | None
    tags: Sequence[str] | None
    holds: Mapping[str, Any] | None


if TYPE_CHECKING:

    @overload
    def describe(function: F, /, **said: Unpack[_Said]) -> F: ...
    @overload
    def describe(**said: Unpack[_Said]) -> Callable[[F], F]: ...


def describe(
    function: object = None,
    /,
    *,
    deprecated: bool = False,
    hidden: bool = False,
    answers: Mapping[int, TypeForm[Any] | None] | None = None,
    operation_id: str | None = None,
    tags: Sequence[str] | None = None,
    holds: Mapping[str, object] | None = None,
) -> object:
    """Say what the API's description cannot read in the code of a handler, and return the handler.

        app.get("/report", describe(report, answers={200: Report, 202: None}))

        @app.get("/old")
        @describe(deprecated=True)
        async def old(req: Request, res: Response) -> None: ...

    `answers` are the answers beside those that are found, or in their place where the status is the same: the type of
    the JSON body, None for an answer without one. With them, a handler whose code cannot be followed is no finding:
    tests hold its answers against them (`Client(…, contract=…)`). `deprecated` marks the operation, `hidden` leaves it
    out of the document; `operation_id` and `tags` name it.

    `holds` is for a validator of a field: what its values hold to, in the words of JSON Schema, as
    `{"multipleOf": 5}`. Raises TypeError for a function that takes no attributes, such as a bound method: describe the
    function in the class; and for `tags` that are a string.
    """
    if isinstance(tags, str):
        raise TypeError(f"describe(tags={tags!r}) takes a list. Write tags=[{tags!r}]")
    said = Description(deprecated, hidden, answers, operation_id, tags, holds)
    return partial(_keep, said) if function is None else _keep(said, function)


def _keep(said: Description, function: Any) -> object:
    try:
        function.__core_description__ = said
    except AttributeError:
        raise TypeError(
            f"describe({function!r}) cannot be kept on it. Describe the function that it was made of"
        ) from None
    return function


def description_of(function: object) -> Description | None:
    """What `describe` was told of a function, if it was told anything."""
    found = getattr(function, "__core_description__", None)
    return found if isinstance(found, Description) else None
