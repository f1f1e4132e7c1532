"""The explorer's page and its API: an application of this framework, in front of the developer's own.

Every answer of `/_core/api/` is for the page alone: Host, Origin and token are checked before anything else. The page
and its files need no token on a loopback address, and carry the token to the page there; where other machines could
reach the host, the page itself asks for it.
"""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Any, Final

import attrs

from core.app import App
from core.assembly.project import Loaded, consumers_of
from core.dev.background import Background
from core.dev.exchange import for_explorer
from core.dev.explorer.api import ApiPages
from core.dev.explorer.durable import ObjectPages
from core.dev.explorer.kv import KVPages
from core.dev.explorer.metrics import MetricsPages
from core.dev.explorer.places import Places
from core.dev.explorer.queues import QueuePages
from core.dev.explorer.r2 import R2Pages
from core.dev.explorer.requests import RequestPages
from core.dev.explorer.sql import SQLPages
from core.dev.guard import Guard
from core.dev.options import Options
from core.dev.record import Recorder
from core.dev.screen import findings_of
from core.errors import BindingError, CoreError
from core.explain.failure import failure_of
from core.hosts.asgi import AsgiApplication, asgi
from core.program.extensions import unchecked_in
from core.request import AnyRequest
from core.response import Response
from core.router import Router
from core.types import Next

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2"}
_PAGE: Final = resources.files("core.dev.explorer") / "page"


@attrs.frozen
class Trigger:
    """A trigger to run now."""

    cron: str


class Explorer:
    """The explorer of one serving process. `loaded` is None while the application cannot be loaded."""

    def __init__(
        self,
        options: Options,
        guard: Guard,
        recorder: Recorder,
        loaded: Loaded | None,
        failed: BaseException | None,
        background: Background | None,
    ) -> None:
        self._options = options
        self._guard = guard
        self._loaded = loaded
        self._failed = failed
        self._background = background
        self._places = Places(loaded, options, recorder)
        self.requests: RequestPages = RequestPages(self._places)
        app: App[Any] = App()
        app.use(self._only_from_here)
        app.get("/_core", self._page)
        for file in _PAGE.iterdir():
            if file.name.endswith(tuple(_TYPES)):
                app.get(f"/_core/{file.name}", self._file)
        api: Router[Any, Any] = Router()
        app.use("/_core/api", api)
        self._routes(api)
        app.on_error(self._failed_call)
        self.asgi: AsgiApplication = asgi(app)
        """The ASGI application."""

    def _routes(self, api: Router[Any, Any]) -> None:
        api.use(self._only_with_token)
        api.get("/overview", self._overview)
        self.requests.add_to(api)
        for panel in (ApiPages, KVPages, SQLPages, R2Pages, QueuePages, ObjectPages, MetricsPages):
            panel(self._places).add_to(api)
        api.get("/cron", self._cron)
        api.post("/cron/run", self._cron_run)
        api.get("/configuration", self._configuration)

    # -- who may

    async def _only_from_here(self, req: AnyRequest, res: Response, next: Next) -> None:
        host = req.header("host") or ""
        if not self._guard.allows_host(host):
            raise CoreError(403, "The explorer answers to this server's own address only")
        if not self._guard.allows_origin(req.header("origin"), host):
            raise CoreError(403, "The explorer answers to its own page only")
        if req.header("sec-fetch-site") not in (None, "none", "same-origin"):
            raise CoreError(403, "The explorer answers to its own page only")
        res.header("cache-control", "no-store")
        res.header("x-content-type-options", "nosniff")
        res.header("x-frame-options", "DENY")
        res.header("referrer-policy", "no-referrer")
        res.header("cross-origin-resource-policy", "same-origin")
        res.header("cross-origin-opener-policy", "same-origin")
        await next()

    async def _only_with_token(self, req: AnyRequest, res: Response, next: Next) -> None:
        if not self._guard.allows_token(req.header("x-core-token")):
            raise CoreError(
                403, "The token is missing or wrong. Open the explorer from the address that `core dev` shows"
            )
        await next()

    async def _failed_call(self, err: Exception, req: AnyRequest, res: Response, next: Next) -> Response | None:
        if isinstance(err, BindingError):
            return res.status(400).json({"error": str(err)})
        if isinstance(err, (UnicodeEncodeError, OverflowError)):
            # JSON can say both.
            return res.status(400).json({"error": f"No half characters, and no numbers beyond 64 bits: {err}"})
        await next(err)
        return None

    # -- the page

    async def _page(self, req: AnyRequest, res: Response) -> None:
        token = req.query.get("token")
        if self._guard.public and not self._guard.allows_token(token):
            raise CoreError(403, "Open the explorer from the address that `core dev` shows: it has a token")
        html = (_PAGE / "index.html").read_text("utf-8")
        res.header(
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; img-src 'self' data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        # Only a page of this origin can read it.
        res.html(html.replace("{{token}}", self._options.token))

    async def _file(self, req: AnyRequest, res: Response) -> None:
        name = req.path.rpartition("/")[2]
        res.header("content-type", _TYPES[f".{name.rpartition('.')[2]}"])
        res.send((_PAGE / name).read_bytes())

    # -- the bindings

    async def _overview(self, req: AnyRequest, res: Response) -> None:
        loaded = self._loaded
        if loaded is None:
            failed = None if self._failed is None else for_explorer(failure_of(self._failed, self._options.root))
            res.json({"name": self._options.root.name, "failed": failed})
            return
        worker = loaded.configuration.worker
        res.json(
            {
                "name": worker.name or self._options.root.name,
                "environment": loaded.configuration.environment,
                "failed": None,
                "state": str(self._options.state_folder),
                "bindings": [
                    {
                        "name": name,
                        "kind": binding.kind,
                        "place": binding.place,
                        "absent": loaded.bindings.absent.get(name),
                    }
                    for name, binding in loaded.configuration.bindings.items()
                ],
                "routes": [attrs.asdict(route) for route in loaded.app.routes],
                "queues": list(consumers_of(loaded)),
                "crons": loaded.crons,
                "notices": list(loaded.notices),
            }
        )

    async def _configuration(self, req: AnyRequest, res: Response) -> None:
        loaded = self._loaded
        text = await asyncio.to_thread(self._options.config.read_text, "utf-8", "replace")
        findings = await asyncio.to_thread(findings_of, self._options.config)
        res.json(
            {
                "file": str(self._options.config),
                "text": text,
                "findings": findings,
                "unchecked": []
                if loaded is None
                else [
                    {"key": part.key, "line": part.line, "reason": part.reason}
                    for part in unchecked_in([loaded.configuration])
                ],
            }
        )

    # -- times

    async def _cron(self, req: AnyRequest, res: Response) -> None:
        loaded = self._loaded
        times = self._background.next_times() if self._background is not None else {}
        res.json(
            []
            if loaded is None
            else [
                {"cron": cron, "next": times.get(cron), "handled": cron in loaded.app.crons or None in loaded.app.crons}
                for cron in loaded.crons
            ]
        )

    async def _cron_run(self, req: AnyRequest, res: Response) -> None:
        cron = (await req.json(Trigger)).cron
        if self._background is None or self._loaded is None or cron not in self._loaded.crons:
            raise CoreError(404, "There is no such trigger")
        exchange = await self._background.trigger(cron)
        res.json(exchange.as_json())
