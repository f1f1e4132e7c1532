"""The bucket that the nodes of a cluster share: names and bytes, written under a condition or without one.

obstore speaks to it, which signs, asks again and knows both S3 and Google Cloud Storage. A request moves a few
megabytes at most and has a time limit, so that a bucket which does not answer is an error and never a hang. This file
knows no binding.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from core.errors import MissingExtraError

if TYPE_CHECKING:
    from obstore.store import ObjectStore, S3Credential

T = TypeVar("T")

# By name of workerd's setting, the variable that it falls back to.
_SETTINGS: Final = {
    "aws_endpoint": "AWS_ENDPOINT_URL",
    "aws_region": "AWS_REGION",
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_token": "AWS_SESSION_TOKEN",
    "aws_credentials_file": "AWS_CREDENTIALS_FILE",
}
# S3 lists so many names at once, and deletes so many.
_PAGE: Final = 1000
_AT_ONCE: Final = 32


class BucketError(Exception):
    """The bucket did not answer, or refused."""


class _MissingError(BucketError):
    """There is no object of this name, or no bucket."""


@attrs.frozen
class SharedObject:
    """The bytes under a name, and a tag of this version of them, for `write_if`."""

    data: bytes
    tag: Mapping[str, str | None]


class SharedObjects:
    """The objects below `url`, such as `s3://bucket/prefix`. `settings` are `key=value` as workerd's cluster has them.

    `seconds` is how long one request may take; it is tried again for as long.
    """

    def __init__(self, url: str, settings: Iterable[str] = (), *, seconds: float = 20.0) -> None:
        try:
            from obstore.store import from_url
        except ImportError:
            raise MissingExtraError("R2 in a cluster: pip install 'core-edge[cluster]'") from None
        given = dict(setting.split("=", 1) for setting in settings)
        found = {name: given.get(name) or os.environ.get(variable) for name, variable in _SETTINGS.items()}
        file = found.pop("aws_credentials_file")
        options: dict[str, Any] = {}
        if url.startswith("s3://"):
            options["config"] = {name: value for name, value in found.items() if value}
            if file and not found["aws_access_key_id"]:
                options["credential_provider"] = lambda: _credentials_in(Path(file))
        limit = timedelta(seconds=seconds)
        self._store: ObjectStore = from_url(
            url,
            # An address is http where the operator wrote it so.
            client_options={"allow_http": True, "timeout": limit},
            retry_config={"max_retries": 3, "retry_timeout": limit},
            **options,
        )
        self.place: str = url
        self.checks_conditions: bool = True

    async def try_conditions(self) -> None:
        """Find out whether the bucket refuses a write whose condition does not hold. Raises BucketError."""
        name = f"tried/{secrets.token_hex(16)}"
        try:
            if not await self.write_if(name, b"tried", None):
                return
            again = await self.write_if(name, b"tried", None)
            other = await self.write_if(name, b"tried", {"e_tag": f'"{"0" * 32}"', "version": "1"})
            self.checks_conditions = not again and not other
        except BucketError:
            # Older servers do not know the header. A bucket that cannot be reached does not take this either.
            self.checks_conditions = False
            await self.write(name, b"tried")
        await self.delete([name])

    async def read(self, name: str) -> SharedObject | None:
        import obstore

        async def read() -> SharedObject:
            got = await obstore.get_async(self._store, name)
            tag = {"e_tag": got.meta["e_tag"], "version": got.meta["version"]}
            return SharedObject(bytes(await got.bytes_async()), tag)

        try:
            return await _answered(read())
        except _MissingError:
            return None

    async def read_all(self, names: Iterable[str]) -> list[SharedObject | None]:
        """The bytes under several names, some of them at once."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def read(name: str) -> SharedObject | None:
            async with gate:
                return await self.read(name)

        return await asyncio.gather(*(read(name) for name in names))

    async def read_range(self, name: str, start: int, end: int) -> bytes:
        """Some bytes under a name. Raises BucketError where there is none."""
        import obstore

        return bytes(await _answered(obstore.get_range_async(self._store, name, start=start, end=end)))

    async def write(self, name: str, data: bytes) -> None:
        """Store bytes under a name. Where it raises BucketError they may be stored all the same."""
        import obstore

        await _answered(obstore.put_async(self._store, name, data, use_multipart=False))

    async def write_if(self, name: str, data: bytes, tag: Mapping[str, str | None] | None) -> bool:
        """Store bytes if those of `tag` are under the name (None: nothing is). Like `write` where it raises."""
        import obstore

        if not self.checks_conditions:
            await self.write(name, data)
            return True
        mode: Any = "create" if tag is None else {key: value for key, value in tag.items() if value is not None}
        try:
            await _answered(obstore.put_async(self._store, name, data, mode=mode, use_multipart=False))
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            return False
        except _MissingError:
            if tag is None:
                raise
            return False
        return True

    async def delete(self, names: Sequence[str]) -> None:
        """Delete what is under names; nothing is not an error."""
        import obstore

        for start in range(0, len(names), _PAGE):
            with suppress(_MissingError):  # Google Cloud Storage says so, S3 does not
                await _answered(obstore.delete_async(self._store, names[start : start + _PAGE]))

    async def names(self, folder: str, after: str = "") -> list[tuple[str, datetime]]:
        """Up to 1000 names in a folder that come after `after`, without it, each with the time it was written."""
        import obstore

        offset = f"{folder}/{after}" if after else None

        async def read() -> Sequence[Any]:
            # One of its overloads is pyarrow's.
            listed = obstore.list(  # pyright: ignore[reportUnknownMemberType]
                self._store, folder, offset=offset, chunk_size=_PAGE
            )
            async for page in listed:
                return page
            return ()

        cut = len(folder) + 1
        return [(found["path"][cut:], found["last_modified"]) for found in await _answered(read())]

    async def all_names(self, folder: str) -> AsyncIterator[tuple[str, datetime]]:
        after = ""
        while found := await self.names(folder, after):
            for each in found:
                yield each
            after = found[-1][0]


async def _answered(call: Coroutine[Any, Any, T]) -> T:
    """Await an answer. Raises BucketError for none, and obstore's own errors for conditions that do not hold."""
    import obstore

    try:
        return await call
    except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
        raise
    except FileNotFoundError as error:
        raise _MissingError(_first_line(error)) from error
    except (obstore.exceptions.BaseError, OSError) as error:
        raise BucketError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    """After the first line the library shows values of its own language."""
    return str(error).partition("\n")[0][:300]


def _credentials_in(file: Path) -> S3Credential:
    """Credentials as `AWS_CREDENTIALS_FILE` has them for workerd: a line for each variable. Asked for every minute."""
    lines = (line.partition("=") for line in file.read_text("utf-8").splitlines())
    values = {name.strip(): value.strip() for name, _, value in lines}
    return {
        "access_key_id": values["AWS_ACCESS_KEY_ID"],
        "secret_access_key": values["AWS_SECRET_ACCESS_KEY"],
        "token": values.get("AWS_SESSION_TOKEN") or None,
        "expires_at": datetime.now(UTC) + timedelta(minutes=1),
    }
