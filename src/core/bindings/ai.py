"""Models that are run for a handler: the calls it may make, and the values it gets.

Inputs and outputs are the model's own; for the tasks that most models serve there are types here to name them with.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NotRequired,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
    runtime_checkable,
)

import attrs
from typing_extensions import TypedDict, TypeForm, Unpack

from core.bindings import binding_call
from core.http.json import loads
from core.http.streams import close
from core.values import frozen

if TYPE_CHECKING:
    from core.http import Response

__all__ = [
    "Ai",
    "AiAsyncBatchResponse",
    "AiGateway",
    "AiGatewayLog",
    "AiGatewayUniversalRequest",
    "AiMessage",
    "AiModel",
    "AiStream",
    "AiTextEmbeddings",
    "AiTextGeneration",
    "AiToolCall",
    "AiUsage",
    "GatewayOptions",
    "GatewayRetries",
    "MarkdownDocument",
    "MarkdownResult",
]

T = TypeVar("T")
Metadata: TypeAlias = Mapping[str, int | float | str | bool | None]


class AiMessage(TypedDict):
    """One message of a conversation."""

    role: str
    content: str
    name: NotRequired[str]


@frozen
class AiUsage:
    """The cost of a run, in tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


@frozen
class AiToolCall:
    """A tool that the model wants called, with the arguments for it."""

    name: str
    arguments: Any


@frozen
class AiTextGeneration:
    """The answer of a text generation model: `await ai.run(model, {"messages": […]}, AiTextGeneration)`."""

    response: str | None = None
    tool_calls: list[AiToolCall] = attrs.field(factory=list[AiToolCall])
    usage: AiUsage | None = None


@frozen
class AiTextEmbeddings:
    """The answer of a text embeddings model: one vector per string, `shape` being their number and length."""

    shape: list[int]
    data: list[list[float]]


@frozen
class AiAsyncBatchResponse:
    """The name of a batch that was queued with `queue_request=True`."""

    request_id: str


@frozen
class GatewayRetries:
    """The gateway's retries: 1 to 5 attempts, with a delay in milliseconds."""

    max_attempts: int | None = None
    retry_delay_ms: int | None = None
    backoff: Literal["constant", "linear", "exponential"] | None = None


@frozen
class GatewayOptions:
    """Through which AI gateway to run, and how it is to cache and log. `cache_ttl` is in seconds."""

    id: str
    cache_key: str | None = None
    cache_ttl: int | None = None
    skip_cache: bool | None = None
    metadata: Metadata | None = None
    collect_log: bool | None = None
    event_id: str | None = None
    request_timeout_ms: int | None = None
    retries: GatewayRetries | None = None


@frozen
class AiModel:
    """A model of the catalogue."""

    id: str
    name: str
    description: str = ""
    task: str = ""
    source: int = 0
    tags: list[str] = attrs.field(factory=list[str])
    properties: dict[str, str] = attrs.field(factory=dict[str, str])


class AiStream:
    """The answer of a run with `stream=True`: server-sent events, as bytes, which can be read once.

    `res.stream(answer, content_type="text/event-stream")` passes it on as it is; `answer.text()` gives the pieces
    of text that it carries.
    """

    __slots__ = ("_source",)

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self._source = source

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._source)

    async def events(self) -> AsyncIterator[Any]:
        """The JSON values of the events, up to `[DONE]`. The source is closed when these are, or end."""
        pending = b""
        try:
            async for chunk in self._source:
                pending += chunk
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    if line.startswith(b"data:") and (data := line[5:].strip()):
                        if data == b"[DONE]":
                            return
                        yield loads(data)
        finally:
            await close(self._source)

    async def text(self) -> AsyncIterator[str]:
        """The pieces of text, in order; together they are the answer."""
        events = self.events()
        try:
            async for event in events:
                if isinstance(event, dict) and (piece := cast("dict[str, Any]", event).get("response")):
                    yield str(piece)
        finally:
            await close(events)


@frozen
class MarkdownDocument:
    """A file to be turned into Markdown. Its kind is read from the name's ending and `content_type`."""

    name: str
    content: bytes
    content_type: str | None = None


@frozen
class MarkdownResult:
    """A file as Markdown: `data` and its `tokens`, or the `error` that came instead."""

    name: str
    mime_type: str
    data: str | None = None
    tokens: int | None = None
    error: str | None = None
    id: str | None = None


@frozen
class AiGatewayUniversalRequest:
    """A request to any provider, through the gateway."""

    provider: str
    endpoint: str
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    query: Any = None


@frozen
class AiGatewayLog:
    """The gateway's log of a request. `created_at` is an ISO 8601 time, `duration` in milliseconds."""

    id: str
    provider: str
    model: str
    path: str
    duration: float
    status_code: int
    success: bool
    cached: bool
    created_at: str
    model_type: str | None = None
    request_type: str | None = None
    request_content_type: str | None = None
    response_content_type: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    metadata: Metadata | None = None
    step: int | None = None
    cost: float | None = None
    custom_cost: bool | None = None
    request_size: int = 0
    request_head: str | None = None
    request_head_complete: bool = True
    response_size: int = 0
    response_head: str | None = None
    response_head_complete: bool = True


class AiGateway(Protocol):
    """An AI gateway: logs, feedback, and requests to other providers."""

    @binding_call
    async def run(
        self,
        data: AiGatewayUniversalRequest | Sequence[AiGatewayUniversalRequest],
        *,
        gateway: GatewayOptions | None = None,
    ) -> Response:
        """Send a request; of several, the next one is tried when one fails."""
        raise AssertionError

    @binding_call
    async def get_log(self, log_id: str) -> AiGatewayLog:
        """Return the gateway's log of a request."""
        raise AssertionError

    @binding_call
    async def patch_log(
        self,
        log_id: str,
        *,
        score: float | None = None,
        feedback: Literal[-1, 1] | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        """Add a judgement to a log."""
        raise AssertionError

    @binding_call
    async def get_url(self, provider: str | None = None) -> str:
        """The gateway's address, for a client library of a provider."""
        raise AssertionError


if TYPE_CHECKING:

    class _Run(TypedDict, total=False):
        gateway: GatewayOptions | None
        tags: Sequence[str] | None
        extra_headers: Mapping[str, str] | None


@runtime_checkable
class Ai(Protocol):
    """Models by name, for example `@cf/meta/llama-3.1-8b-instruct`."""

    @property
    def ai_gateway_log_id(self) -> str | None:
        """The gateway's log of the last run, when it went through one."""
        ...

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
        **options: Unpack[_Run],
    ) -> Any: ...
    @overload
    async def run(self, model: str, inputs: Mapping[str, Any], type_: TypeForm[T], /, **options: Unpack[_Run]) -> T: ...
    @overload
    async def run(
        self, model: str, inputs: Mapping[str, Any], /, *, stream: Literal[True], **options: Unpack[_Run]
    ) -> AiStream: ...
    @overload
    async def run(
        self, model: str, inputs: Mapping[str, Any], /, *, return_raw_response: Literal[True], **options: Unpack[_Run]
    ) -> Response: ...
    @overload
    async def run(
        self, model: str, inputs: Mapping[str, Any], /, *, queue_request: Literal[True], **options: Unpack[_Run]
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
        """Run a model on `inputs` and give its answer as it comes, or as a `type_`:

            answer = await req.env.AI.run(model, {"messages": messages}, AiTextGeneration)

        `stream=True` gives an AiStream while the model is still writing. Raises AiError when the model
        refuses or cannot be reached, StructureError when the answer is not a `type_`.
        """
        raise AssertionError

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
        """The models there are."""
        raise AssertionError

    @binding_call
    async def to_markdown(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        """Documents as Markdown, in the order given."""
        raise AssertionError

    def gateway(self, gateway_id: str) -> AiGateway:
        """An AI gateway by name."""
        ...
