"""One line per request, with an id that the application's own lines carry too."""

import logging

from core import Request, Response, create_app
from core.middleware.logger import logger
from core.middleware.request_id import RequestIdFilter, request_id

# --8<-- [start:app]
app = create_app()
app.use(request_id())
app.use(logger(format="long", write=logging.getLogger("access")))
# --8<-- [end:app]

# --8<-- [start:filter]
handler = logging.StreamHandler()
handler.addFilter(RequestIdFilter())
handler.setFormatter(logging.Formatter("%(request_id)s %(message)s"))
# --8<-- [end:filter]


@app.get("/")
async def home(req: Request, res: Response) -> None:
    logging.getLogger("mine").info("at home")
    res.json({"id": req.id})
