"""The platform's image transformations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.backends.workerd.conversion import bridge, chunks_of, from_js, js_bytes, js_stream, of_fields
from core.backends.workerd.engine import JsBacked, JsEngine, JsMethod, js_call
from core.backends.workerd.fetch import response_of
from core.bindings.images import ImageInfo, Images, ImageSource, ImageTransformationResult, ImageTransformer


class WorkerdImages(JsEngine, Images):
    async def _info(self, image: ImageSource, /) -> ImageInfo:
        return of_fields(ImageInfo, from_js(await self._call("info", _stream(image))))

    def input(self, image: ImageSource, /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._now("input", _stream(image)), self._hook)


class WorkerdImageResult(JsBacked, ImageTransformationResult):
    response: JsMethod = js_call(ImageTransformationResult.response, response_of)
    content_type: JsMethod = js_call(ImageTransformationResult.content_type, str)
    image: JsMethod = js_call(ImageTransformationResult.image, chunks_of)


class WorkerdImageTransformer(JsEngine, ImageTransformer):
    def transform(self, transform: Mapping[str, object], /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._now("transform", transform), self._hook)

    def draw(self, image: Any, /, **placing: Any) -> WorkerdImageTransformer:
        drawn = image._js if isinstance(image, WorkerdImageTransformer) else _stream(image)
        return WorkerdImageTransformer(self._now("draw", drawn, **placing), self._hook)

    _output = js_call(ImageTransformer.output, WorkerdImageResult)


def _stream(image: ImageSource) -> object:
    if isinstance(image, bytes):
        return bridge().js.Response.new(js_bytes(image)).body
    return js_stream(image)
