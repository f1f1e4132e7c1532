"""The embedded `Ai`: no model of its own, but any server that speaks OpenAI's API, named in the configuration.

httpx (`core-edge[dev]`) sends the requests; an answer can be read while the model still writes it. Answers are turned into the shapes that the platform's models give. Without a server every run raises
one error, which says how to name one. https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar, cast, overload
from urllib.parse import urlsplit

import attrs

from core.bindings.ai import (
    AiAsyncBatchResponse,
    AiGateway,
    AiModel,
    AiStream,
    GatewayOptions,
    MarkdownDocument,
    MarkdownResult,
    answer_as,
)
from core.calls import Hookable, binding_call
from core.errors import AiError, MissingExtraError, OptionError, UnsupportedBindingError

if TYPE_CHECKING:
    import httpx
    from typing_extensions import TypeForm

    from core.http import Response

__all__ = ["AiServer", "EmbeddedAi"]

T = TypeVar("T")

_CONNECT_TIMEOUT: Final = 10.0

# Which of the platform's inputs a chat or a completion has, under the same name.
_GENERATION: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "response_format",
    "tools",
)


@attrs.frozen
class AiServer:
    """A server that speaks OpenAI's API, and which of its models stands for one of the platform's.

    `url` is what comes before `/chat/completions`: `http://127.0.0.1:11434/v1` for Ollama. `models` maps the
    platform's names to the server's; a name that is not in it goes to `model`, or as it is when there is none.
    `timeout`: seconds to wait for the next piece of an answer.
    """

    url: str
    api_key: str | None = attrs.field(default=None, repr=False)
    model: str | None = None
    models: Mapping[str, str] = attrs.field(factory=dict[str, str])
    timeout: float = 120.0

    def __attrs_post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(
                f'the AI server "{self.url}" is not an http or https URL. Write it like http://127.0.0.1:11434/v1'
            )

    def name_of(self, model: str) -> str:
        """The server's name for a model."""
        return self.models.get(model) or self.model or model


class EmbeddedAi(Hookable):
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

    @overload
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        type_: None = None,
        /,
        *,
        stream: Literal[False] = False,
        return_raw_response: Literal[False] = False,
        queue_request: Literal[False] = False,
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> Any: ...
    @overload
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        type_: TypeForm[T],
        /,
        *,
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> T: ...
    @overload
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        /,
        *,
        stream: Literal[True],
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> AiStream: ...
    @overload
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        /,
        *,
        return_raw_response: Literal[True],
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> Response: ...
    @overload
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        /,
        *,
        queue_request: Literal[True],
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> AiAsyncBatchResponse: ...
    @binding_call
    async def run(
        self,
        model: str,
        inputs: Mapping[str, Any],
        type_: Any = None,
        /,
        *,
        stream: bool = False,
        return_raw_response: bool = False,
        queue_request: bool = False,
        gateway: GatewayOptions | None = None,
        tags: Sequence[str] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Run a model. See `Ai.run`."""
        stream = stream or bool(inputs.get("stream"))
        if queue_request:
            _not_embedded("queued batches (queue_request=True)")
        if gateway is not None:
            _not_embedded("gateways (gateway=...)")
        if stream:
            return AiStream(await self.open_stream(model, inputs, extra_headers or {}))
        if return_raw_response:
            return await self.answer_raw(model, inputs, extra_headers or {})
        answer = await self.answer(model, inputs, extra_headers or {})
        return answer_as(answer, type_)

    @binding_call
    async def models(
        self,
        *,
        author: str | None = None,
        hide_experimental: bool | None = None,
        page: int | None = None,
        per_page: int | None = None,
        search: str | None = None,
        source: int | None = None,
        task: str | None = None,
    ) -> list[AiModel]:
        """Return the server's models. See `Ai.models`."""
        found = await self.list_models()
        wanted = [model for model in found if search is None or search.lower() in model.id.lower()]
        if per_page is not None:
            first = ((page or 1) - 1) * per_page
            wanted = wanted[first : first + per_page]
        return wanted

    @binding_call
    async def to_markdown(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        """Not embedded. See `Ai.to_markdown`."""
        return await self.convert(files)

    def gateway(self, gateway_id: str) -> AiGateway:
        """Not embedded. See `Ai.gateway`."""
        _not_embedded("gateways")

    # ------------------------------------------------------------------ what a fake answers instead

    async def answer(self, model: str, inputs: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """The answer of a model, in the platform's shape."""
        task = _Task.of(self._known_server(), model, inputs)
        return task.answer(await self._json("POST", task.path, task.body, headers))

    async def answer_raw(self, model: str, inputs: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
        """The server's answer as it came."""
        from core.http import Response

        task = _Task.of(self._known_server(), model, inputs)
        exchange = await self._send("POST", task.path, task.body, headers)
        body = await exchange.read()
        return Response(body, status=exchange.response.status_code, headers=dict(exchange.response.headers))

    async def open_stream(
        self, model: str, inputs: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """The answer of a model as server-sent events of the platform's shape. Refusals come before the first one."""
        task = _Task.of(self._known_server(), model, inputs)
        exchange = await self._send("POST", task.path, {**task.body, "stream": True}, headers)
        if exchange.response.status_code >= 400:
            await _refused(exchange)
        return _events(exchange)

    async def list_models(self) -> list[AiModel]:
        """The server's models."""
        listed = await self._json("GET", "/models", None, {})
        return [AiModel(id=entry["id"], name=entry["id"]) for entry in listed.get("data", [])]

    async def convert(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        """Documents as Markdown."""
        _not_embedded("document conversion (to_markdown)")

    # ------------------------------------------------------------------ HTTP

    def _known_server(self) -> AiServer:
        if self._server is None:
            raise UnsupportedBindingError(
                f"{self._binding}: no model is embedded. Name a server that speaks OpenAI's API in the configuration file, "
                'for example Ollama: [core.ai] with url = "http://127.0.0.1:11434/v1" and model = "llama3.2" '
                "(and key = the name of a secret, for one that wants a key), or use FakeAi in a test"
            )
        return self._server

    async def _json(self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Any:
        from core.http.json import loads

        exchange = await self._send(method, path, body, headers)
        if exchange.response.status_code >= 400:
            await _refused(exchange)
        data = await exchange.read()
        try:
            return loads(data)
        except ValueError as error:
            raise AiError(f"{exchange.location} answered what is not JSON: {data[:200]!r}") from error

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> _Exchange:
        from core.http.json import dumps

        try:
            import httpx
        except ImportError:
            raise MissingExtraError("the embedded Ai: pip install 'core-edge[dev]'") from None
        server = self._known_server()
        location = f"the AI server {server.url}"
        client = httpx.AsyncClient(
            # The certificates that this machine trusts, and no proxy: the server is most often on this machine.
            verify=ssl.create_default_context() if server.url.startswith("https:") else False,
            trust_env=False,
            timeout=httpx.Timeout(server.timeout, connect=_CONNECT_TIMEOUT),
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        fields = {
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            **({} if body is None else {"Content-Type": "application/json"}),
            **({} if server.api_key is None else {"Authorization": f"Bearer {server.api_key}"}),
            **headers,
        }
        try:
            request = client.build_request(
                method, server.url.rstrip("/") + path, headers=fields, content=None if body is None else dumps(body)
            )
            return _Exchange(await client.send(request, stream=True), location, server.timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise AiError(
                f"{location} cannot be reached: {error}. Start it, or name another in [core.ai] url"
            ) from error
        except httpx.LocalProtocolError as error:
            raise AiError(f"{location} cannot be sent this request: {error}. Remove it from extra_headers") from error
        except httpx.HTTPError as error:
            raise _broken(location, error, server.timeout) from error


def _not_embedded(what: str) -> NoReturn:
    raise UnsupportedBindingError(f"Ai: {what} are not embedded: only the platform has them. Use FakeAi in a test")


@attrs.frozen
class _Task:
    """One run on the server: its address, its inputs, and the reading of its answer."""

    kind: Literal["chat", "completion", "embeddings"]
    body: Mapping[str, Any]

    @classmethod
    def of(cls, server: AiServer, model: str, inputs: Mapping[str, Any]) -> _Task:
        body: dict[str, Any] = {"model": server.name_of(model)}
        if "messages" in inputs or "prompt" in inputs:
            body |= {name: inputs[name] for name in _GENERATION if inputs.get(name) is not None}
            if "messages" in inputs:
                return cls("chat", {**body, "messages": inputs["messages"]})
            if inputs.get("raw"):
                return cls("completion", {**body, "prompt": inputs["prompt"]})
            return cls("chat", {**body, "messages": [{"role": "user", "content": inputs["prompt"]}]})
        if "text" in inputs:
            return cls("embeddings", {**body, "input": inputs["text"]})
        raise AiError(
            f"{model}: inputs with {', '.join(map(repr, inputs)) or 'nothing'} are of no task that is embedded. Embedded "
            "are text generation (messages or prompt) and text embeddings (text); use FakeAi in a test for others"
        )

    @property
    def path(self) -> str:
        match self.kind:
            case "chat":
                return "/chat/completions"
            case "completion":
                return "/completions"
            case "embeddings":
                return "/embeddings"

    def answer(self, given: Any) -> Any:
        """The server's answer in the platform's shape."""
        try:
            if self.kind == "embeddings":
                vectors = [entry["embedding"] for entry in sorted(given["data"], key=lambda entry: entry["index"])]
                return {"shape": [len(vectors), len(vectors[0]) if vectors else 0], "data": vectors}
            choice = given["choices"][0]
            message = choice.get("message", {})
            answer: dict[str, Any] = {"response": message.get("content") if self.kind == "chat" else choice["text"]}
            asked: list[Any] = message.get("tool_calls") or []
            calls: list[Any] = [call["function"] for call in asked]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise AiError(f"the AI server's answer has not the shape of OpenAI's API: {given!r:.200}") from error
        if calls:
            answer["tool_calls"] = [{"name": call["name"], "arguments": _arguments(call)} for call in calls]
        usage: Any = given.get("usage")
        if isinstance(usage, dict):
            names = ("prompt_tokens", "completion_tokens", "total_tokens")
            counts = cast("dict[str, Any]", usage)
            answer["usage"] = {name: counts.get(name, 0) for name in names}
        return answer


def _arguments(call: Mapping[str, Any]) -> Any:
    """A tool's arguments. Servers write them as JSON in a string, and models do not always write JSON."""
    from core.http.json import loads

    arguments = call.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):
            return loads(arguments)
    return arguments


async def _events(exchange: _Exchange) -> AsyncIterator[bytes]:
    """The server's events as the platform's: `data: {"response": "…"}`, and `data: [DONE]` at the end."""
    from core.http.json import dumps, loads

    usage: Any = None
    pending = b""
    async with exchange.chunks() as chunks:
        async for chunk in chunks:
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    break
                event = loads(data)
                if isinstance(event.get("error"), dict):
                    raise AiError(f"{exchange.location}: {event['error'].get('message')}")
                usage = event.get("usage") or usage
                for choice in event.get("choices", []):
                    delta: dict[str, Any] = choice.get("delta") or {}
                    piece: Any = choice.get("text") or delta.get("content")
                    if piece:
                        yield f"data: {dumps({'response': piece})}\n\n".encode()
        if usage is not None:
            yield f"data: {dumps({'response': '', 'usage': usage})}\n\n".encode()
        yield b"data: [DONE]\n\n"


async def _refused(exchange: _Exchange) -> NoReturn:
    from core.http.json import loads

    data = await exchange.read()
    message = data.decode("utf-8", "replace")[:500]
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        error: Any = loads(data)["error"]
        message = str(_message(error))
    refusal = AiError(f"{exchange.location} answered {exchange.response.status_code}: {message}")
    refusal.status = exchange.response.status_code
    raise refusal


def _message(error: Any) -> Any:
    whole = error  # not narrowed by what follows
    return whole["message"] if isinstance(error, dict) else whole


@attrs.frozen
class _Exchange:
    """An answer whose body is still to be read. Its connection is for this answer only."""

    response: httpx.Response
    location: str
    timeout: float

    @contextlib.asynccontextmanager
    async def chunks(self) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The chunks of the body. Raises AiError when they end too early; the connection is closed after the block."""
        import httpx

        try:
            yield self.response.aiter_raw()
        except httpx.HTTPError as error:
            raise _broken(self.location, error, self.timeout) from error
        finally:
            await self.response.aclose()

    async def read(self) -> bytes:
        """The whole body."""
        async with self.chunks() as chunks:
            return b"".join([chunk async for chunk in chunks])


def _broken(location: str, error: httpx.HTTPError, timeout: float) -> AiError:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return AiError(f"{location} sent nothing for {timeout:g} seconds")
    return AiError(f"{location} did not send a complete HTTP/1.1 answer: {error}")
