"""An order whose work can be followed in its trace."""

import attrs

from core import Bindings, D1Database, Request, Response, create_app


@attrs.frozen
class Env(Bindings):
    DB: D1Database


app = create_app(Env)


# --8<-- [start:span]
@app.post("/orders/:id/pay")
async def pay(req: Request[Env], res: Response) -> None:
    with req.ctx.span("charge", currency="EUR") as charging:
        charging.set_attribute("payment.provider", "example")
        await req.env.DB.prepare("UPDATE orders SET paid = 1 WHERE id = ?").bind(req.params["id"]).run()
    res.json({"paid": True})
    # --8<-- [end:span]
