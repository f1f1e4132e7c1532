"""The embedded `Ai`: no model of its own, but any server that speaks OpenAI's API, named in the configuration.

Without a server every run raises one error, which says how to name one. The server is spoken to in `openai.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from core.backends.embedded.openai import AiServer, Task, events
from core.bindings import as_type
from core.bindings.ai import Ai, AiGateway, AiModel, AiStream, MarkdownDocument, MarkdownResult
from core.bindings.calls import Hookable
from core.errors import UnsupportedBindingError

if TYPE_CHECKING:
    from core.http import Response


class EmbeddedAi(Hookable, Ai):
    """The models of `server`, under the platform's names."""

    def __init__(self, server: AiServer | None, *, binding: str = "AI") -> None:
        self._server = server
        self._binding = binding

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {'no server' if self._server is None else self._server.url}>"

    @property
    def ai_gateway_log_id(self) -> str | None:
        """Always None: no gateway is embedded."""
        return None

    async def _run(self, model: str, inputs: Mapping[str, object], type_: object = None, /, **given: Any) -> object:
        if given.get("queue_request"):
            _not_embedded("queued batches (queue_request=True)")
        if given.get("gateway") is not None:
            _not_embedded("gateways (gateway=...)")
        headers: Mapping[str, str] = given.get("extra_headers") or {}
        if given.get("stream") or inputs.get("stream"):
            return AiStream(await self.open_stream(model, inputs, headers))
        if given.get("return_raw_response"):
            return await self.answer_raw(model, inputs, headers)
        return as_type(await self.answer(model, inputs, headers), type_)

    async def _models(
        self, *, search: str | None = None, page: int | None = None, per_page: int | None = None, **_: object
    ) -> list[AiModel]:
        found = await self.list_models()
        wanted = [model for model in found if search is None or search.lower() in model.id.lower()]
        if per_page is not None:
            first = ((page or 1) - 1) * per_page
            wanted = wanted[first : first + per_page]
        return wanted

    async def _to_markdown(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        _not_embedded("document conversion (to_markdown)")

    def gateway(self, gateway_id: str) -> AiGateway:
        _not_embedded("gateways")

    # ------------------------------------------------------------------ methods that a fake answers instead

    async def answer(self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]) -> object:
        server, task = self._task(model, inputs)
        return task.answer(await server.json("POST", task.path, task.body, headers))

    async def answer_raw(self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]) -> Response:
        from core.http import Response

        server, task = self._task(model, inputs)
        given = await server.send("POST", task.path, task.body, headers, refusals=True)
        return Response(await server.read(given), status=given.status_code, headers=dict(given.headers))

    async def open_stream(
        self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """The answer of a model as server-sent events of the platform's shape. Refusals come before the first one."""
        server, task = self._task(model, inputs)
        return events(server, await server.send("POST", task.path, {**task.body, "stream": True}, headers))

    async def list_models(self) -> list[AiModel]:
        listed = await self._known_server().json("GET", "/models", None, {})
        return [AiModel(id=entry["id"], name=entry["id"]) for entry in listed.get("data", [])]

    def _task(self, model: str, inputs: Mapping[str, object]) -> tuple[AiServer, Task]:
        server = self._known_server()
        return server, Task.of(server, model, inputs)

    def _known_server(self) -> AiServer:
        if self._server is None:
            raise UnsupportedBindingError(
                f"{self._binding}: no model is embedded. Name a server that speaks OpenAI's API in the configuration file, "
                'for example Ollama: [core.ai] with url = "http://127.0.0.1:11434/v1" and model = "llama3.2" '
                "(and key = the name of a secret, for one that wants a key), or use FakeAi in a test"
            )
        return self._server


def _not_embedded(parts: str) -> NoReturn:
    raise UnsupportedBindingError(f"Ai: {parts} are not embedded: only the platform has them. Use FakeAi in a test")
