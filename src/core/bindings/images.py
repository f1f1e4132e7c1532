"""The Images binding: the facts about an image, and images made of it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypedDict

from core.bindings import binding_call
from core.values import frozen

if TYPE_CHECKING:
    from core.http import Response

__all__ = [
    "ImageFormat",
    "ImageInfo",
    "ImageSource",
    "ImageTransform",
    "ImageTransformationResult",
    "ImageTransformer",
    "Images",
]

ImageSource: TypeAlias = bytes | AsyncIterable[bytes]
"""An image: JPEG, PNG, GIF, WebP, AVIF, HEIC or SVG."""

ImageFormat: TypeAlias = Literal["image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "rgb", "rgba"]
"""The formats an image can be written in."""


@frozen
class ImageInfo:
    """The facts about an image. An SVG has a format and nothing else. `file_size` is in bytes."""

    format: str
    file_size: int | None = None
    width: int | None = None
    height: int | None = None


class ImageTransform(TypedDict, total=False):
    """Transformations of an image, in the platform's order. Lengths are in pixels."""

    width: int
    height: int
    background: str
    blur: float
    border: Mapping[str, Any]
    brightness: float
    contrast: float
    fit: Literal["scale-down", "contain", "pad", "squeeze", "cover", "crop"]
    flip: Literal["h", "v", "hv"]
    gamma: float
    gravity: str | Mapping[str, Any]
    rotate: Literal[0, 90, 180, 270]
    saturation: float
    segment: Literal["foreground"]
    sharpen: float
    trim: str | Mapping[str, Any]


@runtime_checkable
class ImageTransformationResult(Protocol):
    """An image that was made."""

    def response(self) -> Response:
        """It as a response, with its content type."""
        ...

    def content_type(self) -> str:
        """Its content type."""
        ...

    def image(self) -> AsyncIterable[bytes]:
        """Its bytes."""
        ...


@runtime_checkable
class ImageTransformer(Protocol):
    """An image, and the changes to make to it. Each call gives another one."""

    def transform(self, transform: ImageTransform, /) -> ImageTransformer:
        """Do this to it."""
        ...

    def draw(
        self,
        image: ImageSource | ImageTransformer,
        /,
        *,
        opacity: float | None = None,
        repeat: bool | Literal["x", "y"] | None = None,
        composite: Literal["over", "in", "atop", "out", "xor", "lighter"] | None = None,
        top: int | None = None,
        left: int | None = None,
        bottom: int | None = None,
        right: int | None = None,
    ) -> ImageTransformer:
        """Draw another image over it."""
        ...

    @binding_call
    async def output(
        self,
        *,
        format: ImageFormat,
        quality: int | None = None,
        background: str | None = None,
        anim: bool | None = None,
    ) -> ImageTransformationResult:
        """Make it. `quality` is 1 to 100. Raises BindingError for data that is not an image."""
        raise AssertionError


@runtime_checkable
class Images(Protocol):
    """Images, taken apart and made anew."""

    @binding_call
    async def info(self, image: ImageSource, /) -> ImageInfo:
        """Return the facts about an image. Raises BindingError for data that is not an image."""
        raise AssertionError

    def input(self, image: ImageSource, /) -> ImageTransformer:
        """Begin with an image."""
        ...
