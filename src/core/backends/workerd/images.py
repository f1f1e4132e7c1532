"""The platform's image transformations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from core.backends.workerd.conversion import (
    bridge,
    call_js,
    chunks_of,
    from_js,
    js_bytes,
    js_stream,
    js_value,
    options,
    translator,
    unwrap,
)
from core.backends.workerd.fetch import response_of
from core.bindings.calls import BoundHook, Hookable
from core.bindings.images import ImageInfo, Images, ImageSource, ImageTransformationResult, ImageTransformer
from core.errors import BindingError, BindingTypeError
from core.http import Response

_error = translator(BindingError, TypeError=BindingTypeError)


class WorkerdImages(Hookable, Images):
    """`Images` over the runtime's."""

    def __init__(self, images: Any) -> None:
        self._images = unwrap(images)

    async def _info(self, image: ImageSource, /) -> ImageInfo:
        found = from_js(await call_js(_error, self._images.info, _stream(image)))
        return ImageInfo(found["format"], found.get("fileSize"), found.get("width"), found.get("height"))

    def input(self, image: ImageSource, /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._images.input(_stream(image)), self._hook)


class WorkerdImageTransformer(Hookable, ImageTransformer):
    """`ImageTransformer` over the runtime's."""

    __slots__ = ("_hook", "_transformer")

    def __init__(self, transformer: Any, hook: BoundHook | None) -> None:
        self._transformer = transformer
        self._hook = hook

    def transform(self, transform: Mapping[str, Any], /) -> WorkerdImageTransformer:
        return WorkerdImageTransformer(self._transformer.transform(js_value(dict(transform))), self._hook)

    def draw(self, image: Any, /, **placing: Any) -> WorkerdImageTransformer:
        drawn = image._transformer if isinstance(image, WorkerdImageTransformer) else _stream(image)
        return WorkerdImageTransformer(self._transformer.draw(drawn, **options(**placing)), self._hook)

    async def _output(
        self, *, format: str, quality: int | None = None, background: str | None = None, anim: bool | None = None
    ) -> WorkerdImageResult:
        given = options(format=format, quality=quality, background=background, anim=anim)
        return WorkerdImageResult(await call_js(_error, self._transformer.output, **given))


class WorkerdImageResult(ImageTransformationResult):
    """`ImageTransformationResult` over the runtime's."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def response(self) -> Response:
        return response_of(self._result.response())

    def content_type(self) -> str:
        return str(self._result.contentType())

    def image(self) -> AsyncIterator[bytes]:
        return chunks_of(self._result.image())


def _stream(image: ImageSource) -> Any:
    if isinstance(image, bytes):
        return bridge().js.Response.new(js_bytes(image)).body
    return js_stream(image)
