"""Object buckets inside the bucket that the nodes of a cluster share.

An object is an entry, `objects/<key>`, which describes it and either has its few bytes or names the pieces that they
are in, `bodies/<key>/<piece>`. Pieces are written first and never again, and the entry last, under the condition that
nobody has written it meanwhile. So an object is there whole or not at all, whichever node is killed and whenever. What
a reader may still need stays for a while after its object was replaced; what a killed node has left is swept up.

A part of an upload has an entry too, `parts/<upload>/<number>`, and its pieces become those of the object. An upload is
claimed before its object is written, so that of two nodes that complete or abort it one does. Where a node is killed in
between, the same `complete` can be made again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, ParamSpec

import attrs

from core.backends.embedded.r2.arguments import Preconditions
from core.backends.embedded.r2.bucket import Found, R2Storage, Source, covered
from core.backends.embedded.r2.rows import Described, Page, Part, Row, find_parts, joined
from core.backends.r2 import Chosen, Method, refuse
from core.backends.s3.objects import BucketError, SharedObject, SharedObjects
from core.context import Clock, system_clock
from core.errors import R2Error

P = ParamSpec("P")

PIECE: Final = 4 * 1024**2
"""The bytes of a body that are in memory at once, and in one request."""
SMALL: Final = 16 * 1024
"""A body of up to so many bytes is in its entry."""
DAY: Final = 24 * 3600.0
# The seconds that pieces stay for those who read them when their object is replaced or deleted.
_STAY: Final = 600.0
# S3's names have 1024 bytes, as R2's keys, which are in hex here. Of a longer key its first bytes and a digest are.
_IN_NAME: Final = 320
# More than any key has behind its beginning.
_LAST: Final = "\U0010ffff".encode() * 256
_OPEN, _CLAIMED, _ENDED = "open", "claimed", "ended"


@attrs.frozen
class _Body:
    """Bytes in pieces of one size but for the last, whose names begin with `stem`."""

    stem: str
    size: int
    piece: int = PIECE

    def names(self) -> Iterable[tuple[str, int]]:
        """Each piece and its size. An empty body has one."""
        for number in range(max(1, math.ceil(self.size / self.piece))):
            yield f"{self.stem}.{number:06}", min(self.piece, self.size - number * self.piece)


@attrs.frozen
class _Entry:
    """An object as it is stored: its description, and its bytes or where they are."""

    row: Row
    bodies: Sequence[_Body]
    data: bytes

    @property
    def stems(self) -> set[str]:
        return {body.stem for body in self.bodies}

    def dump(self) -> bytes:
        described = {**self.row._asdict(), "key": self.row.key.decode()}
        bodies = [attrs.astuple(body) for body in self.bodies]
        return json.dumps([described, bodies], ensure_ascii=False).encode() + b"\n" + self.data

    @classmethod
    def load(cls, stored: bytes) -> _Entry:
        head, _, data = stored.partition(b"\n")
        described, bodies = json.loads(head)
        return cls(Row(**{**described, "key": described["key"].encode()}), [_Body(*body) for body in bodies], data)


@attrs.define
class _Taken:
    """A body that was read completely: in memory, or in pieces of the key `name`."""

    name: str
    data: bytes = b""
    bodies: Sequence[_Body] = ()
    is_named: bool = False  # something names the pieces, or may


class SharedBucketStorage(R2Storage[_Taken]):
    """The objects of the bucket `name`: an `R2Storage`. `stay` is how long replaced pieces can still be read."""

    def __init__(self, shared: SharedObjects, name: str, *, clock: Clock = system_clock, stay: float = _STAY) -> None:
        folder = f"core-r2/{name}"
        self._shared = shared
        self._objects = f"{folder}/objects"
        self._bodies = f"{folder}/bodies"
        self._uploads = f"{folder}/uploads"
        self._parts = f"{folder}/parts"
        self._swept = f"{folder}/swept"
        self.clock = clock
        self._stay = stay
        self.later: set[asyncio.Task[None]] = set()
        self.place: object = f"{shared.place}/{folder}"

    async def close(self) -> None:
        """End what was to be done later. The next sweep does it."""
        for task in self.later:
            task.cancel()
        await asyncio.gather(*self.later, return_exceptions=True)

    # ------------------------------------------------------------------ reading

    async def head(self, key: bytes) -> Row | None:
        with _reaching("head"):
            found = await self._entry(name_of(key))
        return None if found is None else found[0].row

    async def find(self, key: bytes) -> Found | None:
        with _reaching("get"):
            found = await self._entry(name_of(key))
        if found is None:
            return None
        entry = found[0]

        async def read(offset: int, length: int) -> AsyncIterable[bytes]:
            reading = self._read(entry, offset, length)
            # Now, so that a bucket which cannot be reached is an error of the call, and no body that breaks off.
            return _with_first(await anext(reading, b""), reading)

        return Found(entry.row, read)

    async def _read(self, entry: _Entry, offset: int, length: int) -> AsyncIterator[bytes]:
        if not entry.bodies:
            yield entry.data[offset : offset + length]
            return
        name = name_of(entry.row.key)
        pieces = (piece for body in entry.bodies for piece in body.names())
        for piece, start, end in covered(pieces, offset, length):
            with _reaching("get"):
                data = await self._shared.read_range(f"{self._bodies}/{name}/{piece}", start, end)
            yield data

    async def _entry(self, name: str) -> tuple[_Entry, SharedObject] | None:
        stored = await self._shared.read(f"{self._objects}/{name}")
        return None if stored is None else (_Entry.load(stored.data), stored)

    # ------------------------------------------------------------------ lists

    async def page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page:
        names: list[str] = []
        prefixes: list[bytes] = []
        walk = _Walk(self, start, after)
        with _reaching("list"):
            async for key in walk:
                if len(names) + len(prefixes) == count:
                    return Page(await self._rows(names), prefixes, walk.after)
                cut = key.find(delimiter, len(start)) if delimiter else -1
                if cut >= 0:
                    prefixes.append(key[: cut + len(delimiter)])
                    walk.after = prefixes[-1] + _LAST
                else:
                    names.append(name_of(key))
                    walk.after = key
            return Page(await self._rows(names), prefixes, None)

    async def _rows(self, names: Sequence[str]) -> list[Row]:
        return [each.row for each in await self._entries(names) if each is not None]

    async def _entries(self, names: Sequence[str]) -> list[_Entry | None]:
        found = await self._shared.read_all(f"{self._objects}/{name}" for name in names)
        return [None if each is None else _Entry.load(each.data) for each in found]

    async def names_after(self, after: str) -> list[str]:
        return [name for name, _ in await self._shared.names(self._objects, after)]

    # ------------------------------------------------------------------ writing

    async def take_in(self, method: Method, key: bytes, source: Source) -> _Taken:
        taken = _Taken(name_of(key))
        # A part has no entry that its bytes could be in.
        if source.size > SMALL or method == "uploadPart":
            taken.bodies = [_Body(secrets.token_hex(16), source.size)]
        try:
            waiting = bytearray()
            names = iter([piece for body in taken.bodies for piece in body.names()])
            async for chunk in source:
                waiting += chunk
                while len(waiting) >= PIECE:
                    await self._write_piece(method, taken, next(names), waiting)
            for piece in names:
                await self._write_piece(method, taken, piece, waiting)
        except BaseException:
            self.discard(taken)
            raise
        taken.data = bytes(waiting)
        return taken

    async def _write_piece(self, method: Method, taken: _Taken, piece: tuple[str, int], waiting: bytearray) -> None:
        name, size = piece
        data = bytes(memoryview(waiting)[:size])
        del waiting[:size]
        with _reaching(method):
            await self._shared.write(f"{self._bodies}/{taken.name}/{name}", data)

    def discard(self, taken: _Taken) -> None:
        if not taken.is_named and taken.bodies:
            self._soon(0.0, self._forget, taken.name, taken.bodies)

    async def _forget(self, name: str, bodies: Iterable[_Body]) -> None:
        """Delete pieces, unless the entry of their key names them again: its writer did not know that it had."""
        found = await self._entry(name)
        named = set[str]() if found is None else found[0].stems
        unused = [piece for body in bodies if body.stem not in named for piece, _ in body.names()]
        await self._shared.delete([f"{self._bodies}/{name}/{piece}" for piece in unused])

    def _soon(self, after: float, work: Callable[P, Awaitable[None]], *args: P.args, **given: P.kwargs) -> None:
        """Do something `after` seconds. Where it fails, the next sweep does it."""

        async def do() -> None:
            if after:
                await self.clock.sleep(after)
            with suppress(BucketError):
                await work(*args, **given)

        task = asyncio.create_task(do())
        self.later.add(task)
        task.add_done_callback(self.later.discard)

    async def write(self, row: Row, taken: _Taken, conditions: Preconditions | None) -> bool:
        with _reaching("put"):
            return await self._commit(_Entry(row, taken.bodies, taken.data), conditions, taken)

    async def _commit(self, entry: _Entry, conditions: Preconditions | None, taken: _Taken | None = None) -> bool:
        """Have an entry take the place of the one before, whose pieces go."""
        name = name_of(entry.row.key)
        while True:
            found = await self._entry(name)
            before = None if found is None else found[0]
            if before is not None and before.row.version == entry.row.version:
                return True  # it was written, and the answer lost
            if conditions is not None and not conditions.hold_for(None if before is None else before.row):
                if taken is not None:
                    taken.is_named = False
                return False
            if taken is not None:
                # From here on the entry may name the pieces, even where this fails.
                taken.is_named = True
            tag = None if found is None else found[1].tag
            if await self._shared.write_if(f"{self._objects}/{name}", entry.dump(), tag):
                break
        if before is not None and before.bodies:
            self._soon(self._stay, self._forget, name, before.bodies)
        return True

    async def remove(self, keys: Sequence[bytes]) -> None:
        names = [name_of(key) for key in dict.fromkeys(keys)]
        with _reaching("delete"):
            found = await self._entries(names)
            there = [(name, entry) for name, entry in zip(names, found, strict=True) if entry is not None]
            await self._shared.delete([f"{self._objects}/{name}" for name, _ in there])
        for name, entry in there:
            if entry.bodies:
                self._soon(self._stay, self._forget, name, entry.bodies)

    # ------------------------------------------------------------------ uploads in parts

    async def begin(self, upload_id: str, key: bytes, described: Described) -> None:
        with _reaching("createMultipartUpload"):
            await self._shared.write(self._upload(upload_id), _dump([key.decode(), _OPEN, described]))

    async def write_part(self, upload_id: str, key: bytes, part: Part, taken: _Taken) -> bool:
        [body] = taken.bodies
        with _reaching("uploadPart"):
            state = await self._state(upload_id, key)
            if state is None or state[0] != _OPEN:
                return False
            taken.is_named = True
            where = self._part(upload_id, part.number)
            before = await self._shared.read(where)
            await self._shared.write(where, _dump([[*part[:3], part.md5.hex()], attrs.astuple(body)]))
            if before is not None:
                self._soon(self._stay, self._forget, taken.name, [_Body(*json.loads(before.data)[1])])
        return True

    async def complete(self, upload_id: str, key: bytes, chosen: Chosen) -> Row:
        with _reaching("completeMultipartUpload"):
            while True:
                state = await self._state(upload_id, key)
                if state is None or state[0] == _ENDED:
                    refuse("completeMultipartUpload", 10024)
                _, described, claimed, stored = state
                numbers = sorted({number for number, _ in chosen})
                read = await self._shared.read_all(self._part(upload_id, number) for number in numbers)
                there = [json.loads(each.data) for each in read if each is not None]
                uploaded = {
                    number: (Part(number, size, etag, bytes.fromhex(md5)), _Body(*body))
                    for (number, size, etag, md5), body in there
                }
                parts = find_parts((part for part, _ in uploaded.values()), chosen)
                row = joined(key, parts, self.now(), Described(*described))
                if claimed is not None:
                    row = row._replace(version=claimed[0], uploaded=claimed[1])
                    break
                claim = [key.decode(), _CLAIMED, described, [row.version, row.uploaded]]
                if await self._shared.write_if(self._upload(upload_id), _dump(claim), stored.tag):
                    break
            bodies = [uploaded[part.number][1] for part in parts]
            await self._commit(_Entry(row, bodies, b""), None)
            await self._shared.write(self._upload(upload_id), _dump([key.decode(), _ENDED, described]))
        self._soon(0.0, self._drop_parts, upload_id, key)
        return row

    async def abort(self, upload_id: str, key: bytes) -> None:
        with _reaching("abortMultipartUpload"):
            while True:
                state = await self._state(upload_id, key)
                if state is None:
                    refuse("abortMultipartUpload", 10024)
                step, described, _, stored = state
                if step != _OPEN:
                    return
                ended = _dump([key.decode(), _ENDED, described])
                if await self._shared.write_if(self._upload(upload_id), ended, stored.tag):
                    break
        self._soon(0.0, self._drop_parts, upload_id, key)

    async def _state(self, upload_id: str, key: bytes) -> tuple[str, Any, Any, SharedObject] | None:
        """The state of an upload, its description and its claim; None where there never was one of this id and key."""
        # It comes from a client.
        stored = await self._shared.read(self._upload(upload_id)) if re.fullmatch(r"[\w-]+", upload_id) else None
        if stored is None:
            return None
        found, state, described, *claimed = json.loads(stored.data)
        return (state, described, claimed[0] if claimed else None, stored) if found.encode() == key else None

    async def _drop_parts(self, upload_id: str, key: bytes) -> None:
        """Delete the parts of an upload that has ended, and the pieces that are not the object's."""
        folder = f"{self._parts}/{upload_id}"
        names = [f"{folder}/{name}" async for name, _ in self._shared.all_names(folder)]
        read = await self._shared.read_all(names)
        await self._forget(name_of(key), [_Body(*json.loads(each.data)[1]) for each in read if each is not None])
        await self._shared.delete(names)

    def _upload(self, upload_id: str) -> str:
        return f"{self._uploads}/{upload_id}"

    def _part(self, upload_id: str, number: int) -> str:
        return f"{self._parts}/{upload_id}/{number:05}"

    # ------------------------------------------------------------------ what killed nodes have left

    def sweep_daily(self) -> None:
        """Look every hour whether it is time to sweep, until `close`."""

        async def sweep() -> None:
            while True:
                with suppress(BucketError):
                    await self.sweep()
                await self.clock.sleep(3600.0)

        self._soon(0.0, sweep)

    async def sweep(self) -> bool:
        """Delete pieces that nothing names, and uploads of more than seven days, unless a node has done so this day.

        Returns True where it did. Raises BucketError.
        """
        now = self.clock.time()
        swept = await self._shared.read(self._swept)
        if swept is not None and now - float(swept.data) < DAY:
            return False
        await self._shared.write(self._swept, str(now).encode())
        in_parts: set[str] = set()
        # The parts first: an upload that is begun meanwhile has none among them.
        parts = [name async for name, _ in self._shared.all_names(self._parts)]
        uploads = {name: at async for name, at in self._shared.all_names(self._uploads)}
        for name in parts:
            stored = await self._shared.read(f"{self._parts}/{name}")
            began = uploads.get(name.partition("/")[0])
            if stored is None or began is None or now - began.timestamp() > 7 * DAY:
                await self._shared.delete([f"{self._parts}/{name}"])
            else:
                in_parts.add(json.loads(stored.data)[1][0])
        old = [name for name, at in uploads.items() if now - at.timestamp() > 7 * DAY]
        await self._shared.delete([f"{self._uploads}/{name}" for name in old])
        key = ""
        named = set[str]()
        async for piece, at in self._shared.all_names(self._bodies):
            if now - at.timestamp() < DAY:
                continue  # a put that is under way
            folder, _, rest = piece.partition("/")
            if folder != key:
                found = await self._entry(folder)
                key, named = folder, set[str]() if found is None else found[0].stems
            stem = rest.partition(".")[0]
            if stem not in named and stem not in in_parts:
                await self._shared.delete([f"{self._bodies}/{piece}"])
        return True


class _Walk:
    """The keys that begin with `start` and come after `after`, which may be moved on meanwhile."""

    def __init__(self, storage: SharedBucketStorage, start: bytes, after: bytes | None) -> None:
        self._storage = storage
        self._start = start
        self.after = after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        place = self._start[:_IN_NAME].hex()
        while True:
            if self.after is not None:
                # Behind the name of a key, of which several can be named only by its beginning.
                place = max(place, f"{self.after[:_IN_NAME].hex()}-")
            names = await self._storage.names_after(place)
            # Long keys that begin alike are in the order of their digests: all of them are needed.
            while names and (alike := _common(names[-1])) and (more := await self._storage.names_after(names[-1])):
                names += more
                if (last := _common(names[-1])) != alike:
                    names = [name for name in names if not last or _common(name) != last]
                    break
            if not names:
                return
            place = names[-1]
            for key in await self._keys(names):
                if not key.startswith(self._start):
                    if key > self._start:
                        return
                elif self.after is None or key > self.after:
                    yield key

    async def _keys(self, names: Sequence[str]) -> list[bytes]:
        long = [name for name in names if _common(name)]
        short = [bytes.fromhex(name[:-1]) for name in names if not _common(name)]
        return sorted([*short, *(row.key for row in await self._storage._rows(long))]) if long else short


def name_of(key: bytes) -> str:
    """The name of a key: names are in the order of keys, but for long keys that begin alike."""
    if len(key) <= _IN_NAME:
        return f"{key.hex()}-"
    return f"{key[:_IN_NAME].hex()}-{hashlib.sha256(key).hexdigest()[:32]}"


def _common(name: str) -> str:
    """The beginning that a long key's name has, and "" for others."""
    return "" if name.endswith("-") else name.partition("-")[0]


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


@contextmanager
def _reaching(method: Method) -> Generator[None]:
    """Have a bucket that does not answer be R2's internal error, which is `retryable`."""
    try:
        yield
    except BucketError as error:
        raise R2Error(f"{method}: The bucket of the cluster cannot be used. (10001)") from error
