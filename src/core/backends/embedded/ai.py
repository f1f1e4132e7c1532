"""The embedded `Ai`: no model of its own, but any server that speaks OpenAI's API, named in the configuration.

Without a server every run raises one error, which says how to name one. httpx (`core-edge[dev]`) sends the requests; an
answer, which gets the shape that the platform's models have, can be read while the model still writes it.
https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn
from urllib.parse import urlsplit

import attrs

from core.bindings import as_type
from core.bindings.ai import Ai, AiGateway, AiModel, AiStream, MarkdownDocument, MarkdownResult
from core.bindings.calls import Hookable
from core.errors import AiError, MissingExtraError, OptionError, UnsupportedBindingError
from core.http.json import JsonObject, dumps, loads
from core.values import is_object

if TYPE_CHECKING:
    import httpx

    from core.http import Response

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

    `url` is the address before `/chat/completions`: `http://127.0.0.1:11434/v1` for Ollama. `models` maps the
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

    @property
    def location(self) -> str:
        return f"the AI server {self.url}"

    def name_of(self, model: str) -> str:
        return self.models.get(model) or self.model or model

    async def json(self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str]) -> Any:
        """Send a request, and return its answer's JSON. Raises AiError for a refusal."""
        data = await self.read(await self.send(method, path, body, headers))
        try:
            return loads(data)
        except ValueError as error:
            raise AiError(f"{self.location} answered what is not JSON: {data[:200]!r}") from error

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        *,
        refusals: bool = False,
    ) -> httpx.Response:
        """Send a request. Its answer is still to be read, on a connection of its own.

        Raises AiError where the server cannot be reached, and for a refusal where none is asked for.
        """
        try:
            import ssl

            import httpx
        except ImportError:
            raise MissingExtraError("the embedded Ai: pip install 'core-edge[dev]'") from None
        client = httpx.AsyncClient(
            # The certificates that this machine trusts, and no proxy: the server is most often on this machine.
            verify=ssl.create_default_context() if self.url.startswith("https:") else False,
            trust_env=False,
            timeout=httpx.Timeout(self.timeout, connect=_CONNECT_TIMEOUT),
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        fields = {
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            **({} if body is None else {"Content-Type": "application/json"}),
            **({} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}),
            **headers,
        }
        try:
            request = client.build_request(
                method, self.url.rstrip("/") + path, headers=fields, content=None if body is None else dumps(body)
            )
            response = await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise AiError(
                f"{self.location} cannot be reached: {error}. Start it, or name another in [core.ai] url"
            ) from error
        except httpx.LocalProtocolError as error:
            raise AiError(
                f"{self.location} cannot be sent this request: {error}. Remove it from extra_headers"
            ) from error
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        if response.status_code >= 400 and not refusals:
            raise await self._refusal(response)
        return response

    @contextlib.asynccontextmanager
    async def chunks(self, response: httpx.Response) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The chunks of a body. Raises AiError when they end too early; the connection is closed after the block."""
        import httpx

        try:
            yield response.aiter_raw()
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        finally:
            await response.aclose()

    async def read(self, response: httpx.Response) -> bytes:
        async with self.chunks(response) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def _refusal(self, response: httpx.Response) -> AiError:
        data = await self.read(response)
        message = data.decode("utf-8", "replace")[:500]
        with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
            error: object = loads(data)["error"]
            message = str(error["message"] if is_object(error) else error)
        refusal = AiError(f"{self.location} answered {response.status_code}: {message}")
        refusal.status = response.status_code
        return refusal

    def _broken(self, error: httpx.HTTPError) -> AiError:
        import httpx

        if isinstance(error, httpx.TimeoutException):
            return AiError(f"{self.location} sent nothing for {self.timeout:g} seconds")
        return AiError(f"{self.location} did not send a complete HTTP/1.1 answer: {error}")


@attrs.frozen
class Task:
    """One run on the server: its address, its inputs, and the reading of its answer."""

    kind: Literal["chat", "completion", "embeddings"]
    body: Mapping[str, object]

    @classmethod
    def of(cls, server: AiServer, model: str, inputs: Mapping[str, object]) -> Task:
        """The task that inputs ask for. Raises AiError for one that is not embedded."""
        body: JsonObject = {"model": server.name_of(model)}
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
        return {"chat": "/chat/completions", "completion": "/completions", "embeddings": "/embeddings"}[self.kind]

    def answer(self, given: Any) -> object:
        with _of_openai(given):
            if self.kind == "embeddings":
                vectors = [entry["embedding"] for entry in sorted(given["data"], key=lambda entry: entry["index"])]
                return {"shape": [len(vectors), len(vectors[0]) if vectors else 0], "data": vectors}
            choice = given["choices"][0]
            message = choice.get("message", {})
            answer: JsonObject = {"response": message.get("content") if self.kind == "chat" else choice["text"]}
            calls: list[Any] = [call["function"] for call in message.get("tool_calls") or ()]
            if calls:
                answer["tool_calls"] = [{"name": call["name"], "arguments": _arguments(call)} for call in calls]
            counts = given.get("usage")
            if is_object(counts):
                names = ("prompt_tokens", "completion_tokens", "total_tokens")
                answer["usage"] = {name: counts.get(name, 0) for name in names}
            return answer


@contextlib.contextmanager
def _of_openai(given: object = None) -> Generator[None]:
    """Raise AiError where an answer is read that is of another shape."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        shown = error if given is None else f"{given!r:.200}"
        raise AiError(f"the AI server's answer has not the shape of OpenAI's API: {shown}") from error


def _arguments(call: Mapping[str, object]) -> object:
    """A tool's arguments. Servers write them as JSON in a string, and models do not always write JSON."""
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):
            return loads(arguments)
    return arguments


async def events(server: AiServer, response: httpx.Response) -> AsyncIterator[bytes]:
    """The server's events as the platform's: `data: {"response": "…"}`, and `data: [DONE]` at the end."""
    usage: Any = None
    async with server.chunks(response) as chunks:
        with _of_openai():
            async for event in AiStream(chunks).events():
                if error := event.get("error"):
                    raise AiError(f"{server.location}: {error.get('message') if is_object(error) else error}")
                usage = event.get("usage") or usage
                for choice in event.get("choices", []):
                    delta: JsonObject = choice.get("delta") or {}
                    piece: Any = choice.get("text") or delta.get("content")
                    if piece:
                        yield f"data: {dumps({'response': piece})}\n\n".encode()
        if usage is not None:
            yield f"data: {dumps({'response': '', 'usage': usage})}\n\n".encode()
        yield b"data: [DONE]\n\n"


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
        with _of_openai(listed):
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
