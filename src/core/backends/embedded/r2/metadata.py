"""The HTTP and the custom metadata of an object: how they are given, measured and stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.backends.embedded.r2.arguments import is_headers, parse_http_date, to_datetime, to_milliseconds
from core.backends.embedded.r2.errors import Method, refuse
from core.bindings.r2 import R2HTTPMetadata, R2HTTPMetadataDict
from core.errors import R2TypeError

if TYPE_CHECKING:
    from core.http import Headers

HTTPMetadata: TypeAlias = "R2HTTPMetadata | R2HTTPMetadataDict | Headers"

MAX_METADATA: Final = 8192

_HTTP_FIELDS: Final = ("content_type", "content_language", "content_disposition", "content_encoding", "cache_control")


def to_http_metadata(metadata: HTTPMetadata | None) -> R2HTTPMetadata:
    """HTTP metadata however it is given. Raises R2TypeError for an unknown field."""
    if metadata is None:
        return R2HTTPMetadata()
    if isinstance(metadata, R2HTTPMetadata):
        return metadata
    if is_headers(metadata):
        fields: dict[str, Any] = {name: metadata.get(name.replace("_", "-")) for name in _HTTP_FIELDS}
        return R2HTTPMetadata(**fields, cache_expiry=parse_http_date(metadata.get("expires")))
    unknown = set(metadata) - {*_HTTP_FIELDS, "cache_expiry"}
    if unknown:
        raise R2TypeError(
            f"http_metadata has no {', '.join(sorted(unknown))}: it has {', '.join(_HTTP_FIELDS)}, cache_expiry"
        )
    return R2HTTPMetadata(**metadata)


def dump_http_metadata(metadata: R2HTTPMetadata) -> str:
    """HTTP metadata as its row has it."""
    fields = {name: value for name in _HTTP_FIELDS if (value := getattr(metadata, name)) is not None}
    if metadata.cache_expiry is not None:
        fields["cache_expiry"] = to_milliseconds(metadata.cache_expiry)
    return json.dumps(fields)


def load_http_metadata(text: str) -> R2HTTPMetadata:
    """HTTP metadata as `dump_http_metadata` wrote it."""
    fields = json.loads(text)
    if "cache_expiry" in fields:
        fields["cache_expiry"] = to_datetime(fields["cache_expiry"])
    return R2HTTPMetadata(**fields)


def check_custom_metadata(metadata: Mapping[Any, Any] | None) -> dict[str, str]:
    """A copy of custom metadata. Raises R2TypeError where a name or a value is not a str."""
    custom = dict(metadata or {})
    for name, value in custom.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise R2TypeError(f"custom_metadata[{name!r}] must be a str, not {value!r}. Write str(...) around it")
    return custom


def check_metadata_size(method: Method, custom: Mapping[str, str]) -> None:
    """Refuse custom metadata that is larger than the platform keeps."""
    if sum(_serialised_length(name) + _serialised_length(value) for name, value in custom.items()) > MAX_METADATA:
        refuse(method, 10012)


def _serialised_length(text: str) -> int:
    """As the platform counts it: UTF-16 units, doubled for a string that latin-1 cannot carry."""
    if text.isascii():
        return len(text)
    units = len(text) + sum(character > "\uffff" for character in text)
    return units * 2 if max(text) > "\xff" else units
