"""Pages of a list: which part a client asks for, within bounds, and the links to the others (RFC 8288).

Two ways: numbered pages, which count rows and may show one twice when another is written meanwhile; and cursors, which
go on behind the last row that was seen, at the same cost however deep. A cursor is not signed: whoever makes one up
gets values of its type, as from a query string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

import attrs
from typing_extensions import TypeForm, TypeVar

from core import http
from core.errors import DeveloperError, ValidationError
from core.request import AnyRequest

if TYPE_CHECKING:
    from core.bindings.d1 import D1Database, D1DatabaseSession, D1PreparedStatement

__all__ = ["Cursor", "Page", "cursor_of", "cursor_text", "page_of", "read_page"]

T = TypeVar("T", default=Any)
R = TypeVar("R")

_MOST_CURSOR = 2048
# A page far out reads all rows before it, on every database.
_DEEPEST = 100_000


@attrs.frozen
class Page:
    """A page of a list: `number` from 1 on, with at most `limit` rows."""

    number: int
    limit: int

    @property
    def offset(self) -> int:
        """The number of rows before it, for OFFSET."""
        return (self.number - 1) * self.limit

    def link(self, req: AnyRequest, *, total: int | None = None, more: bool = False) -> str | None:
        """The value of `Link`: `first`, `prev`, `next` and `last`, or None for the only page.

            res.header("Link", page.link(req, total=count))

        `total`: the rows of all pages; where it is not known, `more` says that there is another page.
        """
        last = None if total is None else max(1, -(-total // self.limit))
        pages: dict[str, int | None] = {
            "first": 1,
            "prev": min(self.number - 1, last or self.number) if self.number > 1 else None,
            "next": self.number + 1 if (more if last is None else self.number < last) else None,
            "last": last,
        }
        if self.number == 1 and pages["next"] is None:
            return None
        return ", ".join(
            f'<{_url(req, page=str(number), limit=str(self.limit))}>; rel="{rel}"'
            for rel, number in pages.items()
            if number is not None
        )


def page_of(req: AnyRequest, /, *, limit: int = 20, most: int = 100) -> Page:
    """The page that the query asks for: `?page=3&limit=50`.

        page = page_of(req)
        rows = await statement.bind(page.limit, page.offset).all(Article)

    `limit`: rows of a page where the query names no other number; `most`: the most that it may name. Raises
    ValidationError for what is not a whole number from 1 to its bound; a page may begin
    at row 100,000 at the most, since those before it are read too. Deeper lists want `cursor_of`.
    """
    rows = _number(req, "limit", limit, most)
    return Page(_number(req, "page", 1, _DEEPEST // rows + 1), rows)


@attrs.frozen
class Cursor(Generic[T]):
    """A part of a list: at most `limit` rows behind the row `after`, from the beginning where that is None."""

    after: T | None
    limit: int

    def cut(self, rows: Sequence[R], key: Callable[[R], T], /) -> tuple[Sequence[R], T | None]:
        """Of `limit + 1` rows that were read, those of this part, and the key of its last one where there are more."""
        if len(rows) <= self.limit:
            return rows, None
        shown = rows[: self.limit]
        return shown, key(shown[-1])

    def link(self, req: AnyRequest, after: T | None, /) -> str | None:
        """The value of `Link` to the part behind `after`: `rel="next"`. None where there is none."""
        if after is None:
            return None
        return f'<{_url(req, cursor=cursor_text(after), limit=str(self.limit))}>; rel="next"'


def cursor_of(req: AnyRequest, type_: TypeForm[T], /, *, limit: int = 20, most: int = 100) -> Cursor[T]:
    """The part that the query asks for: `?cursor=…&limit=50`. `type_` is the key of a row that the list is ordered by.

        @attrs.frozen
        class Seen:
            created_at: str
            id: int

        cursor = cursor_of(req, Seen)
        # WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?, with limit + 1
        rows = await newest(req.env.DB, cursor.after, cursor.limit + 1)
        shown, after = cursor.cut(rows, lambda row: Seen(row.created_at, row.id))
        res.header("Link", cursor.link(req, after)).json(shown)

    Raises ValidationError for a cursor that is none of `type_`, and for a limit as
    `page_of` does.
    """
    text = req.query.get("cursor")
    rows = _number(req, "limit", limit, most)
    return Cursor(None if text is None else _read(text, type_), rows)


async def read_page(
    db: D1Database | D1DatabaseSession, rows: D1PreparedStatement[R], count: D1PreparedStatement[Any], /
) -> tuple[list[R], int]:
    """The rows of one page, and the number of rows of all pages, asked for in one call, so that they agree.

        page = page_of(req)
        rows = req.env.DB.prepare("SELECT id, title FROM articles ORDER BY id LIMIT ? OFFSET ?").as_(Article)
        count = req.env.DB.prepare("SELECT count(*) FROM articles")
        articles, total = await read_page(req.env.DB, rows.bind(page.limit, page.offset), count)
        res.header("Link", page.link(req, total=total)).json(articles)

    `count` is a statement of one row with one whole number. Both are checked as all statements are. Raises
    DeveloperError where `count` gives anything else, and what `batch` raises.
    """
    found, counted = await db.batch((rows, count))
    match counted.results:
        case [{**columns}] if len(columns) == 1 and isinstance(total := next(iter(columns.values())), int):
            return found.results, total
        case _:
            raise DeveloperError(
                "read_page(…) needs a count of one row with one whole number: SELECT count(*) FROM …, without `as_`"
            )


def cursor_text(after: object) -> str:
    """A cursor as a URL has it: JSON in base64url."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(http.json.dumps(after).encode()).decode().rstrip("=")


def _read(text: str, type_: TypeForm[T]) -> T:
    from base64 import urlsafe_b64decode

    from core.validation.structure import structure

    try:
        if len(text) > _MOST_CURSOR:
            raise ValueError("it is too long")
        value = http.json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return structure(value, type_, "client")
    except ValueError:
        raise _invalid("cursor", "is none of this list") from None


def _number(req: AnyRequest, name: str, otherwise: int, most: int) -> int:
    text = req.query.get(name)
    if text is None:
        return otherwise
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    if not 1 <= number <= most:
        raise _invalid(name, f"must be a whole number from 1 to {most}")
    return number


def _invalid(name: str, message: str) -> ValidationError:
    return ValidationError([{"path": name, "message": message}])


def _url(req: AnyRequest, **changes: str) -> str:
    url = http.URL(req.url)
    for name, value in changes.items():
        url.search_params.set(name, value)
    return url.href
