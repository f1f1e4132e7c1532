"""What tools, prompts and resources give a model to read, as Python values and as the protocol writes them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal, TypeAlias, get_args, get_origin

from core.values import frozen, is_array


@frozen
class Image:
    """An image, in the format that `mime_type` names."""

    data: bytes
    mime_type: str = "image/png"


@frozen
class Audio:
    """A sound, in the format that `mime_type` names."""

    data: bytes
    mime_type: str = "audio/wav"


@frozen
class Embedded:
    """A resource with its contents, as they are read under `uri`."""

    uri: str
    data: str | bytes
    mime_type: str = "text/plain"


@frozen
class Link:
    """The address of a resource that the client may read."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None


Content: TypeAlias = str | Image | Audio | Embedded | Link
"""One piece of what a model reads."""


@frozen
class Message:
    """One message of a prompt."""

    content: Content
    role: Literal["user", "assistant"] = "user"


_KINDS = (Image, Audio, Embedded, Link)


def is_content(type_: Any) -> bool:
    """True if values of a type are pieces for a model to read, and no data: of `str`, `Image` or a list with them."""
    if type_ is str or type_ in _KINDS:
        return True
    members: tuple[object, ...] = get_args(type_)
    if get_origin(type_) is list:
        return members[0] is not str and is_content(members[0])
    return bool(members) and all(map(is_content, members)) and get_origin(type_) not in (dict, tuple)


def block_of(value: object) -> dict[str, object]:
    """One piece of content as the protocol writes it."""
    match value:
        case Image(data=data, mime_type=kind) | Audio(data=data, mime_type=kind):
            name = "image" if isinstance(value, Image) else "audio"
            return {"type": name, "data": b64encode(data).decode(), "mimeType": kind}
        case Embedded(uri=uri, data=data, mime_type=kind):
            return {"type": "resource", "resource": resource_of(uri, data, kind)}
        case Link():
            more = present(description=value.description, mimeType=value.mime_type)
            return {"type": "resource_link", "uri": value.uri, "name": value.name, **more}
        case _:
            return {"type": "text", "text": str(value)}


def present(**members: object) -> dict[str, object]:
    """The members of an object that are there: those that are not None."""
    return {key: each for key, each in members.items() if each is not None}


def contents_of(value: object) -> list[dict[str, object]]:
    """One piece, several, or none for None."""
    if value is None:
        return []
    return [block_of(each) for each in (value if is_array(value) else [value])]


def resource_of(uri: str, data: str | bytes, mime_type: str) -> dict[str, object]:
    """The contents of a resource."""
    if isinstance(data, str):
        return {"uri": uri, "mimeType": mime_type, "text": data}
    return {"uri": uri, "mimeType": mime_type, "blob": b64encode(data).decode()}
