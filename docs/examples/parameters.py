"""Parameters of a path as types, and the path of a handler."""

from datetime import date

import attrs

from core import Request, Response, create_app

app = create_app()


# --8<-- [start:parse]
@attrs.frozen
class Day:
    author: int = attrs.field(validator=attrs.validators.ge(1))
    day: date | None = None


@app.get("/authors/:author{[0-9]+}/:day?")
async def posts(req: Request, res: Response) -> None:
    asked = req.params.parse(Day)
    res.json({"author": asked.author, "day": asked.day, "all": req.url_for(posts, author=asked.author)})


# --8<-- [end:parse]
