"""A change of what is given: a name that is left out stays, and null empties the note."""

import attrs
from attrs.validators import max_len, min_len

from core import UNSET, Request, Response, Unset, create_app, given

app = create_app()


# --8<-- [start:class]
@attrs.frozen
class Change:
    title: str | Unset = attrs.field(default=UNSET, validator=given(min_len(1), max_len(80)))
    note: str | Unset | None = UNSET


# --8<-- [end:class]


@app.patch("/items/:id")
async def change_item(req: Request, res: Response) -> None:
    change = await req.json(Change)
    title = "as it was" if change.title is UNSET else change.title
    res.json({"title": title, "given": change})
