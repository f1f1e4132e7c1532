"""`FakeAi`: models that answer as a test wrote down, whole or as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import attrs

from core.backends.embedded.ai import EmbeddedAi
from core.bindings.ai import AiModel, MarkdownDocument, MarkdownResult
from core.bindings.calls import BindingCall
from core.context import Clock, system_clock
from core.errors import AiError
from core.http import Response
from core.http.json import dumps
from core.testing.calls import Call, Faulty

__all__ = ["Answer", "FakeAi"]

Answer: TypeAlias = "str | Sequence[str] | Mapping[str, Any] | BaseException | Callable[[str, Mapping[str, Any]], Any]"
"""A model's answer: a string; strings, which a stream gives one by one; the whole answer as the model gives it; an
exception, which is raised; or a function of the model's name and the inputs that gives one of these."""


@attrs.define
class _Scripted:
    answer: Any
    model: str | None
    times: int | None


class FakeAi(Faulty, EmbeddedAi):
    """An `Ai` for tests, whose models answer as scripted.

        ai = FakeAi("Hello, Ada")
        ai.script(["Hel", "lo"], model="@cf/meta/llama-3.1-8b-instruct", times=1)

    `answer`: the answer of every model, again and again; a dict of such answers by model when it is a dict of which
    every key begins with `@`. Without any, a run raises AiError, whose message has the line to write. `latency`:
    seconds on the clock that every run takes, and every piece of a stream.
    """

    def __init__(self, answer: Answer | None = None, *, clock: Clock = system_clock, latency: float = 0.0) -> None:
        super().__init__(None)
        self._begin("AI", "ai", clock, latency)
        self._scripts: list[_Scripted] = []
        given: Any = answer
        by_model: dict[str, Any] = dict(given) if isinstance(answer, Mapping) else {}
        if by_model and all(name.startswith("@") for name in by_model):
            for model, said in by_model.items():
                self.script(said, model=model)
        elif answer is not None:
            self.script(given)

    def script(self, answer: Answer, *, model: str | None = None, times: int | None = None) -> None:
        """Let `model`, or any, say `answer`: always, or `times` times. Answers for a number of times come first.

        Of two answers that are for a time, and of two that are for always, a newer one for always replaces the older,
        and those for a time come in their order.
        """
        if times is None:
            self._scripts = [s for s in self._scripts if s.times is not None or s.model != model]
        self._scripts.append(_Scripted(answer, model, times))

    def _said(self, model: str, inputs: Mapping[str, object]) -> Any:
        fitting = [s for s in self._scripts if s.model in (None, model)]
        if not fitting:
            raise AiError(f'FakeAi has no answer for {model}. Write ai.script("...", model="{model}") before the run')
        # For a time before always, and for this model before any.
        scripted = min(fitting, key=lambda s: (s.times is None, s.model is None))
        if scripted.times is not None:
            scripted.times -= 1
            if scripted.times == 0:
                self._scripts.remove(scripted)
        answer = scripted.answer
        if callable(answer) and not isinstance(answer, BaseException):
            answer = answer(model, inputs)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def answer(self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]) -> object:
        """The scripted answer."""
        said = self._said(model, inputs)
        if isinstance(said, str):
            return {"response": said}
        if isinstance(said, (list, tuple)):
            pieces = cast("Sequence[Any]", said)
            if all(isinstance(piece, str) for piece in pieces):
                return {"response": "".join(pieces)}
        return cast("Any", said)

    async def answer_raw(self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]) -> Response:
        """The scripted answer, as JSON of a response."""
        return Response.from_json(await self.answer(model, inputs, headers))

    async def open_stream(
        self, model: str, inputs: Mapping[str, object], headers: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """The scripted answer in pieces; a string word by word."""
        said = self._said(model, inputs)
        if isinstance(said, str):
            words = said.split(" ")
            pieces: list[object] = [word + (" " if place < len(words) - 1 else "") for place, word in enumerate(words)]
        elif isinstance(said, Mapping):
            pieces = [said]
        else:
            pieces = [*said]

        async def events() -> AsyncIterator[bytes]:
            for piece in pieces:
                if self.latency > 0:
                    await self.clock.sleep(self.latency)
                event = piece
                if not isinstance(piece, Mapping):
                    event = {"response": piece}
                yield f"data: {dumps(event)}\n\n".encode()
            yield b"data: [DONE]\n\n"

        return events()

    async def list_models(self) -> list[AiModel]:
        """The models that something was scripted for."""
        names = dict.fromkeys(script.model for script in self._scripts if script.model is not None)
        return [AiModel(id=name, name=name) for name in names]

    async def _to_markdown(self, files: Sequence[MarkdownDocument]) -> list[MarkdownResult]:
        """The scripted answer for `to_markdown`, one for each file: a string."""
        return [
            MarkdownResult(
                name=file.name,
                mime_type=file.content_type or "application/octet-stream",
                data=str(self._said("to_markdown", {"name": file.name, "content": file.content})),
                tokens=0,
            )
            for file in files
        ]

    def _recorded(self, call: BindingCall) -> Call:
        """A run has the model and the inputs, and says when it is a stream; options of a gateway are left out."""
        if call.method != "run":
            return Call(call.method, call.args)
        inputs: Mapping[str, object] = call.args[1] if len(call.args) > 1 else {}
        streamed = call.options.get("stream") or inputs.get("stream")
        return Call("run", call.args[:2], {"stream": True} if streamed else {})
