"""The platform's image transformations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from core.backends.workerd.conversion import (
    binding_error,
    bridge,
    call_js,
    chunks_of,
    from_js,
    js_bytes,
    js_stream,
    js_value,
    options,
)
from core.backends.workerd.engine import JsBacked, JsEngine
from core.backends.workerd.fetch import response_of
from core.bindings.images import ImageInfo, Images, ImageSource, ImageTransformationResult, ImageTransformer
from core.http import Response


class WorkerdImages(JsEngine, Images):
    async def _info(self, image: ImageSource, /) -> ImageInfo:
        found = from_js(await call_js(binding_error, self._js.info, _stream(image)))
        return ImageInfo(found["format"], found.get("fileSize"), found.get("width"), found.get("height"))

    def input(self, image: ImageSource, /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._js.input(_stream(image)), self._hook)


class WorkerdImageTransformer(JsEngine, ImageTransformer):
    def transform(self, transform: Mapping[str, object], /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._js.transform(js_value(dict(transform))), self._hook)

    def draw(self, image: Any, /, **placing: Any) -> WorkerdImageTransformer:
        drawn = image._js if isinstance(image, WorkerdImageTransformer) else _stream(image)
        return WorkerdImageTransformer(self._js.draw(drawn, **options(**placing)), self._hook)

    async def _output(self, **given: object) -> WorkerdImageResult:
        return WorkerdImageResult(await call_js(binding_error, self._js.output, **options(**given)))


class WorkerdImageResult(JsBacked, ImageTransformationResult):
    def response(self) -> Response:
        return response_of(self._js.response())

    def content_type(self) -> str:
        return str(self._js.contentType())

    def image(self) -> AsyncIterator[bytes]:
        return chunks_of(self._js.image())


def _stream(image: ImageSource) -> object:
    if isinstance(image, bytes):
        return bridge().js.Response.new(js_bytes(image)).body
    return js_stream(image)
