"""R2 for workerd: buckets behind the HTTP that an `r2Bucket` binding of it speaks.

They are the embedded ones in the state folder, or, for a node of a cluster, inside the bucket that its nodes share.

A call is JSON, in a header of a GET or before the bytes of a PUT; the answer is JSON, and after it an object's bytes.
The schema is https://github.com/cloudflare/workerd/blob/main/src/workerd/api/r2-api.capnp. The node's supervisor runs
the service, on a port of this machine: the token that workerd adds to each request says which bucket it is for.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import attrs

from core.backends.embedded.r2 import EmbeddedR2Bucket, StoredR2Bucket
from core.backends.embedded.r2.arguments import Preconditions, to_milliseconds
from core.backends.embedded.r2.rows import to_datetime
from core.backends.embedded.store import Store
from core.backends.s3.objects import BucketError, SharedObjects
from core.backends.s3.r2 import SharedBucketStorage
from core.backends.workerd.conversion import js_name
from core.bindings.r2 import R2Body, R2HTTPMetadata, R2Object, R2ObjectBody, R2UploadedPart
from core.errors import BindingError, DeveloperError
from core.http import Headers
from core.runtime.plan import Cluster, External

_CHUNK: Final = 256 * 1024
_DIGESTS: Final = ("md5", "sha1", "sha256", "sha384", "sha512")  # an answer has them under their numbers here
_INCLUDED: Final = ("httpMetadata", "customMetadata")
# The words of an error, without the method and the number that the binding puts around them.
_ERROR: Final = re.compile(r"(?:\w+: )?(.*?)(?: \((\d+)\))?", re.DOTALL)
_NOT_FOUND: Final = (404, 10007, "The specified key does not exist.")
_PRECONDITION: Final = (412, 10031, "At least one of the pre-conditions you specified did not hold.")


@attrs.frozen
class _Answer:
    said: object = None
    body: R2Body | None = None
    refused: tuple[int, int, str] | None = None
    """Status, the platform's number and its words."""


@asynccontextmanager
async def serve_buckets(
    names: Iterable[str], state: Path, cluster: Cluster | None, say: Callable[[str], object]
) -> AsyncGenerator[R2Service]:
    """Serve the buckets `names`, in a folder or inside a cluster's bucket. Raises DeveloperError where that cannot be
    used.
    """
    buckets: dict[str, StoredR2Bucket] = {}
    async with AsyncExitStack() as closing:
        if cluster is None:
            store = closing.enter_context(Store(state))
            buckets.update((name, EmbeddedR2Bucket(store, name)) for name in names)
        else:
            shared = await reach_bucket(cluster, say)
            for name in names:
                storage = SharedBucketStorage(shared, name)
                closing.push_async_callback(storage.close)
                storage.sweep_daily()
                buckets[name] = StoredR2Bucket(storage)
        service = await R2Service(buckets, say).start()
        closing.push_async_callback(service.close)
        yield service


class R2Service:
    """Buckets by their names, from `start` to `close`. `externals` are their addresses, by name, and `conversations`
    the connections that are open.
    """

    def __init__(self, buckets: Mapping[str, StoredR2Bucket], say: Callable[[str], object] = lambda line: None) -> None:
        self._tokens = {secrets.token_urlsafe(32): name for name in buckets}
        self._buckets = {token: buckets[name] for token, name in self._tokens.items()}
        self._say = say
        self.conversations: set[asyncio.Task[object]] = set()

    async def start(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_CHUNK)
        host, port = self._server.sockets[0].getsockname()
        self.externals: dict[str, External] = {
            name: External(f"{host}:{port}", token) for token, name in self._tokens.items()
        }
        return self

    async def close(self) -> None:
        """End it, and what is under way."""
        self._server.close()
        for connection in self.conversations:
            connection.cancel()
        await asyncio.gather(*self.conversations, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.create_task(self._converse(reader, writer))
        self.conversations.add(conversation)
        conversation.add_done_callback(self.conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "replace").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                bucket = self._buckets.get(headers.get("authorization", ""))
                if bucket is None:
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    await writer.drain()
                    return
                size = int(headers.get("cf-r2-metadata-size", 0))
                body = _Incoming(reader, int(headers.get("content-length", 0)) - size)
                asked = json.loads(headers.get("cf-r2-request") or await reader.readexactly(size))
                answer = await self._answer(bucket, asked, body)
                # The binding loses an answer that comes before it has sent everything.
                async for _ in body:
                    pass
                await _send(writer, answer)
        except (OSError, EOFError, asyncio.LimitOverrunError, BindingError):
            pass  # workerd is gone or has no more to ask, or the rest of an object could not be read
        finally:
            writer.close()

    async def _answer(self, bucket: StoredR2Bucket, asked: Mapping[str, object], body: _Incoming) -> _Answer:
        try:
            return await _carry_out(bucket, asked, body)
        except BindingError as error:
            if isinstance(error.__cause__, BucketError):
                # For the operator: the application is not told where the bucket is.
                self._say(f"R2: {error.__cause__}")
            found = _ERROR.fullmatch(str(error))
            assert found is not None
            return _Answer(refused=(400, int(found[2] or 10001), found[1]))


async def reach_bucket(cluster: Cluster, say: Callable[[str], object]) -> SharedObjects:
    """The bucket of a cluster, after it was tried. Raises DeveloperError where it cannot be used."""
    shared = SharedObjects(cluster.bucket, cluster.options)
    try:
        await shared.try_conditions()
    except BucketError as error:
        raise DeveloperError(
            f"R2: the bucket {cluster.bucket} cannot be used. Its credentials have to allow reading, writing, listing "
            f"and deleting: {error}"
        ) from error
    if not shared.checks_conditions:
        say(
            f"note: {cluster.bucket} does not check If-Match and If-None-Match, so a put with a condition is not atomic: "
            "of two at once both may be stored"
        )
    return shared


@attrs.define
class _Incoming:
    """The bytes of a request, after its JSON."""

    _reader: asyncio.StreamReader
    _left: int
    length: int = attrs.field(init=False, default=attrs.Factory(lambda self: self._left, takes_self=True))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._left > 0:
            chunk = await self._reader.read(min(self._left, _CHUNK))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", self._left)
            self._left -= len(chunk)
            yield chunk


async def _send(writer: asyncio.StreamWriter, answer: _Answer) -> None:
    # workerd reads \u as one UTF-16 unit and no pair of them.
    said = b"" if answer.said is None else json.dumps(answer.said, ensure_ascii=False).encode()
    status, code, message = answer.refused or (200, 0, "")
    head = f"HTTP/1.1 {status} \r\nContent-Length: {len(said) + (0 if answer.body is None else answer.body.length)}\r\n"
    if said:
        head += f"cf-r2-metadata-size: {len(said)}\r\n"
    if answer.refused is not None:
        head += f"cf-r2-error: {json.dumps({'version': 1, 'v4code': code, 'message': message})}\r\n"
    writer.write(f"{head}\r\n".encode() + said)
    if answer.body is not None:
        try:
            async for chunk in answer.body:
                writer.write(chunk)
                await writer.drain()
        except BaseException:
            # An object that ends early must not look whole.
            writer.transport.abort()
            raise
    await writer.drain()


async def _carry_out(bucket: StoredR2Bucket, asked: Mapping[str, Any], body: _Incoming) -> _Answer:
    match asked["method"]:
        case "head":
            found = await bucket.head(asked["object"])
            return _Answer(refused=_NOT_FOUND) if found is None else _Answer(_described(found))
        case "get":
            return await _get(bucket, asked)
        case "put":
            return await _put(bucket, asked, body)
        case "list":
            return await _list(bucket, asked)
        case "delete":
            await bucket.delete(asked["objects"] if "objects" in asked else asked["object"])
            return _Answer({})
        case "createMultipartUpload":
            begun = await bucket.create_multipart_upload(asked["object"], **_metadata(asked))
            return _Answer({"uploadId": begun.upload_id})
        case method:
            upload = bucket.resume_multipart_upload(asked["object"], asked["uploadId"])
    match method:
        case "uploadPart":
            part = await upload.upload_part(asked["partNumber"], body, ssec_key=_ssec_key(asked))
            return _Answer({"etag": part.etag})
        case "completeMultipartUpload":
            parts = [R2UploadedPart(part["part"], part["etag"]) for part in asked.get("parts", ())]
            return _Answer(_described(await upload.complete(parts)))
        case _:  # abortMultipartUpload
            await upload.abort()
            return _Answer({})


async def _get(bucket: StoredR2Bucket, asked: Mapping[str, Any]) -> _Answer:
    header, range = asked.get("rangeHeader"), asked.get("range")
    span: Any = {name: int(value) for name, value in range.items()} if range is not None else None
    found = await bucket.get(
        asked["object"],
        only_if=_conditions(asked.get("onlyIf") or {}),
        range=span if header is None else Headers({"range": header}),
        ssec_key=_ssec_key(asked),
    )
    match found:
        case None:
            return _Answer(refused=_NOT_FOUND)
        case R2ObjectBody():
            return _Answer(_described(found), found.body)
        case _:
            return _Answer(_described(found), refused=_PRECONDITION)


async def _put(bucket: StoredR2Bucket, asked: Mapping[str, Any], body: _Incoming) -> _Answer:
    digests: dict[str, Any] = {name: bytes.fromhex(asked[name]) for name in _DIGESTS[1:] if name in asked}
    stored = await bucket.put(
        asked["object"],
        body,
        only_if=_conditions(asked.get("onlyIf") or {}),
        md5=b64decode(asked["md5"]) if "md5" in asked else None,
        **digests,
        **_metadata(asked),
    )
    return _Answer(refused=_PRECONDITION) if stored is None else _Answer(_described(stored))


async def _list(bucket: StoredR2Bucket, asked: Mapping[str, Any]) -> _Answer:
    include: Any = [_INCLUDED[number] for number in asked.get("include", ())]
    options = {name: asked.get(name) for name in ("prefix", "delimiter", "cursor", "limit")}
    page = await bucket.list(**options, start_after=asked.get("startAfter"), include=include)
    said = {
        "objects": [_described(found) for found in page.objects],
        "truncated": page.truncated,
        "delimitedPrefixes": page.delimited_prefixes,
    }
    return _Answer(said if page.cursor is None else {**said, "cursor": page.cursor})


# Values: the names and forms of the schema, and those of Python ------------------------------------------------------

_HTTP_FIELDS: Final = {js_name(field.name): field.name for field in attrs.fields(R2HTTPMetadata)}


def _conditions(given: Mapping[str, Any]) -> Any:
    """The conditions of a call, or None without any. Numbers of 64 bits are text."""
    if not given:
        return None
    etags = [
        None if (found := given.get(name)) is None else [(etag["type"], etag.get("value", "")) for etag in found]
        for name in ("etagMatches", "etagDoesNotMatch")
    ]
    times = [None if (at := given.get(name)) is None else int(at) for name in ("uploadedBefore", "uploadedAfter")]
    return Preconditions(etags[0], etags[1], times[0], times[1], bool(given.get("secondsGranularity")))


def _ssec_key(asked: Mapping[str, Any]) -> str | None:
    return asked["ssec"]["key"] if "ssec" in asked else None


def _metadata(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that a `put` and an upload in parts have in common."""
    http = {_HTTP_FIELDS[name]: value for name, value in asked.get("httpFields", {}).items()}
    if "cache_expiry" in http:
        http["cache_expiry"] = to_datetime(int(http["cache_expiry"]))
    return {
        "http_metadata": R2HTTPMetadata(**http),
        "custom_metadata": {field["k"]: field["v"] for field in asked.get("customFields", ())},
        "storage_class": asked.get("storageClass"),
        "ssec_key": _ssec_key(asked),
    }


def _described(found: R2Object) -> Mapping[str, object]:
    """An object without its bytes. What it has not is left out, since null has the schema's type nowhere."""
    digests = {str(number): getattr(found.checksums, name) for number, name in enumerate(_DIGESTS)}
    described: dict[str, object] = {
        "name": found.key,
        "version": found.version,
        "size": found.size,
        "etag": found.etag,
        "uploaded": to_milliseconds(found.uploaded),
        "checksums": {number: digest.hex() for number, digest in digests.items() if digest is not None},
        "storageClass": found.storage_class,
    }
    if found.http_metadata is not None:
        http = {name: getattr(found.http_metadata, field) for name, field in _HTTP_FIELDS.items()}
        if http["cacheExpiry"] is not None:
            http["cacheExpiry"] = to_milliseconds(http["cacheExpiry"])
        described["httpFields"] = {name: value for name, value in http.items() if value is not None}
    if found.custom_metadata is not None:
        described["customFields"] = [{"k": name, "v": value} for name, value in found.custom_metadata.items()]
    if found.range is not None:
        described["range"] = {"offset": found.range.offset, "length": found.range.length}
    if found.ssec_key_md5 is not None:
        described["ssec"] = {"algorithm": "AES256", "keyMd5": found.ssec_key_md5}
    return described
