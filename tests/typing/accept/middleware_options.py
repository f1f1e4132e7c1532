"""Options of the middleware: functions of the request are inferred, and Protocol environments fit."""

from typing import Any, Protocol

import attrs

from core import Bindings, KVNamespace, Request, Response, create_app
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    ALLOWED_ORIGINS: str


class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...


app = create_app(Env)
by_name = rate_limit(kv_binding="SESSIONS", limit=1, window=60)
app.use(by_name)
app.use(rate_limit(kv_binding="SESSIONS", limit=1, window=60))
app.use(rate_limit(kv_binding=lambda req: req.env.SESSIONS, limit=1, window=60))
app.use("/x", rate_limit(kv_binding=lambda req: req.env.SESSIONS, limit=1, window=60, key_fn=lambda req: req.ip))
app.use(cors(origins=lambda req: req.env.ALLOWED_ORIGINS.split(",")))
app.use(cors(origins=lambda origin, req: origin in req.env.ALLOWED_ORIGINS))
app.use(cors(origins=["a"]))
app.use(cors(origins="*"))


def kv(req: Request[HasSessions, Any, Any]) -> KVNamespace:
    return req.env.SESSIONS


def kv2(req: Request[HasSessions]) -> KVNamespace:
    return req.env.SESSIONS


by_protocol = rate_limit(kv_binding=kv, limit=1, window=60)
app.use(by_protocol)
app.use(rate_limit(kv_binding=kv2, limit=1, window=60))
app.use(request_id(), request_id(generator=lambda: "a"), request_id(generator=lambda req: req.method))
plain = request_id()
app.use(plain)
app.use(logger(), timeout(duration=3), secure_hdrs(x_frame_options=False))


async def rate(req: Request[Env]) -> str | None:
    return req.ip


@app.get("/", rate_limit(kv_binding="SESSIONS", limit=1, window=60, key_fn=rate))
async def x(req: Request[Env], res: Response) -> None: ...
