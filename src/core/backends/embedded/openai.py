"""A server with OpenAI's API: its requests for a run, and its answers in the shapes of the platform's models.

httpx (`core-edge[dev]`) sends the requests; an answer can be read while the model still writes it.
https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import attrs

from core.bindings.ai import AiStream
from core.errors import AiError, MissingExtraError, OptionError
from core.http.json import JsonObject, dumps, loads
from core.values import is_object

if TYPE_CHECKING:
    import httpx

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
        try:
            if self.kind == "embeddings":
                vectors = [entry["embedding"] for entry in sorted(given["data"], key=lambda entry: entry["index"])]
                return {"shape": [len(vectors), len(vectors[0]) if vectors else 0], "data": vectors}
            choice = given["choices"][0]
            message = choice.get("message", {})
            answer: JsonObject = {"response": message.get("content") if self.kind == "chat" else choice["text"]}
            asked: list[Any] = message.get("tool_calls") or []
            calls: list[Any] = [call["function"] for call in asked]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise AiError(f"the AI server's answer has not the shape of OpenAI's API: {given!r:.200}") from error
        if calls:
            answer["tool_calls"] = [{"name": call["name"], "arguments": _arguments(call)} for call in calls]
        counts = given.get("usage")
        if is_object(counts):
            names = ("prompt_tokens", "completion_tokens", "total_tokens")
            answer["usage"] = {name: counts.get(name, 0) for name in names}
        return answer


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
        async for event in AiStream(chunks).events():
            if isinstance(event.get("error"), dict):
                raise AiError(f"{server.location}: {event['error'].get('message')}")
            usage = event.get("usage") or usage
            for choice in event.get("choices", []):
                delta: JsonObject = choice.get("delta") or {}
                piece: Any = choice.get("text") or delta.get("content")
                if piece:
                    yield f"data: {dumps({'response': piece})}\n\n".encode()
        if usage is not None:
            yield f"data: {dumps({'response': '', 'usage': usage})}\n\n".encode()
        yield b"data: [DONE]\n\n"
